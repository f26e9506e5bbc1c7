// One thread writes and another reads, over a buffer of 1024 values: a one-to-one ring, or an
// any-to-any buffer.
#include <string_view>

#include "common.hpp"
#include "pin.hpp"

namespace {

template <class P>
void buffer(long samples, long per) {
  const bench::Placement placement;
  weft::Channel<int, P> c{weft::buffer(1024)};
  auto writer = weft::thread([&placement, out = c.writer(), n = per * (samples + 1)] {
    placement.pin(1);
    for (long i = 0; i < n; ++i) out(static_cast<int>(i));
  });
  auto reader = weft::thread([&placement, in = c.reader(), samples, per] {
    placement.pin(0);
    bench::Sampler s(samples);
    int expected = 0;
    for (long k = 0; k <= samples; ++k) {
      s.begin();
      for (long i = 0; i < per; ++i)
        if (in() != expected++) bench::fail("buffer: read a wrong number");
      if (k > 0) s.end(static_cast<double>(per));  // stretch 0 warms up
    }
    s.print();
  });
  weft::run(weft::par(std::move(writer), std::move(reader)));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc == 4 ? argv[1] : "";
  if (kind == "one-to-one")
    buffer<weft::OneToOne>(bench::number(argv[2]), bench::number(argv[3]));
  else if (kind == "any-to-any")
    buffer<weft::Shared>(bench::number(argv[2]), bench::number(argv[3]));
  else
    bench::fail("usage: buffer one-to-one|any-to-any SAMPLES PER");
}
