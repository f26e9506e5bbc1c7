// A token ring: N processes of two lines each, one token, a number of rounds. The program shows how
// cheap a process is.
//
//   first ──► node ──► node ──► … ──► node ──► first
//
//   ring [N] [ROUNDS]       (default 100,000 processes, 10 rounds)
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <weft/weft.hpp>

using Channel = weft::Channel<int, weft::Local>;
using Reader = weft::Reader<int, weft::Local>;
using Writer = weft::Writer<int, weft::Local>;

weft::Process node(Reader in, Writer out) {
  while (auto token = co_await in.next()) co_await out.write(*token + 1);
}

weft::Process first(Reader in, Writer out, int rounds, int nodes) {
  for (int i = 0; i < rounds; ++i) {
    co_await out.write(0);
    const int hops = co_await in.read();
    if (hops != nodes) throw std::runtime_error("the token made " + std::to_string(hops) + " hops");
  }
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 100'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 10;
  if (n < 1 || rounds < 1) {
    std::fprintf(stderr, "ring: N and ROUNDS must be positive numbers\n");
    return 2;
  }
  std::vector<weft::Process> ps;
  ps.reserve(static_cast<std::size_t>(n) + 1);
  Channel start;
  Reader in = start.reader();
  for (int i = 0; i < n; ++i) {
    Channel next;
    ps.push_back(node(std::move(in), next.writer()));
    in = next.reader();
  }
  ps.push_back(first(std::move(in), start.writer(), rounds, n));
  const auto begin = std::chrono::steady_clock::now();
  weft::run(weft::par(std::move(ps)));
  const std::chrono::duration<double, std::nano> t = std::chrono::steady_clock::now() - begin;
  std::printf("%d processes, %d rounds, %.0f ns per hop\n", n, rounds, t.count() / n / rounds);
}
