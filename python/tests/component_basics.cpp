// Small processes that the tests of native components load. Each serves one test.
#include <sched.h>

#include <atomic>
#include <weft/component.hpp>

using namespace weft::native;
using namespace std::chrono_literals;

namespace {

template <class T>
void echo(Reader<T> in, Writer<T> out) {
  for (const T& x : in) out.write(x);
}
void scale(Reader<double> samples, Writer<double> scaled, double factor) {
  for (double x : samples) scaled.write(factor * x);
}
// Passes values on from both inputs: a number with an empty text, or -1 with a text.
void merge(Reader<std::int64_t> numbers, Reader<std::string> texts,
           Writer<std::tuple<std::int64_t, std::string>> out) {
  for (;;) {
    const auto got = select(numbers, texts);
    if (got.index() == 0)
      out.write({std::get<0>(got), ""});
    else
      out.write({-1, std::get<1>(got)});
  }
}
// A buffer of one value: it reads a value or writes one, whichever is possible.
void place(Reader<std::int64_t> in, Writer<std::int64_t> out) {
  bool full = false;
  std::int64_t held = 0;
  for (;;) {
    const auto got = select(when(!full, in), when(full, output(out, held)));
    if (got.index() == 0) held = std::get<0>(got);
    full = got.index() == 0;
  }
}
// Chooses the guard with priority from two ready ones; then a timer; then timers that are due at
// once, and skips; then a guard whose end is an outcome.
void choices(Reader<std::int64_t> a, Reader<std::int64_t> b, Writer<std::string> out) {
  out.write(select_first(b, a).index() == 0 ? "b" : "a");
  out.write(select(when(false, a), after(1ms)).index() == 1 ? "timer" : "a");
  out.write(select_first(after(0ms), skip()).index() == 0 ? "no time" : "skip");
  out.write(select_first(skip(), after(-1ms)).index() == 0 ? "skip" : "no time");
  out.write(select_first(after(0ms), a).index() == 0 ? "no time" : "a");
  out.write(select_first(when(false, a), skip()).index() == 1 ? "skip" : "a");
  try {
    select(loud(b));
  } catch (const Retired& r) {
    out.write(r.end == b.number() ? "retired" : "another");
  }
}
void blocks(Reader<std::int64_t> in, Writer<std::vector<std::int64_t>> out) {
  for (;;) out.write(in.read_many(8));
}
void count_to(Writer<std::int64_t> out, std::int64_t n) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back(i);
  out.write_many(all);
}
void fails(Reader<std::int64_t> in, std::int64_t at) {
  for (std::int64_t x : in)
    if (x == at) throw std::runtime_error("it is " + std::to_string(x));
}
void throws_a_number() { throw 7; }
void poisons(Reader<std::int64_t> in) {
  in.read();
  in.poison(3);
}
void catches(Reader<std::int64_t> in, Writer<std::string> out) {
  try {
    in.read();
  } catch (const Poisoned&) {
    out.write("poisoned");
  }
}
void deaf(Reader<std::int64_t> a, Reader<std::int64_t> never, Writer<std::int64_t> out) {
  out.write(a.read() + never.read());
}
void sleeps() { sleep(1h); }
void closes_and_writes(Writer<std::int64_t> out) {
  out.retire();
  out.write(1);
}

// Computes without performing any operation, until another process of this library sets `stop`.
// Only a process that runs beside this one can set `stop`.
std::atomic<bool> stop{false};
void spins() {
  while (!stop.exchange(false)) {
  }
}
void stops(Reader<std::int64_t> in) {
  in.read();
  stop = true;
}
void tells_cpu(Writer<std::int64_t> out) { out.write(sched_getcpu()); }
#ifdef NDEBUG
constexpr bool kDebug = false;
#else
constexpr bool kDebug = true;
#endif
void tells(Writer<std::string> out, std::string text, std::vector<double> numbers, bool yes,
           std::optional<std::int64_t> maybe) {
  for (double x : numbers) text += " " + std::to_string(static_cast<int>(x));
  out.write(text + (yes ? " yes" : " no") + (maybe ? " " + std::to_string(*maybe) : " nothing"));
  out.write(kDebug ? "assertions" : "no assertions");
}
void narrow(Reader<std::int8_t> in, Writer<std::uint32_t> out) {
  for (std::int8_t x : in) out.write(static_cast<std::uint32_t>(x));
}

