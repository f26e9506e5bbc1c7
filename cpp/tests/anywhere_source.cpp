// Placeable processes (rules 19.1 to 19.5). This file is compiled unchanged into a C++ program
// (hosted_anywhere.cpp) and as a component (python/tests/test_native_anywhere.py).
#include <weft/anywhere.hpp>

#include <cstdint>
#include <deque>
#include <string>

using Int = std::int64_t;

weft::Process smooth(weft::Reader<Int> source, weft::Writer<Int> out, unsigned n) {
  std::deque<Int> last;
  while (auto x = co_await source.next()) {
    last.push_back(*x);
    if (last.size() > n) last.pop_front();
    Int sum = 0;
    for (const Int y : last) sum += y;
    co_await out.write(sum / static_cast<Int>(last.size()));
  }
}
WEFT_PLACEABLE(smooth, source, out, n = 8)

// Copies values until a channel has ended, and does not check how it ended.
weft::Process copies(weft::Reader<Int> source, weft::Writer<Int> out) {
  for (;;) co_await out.write(co_await source.read());
}
WEFT_PLACEABLE(copies, source, out)

// Writes to `log` how the writes have ended.
weft::Process tells(weft::Writer<Int> out, weft::Writer<std::string> log) {
  Int n = 0;
  auto s = co_await weft::write_or_end(out, n);
  while (s == weft::Status::ok) s = co_await weft::write_or_end(out, ++n);
  std::string text = s == weft::Status::retired ? "retired" : "poisoned";
  text += " after " + std::to_string(n);
  co_await log.write(text);
}
WEFT_PLACEABLE(tells, out, log)

weft::Process stops(weft::Reader<Int> source, unsigned n, bool poisons) {
  for (unsigned i = 0; i < n; ++i) co_await source.read();
  if (poisons) source.poison(3);
}
WEFT_PLACEABLE(stops, source, n, poisons = false)

// Selects over all the guards that a placeable source can have: inputs of two types, an output,
// times.
weft::Process chooses(weft::Reader<Int> numbers, weft::Reader<std::string> texts,
                      weft::Writer<std::string> log, std::string before) {
  using namespace std::chrono_literals;
  for (int left = 3; left > 0;) {
    auto got = co_await weft::select(numbers, weft::in(texts).when(left > 1),
                                     weft::out(log, before).when(left == 2),
                                     weft::after(10ms).when(left == 1));
    std::string line = before + std::to_string(got.index);
    if (auto* n = std::get_if<Int>(&got.value)) line += " " + std::to_string(*n);
    if (auto* t = std::get_if<std::string>(&got.value)) line += " " + *t;
    if (got.index != 2) co_await log.write(line);
    --left;
  }
  auto last = co_await weft::select(weft::in(numbers), weft::skip());
  std::string end = last.index == 1 && !last.value ? "over" : "more";
  co_await log.write(end);
}
WEFT_PLACEABLE(chooses, numbers, texts, log, before = "guard ")

weft::Process phases(weft::Barrier barrier, weft::Writer<Int> log, unsigned n) {
  for (unsigned i = 0; i < n; ++i) {
    co_await log.write(i);
    co_await barrier.sync();
  }
  barrier.resign();
}
WEFT_PLACEABLE(phases, barrier, log, n = 2)

weft::Process waits(weft::Writer<Int> out) {
  const Int begun = weft::now();
  co_await weft::sleep(std::chrono::milliseconds(2));
  const Int span = weft::now() - begun;
  co_await out.write(span >= 2'000'000);
}
WEFT_PLACEABLE(waits, out)

weft::Process nothing() { co_return; }
WEFT_PLACEABLE(nothing)
