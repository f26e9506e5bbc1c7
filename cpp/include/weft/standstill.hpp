// A standstill (rule 10.6): nothing can run, nothing is due, and yet no deadlock is proven, since
// somebody who is no process of the run may hold an end: a thread with a weft::Outside. Once
// nothing has run for two seconds it is told, once a run for the same places.
//
//   weft::on_standstill([](const weft::Standstill& s) { log(s.text()); });     in place of a message on stderr
//
// runtime/run.hpp says who notices it.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "config.hpp"

namespace weft::inline WEFT_ABI {

// One process that waits.
struct Waits {
  std::string path;
  std::string operation;
  std::string at;                      // file:line
  std::vector<std::string> places;     // channels and barriers
  std::vector<std::string> waits_for;  // paths of the processes that hold ends there
  // of the places, those to which somebody may come who is no process
  std::vector<std::string> open;
};

class Standstill {
 public:
  std::vector<Waits> processes;       // by path
  std::chrono::nanoseconds waited{};  // nothing has run for so long
  unsigned outside = 0;               // weft::Outside tokens that may still act

  // For people.
  std::string text() const;
};

// From now on this is called, in place of a message on stderr; nothing: stderr again. By a thread
// that sleeps for Weft, of which it must not use anything; it must not throw. `after`: how long
// nothing has run before; 0: never. Left out: as before, which is as the environment variable
// WEFT_STANDSTILL says, in seconds (0: never), or 2 s.
void on_standstill(std::function<void(const Standstill&)> tell,
                   std::chrono::nanoseconds after = std::chrono::nanoseconds(-1));

}  // namespace weft::inline WEFT_ABI

#if !defined(WEFT_COMPILED)
#include "impl/standstill.ipp"
#endif
