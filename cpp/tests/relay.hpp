// A worker of a random network that selects over all of its ends, again and again, while they
// retire one by one (rule 5.6).
//
//              ┌──────────── held: at most `room` values ─────────────┐
//   inputs ──▶ │ guards(): which are on, which end it (ends())        │ ──▶ outputs
//              │ chosen(): a value came, or the first of `held` went  │
//              │ told():   Retired; suspects() are to be asked        │
//              └───────────────────────────────────────────────────────┘
//
// Relay is the state of such a worker, without any waiting: a coroutine and a thread drive it
// alike. The outcomes of its selects are checked exactly. A retired channel stays retired.
// Therefore, when a select throws Retired, each channel whose end may be the reason is selected
// again, beside a skip, and must be found retired at once. Whether ends wake selects in time is
// checked by the network as a whole: otherwise there would be a deadlock. Most guards whose
// channels have ended stay in the select, and are silent.
//
// Invariants: a value is in `held` or has been handed on; a value that is still held when no output
// is left counts as kept (kept()); an end counts as ended only when it has been checked.
#pragma once
#include <chrono>
#include <deque>
#include <optional>
#include <stdexcept>
#include <vector>

#include <weft/weft.hpp>

#include "random.hpp"

namespace weft::test {

using Value = std::uint64_t;

// Thrown when a network has done something that the rules do not allow.
struct Wrong : std::logic_error {
  using std::logic_error::logic_error;
};

template <class P>
class Relay {
 public:
  using Guards = std::vector<AnyGuard<Value, P>>;

  // Makes a worker. `stays` is the number of values after which the worker leaves; with 0 it leaves
  // with the last of its inputs.
  Relay(const std::vector<Reader<Value, P>>& in, const std::vector<Writer<Value, P>>& out,
        std::uint64_t seed, std::uint64_t stays)
      : random_(seed), stays_(stays) {
    for (const auto& r : in)
      ends_.push_back({.reader = r, .writer = {}, .input = true, .loud = random_.below(4) == 0});
    for (const auto& w : out)
      ends_.push_back({.reader = {}, .writer = w, .input = false, .loud = random_.below(5) == 0});
    outputs_ = out.size();
    room_ = outputs_ ? static_cast<std::size_t>(1 + random_.below(3)) : 1;
    const int m = random_.below(4);
    mode = m == 0 ? Mode::priority : m == 1 ? Mode::random : Mode::fair;
  }

  bool done() const {
    if (stays_ && count == stays_) return true;
    if (outputs_ && !left(false)) return true;
    return held_.empty() && !left(true);
  }

  // Returns the guards of the next select. Inputs are off while there is no room for a value,
  // outputs while there is no value. Now and then other guards are off too; then the select has a
  // time limit, because the network may need just those guards.
  Guards guards() {
    Guards all;
    const bool wants = held_.size() < room_ && left(true), gives = !held_.empty(),
               choosy = random_.below(8) == 0;
    bool any = false;
    timed_ = random_.below(32) == 0;
    for (End& e : ends_) {
      const bool useful = e.input ? wants : gives;
      e.on = useful && !((choosy || e.over) && random_.below(3) == 0);
      timed_ |= useful && !e.on && !e.over;
      any |= e.on;
    }
    for (End& e : ends_)
      if (!any && !e.over && (e.input ? wants : gives)) any = e.on = true;
    for (End& e : ends_) {
      if (e.input) {
        auto g = in(e.reader).when(e.on);
        all.push_back(e.loud ? std::move(g).ends() : std::move(g));
      } else {
        auto g = weft::out(e.writer, gives ? held_.front() : Value{0}).when(e.on);
        all.push_back(e.loud ? std::move(g).ends() : std::move(g));
      }
    }
    if (timed_) all.push_back(after(std::chrono::microseconds(20)));
    return all;
  }

  void chosen(int i, const std::optional<Value>& v) {
    if (timed_ && i == static_cast<int>(ends_.size())) return;
    const End& e = at(i);
    if (!e.on) throw Wrong("a guard that is off was chosen");
    if (e.over) throw Wrong("a guard that was silent was chosen");
    if (e.input) {
      if (!v) throw Wrong("an input without a value");
      ++count;
      sum += Random::mix(*v);
      if (outputs_) held_.push_back(*v);
    } else {
      held_.pop_front();
      ++given;
    }
  }

