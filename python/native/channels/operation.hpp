// An operation at one place: a read, a write, a sync or an extended read. operation.cpp has what
// operations do, extended.cpp the block of an extended read.
#pragma once
#include "channels/channel.hpp"
#include "processes/awaited.hpp"

namespace weft::py {

enum class OpType_ : std::uint8_t {
  read,
  next,
  far_sync,  // a sync at a barrier of another OS process: a read, called a sync
  write,
  extended,
  sync,
  yield,
  ready
};

struct OpObject;

// The operation, in any way of waiting. Its value is in the slot of its way of waiting (ways.hpp).
struct Operation {
  PyObject* target;  // the end, the barrier, the Extended
  OpType_ type;
  bool transit;  // the value stands for an end that is sent: see `transits`
};

struct ExtendedObject {
  PyObject_HEAD EndObject* end;
  union {
    core::Node* partner;   // the writer that is held (at a rendezvous)
    std::uint64_t number;  // at a far end: the number by which the home knows the read
  };
  bool entering;  // an operation waits to enter the block
  bool inside;
  bool entered;  // the block was entered, with or without success
  // At a far end: if the block ends badly, or this program does, the value is the next to be read
  // (WIRE.md 4.7).
  bool keeps;
};
extern PyTypeObject ExtendedType;
inline ExtendedObject* ext(PyObject* o) noexcept { return reinterpret_cast<ExtendedObject*>(o); }

PyObject* new_operation(OpType_ type, PyObject* target) noexcept;
PyObject* block_in(OpType_ type, PyObject* target, PyObject* value) noexcept;
const char* verb_of(OpType_ type) noexcept;

// Allows one extended read at a time, since its block is left once. Returns -1, with an exception,
// if the read has begun already.
int check_free(ExtendedObject* x);
// The read is about to begin, in process p.
void enter_block(ExtendedObject* x, ProcessBase& p) noexcept;
void begin_block(ExtendedObject* x, ProcessBase& p) noexcept;     // the read has committed
void leave_block(ExtendedObject* x, bool back = false) noexcept;  // `back`: the value was not used

}  // namespace weft::py
