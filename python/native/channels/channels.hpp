// Channels, their ends, and the operations at them, for the other rooms.
#pragma once
#include "process.hpp"

namespace weft::py {

struct ProcessObject;

// takes over one count of the core
PyObject* new_end(PyTypeObject* type, ChannelObject* c) noexcept;
void close_end(EndObject* e, EndState how) noexcept;
// -1: closed, or of another operating-system process; 1: ends come through its channel
int check_end(EndObject* e, const char* verb);
int check_barrier(const BarrierObject* b, const char* verb);
PyObject* make_transit(PyObject* end) noexcept;  // the receiver's end of a moved one (rule 2.4)

struct Transit {
  // the value of a write: an end is replaced by the one that will be the receiver's
  PyObject* original = nullptr;  // the sender's end, owned; null: an ordinary value
  // to_send: new reference
  static int prepare(PyObject* value, Transit& t, PyObject*& to_send) noexcept;
  void commit() noexcept;
  void abandon(PyObject* sent) noexcept;  // the write did not commit; steals `sent`
};

// Ends that processes hold (rules 2.3, 2.4), held.cpp.
// before an end, or a function that makes the value, is written to it
void carry_ends(ChannelObject* c) noexcept;
// unpacked and noted; null with an exception
PyObject* received(const ChannelObject* c, PyObject* value);
// By the process that runs: what it reads is what this returns. Owned.
inline PyObject* taken_from(const ChannelObject* c, PyObject* value) {
  if (c->generation & kCarries) [[unlikely]]
    return received(c, value);
  return value;
}
// it has ended, and has its outcome
void let_go(ProcessObject* p) noexcept;
void poison_held(ProcessObject* p, PyObject* poisoned) noexcept;  // left by that
void forget_received(EndObject* e) noexcept;                      // it is collected
// The open ends that it received as values and has yet (held.cpp).
std::vector<const EndObject*> received_by(const ProcessObject* p);

// --- operations ----------------------------------------------------------------------------------

PyObject* operation_read(PyObject* end, bool next);
PyObject* operation_write(PyObject* end, PyObject* value);
PyObject* operation_sync(BarrierObject* b);
// Several at a time (many.cpp).
PyObject* reader_read_many(PyObject* reader, PyObject* most);
PyObject* reader_blocks(PyObject* reader, PyObject* most);
PyObject* writer_write_many(PyObject* writer, PyObject* values);
// an awaitable that is done: for __aenter__ and the like
PyObject* operation_ready(PyObject* owned);
PyObject* operation_yield();
PyObject* extended_new(PyObject* end, bool keeps);
PyObject* channel_times(PyObject* a, PyObject* b);

}  // namespace weft::py
