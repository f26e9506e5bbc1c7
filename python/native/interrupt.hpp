// Ctrl-C while a network runs.
#pragma once
#include "native.hpp"

namespace weft::py {

// For the time of an outermost run on the main thread, Ctrl-C cancels the network; unless the program has its own handler.
class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

 private:
  PyObject* old_ = nullptr;
};

}  // namespace weft::py
