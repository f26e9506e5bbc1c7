// The core without a standard library: it is compiled with -ffreestanding -fno-exceptions
// -fno-rtti, and its only undefined symbols are the four functions that every C compiler may call.
// `tests/run` checks the symbols, links the file to a main() and runs it.
#include "weft/core/barrier.hpp"
#include "weft/core/channel.hpp"
#include "weft/core/select.hpp"
#include "weft/core/standing.hpp"

using namespace weft;
using namespace weft::core;

namespace {
int wakes = 0;
RunQueue queue;
constexpr WakerOps kOps{[](Waker*) noexcept { ++wakes; }, nullptr};
struct Woken : Waiter {
  Woken() { ops = &kOps; }
};

template <class P>
int check() {
  current_run_queue = &queue;
  ChannelEngine<int, P> c, d;
  Ring<int> ring;
  int storage[2];
  ring.data = storage;
  ring.capacity = 2;
  ring.overflow = Overflow::drop_oldest;
  d.set_ring(&ring);
  Woken w, r;
  int out = 7, in = 0;
  w.slot = &out;
  r.slot = &in;
  wakes = 0;
  if (c.template begin<Side::in>(r) != Status::pending) return 1;
  if (c.template begin<Side::out>(w) != Status::ok || in != 7) return 2;
  while (!queue.empty()) queue.pop()->ops->wake(&r);
  if (wakes != 1) return 2;
  for (out = 1; out <= 3; ++out)
    if (d.template begin<Side::out>(w) != Status::ok) return 3;
  if (ring.dropped != 1) return 4;

  Guard g[2];
  int got[2] = {};
  g[0].kind = g[1].kind = Kind::input;
  g[0].ops = g[1].ops = &channel_ops<ChannelEngine<int, P>, Side::in>;
  g[0].where = &c;
  g[1].where = &d;
  g[0].node.slot = &got[0];
  g[1].node.slot = &got[1];
  Woken me;
  Select s{g, 2, Mode::fair, &me};
  const auto now = [] { return 0LL; };
  if (s.scan(now) != 1 || got[1] != 2) return 5;
  {
    Standing alt{g, 2, &me};
    if (alt.start(now) != 1 || got[1] != 3) return 6;
    if (alt.start(now) != Standing::parked) return 7;
    if (c.template begin<Side::out>(w) != Status::ok) return 8;
    if (alt.finish() != 0 || got[0] != 4) return 9;
  }
  while (!queue.empty()) queue.pop();
  BarrierEngine<P> b{2};
  Woken x, y;
  if (b.begin_sync(x) != Status::pending || b.begin_sync(y) != Status::ok) return 10;
  c.poison(1);
  if (c.template begin<Side::in>(r) != Status::poisoned) return 11;
  return 0;
}
}  // namespace

extern "C" int weft_freestanding_check() {
  if (const int e = check<Local>()) return e;
  if (const int e = check<Shared>()) return 100 + e;
  return 0;
}
