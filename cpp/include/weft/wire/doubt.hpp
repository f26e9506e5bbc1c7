// The outcome of an operation whose session ends while it is under way (WIRE.md 8).
#pragma once
#include <cstdint>

#include "../core/status.hpp"
#include "../prim.hpp"

namespace weft::inline WEFT_ABI::wire {

// The state of an operation of this program. The home of the channel carries the operation out.
//
//   unsent ──begin()──► open ──withdraw()──► asked ──an answer, lost()──► over
//                        ├─────────an answer, lost()──────────────────────►│
//                        └──commit() (or from asked)──► making ──made()──► sent ──an answer, lost()──►│
//                                                          └──failed(), lost()────────────────────────►┘
enum class Word : std::uint8_t { unsent, open, asked, making, sent, over };

struct Outcome {
  Status status = Status::pending;
  // The index of the guard that has committed or whose channel has ended.
  std::uint32_t guard = 0;
  std::uint8_t strength = 0;  // the strength of a poison
  // True if the operation has failed, but a value that it wrote might have been taken.
  bool in_doubt = false;
  bool lost = false;  // true if the session has ended
};

// Returns the outcome of an operation in state w when its session is lost. `writes` says whether a
// guard of the operation is an output.
constexpr Outcome when_lost(Word w, bool writes) noexcept {
  const bool sent = w == Word::open || w == Word::asked || w == Word::sent;
  return {Status::died, 0, 0, sent && writes, true};
}

}  // namespace weft::inline WEFT_ABI::wire
