// Values of channels that have a native end (rule 16.2): cells, which a thread can make, move and
// drop without the GIL.
//
//   Python's write ──pack(): converted by the channel's type──► a cell ──► a component's read
//   a component's write ──► a cell ──► Python's read: unpack(), converted
//
// A channel with ends in other OS processes (wire.hpp) carries packed values, whether or not it has
// a native end. The channel keeps its type, and a value that is written here is converted before it
// is packed (rule 16.7).
//
// A cell takes the place of a reference to an object in the core. It looks like an object, of a
// type that no program sees, so a slot drops a cell as it drops an object. A cell does not come
// from the interpreter's allocator, has one owner, and refers to no object.
//
// Invariants
//  1 A native channel carries cells of its one type and nothing else, from attach() on until it is
//    wired.
//  2 The memory of a cell comes from malloc, so any thread may make and free it.
#pragma once
#include <string>

#include "channels/channel.hpp"
#include "weft/component_abi.h"

namespace weft::py {

class NativeType;

// Makes a cell, which takes ownership of `v`; the type of the cell is that of the channel. Returns
// null if there is no memory. The GIL is not needed.
PyObject* new_cell(const NativeType* t, weft_value v) noexcept;
weft_value take_cell(PyObject* cell) noexcept;  // returns the value, and frees the cell
bool is_cell(PyObject* o) noexcept;
void drop_cell(PyObject* o) noexcept;

// Makes the channel carry values of this type from now on; values that wait there are converted.
// `who` is for messages ("process scale of component filter"). Returns -1 with BadUse if the
// channel carries another native type, a value that waits does not convert, or the channel cannot
// be native.
int attach(ChannelObject* c, const NativeType* t, const char* who);
// Returns 0 if the type could be attached now, otherwise -1 with the BadUse of attach(). Changes
// nothing.
int may_attach(ChannelObject* c, const NativeType* t, const char* who);
// For `Channel(type=...)`: returns -1 with BadUse if `type` is not a type of a native channel.
int type_channel(ChannelObject* c, PyObject* type);
// Makes `to` a channel of the same type as `c`. Returns -1 with an exception.
int type_like(const ChannelObject* c, ChannelObject* to);
void forget_native(ChannelObject* c) noexcept;  // called when the channel is destroyed
const NativeType* type_of(const ChannelObject* c) noexcept;

int check_move(ChannelObject* c, PyObject* value);         // checks the value of a write(move=True)
PyObject* pack_native(ChannelObject* c, PyObject* value);  // like pack() in values.hpp
PyObject* unpack_native(PyObject* cell);                   // like unpack() in values.hpp
PyObject* unsent_native(PyObject* cell) noexcept;

// For a native channel that is wired: converts `value`, and returns the object to be pickled in its
// place; null, with an exception, if the value does not convert.
PyObject* plain_native(ChannelObject* c, PyObject* value);
// Makes the native value of an object that was read at a native channel that is wired. Returns -1
// with an exception.
int value_native(ChannelObject* c, const NativeType* t, PyObject* o, weft_value& to);
// Called while a channel is being wired: turns the cells that wait there into Python objects,
// because pack() accepts only Python objects. Returns -1 with an exception.
int cells_to_objects(ChannelObject* c);

}  // namespace weft::py
