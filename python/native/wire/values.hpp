// Values of channels with ends in other OS processes: the functions of packed.cpp that operations
// in other directories use.
//
// A value that may be sent to another OS process is *packed* by its writer: it consists of pickled
// bytes and of the object, which is given back to the writer if nothing was sent. Therefore an
// object that cannot be pickled is an error at the write, and no user code runs within a step of
// the wire.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

struct ChannelObject;

// Packs `value` (owned) for a write to `c`. Returns null with an exception; then `value` has been
// dropped. `by_writer` is the number of references to the value that the write and its caller have,
// if the write gives the value away; 0 if the value must be copied (rule 9.7).
PyObject* pack(ChannelObject* c, PyObject* value, int by_writer = 0);
// Unpacks a value that was taken from a wired channel (owned). Returns null with an exception on
// failure.
PyObject* unpack(const ChannelObject* c, PyObject* packed);
// Returns the original value of a write that did not commit. Takes ownership of the packed
// value.
PyObject* unsent(PyObject* packed) noexcept;
// Makes a refusal, for a value that waited while its channel was wired and could not be packed: the
// write of that value will raise `why`. Takes ownership of both references. Returns null with
// MemoryError.
PyObject* refusal(PyObject* value, PyObject* why) noexcept;
bool is_packed(PyObject* o) noexcept;
// Returns an array that pickle accepts, in place of the view of an array of a native channel; null
// with an exception on failure. Takes ownership of `view`. Any other object is returned as it is.
PyObject* as_sent(PyObject* view) noexcept;
// Returns the exception of a refusal (owned); null if `o` is not a refusal.
PyObject* why_refused(PyObject* o) noexcept;

}  // namespace weft::py
