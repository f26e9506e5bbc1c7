// How a thread gives up the interpreter lock, and takes it again (door.hpp).
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// For a thread that has the lock. Returns what take_lock() needs.
PyThreadState* give_up_lock() noexcept;
void take_lock(PyThreadState* mine) noexcept;

}  // namespace weft::py
