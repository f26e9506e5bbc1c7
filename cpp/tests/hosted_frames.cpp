// g++ 12 lays out the frames of some functions wrongly (cpp/docs/lifetimes.md). A process with such
// a frame would never run, and the program would hang or crash without a message. Therefore the
// call of the process's function throws BadUse. With other compilers the same processes run.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <weft/weft.hpp>

namespace {

using weft::Process;
using weft::Reader;
using weft::Writer;

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ == 12
constexpr bool kWrongFrames = true;
#else
constexpr bool kWrongFrames = false;
#endif

Process awaits_in_if(Reader<int> in, int& got) {
  if (co_await in.read() == 1) got = 1;
}
Process awaits_in_while(Reader<int> in, int& got) {
  while (co_await in.read() != 1) got = 0;
  got = 1;
}
Process awaits_in_do(Reader<int> in, int& got) {
  do {
    got = 1;
  } while (co_await in.read() != 1);
}
Process awaits_in_switch(Reader<int> in, int& got) {
  switch (co_await in.read()) {
    case 1: got = 1; break;
    default: got = 0;
  }
}
Process awaits_in_a_loop(Reader<int> in, int& got) {
  for (;;) {
    if (co_await in.read() == 1) break;
  }
  got = 1;
}
Process awaits_in_a_try_block(Reader<int> in, int& got) {
  try {
    if (co_await in.read() == 1) got = 1;
  } catch (...) {
    got = 0;
    throw;
  }
}
weft::ProcessOf<int> gives_what_it_awaits(Reader<int> in) {
  if (co_await in.read() == 1) co_return 1;
  co_return 0;
}

Process declares(Reader<int> in, int& got) {
  using Value = int;
  if (Value{co_await in.read()} == 1) got = 1;
}
Process declares_in_the_condition(Reader<int> in, int& got) {
  if (const int value = co_await in.read(); value == 1) got = value;
}
Process declares_in_the_loop(Reader<int> in, int& got) {
  for (int i = 0; i < 1; ++i)
    if (co_await in.read() == 1) got = 1;
}
Process awaits_in_no_condition(Reader<int> in, int& got) { got = co_await in.read(); }

Process writes(Writer<int> out) { co_await out.write(1); }

using Function = Process (*)(Reader<int>, int&);

int runs(Function f) {
  weft::Channel<int> c;
  int got = -1;
  weft::run(weft::par(f(c.reader(), got), writes(c.writer())));
  return got;
}

template <class F>
std::string misuse(F&& f) {
  try {
    f();
  } catch (const weft::BadUse& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE(
    "a process whose frame the compiler has laid out wrongly is refused, with its name and line") {
  const std::pair<std::string, Function> shapes[] = {
      {"if", awaits_in_if},         {"while", awaits_in_while}, {"do", awaits_in_do},
      {"switch", awaits_in_switch}, {"loop", awaits_in_a_loop}, {"try", awaits_in_a_try_block}};
  for (const auto& [name, f] : shapes) {
    const std::string shape = name;  // since clang++ 14 cannot capture a structured binding
    CAPTURE(shape);
    int got = -1;
    const std::string why = misuse([&, f = f] { got = runs(f); });
    if (!kWrongFrames) {
      CHECK(got == 1);
      continue;
    }
    CHECK(why.find("'awaits_in_") != std::string::npos);
    CHECK(why.find("hosted_frames.cpp:") != std::string::npos);
    CHECK(why.find("Declare a variable") != std::string::npos);
  }
  const auto gives = [] {
    weft::Channel<int> c;
    const auto process = [&]() -> weft::ProcessOf<int> { return gives_what_it_awaits(c.reader()); };
    auto given = process();
    weft::run(weft::par(std::move(given), writes(c.writer())));
  };
  CHECK(misuse(gives).empty() == !kWrongFrames);
}

TEST_CASE("a process that is refused for its frame leaves its ends behind closed") {
  weft::Channel<int> c;
  int got = -1;
  const std::string why = misuse([&] {
    auto p = awaits_in_if(c.reader(), got);
    weft::run(weft::par(std::move(p), writes(c.writer())));
  });
  CHECK(why.empty() == !kWrongFrames);
  // The process has retired its reader, so the channel has retired.
  if (kWrongFrames) CHECK_THROWS_AS(c.writer(), weft::Retired);
}

TEST_CASE(
    "a declaration at the outermost level makes the frame right, as does one in the statement") {
  for (const Function f :
       {declares, declares_in_the_condition, declares_in_the_loop, awaits_in_no_condition})
    CHECK(runs(f) == 1);
}
