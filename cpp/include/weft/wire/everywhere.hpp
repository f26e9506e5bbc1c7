// What the programs of a network say of themselves, and what follows: do they all stand still, and
// who waits for whom (WIRE.md 10). Nothing here asks: rounds.hpp does.
//
// A channel or barrier has one name in all programs: its home's incarnation, and its place there. An
// end that a peer holds is known by a name that both sides make of its key (WIRE.md 10.7): its number
// is that of one session, and two programs may have several. Its home says of which channel it is.
//
// An edge p → q: p waits for something that q can give, as far as is known who has used which end
// last. Of an end that nobody has used yet anybody in its program may have it.
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

// One program at one moment.
struct InProgram {
  enum class How : std::uint8_t { read, write, sync, end };
  // Where a process waits.
  struct Place {
    How how = How::read;
    std::uint64_t home = 0, key = 0;  // 0: this program. The place there; of a far end its name
    std::uint32_t last = 0;           // who has used the other side here last; 0: nobody
    std::string name;
  };
  struct Process {
    std::uint32_t run = 0, id = 0, parent = 0;
    bool for_children = false;  // it waits for others as their parent
    std::string path, operation, at;
    std::vector<Place> places;
  };
  // A session: frames that have been queued for the peer, and of the peer's taken in.
  struct Session {
    std::uint64_t peer = 0;
    std::uint32_t sent = 0, received = 0;
    friend auto operator<=>(const Session&, const Session&) = default;
  };
  // An end that a peer holds: of which channel here, and who has used that here last.
  struct Lent {
    std::uint64_t peer = 0;
    std::uint64_t end = 0;  // its name
    std::uint64_t key = 0;
    bool writes = false;
    std::uint32_t last_reader = 0, last_writer = 0;
  };
  // A far end that is held here, and who has used it last.
  struct Far {
    std::uint64_t home = 0;
    std::uint64_t end = 0;  // its name
    std::uint32_t user = 0;
  };

  std::uint64_t incarnation = 0;
  std::string name;
  std::uint32_t pid = 0;
  bool waits = false;  // all its runs wait for other programs, and nothing else of it acts
  std::vector<std::uint32_t> standstills;  // of each run: how often it has come to rest
  std::vector<Session> sessions;
  std::vector<Lent> lent;
  std::vector<Far> far;
  std::vector<Process> processes;  // only if it waits

  void put(Buffer& out) const;
  // The one at the beginning of `in`, which goes on behind it. Nothing: that is none.
  static std::optional<InProgram> get(Bytes& in);
};

// All programs that can be reached, at moments of one round.
struct Everywhere {
  std::vector<InProgram> programs;
  bool whole = false;  // all have answered

  // What is no program ends the list, and is not whole.
  static Everywhere get(Bytes all, bool whole);

  // Do all wait, with no frame under way, and does each have sessions with these alone?
  bool stands_still() const;
  // Has anything happened since that round?
  bool has_moved_since(const Everywhere& before) const;
  // For people: what each program says of itself, its processes and its sessions.
  std::string text() const;
  // Of one that stands still: the report of a deadlock, with its knot.
  struct Knot {
    std::string text;
    std::vector<std::string> paths;
    Buffer told() const;  // as a TELL has it
    static std::optional<Knot> get(Bytes in);
  };
  Knot knot() const;

 private:
  static std::string listed(const InProgram& p, const InProgram::Process& x);
};

namespace detail {

// SipHash-2-4 of no bytes (Aumasson and Bernstein, INDOCRYPT 2012).
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
  rounds(2);  // of the last block, which says how many bytes there were: none
  c ^= 0xFF;
  rounds(4);
  return a ^ b ^ c ^ d;
}
// What an end is called in what programs say of themselves. Who has its key could take the end over
// (WIRE.md 7.4), so that is not said; this does not lead back to it.
constexpr std::uint64_t end_name(std::uint64_t key) noexcept { return siphash(key, 0); }

// What a peer has sent is not believed to add up.
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
  // So many follow, each of at least `least` bytes.
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
