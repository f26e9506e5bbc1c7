// What the programs of a network report about themselves, and what follows from these reports:
// whether all programs stand still, and which process waits for which (WIRE.md 10). This file asks
// no questions; rounds.hpp does.
//
// A channel or barrier has one name in all programs: the incarnation of its home, and its place at
// that home. An end that a peer holds has a name that both sides compute from its key (WIRE.md
// 10.7). The end's number would not suffice, since a number belongs to one session, and two
// programs may have several sessions. The home says to which channel the end belongs.
//
// An edge p → q means that p waits for something that q can give, by the records of which process
// used which end last. An end that was never used may be held by any process of its program.
#pragma once
#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../runtime/knot.hpp"
#include "../runtime/report.hpp"
#include "frame.hpp"

namespace weft::inline WEFT_ABI::wire {

// The state of one program at one moment.
struct InProgram {
  enum class How : std::uint8_t { read, write, sync, end };
  // A place where a process waits.
  struct Place {
    How how = How::read;
    // `home` is the home of the place; 0 means this program. `key` is the place at that home; for a
    // far end, it is the name of the end.
    std::uint64_t home = 0, key = 0;
    // the process of this program that used the other side last, or 0 for none
    std::uint32_t last = 0;
    std::string name;
  };
  struct Process {
    std::uint32_t run = 0, id = 0, parent = 0;
    bool for_children = false;  // whether the process waits for its children
    std::string path, operation, at;
    std::vector<Place> places;
  };
  // A session of the program. `sent` is the number of frames that the program has queued for the
  // peer, `received` the number of frames of the peer that the program has received.
  struct Session {
    std::uint64_t peer = 0;
    std::uint32_t sent = 0, received = 0;
    friend auto operator<=>(const Session&, const Session&) = default;
  };
  // An end that a peer holds: to which channel of this program it belongs, and which processes of
  // this program used that channel last.
  struct Lent {
    std::uint64_t peer = 0;
    std::uint64_t end = 0;  // the name of the end
    std::uint64_t key = 0;
    bool writes = false;
    std::uint32_t last_reader = 0, last_writer = 0;
  };
  // A far end that this program holds, and the process that used it last.
  struct Far {
    std::uint64_t home = 0;
    std::uint64_t end = 0;  // the name of the end
    std::uint32_t user = 0;
  };

  std::uint64_t incarnation = 0;
  std::string name;
  std::uint32_t pid = 0;
  // Whether all runs of the program wait for other programs, and nothing else in it can act.
  bool waits = false;
  std::vector<std::uint32_t> standstills;  // for each run, its number of standstills
  std::vector<Session> sessions;
  std::vector<Lent> lent;
  std::vector<Far> far;
  std::vector<Process> processes;  // filled only if the program waits

  void put(Buffer& out) const;
  // Reads one program from the beginning of `in`, and removes its bytes from `in`. Returns nothing
  // if `in` does not begin with a program.
  static std::optional<InProgram> get(Bytes& in);
};

// The states of all programs that can be reached, as they were during one round.
struct Everywhere {
  std::vector<InProgram> programs;
  bool whole = false;  // whether all programs have answered

  // Reads a list of programs. The list ends at the first bytes that are not a program; `whole` is
  // then false.
  static Everywhere get(Bytes all, bool whole);

  // Returns whether all programs wait, no frame is under way, and every session leads to a program
  // of this list.
  bool stands_still() const;
  // Returns whether anything has happened since the round of `before`.
  bool has_moved_since(const Everywhere& before) const;
  // Returns a text for people: what each program reports of itself, its processes and its sessions.
  std::string text() const;
  // The report of a deadlock, with its knot. Made only if stands_still() is true.
  struct Knot {
    std::string text;
    std::vector<std::string> paths;
    Buffer encoded() const;  // the form in which a TELL frame carries the report
    static std::optional<Knot> get(Bytes in);
  };
  Knot knot() const;

 private:
  static std::string listed(const InProgram& p, const InProgram::Process& x);
};

namespace detail {

// Computes SipHash-2-4 of no bytes (Aumasson and Bernstein, INDOCRYPT 2012).
constexpr std::uint64_t siphash(std::uint64_t k0, std::uint64_t k1) noexcept {
  std::uint64_t a = k0 ^ 0x736f'6d65'7073'6575u, b = k1 ^ 0x646f'7261'6e64'6f6du,
                c = k0 ^ 0x6c79'6765'6e65'7261u, d = k1 ^ 0x7465'6462'7974'6573u;
  const auto rounds = [&](int n) {
    for (; n > 0; --n) {
      a += b, b = std::rotl(b, 13) ^ a, a = std::rotl(a, 32);
      c += d, d = std::rotl(d, 16) ^ c;
      a += d, d = std::rotl(d, 21) ^ a;
      c += b, b = std::rotl(b, 17) ^ c, c = std::rotl(c, 32);
    }
  };
  rounds(2);  // The last block holds the number of bytes, which is 0.
  c ^= 0xFF;
  rounds(4);
  return a ^ b ^ c ^ d;
}
// Returns the name of an end in what programs report about themselves. A program that has the key
// of an end could adopt the end (WIRE.md 7.4), so the key is not revealed. Nobody can compute the
// key from this name.
constexpr std::uint64_t end_name(std::uint64_t key) noexcept { return siphash(key, 0); }

// Reads the bytes that a peer has sent, and checks every length: the peer is not trusted.
class Reading {
 public:
  explicit Reading(Bytes in) noexcept : in_(in) {}
  template <class U>
  U number() noexcept {
    if (in_.size() < sizeof(U)) return bad_ = true, U{};
    const U v = get<U>(in_.data());
    in_ = in_.subspan(sizeof(U));
    return v;
  }
  std::string text() {
    const auto n = number<std::uint32_t>();
    if (bad_ || n > in_.size()) return bad_ = true, std::string();
    std::string s(reinterpret_cast<const char*>(in_.data()), n);
    in_ = in_.subspan(n);
    return s;
  }
  // Reads a count of the items that follow. Each item has at least `least` bytes.
  std::size_t count(std::size_t least) noexcept {
    const auto n = number<std::uint32_t>();
    if (bad_ || n > in_.size() / least) return bad_ = true, 0;
    return n;
  }
  bool bad() const noexcept { return bad_; }
  Bytes rest() const noexcept { return in_; }

 private:
  Bytes in_;
  bool bad_ = false;
};
inline void put_text(Buffer& out, const std::string& s) {
  put(out, static_cast<std::uint32_t>(s.size()));
  put(out, std::as_bytes(std::span(s)));
}
template <class T, class F>
void put_all(Buffer& out, const std::vector<T>& all, F&& one) {
  put(out, static_cast<std::uint32_t>(all.size()));
  for (const T& x : all) one(x);
}

}  // namespace detail

}  // namespace weft::inline WEFT_ABI::wire
