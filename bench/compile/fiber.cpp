// Two fibres over an unbuffered channel: the bench cpp-compile compares Weft with this program.
#include <boost/fiber/all.hpp>
#include <cstdio>

int main() {
  boost::fibers::unbuffered_channel<int> c;
  boost::fibers::fiber numbers([&] {
    for (int i = 0; i < 3; ++i) c.push(i);
    c.close();
  });
  boost::fibers::fiber show([&] {
    for (int v; c.pop(v) == boost::fibers::channel_op_status::success;) std::printf("%d\n", v);
  });
  numbers.join();
  show.join();
}
