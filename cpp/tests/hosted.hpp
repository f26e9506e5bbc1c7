// Shared by the hosted tests: the policies, small processes, and the text of an exception.
// Processes are lambdas without captures, since a coroutine refers to the captures of its lambda,
// which are destroyed before the coroutine runs; the coroutine's parameters are copied into its
// frame.
#pragma once
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#define POLICIES weft::Local, weft::Shared

// g++ 12 cannot parse (co_await x).index in a template.
#define CHOSEN(op, i)             \
  do {                            \
    auto chosen_ = co_await (op); \
    CHECK(chosen_.index == (i));  \
  } while (false)

namespace test {

using namespace std::chrono_literals;
using weft::Process;
using weft::ProcessOf;

inline constexpr weft::RunOptions virtually{weft::Clock::virtual_time};

// A value that cannot be copied; `alive` counts the living tokens.
struct Token {
  static inline int alive = 0;
  int n = 0;
  explicit Token(int k) noexcept : n(k) { ++alive; }
  Token(Token&& o) noexcept : n(o.n) { ++alive; }
  Token& operator=(Token&& o) noexcept {
    n = o.n;
    return *this;
  }
  ~Token() { --alive; }
};

template <class P>
Process send_all(weft::Writer<int, P> w, std::vector<int> values) {
  for (int v : values) co_await w.write(v);
}
template <class P>
Process collect(weft::Reader<int, P> r, std::vector<int>& into) {
  while (auto v = co_await r.next()) into.push_back(*v);
}
template <class P>
Process collect(weft::Reader<int, P> r, std::vector<int>& into, int count) {
  for (int i = 0; i < count; ++i) into.push_back(co_await r.read());
}

inline Process nothing() { co_return; }
inline Process reads(weft::Reader<int> r) { co_await r.read(); }
inline Process naps(weft::Span s) { co_await weft::sleep(s); }
inline ProcessOf<int> later(weft::Span s, int value) {
  co_await weft::sleep(s);
  co_return value;
}

// Returns the text of the exception that f throws, or "" if f throws none.
template <class F>
std::string thrown(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}
inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace test
