// How a program answers the commands that inspect it from outside: `weft ps`, `weft top`, `weft
// view`, `weft dump` (rules 14.9, 14.10). The messages are those of a Python program, which
// python/src/weft/_watching/look_frames.py describes.
//
//   the first run ──► the door (runtime/door.hpp) ──a visitor connects──► a thread for the visitor:
//   messages ──► runtime/look.hpp
#pragma once
#include <string>
#include <string_view>

#include "config.hpp"

namespace weft::inline WEFT_ABI::detail {

// Lets the program be inspected from now on, unless WEFT_INSPECT=0 forbids that. Each run calls
// this function as it begins.
void can_be_looked_at() noexcept;

// The conversation with one visitor.
class Answers {
 public:
  static constexpr std::size_t kLongest = 4096;  // the maximum size of a request in bytes

  Answers();
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  ~Answers();
  // Receives the visitor's bytes, in pieces of any size. Returns the bytes to send. If `over` is
  // true afterwards, the received bytes were not a message, and no more bytes must be passed to
  // take().
  std::string take(std::string_view bytes);
  bool over = false;

 private:
  struct Visit;
  Visit* const visit_;
};

}  // namespace weft::inline WEFT_ABI::detail
