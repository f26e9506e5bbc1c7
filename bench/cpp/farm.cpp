// Measures networks on two cores beside the same work without channels.
//
//   farm WORKERS STEPS SLOTS SAMPLES PER      a process writes PER jobs to one channel, at which
//                                             WORKERS processes read; a job takes STEPS steps
//   alone STEPS SAMPLES PER                   one process computes half of the jobs, alone
//   pipeline CORES STAGES SAMPLES PER         PER numbers go through STAGES processes
//   tree CORES DEPTH SAMPLES                  each process starts two, and adds their results
//
// A figure of a farm, or of its work alone, is ns a job of all PER jobs; of a pipeline ns a
// communication; of a tree ns a process. The network is made and ended within the figure. SLOTS is
// the size of the channel's buffer; 0 means a rendezvous.
#include <cstdint>
#include <string_view>

#include "common.hpp"

namespace {

// The work of a job: steps of a generator of random numbers (xorshift64), each of which needs the
// one before it. No compiler makes one step of several, as some do with multiplications.
std::uint64_t work(long job, long steps) {
  auto x = static_cast<std::uint64_t>(job) + 1;
  for (long i = 0; i < steps; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}

weft::Process source(weft::Writer<long> out, long n) {
  for (long i = 0; i < n; ++i) co_await out.write(i);
}
weft::Process worker(weft::Reader<long> in, weft::Writer<std::uint64_t> out, long steps) {
  std::uint64_t sum = 0;
  while (auto job = co_await in.next()) sum += work(*job, steps);
  co_await out.write(sum);
}
weft::ProcessOf<std::uint64_t> add(weft::Reader<std::uint64_t> in) {
  std::uint64_t sum = 0;
  while (auto v = co_await in.next()) sum += *v;
  co_return sum;
}

std::uint64_t of_all(long steps, long from, long to) {
  std::uint64_t sum = 0;
  for (long i = from; i < to; ++i) sum += work(i, steps);
  return sum;
}

std::uint64_t farm(unsigned workers, long steps, long slots, long jobs) {
  weft::Channel<long> c{{.capacity = slots}};
  weft::Channel<std::uint64_t> results;
  std::vector<weft::Process> all;
  for (unsigned i = 0; i < workers; ++i) all.push_back(worker(c.reader(), results.writer(), steps));
  const auto [sum, nothing, none] =
      weft::run({.cores = 2}, add(results.reader()), source(c.writer(), jobs),
                bench::together(std::move(all)));
  return *sum;
}

weft::Process stage(weft::Reader<long> in, weft::Writer<long> out) {
  while (auto v = co_await in.next()) co_await out.write(*v + 1);
}
weft::ProcessOf<long> sink(weft::Reader<long> in, long stages) {
  long n = 0;
  while (auto v = co_await in.next())
    if (*v != stages + n++) bench::fail("pipeline: read a wrong number");
  co_return n;
}
long pipeline(unsigned cores, long stages, long n) {
  std::vector<weft::Channel<long>> c(static_cast<std::size_t>(stages) + 1);
  std::vector<weft::Process> all;
  for (std::size_t i = 0; i + 1 < c.size(); ++i)
    all.push_back(stage(c[i].reader(), c[i + 1].writer()));
  const auto [got, nothing, none] =
      weft::run({.cores = cores}, sink(c.back().reader(), stages), source(c[0].writer(), n),
                bench::together(std::move(all)));
  return *got;
}

weft::ProcessOf<long> tree(long depth) {
  if (depth == 0) co_return 1;
  const auto [left, right] = co_await weft::par(tree(depth - 1), tree(depth - 1));
  co_return *left + *right + 1;
}

template <class F>
void measure(long samples, double operations, F&& once) {
  bench::Sampler s(samples);
  once();  // warms up
  for (long k = 0; k < samples; ++k) {
    s.begin();
    once();
    s.end(operations);
  }
  s.print();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const auto n = [argv](int i) { return bench::number(argv[i]); };
  if (what == "farm" && argc == 7) {
    const long steps = n(3), jobs = n(6), slots = std::string_view(argv[4]) == "0" ? 0 : n(4);
    const auto workers = static_cast<unsigned>(n(2));
    const std::uint64_t right = of_all(steps, 0, jobs);
    measure(n(5), static_cast<double>(jobs), [&] {
      if (farm(workers, steps, slots, jobs) != right) bench::fail("farm: a wrong sum");
    });
  } else if (what == "alone" && argc == 5) {
    const long steps = n(2), jobs = n(4);
    const std::uint64_t right = of_all(steps, 0, jobs / 2);
    measure(n(3), static_cast<double>(jobs), [&] {
      asm volatile("" ::: "memory");
      if (of_all(steps, 0, jobs / 2) != right) bench::fail("alone: a wrong sum");
    });
  } else if (what == "pipeline" && argc == 6) {
    const long stages = n(3), numbers = n(5);
    measure(n(4), static_cast<double>(numbers * (stages + 1)), [&] {
      if (pipeline(static_cast<unsigned>(n(2)), stages, numbers) != numbers)
        bench::fail("pipeline: a number is missing");
    });
  } else if (what == "tree" && argc == 5) {
    const long processes = (2L << n(3)) - 1;
    measure(n(4), static_cast<double>(processes), [&] {
      const long all = weft::run({.cores = static_cast<unsigned>(n(2))}, tree(n(3)));
      if (all != processes) bench::fail("tree: a process is missing");
    });
  } else {
    bench::fail(
        "usage: farm farm WORKERS STEPS SLOTS SAMPLES PER, farm alone STEPS SAMPLES PER, farm "
        "pipeline CORES STAGES SAMPLES PER, or farm tree CORES DEPTH SAMPLES");
  }
}
