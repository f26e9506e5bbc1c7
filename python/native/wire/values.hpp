// Values of channels with ends in other OS processes, as the operations of other rooms see them
// (packed.cpp).
//
// A value that may leave is *packed* by its writer: pickled bytes, and the object for whoever gets
// it back when nothing was sent. So an object that cannot be pickled is an error at the write, and
// no code of the user's runs within a step of the wire.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

struct ChannelObject;

// `value` (owned) for a write to `c`, packed. Null with an exception; then it has been let go of.
PyObject* pack(ChannelObject* c, PyObject* value);
// What was taken from a wired channel (owned), unpacked: null with an exception.
PyObject* unpack(const ChannelObject* c, PyObject* packed);
// What a write was given that did not happen (owned).
PyObject* unsent(PyObject* packed) noexcept;
// Takes the place of a value that waited while its channel was wired and could not be packed: its
// write raises why. Takes both references over; null with MemoryError.
PyObject* refusal(PyObject* value, PyObject* why) noexcept;
bool is_packed(PyObject* o) noexcept;
// The view of an array of a native channel (owned), as pickle takes it. Null with an exception. Any
// other object is itself.
PyObject* as_sent(PyObject* view) noexcept;
// The exception (owned) of a refusal; null: `o` is none.
PyObject* why_refused(PyObject* o) noexcept;

}  // namespace weft::py
