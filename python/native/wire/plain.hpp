// Values that go to another OS process without a call of `pickle`, which takes several times as
// long: small values, whose pickles are made and read here, and arrays of numpy, of which only the
// shape and type are described; their numbers are a buffer beside that description (packed.cpp).
//
// Invariant: any other value goes by `pickle`.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "weft/wire/frame.hpp"

namespace weft::py {

// Make the pickle of an int of up to eight bytes, of None or of a bool, and the value of such a
// pickle. Null without an exception: another value, or another pickle.
PyObject* plain_pickle(PyObject* value) noexcept;
PyObject* plain_value(PyObject* pickle) noexcept;

// Makes the head of an array of plain numbers, if it has at least `least` bytes and is contiguous
// (C) and writable. The array is its own buffer. Null without an exception: another value.
PyObject* array_head(PyObject* value, Py_ssize_t least);
bool is_array_head(wire::Bytes head) noexcept;
// Returns the array that the head describes, over this buffer. Null with an exception.
PyObject* array_of(wire::Bytes head, PyObject* buffer);

}  // namespace weft::py
