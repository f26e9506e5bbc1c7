// What an operation is told when its session ends under it (WIRE.md 8).
#pragma once
#include <cstdint>

#include "../core/status.hpp"
#include "../prim.hpp"

namespace weft::inline WEFT_ABI::wire {

// Where a delegated operation stands at its place.
//
//   unsent ──begin()──► open ──withdraw()──► asked ──an answer, lost()──► over
//                        ├─────────an answer, lost()──────────────────────►│
//                        └──commit() (or from asked)──► making ──made()──► sent ──an answer, lost()──►│
//                                                          └──failed(), lost()────────────────────────►┘
enum class Word : std::uint8_t { unsent, open, asked, making, sent, over };

struct Outcome {
  Status status = Status::pending;
  std::uint32_t guard = 0;    // which; of `ok` and of an end
  std::uint8_t strength = 0;  // of a poison
  bool in_doubt = false;      // it failed, and a value of it may have been taken
  bool lost = false;          // by the end of its session
};

// `writes`: there is an output among its guards.
constexpr Outcome when_lost(Word w, bool writes) noexcept {
  const bool sent = w == Word::open || w == Word::asked || w == Word::sent;
  return {Status::died, 0, 0, sent && writes, true};
}

}  // namespace weft::inline WEFT_ABI::wire
