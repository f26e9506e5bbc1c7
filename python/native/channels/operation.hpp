// What an operation at one place is: read, write, sync and their like; and an extended read, which
// is one too. operation.cpp has what they do, extended.cpp the block of an extended read.
#pragma once
#include "processes/awaited.hpp"

namespace weft::py {

enum class OpType_ : std::uint8_t {
  read,
  next,
  far_sync,  // of a barrier that another OS process made: a read, and called a sync
  write,
  extended,
  sync,
  yield,
  ready
};

struct OpObject;

// The operation, wherever it waits. Its value is in the slot of its way of waiting (ways.hpp).
struct Operation {
  PyObject* target;  // the end, the barrier, the Extended
  OpType_ type;
  bool transit;  // the value stands for an end that is sent: see `transits`
};

struct ExtendedObject {
  PyObject_HEAD EndObject* end;
  union {
    core::Node* partner;   // the held writer (rendezvous)
    std::uint64_t number;  // far: what the home knows the read by
  };
  bool entering;  // an operation of its waits
  bool inside;
  bool entered;  // once, well or not
  // far: if the block ends badly, or this program does, the value is the next to be read (WIRE.md
  // 4.7)
  bool keeps;
};
inline ExtendedObject* ext(PyObject* o) noexcept { return reinterpret_cast<ExtendedObject*>(o); }

PyObject* new_operation(OpType_ type, PyObject* target) noexcept;
PyObject* block_in(OpType_ type, PyObject* target, PyObject* value) noexcept;
const char* verb_of(OpType_ type) noexcept;

// One extended read at a time, since its block is left once. -1: it has begun already.
int check_free(ExtendedObject* x);
// the read is about to begin, at p
void enter_block(ExtendedObject* x, ProcessBase& p) noexcept;
void begin_block(ExtendedObject* x, ProcessBase& p) noexcept;     // it has happened
void leave_block(ExtendedObject* x, bool back = false) noexcept;  // `back`: its value was not used

}  // namespace weft::py
