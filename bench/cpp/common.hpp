// The parts that Weft's native bench programs share: the library, and the two processes that
// several of them use.
//
// A network closes down on its own: when the process that measures returns, its ends are closed,
// and the processes that wait at them end quietly (rules 2.3 and 3). Therefore each of these
// programs ends as a user's program does.
#pragma once

#include <vector>

#include <weft/weft.hpp>

#include "sampler.hpp"

namespace bench {

// Writes the same value forever.
template <class P>
weft::Process writer(weft::Writer<int, P> out, int mark) {
  for (;;) co_await out.write(mark);
}

// The process `successor` of the ring; its body has two lines.
template <class P>
weft::Process successor(weft::Reader<int, P> in, weft::Writer<int, P> out) {
  for (;;) {
    const int x = co_await in.read();
    co_await out.write(x + 1);
  }
}

// Makes one process of a parallel, so that the parallel can be placed beside other processes.
template <weft::Startable S>
weft::Process together(std::vector<S> all) {
  co_await weft::par(std::move(all));
}

}  // namespace bench
