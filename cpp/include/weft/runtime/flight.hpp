// The flight recorder: the last events of a program, in a ring of blocks of bytes, and the file to
// which they are written. docs/flight.md of the Python package specifies the bytes.
//
// Invariants
//  1 A block can be read without any other: it says when it begins, and defines each process and
//    place before the first event that names it. So the ring can drop whole blocks, and is bounded.
//  2 One lane is written by one thread at a time. Blocks of a lane are in order.
//  3 A thread that writes a file sees whole records of a block that is being filled, because `used`
//    is stored after the bytes. A block is taken from the ring only under the lock.
//  4 Times are in units of a monotonic clock. The file gives two moments, each in units and in ns,
//    from which the length of a unit follows.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "../prim.hpp"
#include "../version.hpp"
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace weft::inline WEFT_ABI::runtime::flight {

// --- the format ----------------------------------------------------------------------------------

inline constexpr unsigned char kMagic[8] = {0x89, 'W',  'E',  'F',
                                            'T',  '\n', 0x1A, 1};  // the version of the format
// the head of a piece: a letter, and the piece's length in 4 bytes
inline constexpr std::size_t kPieceHead = 5;

enum class Op : std::uint8_t {
  read,
  write,
  extended,
  select_input,  // a select that committed to an input
  select_output,
  select_other,  // a select that committed to a guard of another type, or was withdrawn
  sync,
  sleep,
  tick,
  yield,
  wait_for,
  other,
};
inline constexpr std::uint8_t kOps = 12;
enum class Outcome : std::uint8_t { commit, withdrawn, ended };
enum class Why : std::uint8_t { retired, poisoned, peer_died, bad_use };

// A record begins with a tag. The tag of an operation that has ended consists of the Op, the
// Outcome, and these bits.
inline constexpr std::uint8_t kOpBits = 0x0F, kOutcomeShift = 4, kWaited = 0x40;
// The tags of other records, with their fields.
enum Tag : std::uint8_t {
  kProcess = 0x80,  // number (zigzag), path
  kPlace,           // number, flags, values read earlier, values written earlier, name
  kStart,           // time, process
  kEnd,             // time, process, how, text
  kAway,            // time, process, text: where the process runs
  // time, process, Op, place + 1, duration: the process was waiting when the record was written
  kWaits,
  kOther,  // text: names the operation of the next record, whose Op is `other`
  kTags
};
// a flag of a place: the place drops values
inline constexpr std::uint64_t kDrops = 1;
// a flag of a place: the place is a barrier
inline constexpr std::uint64_t kBarrier = 2;
// how a process ended: unknown; this value follows the five values of Ending
inline constexpr std::uint8_t kLost = 5;
inline constexpr std::size_t kText = 400;  // the maximum size of a text in bytes

inline std::size_t put_varint(unsigned char* to, std::uint64_t v) noexcept {
  std::size_t n = 0;
  while (v >= 0x80) {
    to[n++] = static_cast<unsigned char>(v | 0x80);
    v >>= 7;
  }
  to[n++] = static_cast<unsigned char>(v);
  return n;
}
// Writes a varint, which is nearly always short. Returns the address after it.
[[gnu::always_inline]] inline unsigned char* append(unsigned char* p, std::uint64_t v) noexcept {
  if (v < 0x80) [[likely]] {
    *p = static_cast<unsigned char>(v);
    return p + 1;
  }
  if (v < 0x4000) {
    p[0] = static_cast<unsigned char>(v | 0x80);
    p[1] = static_cast<unsigned char>(v >> 7);
    return p + 2;
  }
  return p + put_varint(p, v);
}
// Reads a varint. Returns the address after it, or null if it is cut off or longer than 64 bits.
inline const unsigned char* take_varint(const unsigned char* p, const unsigned char* end,
                                        std::uint64_t& v) noexcept {
  if (p < end && *p < 0x80) [[likely]] {
    v = *p;
    return p + 1;
  }
  v = 0;
  for (unsigned shift = 0; p < end && shift < 70; shift += 7) {
    const unsigned char b = *p++;
    if (shift == 63 && b > 1) return nullptr;
    v |= static_cast<std::uint64_t>(b & 0x7F) << shift;
    if (b < 0x80) return p;
  }
  return nullptr;
}
inline std::uint64_t zigzag(std::int64_t v) noexcept {
  return (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63);
}
inline std::int64_t unzigzag(std::uint64_t v) noexcept {
  return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
}

// --- the clock -----------------------------------------------------------------------------------

// The time in units. A unit is a fixed number of ticks of the processor's counter, if that is
// steady; otherwise it is 8 ns of the steady clock.
class Clock {
 public:
  static std::uint64_t now() noexcept {
#if defined(__x86_64__)
    if (steady_counter()) return __rdtsc() >> kShift;
#elif defined(__aarch64__)
    std::uint64_t t;
    asm volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
#endif
    return static_cast<std::uint64_t>(prim::now()) >> 3;
  }

 private:
  static constexpr unsigned kShift = 4;  // makes a unit of about 5 to 16 ns
#if defined(__x86_64__)
  static bool steady_counter() noexcept {
    static const bool is = [] {
      unsigned a = 0, b = 0, c = 0, d = 0;
      return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
    }();
    return is;
  }
#endif
};

// --- the ring ------------------------------------------------------------------------------------

inline constexpr std::size_t kBlock = 1 << 16;
inline constexpr std::size_t kLeast = 4 * kBlock;  // the smallest ring
// in bytes; more than the size of a record and its definitions
inline constexpr std::size_t kRoom = 4 * kText;

struct Block {
  std::uint64_t lane = 0;
  std::uint64_t number = 0;  // the block's number among all blocks; 0: the block is empty
  std::uint64_t start = 0;   // in units
  std::atomic<std::uint32_t> used{0};
  std::uint32_t events = 0;  // the number of events, set when the block is full
  unsigned char bytes[kBlock];
};

// The blocks of all lanes: a new block replaces the oldest.
class Ring {
 public:
  explicit Ring(std::size_t size) : most_(std::max(size, kLeast) / sizeof(Block)) {}

  Block* next(std::uint64_t lane, const Block* full) {
    const std::lock_guard g(mutex_);
    if (full) events_ += full->events;
    std::unique_ptr<Block> b;
    if (blocks_.size() < most_) {
      b = std::make_unique_for_overwrite<Block>();
    } else {
      // Chooses the oldest block that is not the current block of any lane.
      std::size_t i = 0;
      while (i < blocks_.size() && current_of(*blocks_[i])) ++i;
      if (i == blocks_.size()) {
        // If there are more lanes than blocks, one more block is made.
        b = std::make_unique_for_overwrite<Block>();
      } else {
        b = std::move(blocks_[i]);
        blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(i));
        dropped_ += b->events;
      }
    }
    b->lane = lane;
    b->number = ++number_;
    b->start = Clock::now();
    b->events = 0;
    b->used.store(0, std::memory_order_relaxed);
    if (lane >= current_.size()) current_.resize(lane + 1);
    current_[lane] = b.get();
    blocks_.push_back(std::move(b));
    return blocks_.back().get();
  }
  std::uint64_t new_lane() {
    const std::lock_guard g(mutex_);
    return lanes_++;
  }
  void drop_all() {
    const std::lock_guard g(mutex_);
    blocks_.clear();
    current_.assign(current_.size(), nullptr);
    dropped_ = events_ = 0;
  }
  std::uint64_t dropped() const noexcept { return dropped_; }

  // Calls f(block, used) for each block, the oldest first. No thread takes a block meanwhile.
  template <class F>
  bool each(F&& f) {
    const std::lock_guard g(mutex_);
    for (const auto& b : blocks_)
      if (const std::uint32_t n = b->used.load(std::memory_order_acquire); n && !f(*b, n))
        return false;
    return true;
  }

 private:
  bool current_of(const Block& b) const noexcept {
    return b.lane < current_.size() && current_[b.lane] == &b;
  }
  const std::size_t most_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;  // oldest first
  std::vector<const Block*> current_;           // the current block of each lane
  std::uint64_t number_ = 0, lanes_ = 0, dropped_ = 0, events_ = 0;
};

