// The processes of anywhere_small.cpp as coroutines of a C++ program (rules 19.1 to 19.4). A board
// and a component print the same output (mcu/csp/tests/placed.cpp,
// python/tests/test_native_anywhere_small.py).
#include <weft/anywhere.hpp>

#include <string>

#include <doctest/doctest.h>

namespace placed_small {
#include "anywhere_small.cpp"

constexpr const char* kExpected =
#include "anywhere_small.expected"
    ;

std::string text;

weft::Process shows(weft::Reader<Int> log) {
  while (auto x = co_await log.next()) text += " " + std::to_string(*x);
}
template <class... P>
void run(const char* name, weft::Reader<Int> log, P... processes) {
  text += name;
  weft::run({weft::Clock::virtual_time}, weft::par(std::move(processes)..., shows(std::move(log))));
  text += "\n";
}
void recall(const char* name) {
  weft::Channel<Int> log;
  run(name, log.reader(), recalls(log.writer()));
}

void vibration() {
  weft::Channel<Int> samples(weft::buffer(8)), powers;
  run("vibration", powers.reader(), shakes(samples.writer(), 256),
      watches(samples.reader(), powers.writer(), 64));
}
void retired() {
  weft::Channel<Int> a, b;
  run("retired", b.reader(), counts(a.writer(), 0, 3), noted_copies(a.reader(), b.writer()));
  recall("notes");
}
void reader_gone() {
  weft::Channel<Int> a, b;
  weft::run(counts(a.writer(), 0, 9), noted_copies(a.reader(), b.writer()),
            stops(b.reader(), 2, 0));
  recall("reader_gone");
}
void poisoned() {
  weft::Channel<Int> a, b, log;
  run("poisoned", log.reader(), tells(a.writer(), log.writer(), true),
      noted_copies(a.reader(), b.writer()), stops(b.reader(), 2, 3));
  recall("notes");
}
void temporary() {
  weft::Channel<Int> a, b;
  run("temporary", b.reader(), counts(a.writer(), 0, 2), noted_sums(a.reader(), b.writer()));
  recall("notes");
}
void buffered() {
  weft::Channel<Int> a(weft::buffer(4)), log;
  run("buffered", log.reader(), counts(a.writer(), 0, 5), adds(a.reader(), log.writer()));
}
void merged() {
  weft::Channel<Int> a, b, c, log;
  run("merged", log.reader(), counts(a.writer(), 0, 3), counts(b.writer(), 10, 13),
      merges(a.reader(), b.reader(), c.writer()), adds(c.reader(), log.writer()));
  recall("notes");
}
void merge_poisoned() {
  weft::Channel<Int> a, b, c, log;
  run("merge_poisoned", log.reader(), poisons(a.writer(), 2),
      merges(a.reader(), b.reader(), c.writer()), tells(b.writer(), log.writer(), false),
      stops(c.reader(), 99, 0));
  notes.count = 0;
}
void chosen() {
  weft::Channel<Int> numbers, log;
  weft::Channel<bool> flags;
  const auto open = numbers.writer();  // keeps the channel open, so the limit decides (rule 5.6)
  run("chosen", log.reader(), feeds(numbers.writer(), flags.writer()),
      chooses(numbers.reader(), flags.reader(), log.writer()));
}
void in_phases() {
  weft::Barrier barrier(2);
  weft::Channel<Int> a, b, log, sums;
  run("phases", sums.reader(), phases(barrier, a.writer(), 2), phases(barrier, b.writer(), 2),
      merges(a.reader(), b.reader(), log.writer()), adds(log.reader(), sums.writer()));
  notes.count = 0;
}
void withdrawn() {
  weft::Barrier barrier(2);
  weft::Channel<Int> a, b, log;
  weft::run(poisons(a.writer(), 1), awaits_both(barrier, a.reader(), b.writer()),
            stops(b.reader(), 1, 0));
  recall("withdrawn");
  run("left", log.reader(), phases(barrier, log.writer(), 1), leaves(barrier));
}
void slept() {
  weft::Channel<Int> log;
  run("slept", log.reader(), waits(log.writer()));
}

TEST_CASE("rules 19.1, 19.2, 19.3, 19.4: a source without a heap gives the same on a desk") {
  text.clear();
  vibration();
  retired();
  reader_gone();
  poisoned();
  temporary();
  buffered();
  merged();
  merge_poisoned();
  chosen();
  in_phases();
  withdrawn();
  slept();
  CHECK(text == kExpected);
}

}  // namespace placed_small
