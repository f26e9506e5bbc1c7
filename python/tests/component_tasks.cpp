// Coroutines of components, for the tests of the pool (rule 16.10).
#include <unistd.h>

#include <weft/component_tasks.hpp>

#include <cstdio>
#include <fstream>

using namespace weft::native::tasks;
using namespace std::chrono_literals;

namespace {

using Ints = Reader<std::int64_t>;
using Out = Writer<std::int64_t>;
using Log = Writer<std::string>;

Task<> ints(Ints in, Out out) {
  while (auto x = co_await in.next()) co_await out.write(*x);
}
// Three kinds of tasks that are awaited: with a value, without a value, and tasks that throw.
Task<std::int64_t> sum_of(Ints& in, std::int64_t n) {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += co_await in.read();
  co_return sum;
}
Task<> put(Out& out, std::int64_t x) { co_await out.write(x); }
Task<std::int64_t> never_waits(std::int64_t x) {
  if (x < 0) throw std::domain_error("below zero");
  co_return x;
}
Task<> sums(Ints in, Out out, std::int64_t n) {
  for (;;) {
    const std::int64_t sum = co_await sum_of(in, n);
    co_await put(out, co_await never_waits(sum));
  }
}
Task<> deep(Out out, std::int64_t n) {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += co_await never_waits(1);
  co_await out.write(sum);
}
Task<> fails(Ints in, std::int64_t at) {
  for (;;)
    if (const auto x = co_await in.read(); x == at)
      throw std::runtime_error("it is " + std::to_string(x));
}
Task<> either(Ints a, Ints b, Log log, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto got = co_await select(a, b);
    const std::int64_t x = got.index() == 0 ? std::get<0>(got) : std::get<1>(got);
    co_await log.write((got.index() == 0 ? "a " : "b ") + std::to_string(x));
  }
}
Task<> place(Ints in, Out out) {  // a buffer of one place
  std::optional<std::int64_t> held;
  for (bool open = true; open || held;) {
    const auto got = co_await select(when(open && !held, loud(in)),
                                     when(held.has_value(), output(out, held.value_or(0))));
    if (got.index() == 0)
      held = std::get<0>(got);
    else
      held.reset();
  }
}
Task<> patient(Ints in, Log log, std::int64_t ms) {
  for (;;) {
    const auto got = co_await select_first(in, after(std::chrono::milliseconds(ms)));
    if (got.index() == 1) break;
    co_await log.write("in time " + std::to_string(std::get<0>(got)));
  }
  co_await log.write("late at " + std::to_string(now() / 1ms));
  co_await sleep(1s);
  co_await log.write("slept until " + std::to_string(now() / 1ms));
  const auto skipped = co_await select_first(in, skip());
  co_await log.write(skipped.index() == 1 ? "nothing there" : "something there");
  const auto timeless = co_await select_first(after(0ms), skip());
  co_await log.write(timeless.index() == 0 ? "no time" : "skip");
}
Task<> phases(Barrier barrier, Log log, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    co_await log.write("before " + std::to_string(i));
    if (i % 2)
      co_await select(barrier);
    else
      co_await barrier.sync();
  }
  barrier.resign();
}
Task<> poisons(Ints in, std::int64_t strength) {
  co_await in.read();
  in.poison(static_cast<std::uint8_t>(strength));
}
Task<> retires(Ints in) {
  co_await in.read();
  in.retire();
  co_await in.read();
}
Task<> ends_as(Ints in, Log log) {
  std::string how = "?";
  try {
    for (;;) co_await in.read();
  } catch (const Retired&) {
    how = "retired";
  } catch (const Poisoned&) {
    how = "poisoned";
  } catch (const PeerDied&) {
    how = "died";
  }
  co_await log.write(how);
}
// A process that is cancelled in one of its operations, but continues.
Task<> goes_on(Ints in, Log log, std::int64_t where) {
  co_await log.write("begun");
  std::string how = "?";
  try {
    if (where == 0) co_await in.read();
    if (where == 1) co_await select(in, after(1h));
    if (where == 2) co_await sleep(1h);
  } catch (const Cancelled&) {
    how = "cancelled";
  }
  co_await log.write(how);
  co_await log.write("ends");
}
Task<> texts(Reader<std::string> in, Log log, std::string before) {
  while (auto x = co_await in.next()) co_await log.write(before + *x);
}
Task<> halves(Reader<Array<double>> in, Writer<Array<double>> out) {
  while (auto a = co_await in.next()) {
    for (double& x : *a) x /= 2;
    co_await out.write(std::move(*a));
  }
}
Task<> keeps(Ints go, Writer<Array<double>> out, Log log) {
  Array<double> a(3);
  co_await go.read();
  std::string said;
  try {
    co_await out.write(std::move(a));
  } catch (const Retired&) {
    said = std::to_string(a.size());
  }
  try {
    co_await select(output(out, a));
  } catch (const Retired&) {
    said += " and " + std::to_string(a.size());
  }
  co_await log.write(said);
}
Task<> keeps_text(Ints go, Log out, Log log) {
  std::string text = "a text that is too long to lie in the string itself";
  co_await select(output(out, std::move(text)), after(1ms));
  co_await log.write(text);
  co_await go.read();
  bool gone = false;
  try {
    co_await select(loud(output(out, std::move(text))), go);
  } catch (const Retired&) {
    gone = true;
  }
  if (gone) co_await log.write(text);
  try {
    co_await out.write(std::move(text));
  } catch (const Retired&) {
    gone = false;
  }
  if (!gone) co_await log.write(text);
}
// g++ 12 lays out the frames of these two wrongly, because nothing is declared at their outermost
// level.
Task<> tests_what_it_reads(Ints in, Out out) {
  if (co_await in.read() == 1) co_await out.write(std::int64_t{1});
}
Task<std::int64_t> one_if_it_reads_one(Ints& in) {
  if (co_await in.read() == 1) co_return 1;
  co_return 0;
}
Task<> awaits_what_tests(Ints in, Out out) {
  const std::int64_t one = co_await one_if_it_reads_one(in);
  co_await out.write(one);
}
// Writes whether the compiler is g++ 12.
Task<> gxx_12(Out out) {
#if defined(__GNUC__) && !defined(__clang__)
  co_await out.write(__GNUC__ == 12);
#else
  co_await out.write(0);
#endif
}
// Writes how many threads the program has once everything is set up.
Task<> threads(Ints go, Out out) {
  co_await go.read();
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "Threads:") {
      std::int64_t n = 0;
      status >> n;
      co_await out.write(n);
    }
}
// Computes until a file exists.
Task<> spins(Out out, std::string path) {
  co_await out.write(1);
  while (access(path.c_str(), F_OK) != 0) {
  }
  co_await out.write(2);
}
Task<> pid(Out out) { co_await out.write(getpid()); }
// A process that ends by the exception that an ended channel has raised, or by an exception that it
// throws itself.
Task<> left(Ints in, std::string by) {
  if (by == "Retired") throw Retired(in.number());
  if (by == "Poisoned") throw Poisoned(in.number());
  if (by == "PeerDied") throw PeerDied(in.number());
  if (by == "no end of its") throw Retired(99);
  co_await in.read();
}
// Two processes that take two keys in opposite orders, as in checked_programs.py.
Task<> key(Ints take, Ints back) {
  while (auto taken = co_await take.next()) co_await back.read();
}
Task<> takes_both(Out first, Out second, Out first_back, Out second_back) {
  co_await first.write(0);
  co_await second.write(0);
  co_await first_back.write(0);
  co_await second_back.write(0);
}
Task<> takes_later(Ints go, Out first, Out second, Out first_back, Out second_back) {
  co_await go.read();
  co_await takes_both(std::move(first), std::move(second), std::move(first_back),
                      std::move(second_back));
}
// Enrols one more party than there is, which resigns when `go` gives a value.
Task<> holds_up(Barrier barrier, Ints go) {
  barrier.enrol();
  co_await go.read();
  barrier.resign();
}
// A value that changes from call to call, as a program's static data may.
Task<> counts_calls(Ints in, Out a, Out b) {
  static std::int64_t calls = 0;
  co_await in.read();
  co_await (++calls % 2 ? a : b).write(1);
}

}  // namespace

