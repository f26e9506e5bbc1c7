// placed: the processes of cpp/tests/anywhere_small.cpp as processes of a board (rules 19.1 to
// 19.6). The program prints what the last channel of each network carries, which must be
// cpp/tests/anywhere_small.expected. It runs on the desk (ports/posix), on the emulated RP2040 and
// on QEMU's an521.
#include "../../../cpp/tests/anywhere_small.cpp"

#if defined(WEFT_POSIX)
#include <stdio.h>
static void put(const char* text) { fputs(text, stdout); }
#elif defined(WEFT_PLACED_AN521)
static void put(const char* text) { an521_puts(text); }
#else
#include "board.h"
static void put(const char* text) { uart_puts(text); }
#endif

using weft::mcu::Arena;
using weft::mcu::Channel;
using weft::mcu::Scheduler;

namespace {

constinit weft_queue events{};
constinit Arena<8192> frames{};
constinit Scheduler scheduler{&events, frames};

void put_number(Int n) {
  char text[16], *at = text + sizeof text;
  std::uint32_t left = n < 0 ? 0u - static_cast<std::uint32_t>(n) : static_cast<std::uint32_t>(n);
  *--at = 0;
  do
    *--at = static_cast<char>('0' + left % 10);
  while (left /= 10);
  if (n < 0) *--at = '-';
  put(" ");
  put(at);
}

weft::Process shows(weft::Reader<Int> log) {
  while (auto x = co_await log.next()) put_number(*x);
}
template <auto F, class... A>
void go(A&&... arguments) {
  if (scheduler.start<F>(static_cast<A&&>(arguments)...)) put(" no room");
}
// Runs the processes that were started, and prints the values that arrive at `log`.
template <class C>
void run(const char* name, C& log) {
  put(name);
  go<shows>(log.reader());
  scheduler.run();
  if (scheduler.processes()) put(" left over");
  put("\n");
}
void run_and_recall(const char* name) {
  static constinit Channel<Int> log;
  scheduler.run();
  new (&log) Channel<Int>;
  go<recalls>(log.writer());
  run(name, log);
}

namespace vibration {
constinit Channel<Int, 8> samples;
constinit Channel<Int> powers;
void run() {
  go<shakes>(samples.writer(), 256);
  go<watches>(samples.reader(), powers.writer(), 64);
  ::run("vibration", powers);
}
}  // namespace vibration

namespace retired {
constinit Channel<Int> a, b;
void run() {
  go<counts>(a.writer(), 0, 3);
  go<noted_copies>(a.reader(), b.writer());
  ::run("retired", b);
  run_and_recall("notes");
}
}  // namespace retired

namespace reader_gone {
constinit Channel<Int> a, b;
void run() {
  go<counts>(a.writer(), 0, 9);
  go<noted_copies>(a.reader(), b.writer());
  go<stops>(b.reader(), 2, 0);
  run_and_recall("reader_gone");
}
}  // namespace reader_gone

namespace poisoned {
constinit Channel<Int> a, b, log;
void run() {
  go<tells>(a.writer(), log.writer(), true);
  go<noted_copies>(a.reader(), b.writer());
  go<stops>(b.reader(), 2, 3);
  ::run("poisoned", log);
  run_and_recall("notes");
}
}  // namespace poisoned

namespace temporary {
constinit Channel<Int> a, b;
void run() {
  go<counts>(a.writer(), 0, 2);
  go<noted_sums>(a.reader(), b.writer());
  ::run("temporary", b);
  run_and_recall("notes");
}
}  // namespace temporary

namespace buffered {
constinit Channel<Int, 4> a;
constinit Channel<Int> log;
void run() {
  go<counts>(a.writer(), 0, 5);
  go<adds>(a.reader(), log.writer());
  ::run("buffered", log);
}
}  // namespace buffered

namespace merged {
constinit Channel<Int> a, b, c, log;
void run() {
  go<counts>(a.writer(), 0, 3);
  go<counts>(b.writer(), 10, 13);
  go<merges>(a.reader(), b.reader(), c.writer());
  go<adds>(c.reader(), log.writer());
  ::run("merged", log);
  run_and_recall("notes");
}
}  // namespace merged

namespace merge_poisoned {
constinit Channel<Int> a, b, c, log;
void run() {
  go<poisons>(a.writer(), 2);
  go<merges>(a.reader(), b.reader(), c.writer());
  go<tells>(b.writer(), log.writer(), false);
  go<stops>(c.reader(), 99, 0);
  ::run("merge_poisoned", log);
  scheduler.run();
  notes.count = 0;
}
}  // namespace merge_poisoned

namespace chosen {
constinit Channel<Int> numbers, log;
constinit Channel<bool> flags;
void run() {
  // This end stays open, so the time decides (rule 5.6).
  const auto open = numbers.writer();
  go<feeds>(numbers.writer(), flags.writer());
  go<chooses>(numbers.reader(), flags.reader(), log.writer());
  ::run("chosen", log);
}
}  // namespace chosen

namespace in_phases {
constinit weft::mcu::Barrier barrier{2};
constinit Channel<Int> a, b, log;
void run() {
  go<phases>(barrier, a.writer(), 2);
  go<phases>(barrier, b.writer(), 2);
  go<merges>(a.reader(), b.reader(), log.writer());
  static constinit Channel<Int> sums;
  go<adds>(log.reader(), sums.writer());
  ::run("phases", sums);
  notes.count = 0;
}
}  // namespace in_phases

namespace withdrawn {
constinit weft::mcu::Barrier barrier{2};
constinit Channel<Int> a, b, log;
void run() {
  go<poisons>(a.writer(), 1);
  go<awaits_both>(barrier, a.reader(), b.writer());
  go<stops>(b.reader(), 1, 0);
  run_and_recall("withdrawn");
  go<phases>(barrier, log.writer(), 1);
  go<leaves>(barrier);
  ::run("left", log);
}
}  // namespace withdrawn

namespace slept {
constinit Channel<Int> log;
void run() {
  go<waits>(log.writer());
  ::run("slept", log);
}
}  // namespace slept

// --- for boards alone: these networks print nothing unless they go wrong -------------------------

void expect(bool right, const char* what) {
  if (right) return;
  put(what);
  put(" is wrong\n");
}

namespace step {  // A process awaits another one, and continues although a channel of the other
                  // process had ended.
constinit Channel<Int> a, b;
weft::Process steps(weft::Reader<Int> source, weft::Writer<Int> out) {
  Noted outer(8);
  co_await noted_copies(static_cast<weft::Reader<Int>&&>(source),
                        static_cast<weft::Writer<Int>&&>(out));
  expect(notes.count == 6 && notes.noted[5] == 1, "step");
}
void run() {
  go<counts>(a.writer(), 0, 2);
  go<steps>(a.reader(), b.writer());
  go<stops>(b.reader(), 9, 0);
  scheduler.run();
  expect(notes.count == 7 && notes.noted[6] == 8, "end of the step");
  notes.count = 0;
}
}  // namespace step

#if !WEFT_DEBUG           // A debug build names these mistakes (rule M15).
namespace no_room {  // The process has not begun, and its ends are dropped (rule M21).
constinit Arena<32> little{};
constinit Scheduler tight{&events, little};
constinit Channel<Int> a;
void run() {
  const auto out = a.writer();
  expect(tight.start<shows>(a.reader()) == WEFT_E_ARENA, "no room");
  expect(out.core()->how_ended<weft::mcu::Side::out>() == weft::Status::retired, "its end");
  expect(tight.processes() == 0, "its process");
}
}  // namespace no_room

namespace closed_end {  // Rule 19.6: the process ends.
constinit Channel<Int> a;
weft::Process closes(weft::Writer<Int> out) {
  Noted noted(4);
  out.retire();
  co_await out.write(1);
  expect(false, "an operation at a closed end");
}
void run() {
  const auto in = a.reader();
  go<closes>(a.writer());
  scheduler.run();
  expect(notes.count == 1, "a process after its closed end");
  notes.count = 0;
}
}  // namespace closed_end
#endif

}  // namespace

#if defined(__clang__)
extern "C"  // With -ffreestanding clang would give main a C++ name.
#endif
    int
    main() {
#if defined(WEFT_POSIX)
  weft_posix_virtual(0);
#elif !defined(WEFT_PLACED_AN521)
  uart_init();
#endif
  weft_list_init(&events, WEFT_LOCAL);
  vibration::run();
  retired::run();
  reader_gone::run();
  poisoned::run();
  temporary::run();
  buffered::run();
  merged::run();
  merge_poisoned::run();
  chosen::run();
  in_phases::run();
  withdrawn::run();
  slept::run();
  step::run();
#if !WEFT_DEBUG
  no_room::run();
  closed_end::run();
#endif
  return 0;
}
