// Ctrl-C while a network runs, and signals that find the main thread about to sleep.
#pragma once
#include "native.hpp"

namespace weft::py {

// For the time of an outermost run on the main thread, Ctrl-C cancels the network, unless the program has its own handler; and no signal
// that Python handles is left lying until something else wakes the main thread.
class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

 private:
  PyObject* old_ = nullptr;
  std::uint64_t stirring_ = 0;  // bit n-1: signal n stirs the main thread on our account
};

// The main thread is about to look for signals and then to sleep by p (null: it is awake). On other threads: does nothing.
void main_sleeps_by(runtime::Parking* p) noexcept;

// In the child of a fork: the thread that forked is the main thread there.
void main_is_this_thread() noexcept;

int init_interrupts();

}  // namespace weft::py
