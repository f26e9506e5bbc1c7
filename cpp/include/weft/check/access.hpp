// Access says what a step does to a place. Relation says which accesses conflict, and so which
// steps of two processes can be exchanged.
//
// Two steps commute unless both touch one place in ways that conflict. If an entry of the table is
// wrong, the reduced search may miss outcomes: conformance/commuting.py checks each entry.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::checking {

enum class Access : std::uint8_t {
  read,          // a plain reader arrives
  write,         // a plain writer arrives
  choice,        // a select arrives, and sees which parties wait
  quiet_choice,  // as `choice`, but the retirement of the channel makes no difference to the select
  choose_read,   // a select arrives that could meet only a writer at the place
  choose_write,  // a select arrives that could meet only a reader at the place
  close,         // the last end of a side is closed
  close_other,   // an end is closed whose side has others
  make,          // an end is made
  all,           // any other access, such as poison; it conflicts with nearly every access
  join,          // a party arrives at a barrier
  look,          // a step only reads the state of the place
};
inline constexpr std::size_t kAccesses = static_cast<std::size_t>(Access::look) + 1;

// The state of an operation that has begun.
enum class Begun : std::uint8_t { done, raised, parked };

// The table of the accesses that conflict.
class Relation {
 public:
  constexpr Relation() {
    using enum Access;
    // A read and a write commute, since the n-th write meets the n-th read, whichever arrived
    // first.
    put(read, {read, choice, quiet_choice, choose_read, all});
    put(write, {write, choice, quiet_choice, choose_write, all});
    put(choice, {choice, quiet_choice, choose_read, choose_write, close, all, join, look});
    put(quiet_choice, {quiet_choice, choose_read, choose_write, all, join, look});
    put(choose_read, {choose_read, all});
    put(choose_write, {choose_write, all});
    put(close, {make, all, join, look});
    // This step only makes the number of ends smaller by one, and the side stays open. Only the
    // making of an end depends on that number: a death marks the channel at once (rule 4.5), and a
    // poison does not depend on it.
    put(close_other, {make});
    // When one side has ended, a read that takes that side's last value, or a write that gives that
    // side a value for which it waits, ends the channel; afterwards no end can be made.
    put(make, {read, write, choice, choose_read, choose_write, all});
    put(all, {all, join, look});
    put(join, {look});
    // The value that a writer leaves in a buffer is lost if the last reader is closed. (A quiet
    // choice is not in this list. It is an input, so its process holds a reader, and the end that
    // is closed is the last writer. The guard is ready as long as there are values, and then
    // retires without an exception.)
    for (const Access a : {write, choose_write}) flip(a, close, true);
  }

  constexpr bool conflict(Access a, Access b, bool buffered) const noexcept {
    return (rows_[buffered][static_cast<std::size_t>(a)] >> static_cast<unsigned>(b) & 1u) != 0;
  }
  // Inverts the entry for two accesses, in both orders, at buffers or at all other places. Tests
  // use it to make entries wrong.
  constexpr void flip(Access a, Access b, bool buffered) noexcept {
    turn(a, b, buffered);
    if (a != b) turn(b, a, buffered);
  }

 private:
  template <std::size_t N>
  constexpr void put(Access a, const Access (&with)[N]) noexcept {
    for (const Access b : with)
      for (const bool buffered : {false, true}) flip(a, b, buffered);
  }
  constexpr void turn(Access a, Access b, bool buffered) noexcept {
    rows_[buffered][static_cast<std::size_t>(a)] ^=
        static_cast<std::uint16_t>(1u << static_cast<unsigned>(b));
  }

  std::array<std::array<std::uint16_t, kAccesses>, 2> rows_{};
};

}  // namespace weft::checking
