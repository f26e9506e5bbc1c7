// StressedAlt as in the C++CSP paper: one reader selects fairly over N channels, and for each
// channel there is one writer that writes for ever.
//
// local, shared: coroutines and an Alternative; standing: coroutines on local channels and a
// StandingAlternative; threads: every writer is an OS thread, and so is the reader.
#include <string_view>
#include <vector>

#include "common.hpp"

namespace {

class Tally {
 public:
  explicit Tally(std::size_t n) : taken_(n) {}
  void add(std::size_t index, int value) {
    if (value != static_cast<int>(index)) bench::fail("stressedalt: a wrong value");
    ++taken_[index];
  }
  // If all guards stayed ready, each would be chosen within N selects (rule 5.4). Here a writer
  // might have to run before it is ready again, so the run fails only if a writer was never served.
  void all_were_served() const {
    for (long n : taken_)
      if (n == 0) bench::fail("stressedalt: a writer was never served");
  }

 private:
  std::vector<long> taken_;
};

template <class P, class Alternative>
weft::Process reader(std::vector<weft::Reader<int, P>> in, long samples, long per) {
  Alternative alternative(in);
  Tally tally(in.size());
  bench::Sampler s(samples);
  for (long k = 0; k <= samples; ++k) {
    s.begin();
    for (long i = 0; i < per; ++i) {
      const auto [index, value] = co_await alternative.select();
      tally.add(index, *value);
    }
    if (k > 0) s.end(static_cast<double>(per));  // stretch 0 warms up
  }
  tally.all_were_served();
  s.print();
}

template <class P, class Alternative>
void coroutines(int n, long samples, long per) {
  std::vector<weft::Reader<int, P>> in;
  std::vector<weft::Process> all;
  for (int i = 0; i < n; ++i) {
    weft::Channel<int, P> c;
    in.push_back(c.reader());
    all.push_back(bench::writer<P>(c.writer(), i));
  }
  all.push_back(reader<P, Alternative>(std::move(in), samples, per));
  weft::run(weft::par(std::move(all)));
}

struct ThreadWriter {
  weft::Writer<int> out;
  int mark;
  void operator()() {
    for (;;) out(mark);
  }
};

void threads(int n, long samples, long per) {
  std::vector<weft::Reader<int>> in;
  using Thread = decltype(weft::thread(ThreadWriter{}));
  std::vector<Thread> writers;
  for (int i = 0; i < n; ++i) {
    weft::Channel<int> c;
    in.push_back(c.reader());
    writers.push_back(weft::thread(ThreadWriter{c.writer(), i}));
  }
  weft::run(bench::together(std::move(writers)), weft::thread([&in, samples, per] {
              std::vector<weft::Reader<int>> mine = std::move(in);
              weft::Alternative alternative(mine);
              bench::Sampler s(samples);
              for (long k = 0; k <= samples; ++k) {
                s.begin();
                for (long i = 0; i < per; ++i) {
                  const auto [index, value] = alternative.select()();
                  if (value != static_cast<int>(index)) bench::fail("stressedalt: a wrong value");
                }
                if (k > 0) s.end(static_cast<double>(per));  // stretch 0 warms up
              }
              s.print();
            }));
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* usage = "usage: stressedalt local|shared|standing|threads N SAMPLES PER";
  if (argc != 5) bench::fail(usage);
  const std::string_view kind = argv[1];
  const int n = static_cast<int>(bench::number(argv[2]));
  const long samples = bench::number(argv[3]), per = bench::number(argv[4]);
  using weft::Local, weft::Shared;
  if (kind == "local")
    coroutines<Local, decltype(weft::Alternative(std::vector<weft::Reader<int, Local>>{}))>(
        n, samples, per);
  else if (kind == "shared")
    coroutines<Shared, decltype(weft::Alternative(std::vector<weft::Reader<int, Shared>>{}))>(
        n, samples, per);
  else if (kind == "standing")
    coroutines<Local, decltype(weft::StandingAlternative(std::vector<weft::Reader<int, Local>>{}))>(
        n, samples, per);
  else if (kind == "threads")
    threads(n, samples, per);
  else
    bench::fail(usage);
}
