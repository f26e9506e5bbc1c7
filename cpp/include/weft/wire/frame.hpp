// The layout of frames, and the functions that read them back with checks (WIRE.md 3).
//
// Invariants
//  1 take() reads each byte of a header once, from memory that nothing changes meanwhile (the link
//    has copied it).
//  2 A Frame that take() returns has a known kind, flags that its kind allows, the expected seq,
//    and a body if and only if the frame announces one. The code that handles the frame checks what
//    the frame means (which end, which operation).
//  3 Nothing is read outside the input, whatever the input is.
#pragma once
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::wire {

using Bytes = std::span<const std::byte>;
using Buffer = std::vector<std::byte>;

enum class Kind : std::uint8_t {
  offer = 1,
  withdraw = 2,
  gone = 3,
  try_it = 4,
  parties = 5,
  put = 7,
  adopt = 9,
  retire = 10,
  poison = 11,
  held_end = 12,
  recalled = 13,
  want = 14,
  made = 15,
  done = 20,
  withdrawn = 21,
  ready = 22,
  commit = 23,
  ended = 25,
  credit = 26,
  recall = 27,
  adopted = 28,
  not_ready = 29,
  give = 30,
  pass = 31,
  hello = 40,
  bye = 41,
  ask = 43,
  said = 44,
  tell = 45,
  introduce = 47,
  value = 48,
  dropped = 49,
};

struct Flag {
  static constexpr std::uint8_t write = 1;
  static constexpr std::uint8_t spans = 2;
  // In a choice that spans several homes: the guard's precondition is false (WIRE.md 5.11).
  static constexpr std::uint8_t off = 4;
  // Set together with `body`: the body describes a slot that holds the value (WIRE.md 9.2).
  static constexpr std::uint8_t lease = 8;
  static constexpr std::uint8_t hold = 16;  // in an OFFER: an extended read
  // The same bit in an OFFER of a choice that spans several homes: the OFFER is also a TRY of all
  // its guards (WIRE.md 5.1).
  static constexpr std::uint8_t tries = hold;
  // In an OFFER of a choice that spans several homes: the choice polls (WIRE.md 5.9).
  static constexpr std::uint8_t now = 32;
  // For an output: its value is made after the commit (WIRE.md 4.8).
  static constexpr std::uint8_t later = 64;
  static constexpr std::uint8_t body = 128;
};

inline constexpr std::size_t kHeader = 32;
// The maximum size of one value in bytes.
inline constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
// The size in bytes of each further guard in an OFFER.
inline constexpr std::size_t kMore = 16;
// The smallest `largest` that a peer may announce.
inline constexpr std::uint32_t kSmallest = 256;
// The size in bytes of the largest frame that this program accepts.
inline constexpr std::uint32_t kLargest = 65'528;
inline constexpr std::uint32_t kMagic = 0x54464557;  // reads "WEFT" in memory

constexpr std::size_t padded(std::size_t n) noexcept { return (n + 7) & ~std::size_t{7}; }

// A value in a frame. The value is in `small` or, if `in_body` is set, in `bytes` (WIRE.md 3.2).
struct Payload {
  std::uint64_t small = 0;
  Bytes bytes{};
  bool in_body = false;
  bool leased = false;  // the bytes describe a slot that contains the value
  // The bytes belong to the value, and stay where they are as long as the value exists.
  bool lasts = false;

  std::uint8_t flags() const noexcept {
    return static_cast<std::uint8_t>((in_body ? Flag::body : 0) | (leased ? Flag::lease : 0));
  }
};

// An object that keeps bytes where they are.
using Keeper = std::shared_ptr<const void>;

struct Frame {
  Kind kind{};
  std::uint8_t flags = 0;
  std::uint32_t where = 0;
  std::uint32_t txn = 0;
  std::uint64_t op = 0;
  std::uint64_t val = 0;
  Bytes body{};
  // In a frame that is to be sent, the body stays where it is as long as the keeper is held, or, if
  // the keeper is empty, until Session::own() is called. If this pointer is null, nothing is known
  // about how long the body stays.
  const Keeper* keeper = nullptr;

  // Returns the value of a DONE or PUT.
  Payload payload() const noexcept {
    if (flags & Flag::body)
      return {0, body.first(static_cast<std::size_t>(val)), true, (flags & Flag::lease) != 0};
    return {val, {}, false, false};
  }
};

namespace detail {

// Reads a little-endian number on any machine. The function is only for numbers: the bytes of
// another type, such as a Buffer, can contain pointers.
template <std::unsigned_integral U>
U get(const std::byte* p) noexcept {
  U v = 0;
  if constexpr (std::endian::native == std::endian::little)
    std::memcpy(&v, p, sizeof(U));
  else
    for (std::size_t i = 0; i < sizeof(U); ++i)
      v = static_cast<U>(
          v | static_cast<U>(static_cast<U>(std::to_integer<std::uint8_t>(p[i])) << (8 * i)));
  return v;
}
// Writes a little-endian number, and returns the address after it.
template <std::unsigned_integral U>
std::byte* put(std::byte* p, U v) noexcept {
  if constexpr (std::endian::native == std::endian::little)
    std::memcpy(p, &v, sizeof(U));
  else
    for (std::size_t i = 0; i < sizeof(U); ++i) p[i] = static_cast<std::byte>(v >> (8 * i) & 0xFF);
  return p + sizeof(U);
}
template <std::unsigned_integral U>
void put(Buffer& out, U v) {
  std::byte bytes[sizeof(U)];
  put(bytes, v);
  out.insert(out.end(), bytes, bytes + sizeof(U));
}
inline void put(Buffer& out, Bytes b) { out.insert(out.end(), b.begin(), b.end()); }
inline void pad(Buffer& out) { out.resize(padded(out.size())); }

// A buffer for values that arrive in pieces. It is reused for the next value, because growing it
// again by a megabyte costs more than sending a megabyte. At most kMaxKeptBytes bytes are kept.
class Spare {
 public:
  static constexpr std::size_t kMaxKeptBytes = std::size_t{4} << 20;  // in bytes
  Buffer take() noexcept { return std::exchange(kept_, {}); }
  void keep(Buffer&& b) noexcept {
    if (b.capacity() <= kept_.capacity() || b.capacity() > kMaxKeptBytes) return;
    kept_ = std::move(b);
    kept_.clear();
  }

 private:
  Buffer kept_;  // empty, but keeps its capacity
};

// The fields that frames of one kind can carry.
struct Shape {
  bool known = false;
  std::uint8_t flags = 0;
  enum Body : std::uint8_t { none, by_flag, by_val, free } body = none;
};
constexpr Shape shape_of(std::uint8_t kind) noexcept {
  switch (static_cast<Kind>(kind)) {
    case Kind::offer:
      return {true,
              Flag::write | Flag::spans | Flag::off | Flag::hold | Flag::now | Flag::later |
                  Flag::body | Flag::lease,
              Shape::free};
    case Kind::put:
    case Kind::made:
    case Kind::done: return {true, Flag::body | Flag::lease, Shape::by_flag};
    case Kind::value:
    case Kind::pass:
    case Kind::give: return {true, Flag::write, Shape::by_val};
    case Kind::said:
    case Kind::tell:
    case Kind::bye: return {true, 0, Shape::by_val};
    case Kind::adopt:
    case Kind::hello: return {true, 0, Shape::free};
    case Kind::withdraw:
    case Kind::gone:
    case Kind::ask:
    case Kind::try_it:
    case Kind::parties:
    case Kind::ready:
    case Kind::commit:
    case Kind::not_ready:
    case Kind::retire:
    case Kind::poison:
    case Kind::held_end:
    case Kind::recalled:
    case Kind::want:
    case Kind::credit:
    case Kind::recall:
    case Kind::withdrawn:
    case Kind::ended:
    case Kind::adopted:
    case Kind::introduce:
    case Kind::dropped: return {true, 0, Shape::none};
  }
  return {};
}

// Returns whether frames of this kind are about the programs (WIRE.md 10.6), not about their
// operations.
constexpr bool is_of_a_round(Kind k) noexcept {
  return k == Kind::ask || k == Kind::said || k == Kind::tell;
}

// Returns whether frames of this kind answer a frame of the peer, or follow from one. The peer
// decides how many such frames there are.
constexpr bool is_answer(Kind k) noexcept {
  return (k >= Kind::done && k <= Kind::not_ready) || k == Kind::said || k == Kind::dropped;
}

// Returns whether a body has exactly `n` bytes and their padding, which is zero.
inline bool holds(Bytes body, std::uint64_t n) noexcept {
  if (n > body.size() || padded(static_cast<std::size_t>(n)) != body.size()) return false;
  for (std::size_t i = static_cast<std::size_t>(n); i < body.size(); ++i)
    if (body[i] != std::byte{0}) return false;
  return true;
}

}  // namespace detail

// Appends a frame's header.
inline void append_head(Buffer& out, const Frame& f, std::uint32_t seq) {
  std::array<std::byte, kHeader> h;
  std::byte* at = h.data();
  const auto field = [&](auto v) { at = detail::put(at, v); };
  field(static_cast<std::uint16_t>(kHeader + padded(f.body.size())));
  field(static_cast<std::uint8_t>(f.kind));
  field(f.flags);
  field(f.where);
  field(seq);
  field(f.txn);
  field(f.op);
  field(f.val);
  detail::put(out, Bytes(h));
}
// Appends a frame. The body is padded; the caller ensures that the body is not too long.
inline void append(Buffer& out, const Frame& f, std::uint32_t seq) {
  append_head(out, f, seq);
  if (f.body.empty()) return;
  detail::put(out, f.body);
  out.resize(out.size() + padded(f.body.size()) - f.body.size());
}

struct Taken {
  // `more` means that the frame is still incomplete.
  enum What : std::uint8_t { more, frame, fault } what = more;
  std::size_t size = 0;  // the length of the frame in bytes
  // The frame; its body lies in the input. If the frame is incomplete, this Frame has no body, and
  // it is not known whether the body will be valid. If `size` is 0, even the header is incomplete.
  Frame frame_{};
  const char* why = nullptr;  // says what is wrong, if `what` is `fault`
};

// Reads the frame at the beginning of `in`. `seq` is the expected number; `largest` is the maximum
// size of the frame in bytes.
inline Taken take(Bytes in, std::uint32_t seq, std::uint32_t largest) noexcept {
  const auto fault = [](const char* why) noexcept { return Taken{Taken::fault, 0, {}, why}; };
  if (in.size() < 2) return {};
  const std::size_t size = detail::get<std::uint16_t>(in.data());
  if (size < kHeader || size % 8 != 0)
    return fault("a frame's size is less than its header or no multiple of 8");
  if (size > largest) return fault("a frame is larger than was agreed");
  if (in.size() < kHeader) return {};
  const std::byte* const p = in.data();
  const auto kind = std::to_integer<std::uint8_t>(p[2]);
  const detail::Shape shape = detail::shape_of(kind);
  if (!shape.known) return fault("a frame of unknown kind");
  Taken t{Taken::frame, size, {}, nullptr};
  Frame& f = t.frame_;
  f.kind = static_cast<Kind>(kind);
  f.flags = std::to_integer<std::uint8_t>(p[3]);
  f.where = detail::get<std::uint32_t>(p + 4);
  f.txn = detail::get<std::uint32_t>(p + 12);
  f.op = detail::get<std::uint64_t>(p + 16);
  f.val = detail::get<std::uint64_t>(p + 24);
  if (f.flags & ~shape.flags) return fault("a frame has a flag that its kind does not know");
  if (detail::get<std::uint32_t>(p + 8) != seq)
    return fault("a frame is out of order: one was lost, doubled or made up");
  if (in.size() < size) {
    t.what = Taken::more;
    return t;
  }
  f.body = in.subspan(kHeader, size - kHeader);
  bool good = true;
  switch (shape.body) {
    case detail::Shape::none: good = f.body.empty(); break;
    case detail::Shape::by_flag:
      good = f.flags & Flag::body ? detail::holds(f.body, f.val)
                                  : f.body.empty() && !(f.flags & Flag::lease);
      break;
    case detail::Shape::by_val: good = detail::holds(f.body, f.val); break;
    case detail::Shape::free: break;
  }
  return good ? t : fault("a frame's body is not of the length it says");
}

// --- the guards of an OFFER (WIRE.md 3.5) --------------------------------------------------------

struct Asked {
  std::uint32_t end = 0;
  bool writes = false;
  Payload value{};
  // `holds` marks an extended read, as the only guard. `keeps` says that the read's value can be
  // given back.
  bool holds = false, keeps = false;
  bool off = false;    // the precondition is false; only in a choice that spans, and without a
                       // value
  bool later = false;  // an output whose value is made after the commit; it has no value here
                       // either
};

inline constexpr std::size_t kGuards = 255;

// Reads the guards of an OFFER into `out`. Returns null, or a text that says what is wrong. The
// values lie in the frame's body.
inline const char* guards_of(const Frame& f, std::vector<Asked>& out) {
  static constexpr const char* kBad = "an OFFER's guards do not add up";
  out.clear();
  Bytes rest = f.body;
  const auto add = [&](std::uint32_t end, std::uint8_t flags, std::uint64_t val) {
    Asked a{end,
            (flags & Flag::write) != 0,
            {val, {}, (flags & Flag::body) != 0, (flags & Flag::lease) != 0},
            (flags & Flag::hold) != 0 && !(f.flags & Flag::spans)};
    if (a.value.leased && !a.value.in_body) return false;
    a.off = (flags & Flag::off) != 0;
    a.later = (flags & Flag::later) != 0;
    if (a.later && (!a.writes || a.off)) return false;
    if (a.off || a.later) {
      if (a.value.in_body || a.holds || val != 0) return false;
    } else if (a.value.in_body) {
      if (!a.writes || val > rest.size() || padded(static_cast<std::size_t>(val)) > rest.size())
        return false;
      const std::size_t whole = padded(static_cast<std::size_t>(val));
      if (!detail::holds(rest.first(whole), val)) return false;
      a.value.small = 0;
      a.value.bytes = rest.first(static_cast<std::size_t>(val));
      rest = rest.subspan(whole);
    } else if (!a.writes) {
      if (val > (a.holds ? 1u : 0u)) return false;
      a.keeps = val == 1;
      a.value.small = 0;
    }
    if (a.holds && a.writes) return false;
    out.push_back(a);
    return true;
  };
  if (!add(f.where, f.flags, f.val)) return kBad;
  while (!rest.empty()) {
    if (rest.size() < kMore || out.size() == kGuards) return kBad;
    const std::byte* const p = rest.data();
    const auto end = detail::get<std::uint32_t>(p);
    const auto flags = std::to_integer<std::uint8_t>(p[4]);
    if ((flags & ~(Flag::write | Flag::off | Flag::later | Flag::body | Flag::lease)) != 0 ||
        p[5] != std::byte{0} || p[6] != std::byte{0} || p[7] != std::byte{0})
      return kBad;
    const auto val = detail::get<std::uint64_t>(p + 8);
    rest = rest.subspan(kMore);
    if (!add(end, flags, val)) return kBad;
  }
  if (out[0].holds && out.size() > 1) return "an extended read as a guard of a choice";
  if ((f.flags & (Flag::now | Flag::spans)) == Flag::now)
    return "an OFFER that polls, and does not span";
  for (const Asked& a : out)
    if (a.off && !(f.flags & Flag::spans))
      return "a guard that is off, in an OFFER that does not span";
  return nullptr;
}

// Makes the OFFER that asks for these guards. `body` owns the bytes that the frame refers to.
inline Frame offer(std::uint64_t op, std::span<const Asked> guards, Buffer& body) {
  Frame f{Kind::offer, 0, 0, 0, op, 0, {}};
  body.clear();
  for (std::size_t i = 0; i < guards.size(); ++i) {
    const Asked& a = guards[i];
    const auto flags = static_cast<std::uint8_t>(
        (a.writes ? Flag::write : 0) | (a.holds ? Flag::hold : 0) | (a.off ? Flag::off : 0) |
        (a.later ? Flag::later : 0) | a.value.flags());
    const std::uint64_t val = a.keeps ? 1 : a.value.in_body ? a.value.bytes.size() : a.value.small;
    if (i == 0) {
      f.where = a.end;
      f.flags = flags;
      f.val = val;
    } else {
      std::array<std::byte, kMore> more{};
      detail::put(detail::put(more.data(), a.end), flags);
      detail::put(more.data() + 8, val);
      detail::put(body, Bytes(more));
    }
    if (a.value.in_body) {
      detail::put(body, a.value.bytes);
      detail::pad(body);
    }
  }
  f.body = body;
  return f;
}

}  // namespace weft::inline WEFT_ABI::wire
