// A network in one program: the ends are weft::Reader and Writer, and time is virtual.
#pragma once
#include <vector>

#include <weft/weft.hpp>

#include "network.hpp"

namespace twin {

template <class P>
struct Value {
  std::string text;
  weft::Reader<Value, P> reader;
  weft::Writer<Value, P> writer;
  int end = -1;  // the number of the end that moves

  // Value has a constructor, since g++ 12 miscompiles an aggregate that is made with braces inside
  // a co_await expression.
  explicit Value(std::string t) : text(std::move(t)) {}
  Value(weft::Reader<Value, P> r, weft::Writer<Value, P> w, int n)
      : reader(std::move(r)), writer(std::move(w)), end(n) {}
};

template <class Policy>
class Near {
 public:
  using P = Policy;
  using V = Value<P>;
  using R = weft::Reader<V, P>;
  using W = weft::Writer<V, P>;
  static constexpr bool kSpread = false, kMoves = true;
  static constexpr weft::Clock kClock = weft::Clock::virtual_time;

  explicit Near(const Network& n) {
    for (const ChannelSpec& c : n.channels) channels_.emplace_back(options_of(c));
  }
  R reader(const Proc& p, std::size_t i) { return channel(p, i).reader(); }
  W writer(const Proc& p, std::size_t i) { return channel(p, i).writer(); }
  std::vector<std::uint64_t> dropped() const {
    std::vector<std::uint64_t> all;
    for (const auto& c : channels_) all.push_back(c.dropped());
    return all;
  }

  template <class E>
  static const E& here(const E& end) {
    return end;
  }
  template <class E>
  static void close(E& end, bool died) {
    died ? end.die() : end.retire();
  }
  static auto next(R& r) { return r.next(); }
  static weft::Span span(int t) { return std::chrono::seconds(t); }
  static std::int64_t moment(int t) { return t * 1'000'000'000LL; }
  // Does nothing: the effect of an operation is complete when the operation returns.
  static void written(const W&) {}
  static void arrived() {}
  static int going_on(int) { return 0; }

 private:
  weft::Channel<V, P>& channel(const Proc& p, std::size_t i) {
    return channels_[static_cast<std::size_t>(p.ends[i].channel)];
  }
  std::vector<weft::Channel<V, P>> channels_;
};

}  // namespace twin
