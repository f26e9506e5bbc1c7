// CommsTime: the classic benchmark of a process network. Four processes pass numbers around a ring;
// `consume` sees 0, 1, 2, …
//
//   prefix(0) ──► delta ──► consume          commstime [N]       N numbers (default 1,000,000)
//      ▲            │
//      └─ successor ◄┘
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <weft/weft.hpp>

// All processes are on one scheduler, so no atomic operation is needed.
using Channel = weft::Channel<int, weft::Local>;
using Reader = weft::Reader<int, weft::Local>;
using Writer = weft::Writer<int, weft::Local>;

weft::Process prefix(int first, Reader in, Writer out) {
  co_await out.write(first);
  while (auto v = co_await in.next()) co_await out.write(*v);
}

weft::Process successor(Reader in, Writer out) {
  while (auto v = co_await in.next()) co_await out.write(*v + 1);
}

weft::Process delta(Reader in, Writer a, Writer b) {
  while (auto v = co_await in.next()) {
    co_await a.write(*v);
    co_await b.write(*v);
  }
}

// Ends after n numbers and closes its end, so that the other processes end one after another.
weft::Process consume(Reader in, int n) {
  for (int i = 0; i < n; ++i) {
    const int v = co_await in.read();
    if (v != i)
      throw std::runtime_error("expected " + std::to_string(i) + ", got " + std::to_string(v));
  }
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 1'000'000;
  if (n < 1) {
    std::fprintf(stderr, "commstime: N must be a positive number\n");
    return 2;
  }
  Channel a, b, c, d;
  const auto start = std::chrono::steady_clock::now();
  weft::run(prefix(0, c.reader(), a.writer()), delta(a.reader(), b.writer(), d.writer()),
            successor(b.reader(), c.writer()), consume(d.reader(), n));
  const std::chrono::duration<double, std::nano> t = std::chrono::steady_clock::now() - start;
  std::printf("%d numbers, %.0f ns per communication\n", n, t.count() / (4.0 * n));
}
