// What our native bench programs share: the library, and the two processes that several of them
// use.
//
// A network closes down by itself: when the process that measures returns, its ends go, and what
// waits at them ends quietly (rules 2.3 and 3). So every program also ends as a user's does.
#pragma once

#include <vector>

#include <weft/weft.hpp>

#include "sampler.hpp"

namespace bench {

/// Writes one and the same value for ever.
template <class P>
weft::Process writer(weft::Writer<int, P> out, int mark) {
  for (;;) co_await out.write(mark);
}

/// The two-line process of the ring.
template <class P>
weft::Process successor(weft::Reader<int, P> in, weft::Writer<int, P> out) {
  for (;;) {
    const int x = co_await in.read();
    co_await out.write(x + 1);
  }
}

/// A parallel as one process, to stand beside others.
template <weft::Startable S>
weft::Process together(std::vector<S> all) {
  co_await weft::par(std::move(all));
}

}  // namespace bench