// --- a lane --------------------------------------------------------------------------------------

// A process or place that a lane knows.
struct Known {
  std::uint64_t key = 0;     // 0 if the slot is free
  std::uint64_t block = 0;   // the number of the block that last defined it
  std::uint32_t local = 0;   // the process's or place's number in that block
  std::uint32_t op = kIdle;  // for a process: the Op in which it waits
  std::uint64_t since = 0;   // for a process: when it began to wait
  // for a place: distinguishes it from an earlier one at the same address
  const void* same = nullptr;
  // for a place: its number, and the values read; for a process: where it waits
  std::uint64_t first = 0;
  std::uint64_t read = 0, written = 0;
  std::uint32_t hidden = 0;  // for a process: its operations are not recorded
  static constexpr std::uint32_t kIdle = ~0u;
};

// A hash table of the known processes or places, with open addressing. References stay valid until
// the next call of find().
class Table {
 public:
  Table() { resize(1 << 8); }
  Known& find(std::uint64_t key, std::uint64_t block) {
    std::size_t i = place_of(key);
    if (slots_[i].key == key) [[likely]]
      return slots_[i];
    return find_from(i, key, block);
  }
  template <class F>
  void each(F&& f) {
    for (Known& k : slots_)
      if (k.key) f(k);
  }

