// Checks a chain of five processes with 20 communications. The figures are ns for each schedule.
//
// walk:     schedules at random.
// analysed: the run that represents all schedules, with the analysis of its races, repeatedly.
// plain:    the network without a check, in the same program.
#include <string_view>

#include <weft/check.hpp>
#include <weft/check/reduced.hpp>
#include <weft/check/strategies.hpp>
#include <weft/checker.hpp>

#include "common.hpp"

namespace {

weft::Process source(weft::Writer<int> out) {
  for (int i = 0; i < 5; ++i) co_await out.write(i);
}
weft::Process stage(weft::Reader<int> in, weft::Writer<int> out) {
  while (const auto v = co_await in.next()) co_await out.write(*v);
}
weft::Process sink(weft::Reader<int> in) {
  int next = 0;
  while (const auto v = co_await in.next())
    if (*v != next++) bench::fail("check: a wrong value");
  if (next != 5) bench::fail("check: values are missing");
}
void chain() {
  weft::Channel<int> a, b, c, d;
  weft::run(source(a.writer()), stage(a.reader(), b.writer()), stage(b.reader(), c.writer()),
            stage(c.reader(), d.writer()), sink(d.reader()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) bench::fail("check walk|analysed|plain SAMPLES PER");
  const std::string_view what = argv[1];
  const long samples = bench::number(argv[2]), per = bench::number(argv[3]);
  weft::checking::Walk walk;
  weft::checking::Reduced reduced;
  weft::checking::Strategy* const strategy =
      what == "walk" ? static_cast<weft::checking::Strategy*>(&walk) : &reduced;
  weft::runtime::Checker checker;
  bench::Sampler s(samples);
  for (long k = 0; k <= samples; ++k) {
    s.begin();
    for (long i = 0; i < per; ++i) {
      if (what == "plain") {
        chain();
        continue;
      }
      ++walk.seed;
      checker.begin(*strategy);
      chain();
      checker.end();
      if (checker.run.stopped()) bench::fail("check: a run was stopped");
    }
    if (k > 0) s.end(static_cast<double>(per));  // stretch 0 warms up
  }
  s.print();
}
