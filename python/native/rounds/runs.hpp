// All outermost runs of the program, and how an interrupt is passed to one of them (report.cpp).
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <set>

namespace weft::py {

struct PyRun;

const std::set<PyRun*>& every_run() noexcept;
// Keeps the exception of an interrupt for a run, and takes ownership of it. A null `run` means the
// run of this thread.
void keep_interrupt_for(PyRun* run, PyObject* owned) noexcept;

}  // namespace weft::py
