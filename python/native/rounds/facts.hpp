// The facts about a run that reports, the search for partial deadlocks and rounds use.
#pragma once
#include <array>
#include <set>

#include "channels/channel.hpp"
#include "processes/process.hpp"

namespace weft::py {

struct PyRun;

// Whether Python code has set a function that is called when an executor becomes idle.
extern bool looking;
void locate(ProcessBase& p) noexcept;               // updates the process's file and line
void watch_standstill(runtime::Run& run) noexcept;  // notices a standstill (rule 10.6)
void fell_idle() noexcept;                          // called when an executor is about to sleep
// Returns whether the process waits at a channel of another program, in this operation, which is
// not a choice. Such a party waits at the channel's home, and is in no waiting queue of this
// program; so facing() and is_woken() cannot recognise it.
bool waits_afar(ProcessBase& p, const runtime::OpKind& op) noexcept;
// Returns which process waits where in a run that is idle, in the form of _facts(); null if the run
// is not idle. Runs no Python code.
PyObject* facts_at_rest(PyRun& run) noexcept;

// Calls f(end, the place of its channel, whether it is a writer) for the open ends that a process
// was given.
template <class F>
void each_end_held(ProcessBase& p, F&& f) {
  const ProcessObject* const o = process_object(&p);
  for (Py_ssize_t i = 0; o && i < Py_SIZE(o); ++i) {
    const EndObject* const e = o->held[i];
    if (e->state == EndState::open)
      f(e, static_cast<const core::SyncObject*>(&e->channel->core),
        Py_IS_TYPE(e, &WriterType) != 0);
  }
}
// The processes that were given an end at one place, and those ends.
struct Holders {
  std::set<std::uint32_t> readers, writers;
  std::set<const EndObject*> reader_ends, writer_ends;
  void add(std::uint32_t process, const EndObject* e, bool writes) {
    (writes ? writers : readers).insert(process);
    (writes ? writer_ends : reader_ends).insert(e);
  }
};
inline PyObject* key_of(const void* place) { return PyLong_FromVoidPtr(const_cast<void*>(place)); }

// While this object exists, nothing in any run moves (partial.cpp, invariants 1 and 2): no
// component begins an operation, and the garbage collector is off.
class OneMoment {
 public:
  OneMoment() noexcept;
  OneMoment(const OneMoment&) = delete;
  OneMoment& operator=(const OneMoment&) = delete;
  ~OneMoment();

 private:
  int collector_;
};
PyObject* every_fact(bool at_rest);  // in the form of _facts(); called while a OneMoment exists
// Returns numbers that change whenever a value enters or leaves a channel: values passed, values
// dropped, values in the buffer.
std::array<unsigned long long, 3> figures_of(const Engine& c) noexcept;
PyObject* figures_row(const std::array<unsigned long long, 3>& f);

}  // namespace weft::py
