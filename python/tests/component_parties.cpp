// The processes that the tests of barriers, extended reads and computed outputs load.
#include <weft/component.hpp>

using namespace weft::native;
using namespace std::chrono_literals;

namespace {

using Ints = Reader<std::int64_t>;
using Log = Writer<std::string>;

void phases(Barrier barrier, Log log, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    log.write("before " + std::to_string(i));
    barrier.sync();
  }
  barrier.resign();
}
void enrols(Barrier barrier, Writer<std::int64_t> out) {
  barrier.enrol();
  out.write(1);
  barrier.sync();
  barrier.resign();
}
void resigns(Barrier barrier) { barrier.resign(); }
void syncs_or_reads(Barrier barrier, Ints in, Log log) {
  for (;;) {
    const auto got = select(barrier, in);
    log.write(got.index() == 0 ? "sync" : "read " + std::to_string(std::get<1>(got)));
    if (got.index() == 0) return;
  }
}
void extends(Ints in, Writer<std::int64_t> during) {
  for (;;) {
    auto x = in.extended();
    during.write(*x);
    *x += 1;
  }
}
void throws_in_extended(Ints in) {
  auto x = in.extended();
  throw std::runtime_error("in the block");
}
void serves(Ints in, Writer<std::int64_t> out, std::int64_t fails_at) {
  std::int64_t sum = 0, made = 0;
  for (;;) {
    const auto got = select(in, output(out, [&] {
                              if (++made == fails_at) throw std::runtime_error("no value");
                              return sum;
                            }));
    if (got.index() == 0) sum += std::get<0>(got);
  }
}
void reads_in_a_function(Ints in, Writer<std::int64_t> out, Log log) {
  try {
    select(output(out, [&] { return in.read(); }));
  } catch (const BadUse& bad) {
    log.write(bad.what());
  }
}
void sleeps_in_a_function(Writer<std::int64_t> out, Log log) {
  try {
    select(output(out, [] {
      sleep(1ms);
      return std::int64_t{1};
    }));
  } catch (const BadUse& bad) {
    log.write(bad.what());
  }
}
void waits_for_ever(std::int64_t how) {
  if (how == 0) sleep(std::chrono::nanoseconds::max());
  if (how == 1) select(after(std::chrono::nanoseconds::max()));
  if (how == 2) select(after(std::chrono::hours::max()));
  if (how == 3) select(after(std::chrono::duration<double>(1e300)));
}
// Performs many operations, none of which waits.
void looks(Ints in) {
  while (select_first(in, skip()).index() != 0) {
  }
}
// At channels to other OS processes, tries operations that are refused at such channels, and then
// operations that are allowed. When the first value has arrived, the ends are at their final
// places.
void tries(Ints in, Writer<std::int64_t> out, Log log) {
  in.read();
  try {
    auto x = in.extended();
    log.write("extended");
  } catch (const BadUse& bad) {
    log.write(bad.what());
  }
  try {
    select(output(out, [] { return std::int64_t{7}; }));
    log.write("computed");
  } catch (const BadUse& bad) {
    log.write(bad.what());
  }
  select(output(out, in.read()));
}
void makes_arrays(Writer<Array<double>> out) {
  select(output(out, [] {
    Array<double> a(2);
    a[1] = 1;
    return a;
  }));
}

}  // namespace

WEFT_COMPONENT(parties, "Barriers, extended reads and computed outputs, for tests.") {
  component.process<&phases>("phases")
      .argument("barrier", "where they meet")
      .argument("log")
      .argument("n");
  component.process<&enrols>("enrols").argument("barrier").argument("out");
  component.process<&resigns>("resigns").argument("barrier");
  component.process<&syncs_or_reads>("syncs_or_reads")
      .argument("barrier")
      .argument("source")
      .argument("log");
  component.process<&extends>("extends").argument("source").argument("during");
  component.process<&throws_in_extended>("throws_in_extended").argument("source");
  component.process<&serves>("serves").argument("source").argument("out").argument("fails_at", 0);
  component.process<&reads_in_a_function>("reads_in_a_function")
      .argument("source")
      .argument("out")
      .argument("log");
  component.process<&sleeps_in_a_function>("sleeps_in_a_function").argument("out").argument("log");
  component.process<&waits_for_ever>("waits_for_ever").argument("how");
  component.process<&looks>("looks").argument("source");
  component.process<&tries>("tries").argument("source").argument("out").argument("log");
  component.process<&makes_arrays>("makes_arrays").argument("out");
}
