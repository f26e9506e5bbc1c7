// How a thread releases the interpreter lock, and takes it again (door.hpp).
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// Releases the lock, which the thread must have. Returns what take_lock() needs.
PyThreadState* give_up_lock() noexcept;
void take_lock(PyThreadState* mine) noexcept;

}  // namespace weft::py
