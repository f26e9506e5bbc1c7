// Measures a rendezvous between two OS threads. The threads answer each other in turn over two
// shared channels, and a hand-over is half a round trip.
#include "common.hpp"
#include "pin.hpp"

int main(int argc, char** argv) {
  if (argc != 3) bench::fail("usage: threads SAMPLES PER");
  const long samples = bench::number(argv[1]), per = bench::number(argv[2]);
  const bench::Placement place;
  weft::Channel<int> there, back;
  weft::run(
      weft::par(weft::thread([&place, in = there.reader(), out = back.writer()] {
                  place.pin(1);
                  for (;;) out(in() + 1);
                }),
                weft::thread([&place, samples, per, out = there.writer(), in = back.reader()] {
                  place.pin(0);
                  bench::Sampler s(samples);
                  int x = 0;
                  for (long k = 0; k <= samples; ++k) {
                    s.begin();
                    for (long i = 0; i < per; ++i, ++x) {
                      out(x);
                      if (in() != x + 1) bench::fail("threads: a wrong answer");
                    }
                    if (k > 0) s.end(2.0 * static_cast<double>(per));  // stretch 0 warms up
                  }
                  s.print();
                })));
}
