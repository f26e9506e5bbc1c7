// CommsTime over Boost.Fiber: four fibers of one thread (round robin) over unbuffered_channel.
#include <boost/fiber/all.hpp>

#include "../../cpp/sampler.hpp"

namespace {

using Channel = boost::fibers::unbuffered_channel<int>;
constexpr auto ok = boost::fibers::channel_op_status::success;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) bench::fail("usage: fiber SAMPLES PER");
  const long samples = bench::number(argv[1]), per = bench::number(argv[2]);
  Channel a, b, c, d;
  boost::fibers::fiber prefix([&] {
    if (a.push(0) != ok) return;
    for (int x; c.pop(x) == ok;)
      if (a.push(x) != ok) return;
  });
  boost::fibers::fiber delta([&] {
    for (int x; a.pop(x) == ok;)
      if (b.push(x) != ok || d.push(x) != ok) return;
  });
  boost::fibers::fiber successor([&] {
    for (int x; b.pop(x) == ok;)
      if (c.push(x + 1) != ok) return;
  });
  boost::fibers::fiber consumer([&] {
    bench::Sampler s(samples);
    int expected = 0;
    for (long k = 0; k <= samples; ++k) {
      s.begin();
      for (long i = 0; i < per; ++i) {
        int x = 0;
        if (d.pop(x) != ok || x != expected++) bench::fail("commstime: read a wrong number");
      }
      if (k > 0) s.end(4.0 * static_cast<double>(per));  // stretch 0 warms up
    }
    s.print();
    std::fflush(stdout);
    // The other fibers never end: closing a channel on which fibers wait sometimes crashes Boost
    // 1.74.
    std::_Exit(0);
  });
  for (auto* f : {&prefix, &delta, &successor, &consumer}) f->join();
}