// Multiplies each number by -1, in place.
template <class T>
void negate(Reader<Array<T>> in, Writer<Array<T>> out) {
  for (Array<T>& a : in) {
    for (T& x : a) x = static_cast<T>(-x);
    out.write(std::move(a));
  }
}
void keeps_arrays(Reader<Array<double>> in, Reader<std::int64_t> until) {
  std::vector<Array<double>> all;
  all.push_back(in.read());
  until.read();
}
void makes_arrays(Writer<Array<std::int32_t>> out, std::size_t count, std::size_t size) {
  for (std::size_t i = 0; i < count; ++i) {
    Array<std::int32_t> a(size);
    for (std::size_t k = 0; k < size; ++k) a[k] = static_cast<std::int32_t>(i + k);
    out.write(std::move(a));
  }
}
void adds(Array<double> numbers, Writer<double> out) {
  double sum = 0;
  for (double x : numbers) sum += x;
  out.write(sum);
}

}  // namespace

WEFT_COMPONENT(basics, "Small processes for tests.") {
  component.process<&echo<std::int64_t>>("ints").argument("source").argument("out");
  component.process<&echo<double>>("floats").argument("source").argument("out");
  component.process<&echo<bool>>("bools").argument("source").argument("out");
  component.process<&echo<std::string>>("texts").argument("source").argument("out");
  component.process<&echo<Bytes>>("blobs").argument("source").argument("out");
  component.process<&echo<std::monostate>>("nothings").argument("source").argument("out");
  component.process<&echo<std::vector<double>>>("lists").argument("source").argument("out");
  component.process<&echo<std::vector<std::vector<std::string>>>>("nested")
      .argument("source")
      .argument("out");
  component.process<&echo<std::tuple<std::int64_t, std::string, bool>>>("tuples")
      .argument("source")
      .argument("out");
  component.process<&echo<std::map<std::string, std::vector<double>>>>("dicts")
      .argument("source")
      .argument("out");
  component.process<&echo<std::optional<std::int64_t>>>("maybes").argument("source").argument(
      "out");
  component.process<&scale>("scale", "Each sample times `factor`.")
      .argument("samples", "what comes")
      .argument("scaled")
      .argument("factor", 2.0, "by how much");
  component.process<&merge>("merge").argument("numbers").argument("texts").argument("out");
  component.process<&place>("place").argument("source").argument("out");
  component.process<&choices>("choices").argument("a").argument("b").argument("out");
  component.process<&blocks>("blocks").argument("source").argument("out");
  component.process<&count_to>("count_to").argument("out").argument("n");
  component.process<&fails>("fails").argument("source").argument("at", 0);
  component.process<&throws_a_number>("throws_a_number");
  component.process<&poisons>("poisons").argument("source");
  component.process<&catches>("catches").argument("source").argument("out");
  component.process<&deaf>("deaf").argument("a").argument("never").argument("out");
  component.process<&sleeps>("sleeps");
  component.process<&closes_and_writes>("closes_and_writes").argument("out");
  component.process<&spins>("spins");
  component.process<&stops>("stops").argument("source");
  component.process<&tells_cpu>("tells_cpu").argument("out");
  component.process<&tells>("tells")
      .argument("out")
      .argument("text", "a", "")
      .argument("numbers", std::vector<double>{1, 2})
      .argument("yes", true)
      .argument("maybe", std::optional<std::int64_t>{});
  component.process<&negate<double>>("negate").argument("source").argument("out");
  component.process<&negate<std::int16_t>>("negate16").argument("source").argument("out");
  component.process<&keeps_arrays>("keeps_arrays").argument("source").argument("until");
  component.process<&makes_arrays>("makes_arrays")
      .argument("out")
      .argument("count")
      .argument("size");
  component.process<&adds>("adds").argument("numbers").argument("out");
  component.process<&narrow>("narrow").argument("source").argument("out");
}