  // Called when the select has thrown Retired with guard i. Returns the guards whose channels must
  // have ended if the select was right.
  std::vector<int> suspects(int i) {
    const End& e = at(i);
    if (!e.on) throw Wrong("a guard that is off was told of its end");
    if (e.loud && e.over) throw Wrong("a guard was told of its end twice");
    if (e.loud) return {i};
    bool outputs = false;
    for (const End& x : ends_) outputs |= x.on && !x.input;
    if (outputs && e.input) throw Wrong("the end of an input was told while outputs decide");
    std::vector<int> all;
    for (std::size_t k = 0; k < ends_.size(); ++k)
      if (ends_[k].on && ends_[k].input == !outputs) all.push_back(static_cast<int>(k));
    return all;
  }
  // Returns a select over the channel of guard i and a skip; the select must throw Retired.
  auto probe(int i) const {
    const End& e = at(i);
    Guards two;
    if (e.input)
      two.push_back(in(e.reader).ends());
    else
      two.push_back(weft::out(e.writer, Value{0}).ends());
    two.push_back(skip());
    return select_among<Value, P>(std::move(two), Mode::priority);
  }
  void is_over(int i) {
    End& e = at(i);
    if (!e.over) ++retired;
    e.over = true;
    e.loud = false;  // The guard is silent from now on.
  }

  // Returns the number of values that were read and could not be sent any more; the worker keeps
  // them.
  std::uint64_t kept() const { return outputs_ ? held_.size() : count; }
  std::uint64_t kept_sum() const {
    if (!outputs_) return sum;
    std::uint64_t s = 0;
    for (const Value v : held_) s += Random::mix(v);
    return s;
  }

  Mode mode = Mode::fair;
  std::uint64_t count = 0, sum = 0, given = 0, retired = 0;

 private:
  struct End {
    Reader<Value, P> reader;
    Writer<Value, P> writer;
    bool input, loud, on = true, over = false;
  };
  const End& at(int i) const {
    if (i < 0 || static_cast<std::size_t>(i) >= ends_.size()) throw Wrong("there is no such guard");
    return ends_[static_cast<std::size_t>(i)];
  }
  End& at(int i) { return const_cast<End&>(std::as_const(*this).at(i)); }
  bool left(bool input) const {
    for (const End& e : ends_)
      if (e.input == input && !e.over) return true;
    return false;
  }

  std::vector<End> ends_;
  std::deque<Value> held_;
  Random random_;
  std::uint64_t stays_;
  std::size_t outputs_ = 0, room_ = 1;
  bool timed_ = false;
};

[[noreturn]] inline void not_over() {
  throw Wrong("Retired, and a channel that decides has not ended");
}

// The two drivers of a Relay. Afterwards `r` contains the numbers of values that the worker has
// given and kept.
template <class P>
Process drive(Relay<P>& r) {
  while (!r.done()) {
    int told = -1;
    try {
      auto c = co_await select_among<Value, P>(r.guards(), r.mode);
      r.chosen(c.index, c.value);
    } catch (const Retired& e) {
      told = e.guard;
      if (told < 0) throw Wrong("Retired of a select, without a guard");
    }
    if (told < 0) continue;
    for (const int i : r.suspects(told)) {
      bool over = false;
      try {
        co_await r.probe(i);
      } catch (const Retired&) {
        over = true;
      }
      if (!over) not_over();
      r.is_over(i);
    }
  }
}
inline void drive_in_thread(Relay<Shared>& r) {
  while (!r.done()) {
    try {
      auto c = select_among<Value>(r.guards(), r.mode)();
      r.chosen(c.index, c.value);
    } catch (const Retired& e) {
      if (e.guard < 0) throw Wrong("Retired of a select, without a guard");
      for (const int i : r.suspects(e.guard)) {
        bool over = false;
        try {
          r.probe(i)();
        } catch (const Retired&) {
          over = true;
        }
        if (!over) not_over();
        r.is_over(i);
      }
    }
  }
}

}  // namespace weft::test