WEFT_COMPONENT(tasks, "Coroutines, for tests.") {
  component.process<&ints>("ints", "What it reads, unchanged.").argument("source").argument("out");
  component.process<&sums>("sums").argument("source").argument("out").argument("n", 2);
  component.process<&deep>("deep").argument("out").argument("n");
  component.process<&fails>("fails").argument("source").argument("at");
  component.process<&either>("either").argument("a").argument("b").argument("log").argument("n");
  component.process<&place>("place").argument("source").argument("out");
  component.process<&patient>("patient").argument("source").argument("log").argument("ms");
  component.process<&phases>("phases").argument("barrier").argument("log").argument("n");
  component.process<&poisons>("poisons").argument("source").argument("strength", 1);
  component.process<&retires>("retires").argument("source");
  component.process<&ends_as>("ends_as").argument("source").argument("log");
  component.process<&goes_on>("goes_on").argument("source").argument("log").argument("where");
  component.process<&texts>("texts").argument("source").argument("log").argument("before");
  component.process<&halves>("halves").argument("whole").argument("halves");
  component.process<&tests_what_it_reads>("tests_what_it_reads").argument("source").argument("out");
  component.process<&awaits_what_tests>("awaits_what_tests").argument("source").argument("out");
  component.process<&gxx_12>("gxx_12").argument("out");
  component.process<&keeps>("keeps").argument("go").argument("out").argument("log");
  component.process<&keeps_text>("keeps_text").argument("go").argument("out").argument("log");
  component.process<&threads>("threads").argument("go").argument("out");
  component.process<&spins>("spins").argument("out").argument("path");
  component.process<&pid>("pid").argument("out");
  component.process<&left>("left").argument("source").argument("by");
  component.process<&key>("key").argument("take").argument("back");
  component.process<&takes_both>("takes_both")
      .argument("first")
      .argument("second")
      .argument("first_back")
      .argument("second_back");
  component.process<&takes_later>("takes_later")
      .argument("go")
      .argument("first")
      .argument("second")
      .argument("first_back")
      .argument("second_back");
  component.process<&holds_up>("holds_up").argument("barrier").argument("go");
  component.process<&counts_calls>("counts_calls").argument("source").argument("a").argument("b");
}
