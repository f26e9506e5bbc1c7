// Tests the form in which a channel stores a value (core/stored.hpp): scalars are stored as their
// bits, with one engine for each size.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>
#include <weft/weft.hpp>

#include "hosted.hpp"

namespace {

using weft::core::Bits;
using weft::core::Stored;

enum class Colour : std::uint16_t { red = 0x1234, green = 0xFFFF };
struct Plain {
  int a, b;
};
// The type is incomplete where the type of its channel is first named.
struct Request {
  int n;
  weft::Writer<Request> answer;
};

static_assert(std::is_same_v<Stored<int>, Bits<4>> && std::is_same_v<Stored<float>, Bits<4>>);
static_assert(std::is_same_v<Stored<double>, Bits<8>> && std::is_same_v<Stored<Plain*>, Bits<8>>);
static_assert(std::is_same_v<Stored<bool>, Bits<1>> && std::is_same_v<Stored<Colour>, Bits<2>>);
static_assert(std::is_same_v<Stored<Plain>, Plain> && std::is_same_v<Stored<Request>, Request>);
static_assert(std::is_same_v<Stored<std::string>, std::string>);
static_assert(std::is_same_v<weft::detail::EngineOf<int, weft::Local>,
                             weft::detail::EngineOf<float, weft::Local>>);
static_assert(!std::is_same_v<Stored<long double>, Bits<sizeof(long double)>>);

template <class T, class P>
weft::Process give(weft::Writer<T, P> out, std::vector<T> values) {
  for (T v : values) co_await out.write(v);
}
template <class T, class P>
weft::Process take(weft::Reader<T, P> in, std::vector<T>& got) {
  while (auto v = co_await in.next()) {
    got.push_back(*v);
  }
}

template <class T, class P>
std::vector<T> passed_through(weft::Channel<T, P> c, const std::vector<T>& values) {
  std::vector<T> got;
  weft::run(give<T, P>(c.writer(), values), take<T, P>(c.reader(), got));
  return got;
}
template <class T>
void check_unchanged(const std::vector<T>& values) {
  CHECK(passed_through(weft::Channel<T>(), values) == values);
  CHECK(passed_through(weft::Channel<T, weft::Local>(), values) == values);
  CHECK(passed_through(weft::Channel<T>(weft::buffer(2)), values) == values);
  CHECK(passed_through(weft::Channel<T>(weft::buffer(0, weft::Overflow::unbounded)), values) ==
        values);
  CHECK(passed_through(weft::Channel<T, weft::OneToOne>(weft::buffer(2)), values) == values);
}

weft::Process serve(weft::Reader<Request> in) {
  while (auto r = co_await in.next()) {
    Request answer{r->n + 1, {}};
    co_await r->answer.write(std::move(answer));
  }
}
weft::Process ask(weft::Writer<Request> out, int& got) {
  weft::Channel<Request> back;
  weft::Reader<Request> answer = back.reader();
  Request question{41, back.writer()};
  co_await out.write(std::move(question));
  got = (co_await answer.read()).n;
}

}  // namespace

TEST_CASE("scalars of every size arrive as they were, by every kind of channel (rules 1.1, 1.3)") {
  check_unchanged<std::int8_t>({-128, -1, 0, 127});
  check_unchanged<Colour>({Colour::red, Colour::green});
  check_unchanged<int>({std::numeric_limits<int>::min(), -1, 0, std::numeric_limits<int>::max()});
  check_unchanged<float>({-0.0F, 1.5F, std::numeric_limits<float>::infinity()});
  check_unchanged<std::int64_t>({std::numeric_limits<std::int64_t>::min(), 1, 0});
  check_unchanged<double>({0.1, -1e300, std::numeric_limits<double>::denorm_min()});
  check_unchanged<long double>({0.1L, -1e300L});
  check_unchanged<std::byte>({std::byte{0}, std::byte{255}});
  Plain p{1, 2}, q{3, 4};
  check_unchanged<Plain*>({&p, nullptr, &q});
}

TEST_CASE("a number is converted as it is written, and read as the channel's type (rule 1.1)") {
  std::vector<double> got;
  weft::Channel<double> c;
  weft::run(
      [](weft::Writer<double> out) -> weft::Process {
        co_await out.write(3);
        co_await out.write(2.5F);
      }(c.writer()),
      take<double, weft::Shared>(c.reader(), got));
  CHECK(got == std::vector<double>{3.0, 2.5});
}

TEST_CASE("threads write and read scalars, buffered and not (rule 1.1)") {
  for (weft::ChannelOptions o : {weft::ChannelOptions{}, weft::buffer(3)}) {
    weft::Channel<double> c(o);
    double sum = 0;
    weft::run(weft::thread([out = c.writer()] {
                for (int i = 0; i < 100; ++i) out(i + 0.5);
              }),
              weft::thread([in = c.reader(), &sum] {
                for (double v : in) sum += v;
              }));
    CHECK(sum == 5000);
  }
}

TEST_CASE("a struct with an end of a channel of its own type (rule 2)") {
  weft::Channel<Request> c;
  int got = 0;
  weft::run(serve(c.reader()), ask(c.writer(), got));
  CHECK(got == 42);
}

TEST_CASE("an exception carries a scalar back as the channel's type (rule 3.2)") {
  weft::Channel<std::int64_t> c;
  weft::Writer<std::int64_t> w = c.writer();
  c.reader().retire();
  std::int64_t back = 0;
  weft::run([](weft::Writer<std::int64_t> out, std::int64_t& v) -> weft::Process {
    try {
      co_await out.write(std::int64_t{1} << 40);
    } catch (const weft::Retired& e) {
      v = e.value<std::int64_t>() ? *e.value<std::int64_t>() : -1;
    }
  }(std::move(w), back));
  CHECK(back == std::int64_t{1} << 40);
}

namespace {

// A value that cannot be assigned: a channel needs only a move constructor.
struct OnlyMade {
  int n;
  explicit OnlyMade(int k) noexcept : n(k) {}
  OnlyMade(OnlyMade&&) noexcept = default;
  OnlyMade& operator=(OnlyMade&&) = delete;
};
weft::Process sends_made(weft::Writer<OnlyMade> w) {
  co_await w.write(OnlyMade(1));
  co_await weft::select(weft::out(w, OnlyMade(2)));
}
weft::Process takes_made(weft::Reader<OnlyMade> r, int& sum) {
  const OnlyMade first = co_await r.read();
  auto second = co_await weft::select(r, weft::after(weft::Span::max()));
  sum = first.n + second.value->n;
}

}  // namespace

TEST_CASE("rule 1.1: a value that cannot be assigned passes, by a select of several guards too") {
  for (const bool buffered : {false, true}) {
    weft::Channel<OnlyMade> c{buffered ? weft::buffer(1) : weft::ChannelOptions{}};
    int sum = 0;
    weft::run(sends_made(c.writer()), takes_made(c.reader(), sum));
    CHECK(sum == 3);
  }
}
