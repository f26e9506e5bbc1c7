// A filter in another program, which is killed and started again: it is sent numbers, and returns
// their squares.
//
//   filter N K     N numbers, and the filter is killed after every K squares
//
// Exceptions report what a kill has cost: a write that was under way may be in doubt (WIRE.md 8).
// This program simply sends such a number again, because its square is always the same.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "weft/weft.hpp"
#include "weft/wire/program.hpp"

namespace {

// The program that is killed.
int filter(int socket) {
  weft::wire::StreamLink starter(weft::wire::Space::make("filter"), socket);
  auto numbers = starter.reader<long>("numbers");
  auto squares = starter.writer<long>("squares");
  try {
    for (;;) {
      const long n = numbers();
      squares(n * n);
    }
  } catch (const weft::ChannelEnd&) {  // no number is left, or the other program has ended
    return 0;
  }
}

struct Filter {
  weft::Channel<long> numbers, squares;
  weft::Writer<long> in = numbers.writer();
  weft::Reader<long> out = squares.reader();
  weft::wire::Program program;

  Filter(const std::shared_ptr<weft::wire::Space>& space, const char* self)
      : program(space, {self}) {
    program.link().give(numbers.reader(), "numbers");
    program.link().give(squares.writer(), "squares");
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (const int socket = weft::wire::inherited(); socket >= 0) return filter(socket);
  const long n = argc > 1 ? std::atol(argv[1]) : 10, k = argc > 2 ? std::atol(argv[2]) : 4;
  if (n < 1 || k < 1) {
    std::fprintf(stderr, "filter: both numbers must be at least 1\n");
    return 2;
  }
  const auto space = weft::wire::Space::make("main");
  std::optional<Filter> f;
  long started = 0, sum = 0;
  for (long i = 1, since = 0; i <= n;) {
    if (!f) f.emplace(space, "/proc/self/exe"), ++started, since = 0;
    try {
      if (since == k) f->program.kill();
      f->in(i);
      sum += f->out();
      ++i, ++since;
    } catch (const weft::PeerDied&) {
      f.reset();  // The filter was killed: a new one continues with the same number.
    }
  }
  f.reset();
  std::printf("%ld squares, their sum is %ld; the filter was started %ld times\n", n, sum, started);
  return 0;
}
