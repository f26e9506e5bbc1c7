// How a thread gives up the interpreter lock, and takes it again (door.hpp).
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// Of a thread that is known to the interpreter and has the lock. What take_lock() wants.
PyThreadState* give_up_lock() noexcept;
void take_lock(PyThreadState* mine) noexcept;

}  // namespace weft::py
