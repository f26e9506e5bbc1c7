// The native sides of native_rendezvous.py, native_blocks.py, native_array.py and
// native_parallel.py.
#include <weft/component.hpp>

using namespace weft::native;

namespace {

void successor(Reader<std::int64_t> in, Writer<std::int64_t> out) {
  for (std::int64_t x : in) out.write(x + 1);
}
// Writes the integers from 0 on, in `count` blocks of `size`.
void blocks(Writer<std::vector<std::int64_t>> out, std::int64_t count, std::size_t size) {
  std::int64_t next = 0;
  for (std::int64_t b = 0; b < count; ++b) {
    std::vector<std::int64_t> block(size);
    for (std::int64_t& x : block) x = next++;
    out.write(block);
  }
}

double sum(const Array<double>& numbers) {
  double total = 0;
  for (double x : numbers) total += x;
  return total;
}
void summing(Reader<Array<double>> in, Writer<double> sums, Writer<Array<double>> back) {
  for (Array<double>& a : in) {
    sums.write(sum(a));
    back.write(std::move(a));
  }
}
// Measures `samples` sums, and writes the ns for each sum.
void sums_alone(Writer<double> ns, std::size_t samples, std::size_t size) {
  Array<double> a(size);
  for (std::size_t i = 0; i < size; ++i) a[i] = static_cast<double>(i);
  for (std::size_t k = 0; k <= samples; ++k) {
    const auto begun = std::chrono::steady_clock::now();
    const double total = sum(a);
    const auto took = std::chrono::steady_clock::now() - begun;
    if (total != static_cast<double>(size) * static_cast<double>(size - 1) / 2)
      throw std::runtime_error("a wrong sum");
    // the first sum warms up
    if (k > 0) ns.write(static_cast<double>(std::chrono::nanoseconds(took).count()));
  }
}

// For each number that is read, runs that many rounds of a xorshift. Each round depends on the
// previous one.
void burn(Reader<std::int64_t> rounds, Writer<std::int64_t> results) {
  for (const std::int64_t n : rounds) {
    std::uint64_t x = 88172645463325252ull;
    for (std::int64_t i = 0; i < n; ++i) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
    }
    results.write(static_cast<std::int64_t>(x >> 1));
  }
}

}  // namespace

WEFT_COMPONENT(native_bench, "What the benches of native components measure.") {
  component.process<&successor>("successor").argument("source").argument("out");
  component.process<&summing>("summing").argument("source").argument("sums").argument("back");
  component.process<&sums_alone>("sums_alone").argument("ns").argument("samples").argument("size");
  component.process<&blocks>("blocks").argument("out").argument("count").argument("size");
  component.process<&burn>("burn").argument("rounds").argument("results");
}
