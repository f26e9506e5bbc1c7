// Sends values to another OS process without a call of `pickle`, which takes several times as long.
// Small values are pickled and unpickled here. For arrays of numpy only shape and type are
// described; their numbers are a buffer beside that description (packed.cpp).
//
// Invariant: any other value is pickled by `pickle`.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "weft/wire/frame.hpp"

namespace weft::py {

// plain_pickle() makes the pickle of an int of up to eight bytes, of None or of a bool;
// plain_value() makes the value of such a pickle. For any other value or pickle they return null
// without an exception.
PyObject* plain_pickle(PyObject* value) noexcept;
PyObject* plain_value(PyObject* pickle) noexcept;

// Makes the head of an array of plain numbers, if it has at least `least` bytes and is contiguous
// (C) and writable. The array itself is the buffer. Returns null without an exception for any other
// value.
PyObject* array_head(PyObject* value, Py_ssize_t least);
// Returns whether the type of the value is numpy.ndarray itself, and not a class derived from it.
bool is_plain_array(PyObject* value) noexcept;
bool is_array_head(wire::Bytes head) noexcept;
// Returns the array that the head describes, over this buffer; null with an exception on failure.
PyObject* array_of(wire::Bytes head, PyObject* buffer);

}  // namespace weft::py