 private:
  [[gnu::noinline]] Known& find_from(std::size_t i, std::uint64_t key, std::uint64_t block) {
    for (; slots_[i].key; i = (i + 1) & mask_)
      if (slots_[i].key == key) return slots_[i];
    if (++used_ * 2 > slots_.size()) {
      tidy(block);
      return find(key, block);
    }
    slots_[i] = Known{};
    slots_[i].key = key;
    return slots_[i];
  }
  std::size_t place_of(std::uint64_t key) const noexcept {
    return (key * 0x9E3779B97F4A7C15u) >> shift_;
  }
  // `size` is a power of two.
  void resize(std::size_t size) {
    slots_.assign(size, Known{});
    mask_ = size - 1;
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(size));
  }
  // Forgets entries that the last two blocks did not name and that are idle. Grows if many are
  // left.
  void tidy(std::uint64_t block) {
    std::vector<Known> old = std::move(slots_);
    std::size_t left = 0;
    const auto stays = [&](const Known& k) {
      return k.key && (k.block + 1 >= block || k.op != Known::kIdle || k.hidden);
    };
    for (const Known& k : old) left += stays(k);
    resize(std::bit_ceil(std::max<std::size_t>(4 * left, 1 << 8)));
    used_ = 0;
    for (const Known& k : old)
      if (stays(k)) {
        std::size_t i = place_of(k.key);
        while (slots_[i].key) i = (i + 1) & mask_;
        slots_[i] = k;
        ++used_;
      }
  }
  std::vector<Known> slots_;
  std::size_t mask_ = 0, used_ = 0;
  unsigned shift_ = 0;
};

class Lane {
 public:
  explicit Lane(Ring& ring) : ring_(ring), number_(ring.new_lane()) { turn(); }

  // Returns the entry of a process or thread. `path` is called for the path if the entry needs one.
  template <class Path>
  Known& process(std::int64_t id, Path&& path) {
    Known& k = processes_.find(zigzag(id) + 1, block_number_);
    if (k.block != block_number_) [[unlikely]]
      define(k, id, path);
    return k;
  }
  // Returns the entry of a channel or barrier. `same` distinguishes it from an earlier one at the
  // same address; if `same` is null, the known entry at that address is returned, if there is one.
  template <class Name>
  Known& place(const void* key, const void* same, std::uint64_t flags, Name&& name) {
    Known& k = places_.find(reinterpret_cast<std::uintptr_t>(key), block_number_);
    if (k.block != block_number_ || (same && k.same != same)) [[unlikely]]
      define(k, same, flags, name);
    return k;
  }

