// An operation at one place: a read, a write, a sync or an extended read. operation.cpp implements
// operations, and extended.cpp the block of an extended read.
#pragma once
#include "channels/channel.hpp"
#include "processes/awaited.hpp"

namespace weft::py {

enum class OpType_ : std::uint8_t {
  read,
  next,
  far_sync,  // a sync at a barrier of another OS process: a read there, reported as a sync
  write,
  extended,
  sync,
  yield,
  ready
};

struct OpObject;

// An operation, whatever its way of waiting is. Its value is in the slot of that way (ways.hpp).
struct Operation {
  PyObject* target;  // the end, the barrier or the Extended object
  OpType_ type;
  bool transit;  // whether the value represents an end that is being sent: see `transits`
};

struct ExtendedObject {
  PyObject_HEAD EndObject* end;
  union {
    core::Node* partner;   // at a rendezvous: the writer that is held
    std::uint64_t number;  // at a far end: the number by which the home knows the read
  };
  bool entering;  // whether an operation waits to enter the block
  bool inside;
  bool entered;  // whether the block was entered, with or without success
  // At a far end: if an exception leaves the block, or this program dies in it, the next reader
  // receives the value (WIRE.md 4.7).
  bool keeps;
};
extern PyTypeObject ExtendedType;
inline ExtendedObject* ext(PyObject* o) noexcept { return reinterpret_cast<ExtendedObject*>(o); }

PyObject* new_operation(OpType_ type, PyObject* target) noexcept;
PyObject* block_in(OpType_ type, PyObject* target, PyObject* value) noexcept;
const char* verb_of(OpType_ type) noexcept;

// Checks that no other read uses the object, since its block is left only once. Returns -1, with an
// exception, if a read has already begun.
int check_free(ExtendedObject* x);
// Called when the read is about to begin, in process p.
void enter_block(ExtendedObject* x, ProcessBase& p) noexcept;
// called when the read has committed
void begin_block(ExtendedObject* x, ProcessBase& p) noexcept;
void leave_block(ExtendedObject* x, bool back = false) noexcept;  // `back`: the value was not used

}  // namespace weft::py
