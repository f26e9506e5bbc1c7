// A standstill (rule 10.6) is a state in which nothing can run and nothing is due, and which is not
// proven to be a deadlock, because something outside the run may hold an end: a thread with a
// weft::Outside. A standstill is reported when nothing has run for two seconds, and only once in a
// run for the same places.
//
//   // instead of a message on stderr
//   weft::on_standstill([](const weft::Standstill& s) { log(s.text()); });
//
// runtime/run.hpp says how a standstill is detected.
#pragma once
#include <string>
#include <vector>

#include <chrono>
#include <functional>
#include "config.hpp"
#include "runtime/partial.hpp"

namespace weft::inline WEFT_ABI {

class Standstill {
 public:
  std::vector<Waits> processes;       // sorted by path
  std::chrono::nanoseconds waited{};  // how long nothing has run
  unsigned outside = 0;               // how many weft::Outside tokens might still act

  // Returns the report as text for people.
  std::string text() const;
};

// Sets the function that is called at a standstill instead of printing a message on stderr; an
// empty function restores the message. An idle thread of Weft calls the function, so it must not
// use Weft, and must not throw. `after` is the time during which nothing must have run; 0 means
// that nothing is reported. If `after` is left out, the time stays as it was. At first the time is
// the value of the environment variable WEFT_STANDSTILL, in seconds (0: never), or 2 s.
void on_standstill(std::function<void(const Standstill&)> tell,
                   std::chrono::nanoseconds after = std::chrono::nanoseconds(-1));

}  // namespace weft::inline WEFT_ABI
