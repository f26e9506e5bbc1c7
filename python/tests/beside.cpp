// A C++ program that shares channels with a Python program: test_rounds_programs.py compiles it.
// The program has one process. It prints the report of a deadlock on standard output, and its exit
// status says how it ended.
//
//   beside HOW SOCKET FD     passes: reads, then writes; silent: as passes, but answers no rounds;
//                            person: first waits for a byte at FD, of which Weft knows nothing
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "weft/weft.hpp"
#include "weft/wire/rounds.hpp"
#include "weft/wire/stream.hpp"

namespace w = weft::wire;

// A value in the form in which Python packs it.
struct Pickled {
  std::string bytes;
};
template <>
struct weft::wire::Value<Pickled> {
  static std::string type() { return "pickle"; }
  static void put(const Pickled& p, Buffer& out) { Value<std::string>::put(p.bytes, out); }
  static std::optional<Pickled> get(Bytes in) { return Pickled{*Value<std::string>::get(in)}; }
};

namespace {
weft::Process passes(w::FarReader<Pickled> in, w::FarWriter<Pickled> out) {
  co_await out.write(co_await in.read());
}
weft::Process asks_a_person(int fd, w::FarReader<Pickled> in, w::FarWriter<Pickled> out) {
  co_await weft::blocking([fd] {
    char c = 0;
    return ::read(fd, &c, 1);
  });
  co_await out.write(co_await in.read());
}
}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string how = argv[1];
  const auto space = w::Space::make("beside");
  std::optional<w::Rounds> rounds;
  if (how != "silent") rounds.emplace(space);
  try {
    w::StreamLink link(space, std::atoi(argv[2]));
    auto in = link.reader<Pickled>("in a");
    auto out = link.writer<Pickled>("out b");
    weft::run(how == "person" ? asks_a_person(std::atoi(argv[3]), in, out).named("asks")
                              : passes(in, out).named("passes"));
    return 0;
  } catch (const weft::Deadlock& e) {
    std::puts(e.what());
    return 42;
  } catch (const std::exception& e) {
    std::puts(e.what());
    return 1;
  }
}
