// The README's two processes and a thread: the program that the bench cpp-compile compiles.
#include <cstdio>
#include <weft/weft.hpp>

weft::Process numbers(weft::Writer<int> out, int n) {
  for (int i = 0; i < n; ++i) co_await out.write(i);
}

weft::Process show(weft::Reader<int> in) {
  while (auto v = co_await in.next()) std::printf("%d\n", *v);
}

int main() {
  weft::Channel<int> c;
  weft::run(numbers(c.writer(), 3), show(c.reader()));
  // A thread and a coroutine communicate on the same channel.
  weft::Channel<int> d;
  weft::run(weft::thread([out = d.writer()] { out(42); }), show(d.reader()));
}
