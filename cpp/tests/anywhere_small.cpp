// Placeable processes that need no heap, so that they run on a board too (rules 19.1 to 19.6). This
// file is compiled unchanged into a C++ program (hosted_anywhere_small.cpp), as a component
// (python/tests/test_native_anywhere_small.py), and for boards (mcu/csp/tests/placed.cpp). Each of
// these programs connects the same networks and prints what their last channels carry. The output
// must be that in anywhere_small.expected.
#include <weft/anywhere.hpp>

#include <cstdint>

using Int = std::int32_t;

// The numbers of objects with a destructor, in the order in which they were destroyed.
struct Notes {
  Int noted[64];
  Int count;
};
static Notes notes;
struct Noted {
  Int as;
  explicit Noted(Int n) : as(n) {}
  Noted(const Noted&) = delete;
  ~Noted() {
    if (notes.count < 64) notes.noted[notes.count++] = as;
  }
  Int plus(Int x) const { return as + x; }
};

// Writes the notes to a channel, and clears the list.
weft::Process recalls(weft::Writer<Int> log) {
  for (Int i = 0; i < notes.count; ++i) co_await log.write(notes.noted[i]);
  notes.count = 0;
}
WEFT_PLACEABLE(recalls, log)

weft::Process counts(weft::Writer<Int> out, Int from, Int to) {
  for (Int i = from; i < to; ++i) co_await out.write(i);
}
WEFT_PLACEABLE(counts, out, from, to)

// Copies values until a channel has ended, and does not check how it ended. Objects live in three
// scopes while the process waits.
weft::Process noted_copies(weft::Reader<Int> source, weft::Writer<Int> out) {
  Noted outer(1);
  for (;;) {
    Noted each(2);
    const Int x = co_await source.read();
    Noted held(3);
    co_await out.write(x);
  }
}
WEFT_PLACEABLE(noted_copies, source, out)

// A temporary exists while the process waits for the operand of its member function.
weft::Process noted_sums(weft::Reader<Int> source, weft::Writer<Int> out) {
  Noted outer(5);
  for (;;) {
    const Int sum = Noted(4).plus(co_await source.read());
    co_await out.write(sum);
  }
}
WEFT_PLACEABLE(noted_sums, source, out)

// Reads n values, then poisons or retires.
weft::Process stops(weft::Reader<Int> source, Int n, Int strength) {
  for (Int i = 0; i < n; ++i) co_await source.read();
  if (strength > 0) source.poison(static_cast<unsigned char>(strength));
}
WEFT_PLACEABLE(stops, source, n, strength = 0)

weft::Process poisons(weft::Writer<Int> out, Int strength) {
  out.poison(static_cast<unsigned char>(strength));
  co_return;
}
WEFT_PLACEABLE(poisons, out, strength = 1)

// Writes to `log` how the writes have ended; if `counted`, also how many were done.
weft::Process tells(weft::Writer<Int> out, weft::Writer<Int> log, bool counted) {
  Int n = 0;
  auto s = co_await weft::write_or_end(out, n);
  while (s == weft::Status::ok) s = co_await weft::write_or_end(out, ++n);
  if (counted) co_await log.write(n);
  co_await log.write(static_cast<Int>(s));
}
WEFT_PLACEABLE(tells, out, log, counted = true)

weft::Process adds(weft::Reader<Int> source, weft::Writer<Int> log) {
  Int sum = 0, n = 0;
  while (auto x = co_await source.next()) {
    sum += *x;
    ++n;
  }
  co_await log.write(n);
  co_await log.write(sum);
}
WEFT_PLACEABLE(adds, source, log)

// Merges until both channels have retired, or one is poisoned.
weft::Process merges(weft::Reader<Int> a, weft::Reader<Int> b, weft::Writer<Int> out) {
  Noted outer(1);
  for (;;) {
    Noted each(2);
    const auto got = co_await weft::select(a, b);
    co_await out.write(*got.value);
  }
}
WEFT_PLACEABLE(merges, a, b, out)

// Selects with inputs of two types, an output, a time, a skip, and preconditions.
weft::Process chooses(weft::Reader<Int> numbers, weft::Reader<bool> flags, weft::Writer<Int> log) {
  using namespace std::chrono_literals;
  for (Int left = 3; left > 0; --left) {
    const auto got = co_await weft::select(numbers, weft::in(flags).when(left > 1),
                                           weft::out(log, 77).when(left == 2),
                                           weft::after(10ms).when(left == 1));
    if (got.index == 2) continue;
    co_await log.write(got.index);
    if (const Int* n = std::get_if<Int>(&got.value)) co_await log.write(*n);
  }
  const auto last = co_await weft::select(weft::in(numbers), weft::skip());
  co_await log.write(last.index);
}
WEFT_PLACEABLE(chooses, numbers, flags, log)

weft::Process feeds(weft::Writer<Int> numbers, weft::Writer<bool> flags) {
  co_await numbers.write(7);
  flags.retire();
}
WEFT_PLACEABLE(feeds, numbers, flags)

weft::Process phases(weft::Barrier barrier, weft::Writer<Int> log, Int n) {
  for (Int i = 0; i < n; ++i) {
    co_await log.write(i);
    co_await barrier.sync();
  }
  barrier.resign();
  co_await log.write(-1);
}
WEFT_PLACEABLE(phases, barrier, log, n = 2)

// Waits at a barrier and for a channel. The channel is poisoned.
weft::Process awaits_both(weft::Barrier barrier, weft::Reader<Int> source, weft::Writer<Int> out) {
  Noted outer(1);
  co_await weft::select(barrier, source);
  co_await out.write(1);
}
WEFT_PLACEABLE(awaits_both, barrier, source, out)

weft::Process leaves(weft::Barrier barrier) {
  barrier.resign();
  co_return;
}
WEFT_PLACEABLE(leaves, barrier)

weft::Process waits(weft::Writer<Int> log) {
  const std::int64_t begun = weft::now();
  co_await weft::sleep(std::chrono::milliseconds(2));
  const std::int64_t span = weft::now() - begun;
  co_await weft::sleep(std::chrono::milliseconds(0));
  co_await log.write(span >= 2'000'000);
}
WEFT_PLACEABLE(waits, log)

// --- a vibration monitor in integers -------------------------------------------------------------

// A vibration of period 16 with noise, by Knuth's and Lewis's random numbers.
weft::Process shakes(weft::Writer<Int> out, Int n) {
  std::uint32_t seed = 1;
  for (Int i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const Int noise = static_cast<Int>(seed >> 26) - 32;
    co_await out.write((i / 8 % 2 ? 300 : -300) + noise);
  }
}
WEFT_PLACEABLE(shakes, out, n = 256)

// Goertzel's algorithm at a sixteenth of the sampling rate: the power in each window.
weft::Process watches(weft::Reader<Int> samples, weft::Writer<Int> powers, Int window) {
  constexpr std::int64_t k2Cos = 30274;  // 2 cos(2 pi / 16), times 2^14
  std::int64_t s1 = 0, s2 = 0;
  for (Int i = 1; auto x = co_await samples.next(); ++i) {
    const std::int64_t s = *x + ((k2Cos * s1) >> 14) - s2;
    s2 = s1;
    s1 = s;
    if (i % window) continue;
    const std::int64_t power = s1 * s1 + s2 * s2 - ((k2Cos * s1) >> 14) * s2;
    co_await powers.write(static_cast<Int>(power >> 10));
    s1 = s2 = 0;
  }
}
WEFT_PLACEABLE(watches, samples, powers, window = 64)
