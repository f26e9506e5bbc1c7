// Shared by the tests of the plug-and-play processes: functions that run a process, random streams
// and channels, and processes that feed and gather a stream.
#pragma once
#include "hosted.hpp"

#include <random>

#include <weft/plugnplay.hpp>

namespace test {

using Ints = std::vector<int>;

// The following types determine how the process under test runs.
struct OnLocal {
  using P = weft::Local;
  static Process as(Process p) { return p; }
};
struct OnShared {
  using P = weft::Shared;
  static Process as(Process p) { return p; }
};
struct OnThread {
  using P = weft::Shared;
  static auto as(Process p) { return weft::thread(std::move(p)); }
};
#define FORMS OnLocal, OnShared, OnThread

class Random {
 public:
  explicit Random(unsigned seed) : gen_(seed) {}
  int below(int n) { return static_cast<int>(gen_() % static_cast<unsigned>(n)); }
  Ints stream(int longest = 20, int values = 200) {
    Ints r(static_cast<std::size_t>(below(longest + 1)));
    for (int& x : r) x = below(values) - values / 2;
    return r;
  }
  weft::ChannelOptions options() {
    return below(2) ? weft::buffer(static_cast<unsigned>(1 + below(3))) : weft::ChannelOptions{};
  }

 private:
  std::mt19937 gen_;
};

template <class T, class P>
Process feed(weft::Writer<T, P> w, std::vector<T> values) {
  for (auto& v : values) co_await w.write(std::move(v));
}
template <class T, class P>
Process gather(weft::Reader<T, P> r, std::vector<T>* into, int most = -1) {
  while (most-- != 0) {
    auto v = co_await r.next();
    if (!v) break;
    into->push_back(std::move(*v));
  }
}

}  // namespace test
