// The outcome of an operation. The freestanding layer returns a Status; the hosted layer turns the
// ends of channels into exceptions.
#pragma once
#include <cstdint>
#include <type_traits>

#include "../config.hpp"

namespace weft::inline WEFT_ABI {

enum class Status : std::uint8_t {
  ok,         // the operation has committed
  pending,    // the operation has no outcome yet: the waker will be called once
  retired,    // the other side has retired, the normal end (rule 3)
  poisoned,   // the channel was poisoned (rule 4)
  died,       // the other side was killed (rule 4.5)
  cancelled,  // the operation was withdrawn before its commit (rule 6.2)
  timed_out,  // a timer guard was chosen (rule 5.2)
  // Like `died`, for a write at a channel whose home has died: the value might have been received
  // (WIRE.md 8.1).
  in_doubt,
};

constexpr bool is_end(Status s) noexcept {
  return s == Status::retired || s == Status::poisoned || s == Status::died ||
         s == Status::in_doubt;
}

// What a full buffer does (rule 1.4).
enum class Overflow : std::uint8_t { block, drop_oldest, drop_newest, unbounded, drop_last };

namespace core {

// A count of events: 64 bits, or one word on machines with smaller words. On such machines the
// count wraps, and counting costs one load and one store.
using Tally = std::conditional_t<(sizeof(void*) < 8), std::uint32_t, std::uint64_t>;

// The outcome of one attempt of a party at one channel, made under the channel's lock.
enum class Attempt : std::uint8_t {
  committed,      // the value has moved (or, for a computed output, a partner is reserved)
  partner_holds,  // committed, but the partner holds the party, which must await the wake-up
  not_ready,      // there is no party to commit with
  // Another party has claimed this party's choice meanwhile; this party must await its wake-up.
  gone,
  ended,  // the channel has ended for the party; node.status says how
  // The channel has retired for a guard, which falls silent (rule 5.6). The guard is in no queue,
  // and nothing is committed.
  silent,
};

}  // namespace core
}  // namespace weft::inline WEFT_ABI
