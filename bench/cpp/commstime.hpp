// The processes of CommsTime: prefix → delta → successor (common.hpp) → prefix, and delta → consumer.
#pragma once
#include "common.hpp"

namespace bench {

template <class P>
weft::Process prefix(weft::Reader<int, P> in, weft::Writer<int, P> out) {
  co_await out.write(0);
  for (;;) {
    const int x = co_await in.read();
    co_await out.write(x);
  }
}

template <class P>
weft::Process delta(weft::Reader<int, P> in, weft::Writer<int, P> left,
                    weft::Writer<int, P> right) {
  for (;;) {
    const int x = co_await in.read();
    co_await left.write(x);
    co_await right.write(x);
  }
}

// Measures the ring, in which this process is the last. When this process ends, `held` ends too.
template <class P, class... Held>
weft::Process consumer(weft::Reader<int, P> in, long samples, long per, Held... /*held*/) {
  bench::Sampler s(samples);
  int expected = 0;
  for (long k = 0; k <= samples; ++k) {
    s.begin();
    for (long i = 0; i < per; ++i)
      if (co_await in.read() != expected++) bench::fail("commstime: read a wrong number");
    if (k > 0) s.end(4.0 * static_cast<double>(per));  // stretch 0 warms up
  }
  s.print();
}

}  // namespace bench
