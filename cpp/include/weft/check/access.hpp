// What a step does to a place, and which steps of two processes can be exchanged.
//
// Two steps commute unless both touch one place in ways that conflict. Where a rule of the table is
// wrong the reduced search misses outcomes: conformance/checking.py looks at each entry.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::checking {

enum class Access : std::uint8_t {
  read,          // a plain reader arrives
  write,         // a plain writer arrives
  choice,        // a select arrives, and looks who is there
  quiet_choice,  // the same, of one to which the end of the channel makes no difference
  choose_read,   // a select arrived that could take nobody but the writer here
  choose_write,  // the same with a reader
  close,         // the last end of a side goes
  close_other,   // an end goes, and others of its side are left
  make,          // an end is made
  all,           // anything else
  join,          // a party arrives at a barrier
  look,          // it sees what is there, and changes nothing
};
inline constexpr std::size_t kAccesses = static_cast<std::size_t>(Access::look) + 1;

// How an operation that has begun stands.
enum class Begun : std::uint8_t { done, raised, parked };

class Relation {
 public:
  constexpr Relation() {
    using enum Access;
    // a read and a write commute: the n-th write meets the n-th read, whoever came first
    put(read, {read, choice, quiet_choice, choose_read, all});
    put(write, {write, choice, quiet_choice, choose_write, all});
    put(choice, {choice, quiet_choice, choose_read, choose_write, close, all, join, look});
    put(quiet_choice, {quiet_choice, choose_read, choose_write, all, join, look});
    put(choose_read, {choose_read, all});
    put(choose_write, {choose_write, all});
    put(close, {make, all, join, look});
    put(close_other, {make, all});
    put(make, {all});
    put(all, {all, join, look});
    put(join, {look});
    // the value that a writer leaves in a buffer is lost when the reader has gone
    for (const Access a : {write, choose_write, quiet_choice}) flip(a, close, true);
  }

  constexpr bool conflict(Access a, Access b, bool buffered) const noexcept {
    return (rows_[buffered][static_cast<std::size_t>(a)] >> static_cast<unsigned>(b) & 1u) != 0;
  }
  // The other way round, at places that are a buffer or none: for what is exchanged as well as its
  // reverse. A test makes entries wrong by it.
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
