// The processes that the tests of native messages load: aggregates, dynamic values, arrays of every
// kind.
#include <weft/component.hpp>

using namespace weft::native;

namespace {

struct Sample {
  double time = 0;
  std::int64_t value = 0;
};
WEFT_FIELDS(Sample, time, value)

struct Track {
  std::string name;
  std::vector<Sample> samples;
  std::optional<Sample> last;
};
WEFT_FIELDS(Track, name, samples, last)

struct Frame {
  Sample at;
  Array<double, 2> image;
  std::vector<Array<float>> rows;
};
WEFT_FIELDS(Frame, at, image, rows)

using Pair = std::tuple<std::int64_t, Array<double>>;

template <class T>
void echo(Reader<T> in, Writer<T> out) {
  for (T& x : in) out.write(std::move(x));
}
void later(Reader<Sample> in, Writer<Sample> out, Sample by) {
  for (Sample s : in) out.write({s.time + by.time, s.value + by.value});
}
// Adds 10 times its row, and its column, to each element of an image, in both notations for a
// position.
void marks(Reader<Array<double, 2>> in, Writer<Array<double, 2>> out) {
  for (auto& a : in) {
    for (std::size_t i = 0; i < a.extent(0); ++i)
      for (std::size_t k = 0; k < a.extent(1); ++k) {
        a(i, k) += static_cast<double>(10 * i);
        a[i][k] += static_cast<double>(k);
      }
    out.write(std::move(a));
  }
}
void makes_cubes(Writer<Array<std::int32_t, 3>> out, std::size_t n) {
  Array<std::int32_t, 3> a(n, n + 1, n + 2);
  std::int32_t k = 0;
  for (std::int32_t& x : a) x = k++;
  if (a[0][0].size() == n + 2 && a.view().extent(1) == n + 1) out.write(std::move(a));
  out.write({});
}
void sums(Reader<Array<const double>> in, Writer<double> out) {
  for (const auto& a : in) {
    double sum = 0;
    for (const double x : a) sum += x;
    out.write(sum);
  }
}
void makes_constants(Writer<Array<const double>> out) {
  Array<double> a(2);
  a[1] = 1;
  out.write(std::move(a));
}
// The array goes to whichever reader reads first; it stays in this process until a reader has it.
void either(Reader<Array<double>> in, Writer<Array<double>> a, Writer<Array<double>> b,
            Writer<std::string> log) {
  for (auto& x : in) {
    const std::size_t n = x.size();
    if (select_first(when(n == 0, output(a, x)), when(n > 1, output(b, x)), skip()).index() == 2)
      log.write("nobody, and " + std::to_string(x.size()) + " are here");
    else
      log.write(std::to_string(n) + ", and " + std::to_string(x.size()) + " are here");
  }
  try {
    Array<double> x(1);
    select(output(a, x), loud(output(b, x)));
  } catch (const BadUse& bad) {
    log.write(bad.what());
  }
}
// A write that fails leaves its argument as it was.
void keeps(Reader<std::int64_t> go, Writer<Pair> out, Writer<std::string> log) {
  Pair p{7, Array<double>(3)};
  go.read();
  try {
    out.write(std::move(p));
  } catch (const Retired&) {
    log.write(std::to_string(std::get<0>(p)) + " with " + std::to_string(std::get<1>(p).size()));
  }
}
// A choice that fails also leaves its argument as it was, whatever the value is made of.
void keeps_text(Reader<std::int64_t> go, Writer<std::string> out, Writer<std::string> log) {
  std::string text = "a text that is too long to lie in the string itself";
  select(output(out, std::move(text)), after(std::chrono::milliseconds(1)));
  log.write(text);
  go.read();
  try {
    select(loud(output(out, std::move(text))), go);
  } catch (const Retired&) {
    log.write(text);
  }
  try {
    out.write(std::move(text));
  } catch (const Retired&) {
    log.write(text);
  }
}
void asks(Reader<Value> in, Writer<std::string> out) {
  for (const Value& v : in) {
    try {
      if (const Value* limit = v.find("limit"))
        out.write("limit " + std::to_string(limit->as<double>()));
      out.write(v.at("name").as<std::string>());
    } catch (const BadUse& bad) {
      out.write(bad.what());
    }
  }
}
void deep(Writer<Value> out, int depth) {
  Value v;
  for (int i = 0; i < depth; ++i) {
    Value::List outer;
    outer.push_back(std::move(v));
    v = std::move(outer);
  }
  out.write(v);
}

}  // namespace

WEFT_COMPONENT(messages, "What crosses, for tests.") {
  component.process<&echo<Sample>>("samples").argument("source").argument("out");
  component.process<&echo<Track>>("tracks").argument("source").argument("out");
  component.process<&echo<Frame>>("frames").argument("source").argument("out");
  component.process<&echo<Pair>>("pairs").argument("source").argument("out");
  component.process<&echo<Value>>("values").argument("source").argument("out");
  component.process<&echo<std::optional<Array<double>>>>("maybe_arrays")
      .argument("source")
      .argument("out");
  component.process<&later>("later").argument("source").argument("out").argument("by",
                                                                                 Sample{1, 2});
  component.process<&marks>("marks").argument("source").argument("out");
  component.process<&makes_cubes>("makes_cubes").argument("out").argument("n");
  component.process<&sums>("sums").argument("source").argument("out");
  component.process<&makes_constants>("makes_constants").argument("out");
  component.process<&either>("either").argument("source").argument("a").argument("b").argument(
      "log");
  component.process<&keeps>("keeps").argument("go").argument("out").argument("log");
  component.process<&keeps_text>("keeps_text").argument("go").argument("out").argument("log");
  component.process<&asks>("asks").argument("source").argument("out");
  component.process<&deep>("deep").argument("out").argument("depth");
}
