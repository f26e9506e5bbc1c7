// The outcome of an operation whose session ends while it is under way (WIRE.md 8).
#pragma once
#include <cstdint>

#include "../core/status.hpp"
#include "../prim.hpp"

namespace weft::inline WEFT_ABI::wire {

// The state of a delegated operation at its place.
//
//   unsent ──begin()──► open ──withdraw()──► asked ──an answer, lost()──► over
//                        ├─────────an answer, lost()──────────────────────►│
//                        └──commit() (or from asked)──► making ──made()──► sent ──an answer, lost()──►│
//                                                          └──failed(), lost()────────────────────────►┘
enum class Word : std::uint8_t { unsent, open, asked, making, sent, over };

struct Outcome {
  Status status = Status::pending;
  std::uint32_t guard = 0;    // the guard of `ok` and of an end
  std::uint8_t strength = 0;  // the strength of a poison
  bool in_doubt = false;      // the operation failed, and a value of it may have been taken
  bool lost = false;          // the session has ended
};

// The outcome of an operation in state w when its session is lost. `writes`: there is an output
// among its guards.
constexpr Outcome when_lost(Word w, bool writes) noexcept {
  const bool sent = w == Word::open || w == Word::asked || w == Word::sent;
  return {Status::died, 0, 0, sent && writes, true};
}

}  // namespace weft::inline WEFT_ABI::wire
