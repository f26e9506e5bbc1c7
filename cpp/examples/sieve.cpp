// The sieve of Eratosthenes as a growing pipeline: each prime becomes a filter of its own, spawned
// when the prime is found.
//
//   count ──► filter(2) ──► filter(3) ──► filter(5) ──► … ──► primes          sieve [N]       the first N primes (default 20)
#include <cstdio>
#include <cstdlib>

#include <weft/weft.hpp>

using Channel = weft::Channel<int, weft::Local>;
using Reader = weft::Reader<int, weft::Local>;
using Writer = weft::Writer<int, weft::Local>;

weft::Process count(Writer out) {
  // The loop ends when no reader is left: write() then throws Retired, which ends the process
  // quietly.
  for (int i = 2;; ++i) co_await out.write(i);
}

weft::Process filter(int prime, Reader in, Writer out) {
  while (auto v = co_await in.next())
    if (*v % prime != 0) co_await out.write(*v);
}

weft::Process primes(Reader in, int n) {
  for (int i = 0; i < n; ++i) {
    const int prime = co_await in.read();
    std::printf("%d%c", prime, i + 1 < n ? ' ' : '\n');
    Channel next;
    weft::spawn(filter(prime, std::move(in), next.writer()));
    in = next.reader();
  }
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 20;
  if (n < 1) {
    std::fprintf(stderr, "sieve: N must be a positive number\n");
    return 2;
  }
  Channel c;
  weft::run(count(c.writer()), primes(c.reader(), n));
}
