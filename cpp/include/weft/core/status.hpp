// What an operation came to. The freestanding layer returns these; the hosted layer turns the ends
// into exceptions.
#pragma once
#include <cstdint>
#include <type_traits>

#include "../config.hpp"

namespace weft::inline WEFT_ABI {

enum class Status : std::uint8_t {
  ok,         // committed
  pending,    // not yet: the waker will be called once
  retired,    // the other side is gone, quietly (rule 3)
  poisoned,   // the channel was poisoned (rule 4)
  died,       // the other side was killed (rule 4.5)
  cancelled,  // withdrawn before the commit (rule 6.2)
  timed_out,  // a timer guard won (rule 5.2)
  in_doubt,   // as died; of a write whose home died: its value may have been taken (WIRE.md 8.1)
};

constexpr bool is_end(Status s) noexcept {
  return s == Status::retired || s == Status::poisoned || s == Status::died ||
         s == Status::in_doubt;
}

// What a full buffer does (rule 1.4).
enum class Overflow : std::uint8_t { block, drop_oldest, drop_newest, unbounded, drop_last };

namespace core {

// A count of what happened: 64 bits, or one word where a word is less (it wraps; each count then
// costs a load and a store).
using Tally = std::conditional_t<(sizeof(void*) < 8), std::uint32_t, std::uint64_t>;

// What one attempt of a party at one channel came to, under the channel's lock.
enum class Attempt : std::uint8_t {
  committed,      // done: the value has moved (or, for a computed output, a partner is reserved)
  partner_holds,  // committed, but the partner lets us go later: await the wake-up
  not_ready,      // nobody to commit with
  gone,           // our own choice was won by somebody else meanwhile: await the wake-up
  ended,          // the channel has ended for us; node.status says how
  // the channel has retired for us, a guard that falls silent by it (rule 5.6); in no line, nothing
  // decided
  silent,
};

}  // namespace core
}  // namespace weft::inline WEFT_ABI
