// Values of channels with ends in other OS processes, as the operations of other folders see them
// (packed.cpp).
//
// A value that may leave is *packed* by its writer: pickled bytes, and the object, which the writer
// gets back if nothing was sent. So an object that cannot be pickled is an error at the write, and
// no code of the user's runs within a step of the wire.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

struct ChannelObject;

// Packs `value` (owned) for a write to `c`. Null with an exception; then `value` has been dropped.
PyObject* pack(ChannelObject* c, PyObject* value);
// Unpacks a value that was taken from a wired channel (owned). Null with an exception.
PyObject* unpack(const ChannelObject* c, PyObject* packed);
// Returns the value that was given to a write that did not commit; takes the packed value over.
PyObject* unsent(PyObject* packed) noexcept;
// Makes a refusal, for a value that waited while its channel was wired and could not be packed: the
// write of that value raises why. Takes both references over; null with MemoryError.
PyObject* refusal(PyObject* value, PyObject* why) noexcept;
bool is_packed(PyObject* o) noexcept;
// Returns an array that pickle takes, for the view of an array of a native channel (owned). Null
// with an exception. Any other object is returned as it is.
PyObject* as_sent(PyObject* view) noexcept;
// Returns the exception (owned) of a refusal; null: `o` is no refusal.
PyObject* why_refused(PyObject* o) noexcept;

}  // namespace weft::py
