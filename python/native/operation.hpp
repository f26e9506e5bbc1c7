// What an operation at one place is: read, write, sync and their like; and an extended read, which is
// one too. operation.cpp has what they do, extended.cpp the block of an extended read.
#pragma once
#include "awaited.hpp"

namespace weft::py {

enum class OpType_ : std::uint8_t { read, next, write, extended, sync, yield, ready };

struct OpObject;

// The operation, wherever it waits. Its value is in the slot of its way of waiting (ways.hpp).
struct Operation {
  PyObject* target;  // the end, the barrier, the Extended
  OpType_ type;
  bool transit;  // the value stands for an end that is sent: see `transits`
  bool zero;     // of a write: it gives 0, as aPyCSP's does
};

struct ExtendedObject {
  PyObject_HEAD EndObject* end;
  core::Node* partner;  // the held writer (rendezvous)
  bool entering;        // an operation of its waits
  bool inside;
  bool entered;  // once, well or not
};
inline ExtendedObject* ext(PyObject* o) noexcept { return reinterpret_cast<ExtendedObject*>(o); }

PyObject* new_operation(OpType_ type, PyObject* target) noexcept;
PyObject* block_in(OpType_ type, PyObject* target, PyObject* value) noexcept;
const char* verb_of(OpType_ type) noexcept;

// One extended read at a time, since its block is left once. -1: it has begun already.
int check_free(ExtendedObject* x);
void leave_block(ExtendedObject* x) noexcept;
int init_extended();

}  // namespace weft::py
