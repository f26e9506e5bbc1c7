// checks: scenarios of processes on the emulated chip, one after the other. The program prints
// `name value…`; tests/run.mjs contains the right values.
//
// bench.hpp is the part that differs between boards: the pins on which a scenario shows what it
// does, and what raises the interrupts of the last scenario.
//
// Every scenario starts processes and serves the queue until all have ended, so a lost wake-up
// shows as a run that does not end.
#include "bench.hpp"
#include "board.h"
#include "weft_mcu/csp.hpp"

using namespace weft;
using namespace weft::mcu;

namespace {

constinit weft_queue events{};
constinit Arena<2048> frames{};
constinit Scheduler scheduler{&events, frames};
using Int = std::uint32_t;

void show(const char* name, std::initializer_list<Int> values) {
  uart_puts(name);
  for (Int v : values) {
    uart_put(' ');
    uart_put_u32(v);
  }
  uart_put('\n');
}
Int code(Status s) { return static_cast<Int>(s); }
void go(Process p) {
  if (const int e = scheduler.start(static_cast<Process &&>(p)))
    show("start failed", {static_cast<Int>(-e)});
}

// --- deadlines -----------------------------------------------------------------------------------

namespace timeout {
  // No process writes, so the event ends the read at its deadline. Pin 2 shows the cycle.
constinit Channel<Int> c;
volatile Int due;
Process reader(Scheduler&, Reader<Int> in) {
  Int x = 77, t = weft_now32() + 3000;
  for (unsigned i = 0; i < 20; ++i, t += 997) {
    due = t;
    const Status s = co_await in.read_until(x, t);
    bench::mark(2);
    const Int now = weft_now32();
    if (s != Status::timed_out || now - t > 2 || x != 77)
      show("timeout wrong", {i, code(s), now - t, x});
  }
  show("timeout transfers", {static_cast<Int>(c.transfers())});
}
void run() {
  Writer<Int> keep = c.writer();
  go(reader(scheduler, c.reader()));
  scheduler.run();
}
}  // namespace timeout

// A value comes before the deadline. The deadline's event is cancelled, and ends nothing later.
namespace in_time {
constinit Channel<Int> c;
Process reader(Scheduler&, Reader<Int> in) {
  Int x = 0;
  const Int t = weft_now32();
  const Status first = co_await in.read_until(x, t + 500);
  const Int v = x;
  const Status second = co_await in.read(x);  // ends 1000 us later, past the first deadline
  show("in_time", {code(first), v, code(second), x});
  // The writer waits already, so its value is read although the deadline is long past.
  const Status late = co_await in.read_until(x, t);
  show("late_but_there", {code(late), x});
  const Int before = weft_now32();
  const Status past = co_await in.read_until(x, t);
  show("past_and_empty", {code(past), x, weft_now32() - before < 10});
}
Process writer(Scheduler&, Writer<Int> out) {
  const Int t = weft_now32();
  co_await sleep_until(t + 100);
  co_await out.write(11);
  co_await sleep_until(t + 1100);
  co_await out.write(12);
  co_await out.write(13);
  co_await sleep_until(weft_now32() + 100);
}
void run() {
  go(reader(scheduler, c.reader()));
  go(writer(scheduler, c.writer()));
  scheduler.run();
}
}  // namespace in_time

namespace write_deadline {  // A write that its deadline ends has delivered nothing.
constinit Channel<Int> c;
Process writer(Scheduler&, Writer<Int> out) {
  const Int t = weft_now32();
  const Status s = co_await out.write_until(1, t + 200);
  show("write_until", {code(s), weft_now32() - t});
  const Status after = co_await out.write_until(2, t + 1000);
  show("write_after", {code(after)});
}
Process reader(Scheduler&, Reader<Int> in) {
  co_await sleep_until(weft_now32() + 400);
  Int x = 0;
  const Status s = co_await in.read(x);
  show("read_after", {code(s), x});
}
void run() {
  go(writer(scheduler, c.writer()));
  go(reader(scheduler, c.reader()));
  scheduler.run();
}
}  // namespace write_deadline

namespace tie {
  // A value and a deadline in the same microsecond, in both orders of posting: the read ends with
  // ok or timed out, and the value is never lost.
constinit Channel<Int> c;
Int read_ok, timed, then;
Process reader(Scheduler&, Reader<Int> in, Int at, Int begin) {
  co_await sleep_until(begin);
  Int x = 0;
  if (co_await in.read_until(x, at) == Status::ok) {
    ++read_ok;
  } else {
    ++timed;
    if (co_await in.read(x) == Status::ok) ++then;
  }
}
Process writer(Scheduler&, Writer<Int> out, Int at, Int begin) {
  co_await sleep_until(begin);
  co_await sleep_until(at);
  co_await out.write(5);
}
void run() {
  for (Int order = 0; order < 2; ++order) {
    constexpr Int kEarlier = 100, kLater = 200;
    const Int t = weft_now32();
    Reader<Int> r = c.reader();
    Writer<Int> w = c.writer();
    go(reader(scheduler, r.share(), t + 500, t + (order ? kEarlier : kLater)));
    go(writer(scheduler, w.share(), t + 500, t + (order ? kLater : kEarlier)));
    scheduler.run();
    show("tie", {order, read_ok, timed, then});
    new (&c) Channel<Int>;
  }
}
}  // namespace tie

// --- ends ----------------------------------------------------------------------------------------

namespace ends {
constinit Channel<Int> a, b, d;
constinit Channel<Int, 4> e;
Process waits(Scheduler&, Reader<Int> in, Int which) {
  Int x = 0;
  const Status s = co_await in.read(x);
  const Status again = co_await in.read_until(x, weft_now32() + 100);
  show("reader_end", {which, code(s), code(again)});
}
Process writes(Scheduler&, Writer<Int> out) {
  const Status s = co_await out.write(1);
  show("writer_end", {code(s)});
}
Process poisons(Scheduler&, Writer<Int> first, Writer<Int> second) {
  co_await sleep_until(weft_now32() + 50);
  first.poison();
  second.drop();
}
Process leaves(Scheduler &, [[maybe_unused]] Reader<Int> in) {
  co_await sleep_until(weft_now32() + 150);
}
Process fills(Scheduler&, Writer<Int> out) {
  for (Int i = 1; i <= 3; ++i) co_await out.write(i);
}
Process drains(Scheduler&, Reader<Int> in) {
  co_await sleep_until(weft_now32() + 300);  // The writer has ended long before.
  Int x = 0, sum = 0;
  Status s;
  while ((s = co_await in.read(x)) == Status::ok) sum += x;
  show("buffer_end", {sum, code(s)});
}
void run() {
  go(waits(scheduler, a.reader(), 1));
  go(waits(scheduler, b.reader(), 2));
  go(poisons(scheduler, a.writer(), b.writer()));
  go(writes(scheduler, d.writer()));
  go(leaves(scheduler, d.reader()));
  go(fills(scheduler, e.writer()));
  go(drains(scheduler, e.reader()));
  scheduler.run();
  show("empty_end", {a.reader() ? 1u : 0u, b.writer() ? 1u : 0u});
}
}  // namespace ends

// --- choice --------------------------------------------------------------------------------------

namespace choice {
constinit Channel<Int> a, b, o;
Process feeder(Scheduler&, Writer<Int> out, Int base) {
  for (Int i = 0; i < 4; ++i)
    if (co_await out.write(base + i) != Status::ok) break;
}
Process chooser(Scheduler&, Reader<Int> first, Reader<Int> second, Writer<Int> third) {
  Int x = 0, y = 900, order = 0, sum = 0;
  Alternative<3> alt;
  alt.input(0, first, x);
  alt.input(1, second, x);
  alt.output(2, third, &y);
  alt.enable(2, false);
  co_await sleep_until(weft_now32() + 50);  // Now both writers wait.
  for (unsigned i = 0; i < 8; ++i) {
    const int g = co_await alt.select();
    order = order * 2 + static_cast<Int>(g);
    sum += x;
  }
  show("fair", {order, sum});  // The writers take turns: 01010101.
  int g = co_await alt.select();  // Both writers have ended by now, so the select is over.
  show("over", {code(alt.status())});
  alt.enable(2, true);
  alt.ends(0);
  g = co_await alt.select();
  show("end_is_ready", {static_cast<Int>(g), code(alt.status())});
  alt.ends(0, false);  // Now both inputs are silent, and the output determines the outcome.
  const Int t = weft_now32() + 300;
  g = co_await alt.select_until(t);
  show("select_until", {static_cast<Int>(g + 1), weft_now32() - t});
  g = co_await alt.select_until(t + 1000);
  show("output_guard", {static_cast<Int>(g), code(alt.status())});
  g = co_await alt.select_until(t);
  show("select_past", {static_cast<Int>(g + 1)});
}
Process taker(Scheduler&, Reader<Int> in) {
  co_await sleep_until(weft_now32() + 800);
  Int x = 0;
  co_await in.read(x);
  show("taken", {x});
  co_await sleep_until(weft_now32() + 200);
}
void run() {
  go(feeder(scheduler, a.writer(), 10));
  go(feeder(scheduler, b.writer(), 20));
  go(chooser(scheduler, a.reader(), b.reader(), o.writer()));
  go(taker(scheduler, o.reader()));
  scheduler.run();
}
}  // namespace choice

// --- ports ---------------------------------------------------------------------------------------

namespace port {
constinit Channel<Int> c;
constinit Port<Int, 4> pin{scheduler};
volatile Int count;
Process reader(Scheduler&, Reader<Int> in) {
  Int x = 0, sum = 0, n = 0, wrong = 0;
  while (n < 10) {
    if (co_await in.read(x) != Status::ok) break;
    bench::mark(3);
    wrong += x != n++;
    sum += x;
  }
  show("interrupt_values", {n, sum, wrong, pin.dropped()});
  // No process reads for a while: the ring holds four values; the others are dropped and counted.
  co_await sleep_until(weft_now32() + 2000);
  const Int lost = pin.dropped();
  n = 0;
  while (co_await in.read_until(x, weft_now32() + 500) == Status::ok) ++n;
  show("ring", {n + lost, n, count - 10});
}
void run() {
  pin.connect(c.writer());
  bench::begin(&events);
  go(reader(scheduler, c.reader()));
  scheduler.run();
  // The ring is empty. The next value shows that the reader's end is closed.
  show("after_end", {pin.post_value(1) ? 1u : 0u});
  bench::end();
}
}  // namespace port

// --- the arena -----------------------------------------------------------------------------------

namespace arena {
Process nothing(Scheduler&) { co_return; }
constinit Channel<Int> c;
Process large(Scheduler&, [[maybe_unused]] Reader<Int> in) {
  volatile Int room[600];
  room[0] = 1;
  co_await sleep_until(weft_now32());
  room[1] = room[0];
}
void run() {
  go(nothing(scheduler));
  scheduler.run();
  const Int used = scheduler.arena_used();
  for (Int i = 0; i < 50; ++i) {
    go(nothing(scheduler));
    scheduler.run();
  }
  show("frames_reused", {scheduler.arena_used() - used, scheduler.processes()});
  {
    Writer<Int> out = c.writer();
    Process p = large(scheduler, c.reader());
    show("argument_gone", {c.reader_ends(), out.core()->how_ended<Side::out>() == Status::retired});
    show("no_room", {p ? 1u : 0u, scheduler.last_frame() > 2048});
    show("no_room_code",
         {static_cast<Int>(-scheduler.start(static_cast<Process &&>(p))), scheduler.processes()});
  }
  { Process dropped = nothing(scheduler); }  // `dropped` is made and never started.
  show("never_started", {scheduler.arena_used() - used, scheduler.processes()});
}
}  // namespace arena

// --- together with other actors -----------------------------------------------------------------

namespace beside {
  // Two processes in a ring never rest; an actor of the same queue has a period of 500 us.
constinit Channel<Int> a, b;
Int worst, ticks;
bool stop;
weft_actor other{};
std::uint32_t tick(weft_event*, std::uint32_t release) {
  const Int late = weft_now32() - release;
  if (late > worst) worst = late;
  if (++ticks == 40) {
    stop = true;
    return WEFT_DONE;
  }
  return 500;
}
weft_event event = WEFT_EVENT(tick, &other);
Process ping(Scheduler&, Writer<Int> out, Reader<Int> in) {
  Int x = 0;
  while (!stop) {
    co_await out.write(x);
    if (co_await in.read(x) != Status::ok) break;
  }
}
Process pong(Scheduler&, Reader<Int> in, Writer<Int> out) {
  Int x;
  while (co_await in.read(x) == Status::ok)
    if (co_await out.write(x + 1) != Status::ok) break;
}
void run() {
  weft_post_in(&events, &event, 500);
  go(ping(scheduler, a.writer(), b.reader()));
  go(pong(scheduler, a.reader(), b.writer()));
  scheduler.run();
  show("beside", {ticks, worst <= 80, a.transfers() > 500});
}
}  // namespace beside

namespace never_waits {  // A process that never suspends still lets other processes and events run.
constinit Channel<Int, 2> newest{Overflow::drop_newest};
constinit Channel<Int> gone;
Int done, others, events_after;
bool over() { return others != 0 && events_after != 0; }
Process writes(Scheduler&, Writer<Int> out) {
  while (!over()) {
    co_await out.write(1);
    ++done;
  }
}
Process meets_an_end(Scheduler&, Reader<Int> in) {
  Int x = 0;
  while (!over()) {
    co_await in.read(x);
    ++done;
  }
}
Process sleeps_in_the_past(Scheduler&, Int t) {
  while (!over()) {
    co_await sleep_until(t);
    ++done;
  }
}
Process selects(Scheduler&, Writer<Int> out) {
  Alternative<1> alt;
  Int x = 1;
  alt.output(0, out, &x);
  while (!over()) {
    co_await alt.select();
    ++done;
  }
}
Process looks(Scheduler&, Reader<Int> in, Int t) {
  Int x = 0;
  while (!over()) {
    co_await in.read_until(x, t);
    ++done;
  }
}
std::uint32_t tick(weft_event*, std::uint32_t) {
  events_after = done;
  return WEFT_DONE;
}
constinit weft_actor actor{};
constinit weft_event event WEFT_EVENT(&tick, &actor);
Process other(Scheduler&) {
  others = done;
  weft_post_in(&events, &event, 1);
  co_return;
}
void with(const char* name, Process p) {
  done = others = events_after = 0;
  go(static_cast<Process&&>(p));
  go(other(scheduler));
  scheduler.run();
  show(name, {others, events_after > others, events_after <= 33 * 32});
}
void run() {
  Reader<Int> keep = newest.reader();
  Writer<Int> first = newest.writer();
  with("never_waits_writes", writes(scheduler, first.share()));
  with("never_waits_selects", selects(scheduler, first.share()));
  const Int t = weft_now32();
  with("never_waits_sleeps", sleeps_in_the_past(scheduler, t));
  Writer<Int> silent = gone.writer();
  with("never_waits_looks", looks(scheduler, gone.reader(), t));
  silent.drop();
  with("never_waits_ends", meets_an_end(scheduler, gone.reader()));
}
}  // namespace never_waits

}  // namespace

extern "C" void BENCH_ISR() {
  bench::acknowledge();
  port::pin.post_value(port::count);
  port::count = port::count + 1;
}

int main() {
  uart_init();
  bench::init();
  weft_list_init(&events, WEFT_LOCAL);
  timeout::run();
  in_time::run();
  write_deadline::run();
  tie::run();
  ends::run();
  choice::run();
  arena::run();
  beside::run();
  never_waits::run();
  uart_puts("ready\n");
  port::run();
  uart_puts("done\n");
  return bench::over();
}
