// Components that crash, for tests of components that run in a separate OS process (rule 16.8), and
// the other processes of such tests.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <weft/component.hpp>

using namespace weft::native;

namespace {

// Passes on what it reads, up to the `at`th value; then crashes in the way that `how` names.
void crash(Reader<std::int64_t> in, Writer<std::int64_t> out, std::int64_t at, std::string how) {
  for (std::int64_t x : in) {
    if (--at == 0) {
      if (how == "segv") *static_cast<volatile int*>(nullptr) = 1;
      if (how == "abort") std::abort();
      if (how == "exit") _exit(7);
      if (how == "throw") throw std::runtime_error("at " + std::to_string(x));
    }
    out.write(x);
  }
}
void pid(Writer<std::int64_t> out) { out.write(getpid()); }
// Passes on values from either input, and reports when no value comes.
void either(Reader<std::int64_t> a, Reader<std::int64_t> b, Writer<std::int64_t> out,
            std::int64_t times) {
  for (std::int64_t i = 0; i < times; ++i)
    std::visit([&](std::int64_t x) { out.write(x); }, select(a, b));
}
void place(Reader<std::int64_t> in, Writer<std::int64_t> out) {
  bool full = false;
  std::int64_t held = 0;
  for (;;) {
    const auto got = select(when(!full, in), when(full, output(out, held)));
    if (got.index() == 0) held = std::get<0>(got);
    full = got.index() == 0;
  }
}
void patient(Reader<std::int64_t> in, Writer<std::string> out) {
  using namespace std::chrono_literals;
  out.write(select_first(in, skip()).index() == 1 ? "nothing yet" : "a value");
  out.write(select(in, after(1ms)).index() == 1 ? "late" : "a value");
  try {
    select(loud(in), after(1h));
  } catch (const Retired&) {
    out.write("retired");
  }
}
void blocks(Reader<std::int64_t> in, Writer<std::vector<std::int64_t>> out) {
  for (;;) out.write(in.read_many(8));
}

}  // namespace

WEFT_COMPONENT(crashing, "Components that crash.") {
  component.process<&crash>("crash", "Hands on, then ends as it is told.")
      .argument("in_")
      .argument("out")
      .argument("at", 3)
      .argument("how", std::string("segv"));
  component.process<&pid>("pid").argument("out");
  component.process<&either>("either").argument("a").argument("b").argument("out").argument("times",
                                                                                            2);
  component.process<&place>("place").argument("in_").argument("out");
  component.process<&patient>("patient").argument("in_").argument("out");
  component.process<&blocks>("blocks").argument("in_").argument("out");
}
