// The guards and the choice of csp.hpp.
//
// When an alt selects an input, it reads the value; the next read() of that end returns it.
#pragma once
#include <algorithm>
#include <functional>
#include <initializer_list>
#include <memory>
#include <tuple>
#include <vector>

#include <weft/weft.hpp>

namespace csp {

namespace detail {

namespace runtime = weft::runtime;
namespace core = weft::core;
using Here = weft::detail::Here;  // the line of the program that calls an operation

// A guard in a choice. If `ready` returns true, the guard can be chosen without the core.
struct Guard {
  virtual ~Guard() = default;
  virtual bool ready() { return false; }
  virtual void fill(core::Guard&, runtime::ProcessBase&) = 0;
  virtual void take() {}  // called when the core has chosen the guard as an input
};

}  // namespace detail

class guard {
 public:
  guard(std::shared_ptr<detail::Guard> g) noexcept : guard_(std::move(g)) {}
  const std::shared_ptr<detail::Guard>& impl() const noexcept { return guard_; }

 protected:
  guard() noexcept = default;
  std::shared_ptr<detail::Guard> guard_;
};

namespace detail {

// The guards of one select, in the order in which they are tried.
struct GuardSet {
  using Value = bool;
  static constexpr bool computes = false;
  static constexpr bool shared = true;
  std::vector<Guard*> gs;
  runtime::FixedArray<core::Guard> guards;

  explicit GuardSet(std::vector<Guard*> g) : gs(std::move(g)), guards(gs.size()) {}
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(gs.size()); }
  core::Guard* data() noexcept { return guards.get(); }
  void fill(runtime::ProcessBase& p) {
    for (std::size_t i = 0; i < gs.size(); ++i) {
      if (gs[i]->ready())
        guards[i].kind = core::Kind::skip;
      else
        gs[i]->fill(guards[i], p);
    }
  }
  void passed(std::size_t, runtime::Passed&) noexcept {}  // this choice measures nothing
  bool take(std::size_t i) {
    gs[i]->take();
    return true;
  }
  weft::Status compute(std::size_t) { return weft::Status::ok; }
  struct Ended {
    std::size_t at;
  };
  [[noreturn]] void raise(std::size_t i, weft::Status) { throw Ended{i}; }
};

}  // namespace detail

class alt {
 public:
  alt() = default;
  alt(std::initializer_list<guard> gs) : state_(std::make_shared<State>(gs)) {}
  alt(const std::vector<guard>& gs) : state_(std::make_shared<State>(gs)) {}
  template <class I>
  alt(I first, I last) : state_(std::make_shared<State>(std::vector<guard>(first, last))) {}

  int select(detail::Here at = detail::Here::now()) const { return fair_select(at); }
  int fair_select(detail::Here at = detail::Here::now()) const {
    return choose(true, {}, false, at);
  }
  int pri_select(detail::Here at = detail::Here::now()) const {
    return choose(false, {}, false, at);
  }
  template <class C = std::initializer_list<bool>>
  int select(const C& when, detail::Here at = detail::Here::now()) const {
    return fair_select(when, at);
  }
  template <class C = std::initializer_list<bool>>
  int fair_select(const C& when, detail::Here at = detail::Here::now()) const {
    return choose(true, std::vector<char>(when.begin(), when.end()), true, at);
  }
  template <class C = std::initializer_list<bool>>
  int pri_select(const C& when, detail::Here at = detail::Here::now()) const {
    return choose(false, std::vector<char>(when.begin(), when.end()), true, at);
  }
  int operator()(detail::Here at = detail::Here::now()) const { return fair_select(at); }
  template <class C = std::initializer_list<bool>>
  int operator()(const C& when, detail::Here at = detail::Here::now()) const {
    return fair_select(when, at);
  }

 private:
  struct State {
    std::vector<guard> guards;
    std::size_t next = 0;  // the guard with which the next fair select begins
    explicit State(std::vector<guard> g) : guards(std::move(g)) {}
  };

  int choose(bool fair, const std::vector<char>& when, bool conditional, detail::Here at) const {
    if (!state_ || state_->guards.empty())
      weft::detail::bad_use("csp::alt: select needs at least one guard");
    const std::size_t n = state_->guards.size();
    if (conditional && when.size() != n)
      weft::detail::bad_use("csp::alt: " + std::to_string(n) + " guards and " +
                            std::to_string(when.size()) +
                            " preconditions: give one precondition for each guard");
    std::vector<detail::Guard*> order;
    std::vector<std::size_t> index;
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t i = fair ? (state_->next + k) % n : k;
      if (conditional && !when[i]) continue;
      order.push_back(state_->guards[i].impl().get());
      index.push_back(i);
    }
    if (order.empty()) weft::detail::none_holds();
    detail::GuardSet set(std::move(order));
    weft::core::Select engine;
    weft::runtime::ThreadProcess& self = weft::detail::blocking_caller("csp::alt");
    set.fill(self);
    weft::detail::check_guards(set);
    engine.bind(set.data(), set.size(), weft::Mode::priority, &self, 0);
    std::size_t chosen;
    try {
      chosen = static_cast<std::size_t>(weft::detail::select_in_thread(set, engine, at).index);
    } catch (const detail::GuardSet::Ended& e) {
      chosen = e.at;  // the next read() reports that the channel has ended
    }
    if (fair) state_->next = (index[chosen] + 1) % n;
    return static_cast<int>(index[chosen]);
  }
  std::shared_ptr<State> state_;
};

// choice{ {guard, action}, … }() or choice{ {guard, condition, action}, … }(): selects fairly and
// runs the action of the chosen guard.
class choice {
 public:
  choice(std::initializer_list<std::tuple<guard, std::function<void()>>> list) {
    for (const auto& [g, f] : list) add(g, true, f);
  }
  choice(std::initializer_list<std::tuple<guard, bool, std::function<void()>>> list) {
    for (const auto& [g, when, f] : list) add(g, when, f);
  }
  void operator()(detail::Here at = detail::Here::now()) {
    // A loop makes a new choice in each round. To be fair nevertheless, a choice begins at a random
    // guard.
    const std::size_t first = (weft::detail::Rotations::mine().random() >> 33) % guards_.size();
    std::rotate(guards_.begin(), guards_.begin() + static_cast<std::ptrdiff_t>(first),
                guards_.end());
    std::rotate(when_.begin(), when_.begin() + static_cast<std::ptrdiff_t>(first), when_.end());
    std::rotate(actions_.begin(), actions_.begin() + static_cast<std::ptrdiff_t>(first),
                actions_.end());
    actions_[static_cast<std::size_t>(alt(guards_).pri_select(when_, at))]();
  }

 private:
  void add(const guard& g, bool when, const std::function<void()>& f) {
    guards_.push_back(g);
    when_.push_back(when);
    actions_.push_back(f);
  }
  std::vector<guard> guards_;
  std::vector<char> when_;
  std::vector<std::function<void()>> actions_;
};

}  // namespace csp