  // Ensures that there is room for one record and its definitions. Called before process() and
  // place().
  void room() {
    if (at_ > end_) [[unlikely]]
      turn();
  }
  void over(std::uint64_t now, Known& process, Op op, Outcome outcome, Known* place,
            std::uint64_t more, bool has_more) noexcept {
    // Everything needed is read before the first byte is written, and the address is in a local
    // variable. The compiler must assume that writing a byte can change any object, so it would
    // otherwise load the address again after each byte.
    const std::uint64_t waited = process.op == Known::kIdle ? 0 : now - process.since + 1;
    const std::uint32_t me = process.local, where = place ? place->local + 1u : 0;
    process.op = Known::kIdle;
    if (place && outcome == Outcome::commit)
      ++(op == Op::write || op == Op::select_output ? place->written : place->read);
    const std::uint64_t last = last_;
    const std::uint64_t t = now > last ? now : last;
    last_ = t;
    Block& block = *block_;
    ++block.events;
    unsigned char* p = at_;
    *p++ = static_cast<unsigned char>(static_cast<unsigned>(op) |
                                      static_cast<unsigned>(outcome) << kOutcomeShift |
                                      (waited ? kWaited : 0));
    p = append(p, t - last);
    p = append(p, me);
    p = append(p, where);
    if (has_more) p = append(p, more);
    if (waited) p = append(p, waited - 1);
    at_ = p;
    block.used.store(static_cast<std::uint32_t>(p - block.bytes), std::memory_order_release);
  }
  void start(std::uint64_t now, const Known& process) noexcept {
    *at_++ = kStart;
    stamp(now);
    at_ += put_varint(at_, process.local);
    done();
  }
  void end(std::uint64_t now, Known& process, std::uint8_t how, std::string_view why) noexcept {
    process.op = Known::kIdle;
    *at_++ = kEnd;
    stamp(now);
    at_ += put_varint(at_, process.local);
    *at_++ = how;
    text(why);
    done();
  }
  void away(std::uint64_t now, const Known& process, std::string_view where) noexcept {
    *at_++ = kAway;
    stamp(now);
    at_ += put_varint(at_, process.local);
    text(where);
    done();
  }
  void other(std::string_view what) noexcept {
    *at_++ = kOther;
    text(what);
  }
  // Records that the process is waiting now. Only the current block contains this record.
  void waits(std::uint64_t now, const Known& process, Op op, const Known* place,
             std::uint64_t span) noexcept {
    *at_++ = kWaits;
    stamp(now);
    at_ += put_varint(at_, process.local);
    *at_++ = static_cast<unsigned char>(op);
    at_ += put_varint(at_, place ? place->local + 1u : 0);
    at_ += put_varint(at_, span);
    done();
  }
  template <class F>
  void each_process(F&& f) {
    processes_.each(f);
  }
  // Starts again: forgets all processes and places, and drops what was recorded.
  void forget() {
    processes_ = Table();
    places_ = Table();
    block_ = nullptr;
    turn();
  }

 private:
  template <class Path>
  [[gnu::noinline, gnu::cold]] void define(Known& k, std::int64_t id, Path& path) {
    k.block = block_number_;
    k.local = local_processes_++;
    *at_++ = kProcess;
    at_ += put_varint(at_, zigzag(id));
    text(path());
  }
  template <class Name>
  [[gnu::noinline, gnu::cold]] void define(Known& k, const void* same, std::uint64_t flags,
                                           Name& name) {
    if ((same && k.same != same) || !k.first) {
      k.same = same;
      k.first = ++place_number_;
      k.read = k.written = 0;
    }
    k.block = block_number_;
    k.local = local_places_++;
    *at_++ = kPlace;
    at_ += put_varint(at_, k.first);
    at_ += put_varint(at_, flags);
    at_ += put_varint(at_, k.read);
    at_ += put_varint(at_, k.written);
    text(name());
  }
  [[gnu::noinline, gnu::cold]] void turn() {
    block_ = ring_.next(number_, block_);
    block_number_ = block_->number;
    at_ = block_->bytes;
    end_ = block_->bytes + (kBlock - kRoom);
    last_ = block_->start;
    local_processes_ = local_places_ = 0;
  }
  void stamp(std::uint64_t now) noexcept {
    const std::uint64_t t = now > last_ ? now : last_;
    at_ += put_varint(at_, t - last_);
    last_ = t;
  }
  void text(std::string_view s) noexcept {
    std::size_t n = std::min(s.size(), kText);
    while (n < s.size() && n && (static_cast<unsigned char>(s[n]) & 0xC0) == 0x80) --n;
    at_ += put_varint(at_, n);
    at_ = std::copy_n(s.data(), n, at_);  // data() can be null if n is 0
  }
  void done() noexcept {
    ++block_->events;
    block_->used.store(static_cast<std::uint32_t>(at_ - block_->bytes), std::memory_order_release);
  }

