// How a program answers who looks at it from outside: `weft ps`, `weft top`, `weft view`, `weft
// dump` (rules 14.9, 14.10). The messages are those of a Python program
// (python/src/weft/_watching/look_frames.py says which).
//
//   the first run ──► the door (runtime/door.hpp) ──somebody comes──► a thread for them: messages
//   ──► runtime/look.hpp
#pragma once
#include <string>
#include <string_view>

#include "config.hpp"

namespace weft::inline WEFT_ABI::detail {

// The program can be looked at from now on, unless it must not be. A run calls this as it begins.
void can_be_looked_at() noexcept;

// The conversation with one visitor.
class Answers {
 public:
  static constexpr std::size_t kLongest = 4096;  // bytes of a request, at most

  Answers();
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  ~Answers();
  // Takes bytes in pieces of any size. Returns what is to be sent. If `over` is true after that,
  // what came was no message, and nothing more is to be taken.
  std::string take(std::string_view bytes);
  bool over = false;

 private:
  struct Visit;
  Visit* const visit_;
};

}  // namespace weft::inline WEFT_ABI::detail
