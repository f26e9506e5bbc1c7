// Values of channels that have a native end (rule 16.2): cells, which a thread makes, moves and
// drops without the GIL.
//
//   Python's write ──pack(): converted by the channel's type──► a cell ──► a component's read
//   a component's write ──► a cell ──► Python's read: unpack(), converted
//
// A channel with ends in other OS processes (wire.hpp) carries packed values, as any of those does;
// its type is kept, and what is written here is converted before it is packed (rule 16.7).
//
// A cell stands where the core has a reference to an object: it looks like one, of a type that
// nobody sees, so that a slot that is let go of is an object that is let go of. It is no object of
// the interpreter's allocator, has one owner, and refers to no object.
//
// Invariants
//  1 A channel that is native carries cells of its one type and nothing else, from attach() on
//    until it is wired.
//  2 What a cell needs is malloc's: it is made and freed by any thread.
#pragma once
#include <string>

#include "channels/channel.hpp"
#include "weft/component_abi.h"

namespace weft::py {

class NativeType;

// Without the GIL: a cell that takes `v` over; null: no memory. Its type is the channel's.
PyObject* new_cell(const NativeType* t, weft_value v) noexcept;
weft_value take_cell(PyObject* cell) noexcept;  // the cell is gone
bool is_cell(PyObject* o) noexcept;
void drop_cell(PyObject* o) noexcept;

// From now on the channel carries values of this type; those that wait there are converted. `who`:
// for messages ("process scale of component filter"). -1 with BadUse: it is native of another type,
// a value that waits does not convert, or it cannot be native.
int attach(ChannelObject* c, const NativeType* t, const char* who);
// Could it be attached now? 0, or -1 as attach(); nothing is changed.
int may_attach(ChannelObject* c, const NativeType* t, const char* who);
// By `Channel(type=...)`: -1 with BadUse, it is no type of a native channel.
int type_channel(ChannelObject* c, PyObject* type);
// `to` is made like `c` was: -1 with an exception.
int type_like(const ChannelObject* c, ChannelObject* to);
void forget_native(ChannelObject* c) noexcept;  // it is gone
const NativeType* type_of(const ChannelObject* c) noexcept;

int check_move(ChannelObject* c, PyObject* value);         // for write(move=True)
PyObject* pack_native(ChannelObject* c, PyObject* value);  // as pack() of values.hpp
PyObject* unpack_native(PyObject* cell);                   // as unpack()
PyObject* unsent_native(PyObject* cell) noexcept;

// Of a native channel that is wired. What is to be pickled for `value`, converted; null with an
// exception: it does not convert.
PyObject* plain_native(ChannelObject* c, PyObject* value);
// The value of an object that was read there. -1 with an exception.
int value_native(ChannelObject* c, const NativeType* t, PyObject* o, weft_value& to);
// The channel is being wired: the cells that wait at it become objects, which pack() takes.
int cells_to_objects(ChannelObject* c);

}  // namespace weft::py