  Ring& ring_;
  const std::uint64_t number_;
  Block* block_ = nullptr;
  unsigned char* at_ = nullptr;
  unsigned char* end_ = nullptr;
  std::uint64_t last_ = 0, block_number_ = 0, place_number_ = 0;
  std::uint32_t local_processes_ = 0, local_places_ = 0;
  Table processes_, places_;
};

// --- the file ------------------------------------------------------------------------------------

// The moment at which a recorder began, in units and in ns of the steady clock.
struct Moment {
  std::uint64_t units = Clock::now();
  std::int64_t ns = prim::now();
};

// Writes the contents of the ring to an open file. Returns 0, or the system's error number.
inline int write_file(int fd, Ring& ring, const Moment& began, std::string_view program) {
  const auto put = [fd](const void* data, std::size_t n) {
    const char* p = static_cast<const char*>(data);
    while (n) {
      const ssize_t w = ::write(fd, p, n);
      if (w < 0 && errno == EINTR) continue;
      if (w <= 0) return false;
      p += w;
      n -= static_cast<std::size_t>(w);
    }
    return true;
  };
  const auto piece = [&](char letter, const std::string& head, const void* rest, std::size_t n) {
    const auto size = static_cast<std::uint32_t>(head.size() + n);
    const unsigned char start[kPieceHead] = {
        static_cast<unsigned char>(letter), static_cast<unsigned char>(size),
        static_cast<unsigned char>(size >> 8), static_cast<unsigned char>(size >> 16),
        static_cast<unsigned char>(size >> 24)};
    return put(start, sizeof start) && put(head.data(), head.size()) && put(rest, n);
  };
  const auto number = [](std::string& s, std::uint64_t v) {
    unsigned char b[10];
    s.append(reinterpret_cast<const char*>(b), put_varint(b, v));
  };
  const auto text = [&](std::string& s, std::string_view t) {
    number(s, std::min(t.size(), kText));
    s.append(t.substr(0, kText));
  };
  const Moment now;
  // The system's time minus the steady clock's; with it, traces of several machines can be aligned.
  const std::int64_t system = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count();
  char host[65] = "";
  gethostname(host, sizeof host - 1);
  std::string head;
  number(head, began.units);
  number(head, static_cast<std::uint64_t>(began.ns));
  number(head, now.units);
  number(head, static_cast<std::uint64_t>(now.ns));
  number(head, static_cast<std::uint64_t>(system));
  number(head, static_cast<std::uint64_t>(getpid()));
  number(head, ring.dropped());
  text(head, host);
  text(head, program);
  text(head, WEFT_VERSION);
  errno = 0;
  bool well = put(kMagic, sizeof kMagic) && piece('H', head, nullptr, 0);
  well = well && ring.each([&](const Block& b, std::uint32_t used) {
    std::string at;
    number(at, b.lane);
    number(at, b.start);
    return piece('B', at, b.bytes, used);
  });
  well = well && piece('Z', {}, nullptr, 0);
  return well ? 0 : errno ? errno : EIO;
}

}  // namespace weft::inline WEFT_ABI::runtime::flight
