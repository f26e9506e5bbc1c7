// Ends of channels whose home is another space, for threads and coroutines.
//
//   wire::FarWriter<int> w = …;   w(7);  co_await w.write(7);
//   wire::FarReader<int> r = …;   int v = r();  int v = co_await r.read();
//
// They behave as Writer and Reader do (rules 1 to 4, 6), but a cancellation takes a round trip (WIRE.md 4.3), and PeerDied of a write may
// be in doubt: `in_doubt` says that the value may have been taken (WIRE.md 8). Values pass by copy (rule 9.1).
//
// Copies share one end; it is retired when the last copy goes. An operation keeps its session alive.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "../coroutine.hpp"
#include "../guards.hpp"
#include "lazily.hpp"
#include "space.hpp"
#include "span.hpp"

namespace weft::inline WEFT_ABI::wire {

namespace detail {

// What a process does while an operation of its is elsewhere. It waits as at any other; its places in reports are the ends.
class FarWait : public FarOp {
 public:
  bool await_ready() { return begin(); }
  void await_suspend(std::coroutine_handle<>) const noexcept {}

 protected:
  FarWait(runtime::ProcessBase* p, const runtime::OpKind& kind) noexcept : process_(p), kind_(kind) {}
  ~FarWait() = default;

  // True: it need not wait.
  bool begin() {
    weft::detail::meet_request(*process_);
    process_->place = this;
    process_->op = &kind_;
    const Space::Step step(*peer()->space);
    return start();
  }
  void block(runtime::ThreadProcess& self) {
    {
      const Lazily soon;
      if (begin()) return Lazily::not_so();
    }
    self.block(kind_);
  }
  // Waits on, after a wake-up that was not the last.
  void park() noexcept {
    process_->place = this;
    process_->op = &kind_;
  }
  runtime::ProcessBase& process() const noexcept { return *process_; }
  const runtime::OpKind& kind() const noexcept { return kind_; }
  // After it is over. Returns if it has happened. `guard`: to be told, -1 for a plain operation.
  void look(const core::Place& at, const char* verb, int guard, Error::Carried (*not_done)(FarWait&)) {
    process_->op = nullptr;
    if (outcome.status == Status::ok) return;
    if (outcome.status == Status::pending) weft::detail::bad_use(std::string(verb) + " at " + runtime::name_of(at) + ": " + refused);
    if (outcome.status == Status::cancelled) weft::detail::throw_cancelled(*process_, not_done(*this));
    if (!outcome.lost) weft::detail::throw_end(outcome.status, at, outcome.strength, verb, guard, not_done(*this));
    PeerDied e(std::string(verb) + " at " + runtime::name_of(at) + ": the peer is gone (" + peer()->session.why() + ")" +
                   (outcome.in_doubt ? "; the value may have been taken" : ""),
               guard, true);
    e.in_doubt = outcome.in_doubt;
    e.carry(not_done(*this));
    throw e;
  }
  static bool withdraw(runtime::ProcessBase& p) noexcept {
    auto& me = of(p);
    const Space::Step step(*me.peer()->space);
    me.stop();
    return false;  // the answer will wake it
  }
  static FarWait& of(runtime::ProcessBase& p) noexcept { return *static_cast<FarWait*>(p.place); }
  virtual Peer* peer() const noexcept = 0;
  // In a step: as Far::begin() and withdraw().
  virtual bool start() { return peer()->far.begin(*this); }
  virtual void stop() { peer()->far.withdraw(*this); }

  void over() noexcept override { process_->ops->wake(process_); }

 private:
  runtime::ProcessBase* const process_;
  const runtime::OpKind& kind_;
};

// One plain operation.
template <class T, core::Side S>
class FarAwaiter final : public FarWait {
 public:
  FarAwaiter(std::shared_ptr<FarEnd> e, runtime::ProcessBase* p) : FarWait(p, kKind), end_(std::move(e)) { bind_guard(); }
  FarAwaiter(std::shared_ptr<FarEnd> e, runtime::ProcessBase* p, T v) : FarWait(p, kKind), room_(std::move(v)), end_(std::move(e)) {
    bind_guard();
  }
  auto await_resume() {
    look(end_->place, kVerb, -1, &not_done);
    if constexpr (S == core::Side::in) return room_.take();
  }
  // In a thread.
  auto wait(runtime::ThreadProcess& self) {
    block(self);
    return await_resume();
  }

 private:
  static constexpr const char* kVerb = S == core::Side::in ? "read" : "write";
  void bind_guard() noexcept {
    guard_ = {end_->number, S == core::Side::out, &room_};
    guards = std::span(&guard_, 1);
  }
  Peer* peer() const noexcept override { return end_->peer.get(); }
  static Error::Carried not_done(FarWait& me) {
    if constexpr (S == core::Side::out)
      return Error::Carried::of(static_cast<FarAwaiter&>(me).room_.take());
    else
      return {};
  }
  static void visit(runtime::ProcessBase& p, runtime::Places& v) {
    v.channel(static_cast<FarAwaiter&>(of(p)).end_->place, S == core::Side::out);
  }
  static constexpr runtime::OpKind kKind{kVerb, &withdraw, &visit};

  RoomOf<T> room_;
  const std::shared_ptr<FarEnd> end_;
  FarGuard guard_;
};

}  // namespace detail

template <class T>
class FarEndOf {
 public:
  FarEndOf() = default;
  explicit FarEndOf(std::shared_ptr<FarEnd> e) noexcept : end_(std::move(e)) {}
  // For all copies at once: throws BadUse if it is closed here.
  void poison(std::uint8_t strength = 1) const {
    if (strength < 1) weft::detail::bad_use("poison: the strength must be at least 1");
    checked("poison")->poison(strength);
  }
  // This copy is closed; the end is retired with the last one.
  void retire() noexcept { end_.reset(); }
  explicit operator bool() const noexcept { return static_cast<bool>(end_); }

  const std::shared_ptr<FarEnd>& checked(const char* what) const {
    if (!end_) weft::detail::bad_use(std::string(what) + " on an end that is closed (retired, moved away or never opened)");
    return end_;
  }

 private:
  std::shared_ptr<FarEnd> end_;
};

template <class T>
struct FarExtendedOp;  // held.hpp
struct Redeliver {};
inline constexpr Redeliver redeliver{};

template <class T>
class FarReader : public FarEndOf<T> {
 public:
  using FarEndOf<T>::FarEndOf;
  struct Read {
    std::shared_ptr<FarEnd> end;
    auto bind(runtime::ProcessBase* p) && { return detail::FarAwaiter<T, core::Side::in>(std::move(end), p); }
  };
  // co_await: the next value. Throws Retired, Poisoned, PeerDied, Cancelled, BadUse.
  [[nodiscard]] Read read() const { return {this->checked("read")}; }
  // co_await: a FarExtended<T>; the writer goes on when that is destroyed (rule 1.6). With redeliver, if this program dies before that the
  // value is the next to be read there.
  [[nodiscard]] auto extended() const { return FarExtendedOp<T>{this->checked("extended read"), false}; }
  [[nodiscard]] auto extended(Redeliver) const { return FarExtendedOp<T>{this->checked("extended read"), true}; }
  // The same in a thread.
  T operator()() const {
    runtime::ThreadProcess& self = weft::detail::blocking_caller("reader()");
    return detail::FarAwaiter<T, core::Side::in>(this->checked("read"), &self).wait(self);
  }
};

template <class T>
class FarWriter : public FarEndOf<T> {
 public:
  using FarEndOf<T>::FarEndOf;
  struct Write {
    std::shared_ptr<FarEnd> end;
    T value;
    auto bind(runtime::ProcessBase* p) && { return detail::FarAwaiter<T, core::Side::out>(std::move(end), p, std::move(value)); }
  };
  // co_await: until the value has been taken, or is in the buffer. Throws Retired, Poisoned, PeerDied, Cancelled, each with the value;
  // BadUse.
  [[nodiscard]] Write write(T v) const { return {this->checked("write"), std::move(v)}; }
  // The same in a thread.
  void operator()(T v) const {
    runtime::ThreadProcess& self = weft::detail::blocking_caller("writer(value)");
    detail::FarAwaiter<T, core::Side::out>(this->checked("write"), &self, std::move(v)).wait(self);
  }
};

// A select over far ends, and local ones beside them: the first guard that is ready, in the order in which they were added (rule 5.2).
//
//   wire::FarSelect s;
//   s.in(r).out(w, 5);
//   if (s() == 0) use(s.value<int>());        // in a coroutine: co_await s.go()
//
// If all ends have one home, that one decides it, in one round trip (WIRE.md 4.5). Else the homes are asked in turn (WIRE.md 5): a round
// trip for each until one is ready, and two once somebody comes. At least one end is far.
//
// One object is one select. For a fair sequence of them (rule 5.4) each begins at the guard after the one that was chosen last: from(i).
// It throws what a select of local ends throws, with the index of the guard; PeerDied is in doubt if an output was under way.
class FarSelect {
 public:
  template <class T>
  FarSelect& in(const FarReader<T>& r) {
    return far(r.checked("select"), false, std::make_unique<RoomOf<T>>());
  }
  template <class T>
  FarSelect& out(const FarWriter<T>& w, std::type_identity_t<T> v) {
    return far(w.checked("select"), true, std::make_unique<RoomOf<T>>(std::move(v)));
  }
  // Of a channel that was made here.
  template <class T>
  FarSelect& in(const Reader<T>& r) {
    return here<T, core::Side::in>(*r.checked("select"), std::make_unique<RoomOf<T>>());
  }
  template <class T>
  FarSelect& out(const Writer<T>& w, std::type_identity_t<T> v) {
    return here<T, core::Side::out>(*w.checked("select"), std::make_unique<RoomOf<T>>(std::move(v)));
  }
  // The guard that was added last has a precondition: if it is false that one takes no part (rule 5.2), but may hold the select open
  // (rule 5.6).
  FarSelect& when(bool on) {
    if (guards_.empty()) weft::detail::bad_use("select: when() before any guard: it is of the one that was added last");
    guards_.back().off = !on;
    spans_ = spans_ || !on;
    return *this;
  }
  // f makes the value, once this has been chosen and before the reader goes on (rule 5.8). If it throws, that is what the select throws.
  template <class T, class F>
  FarSelect& out_with(const FarWriter<T>& w, F f) {
    return makes<T>(far(w.checked("select"), true, std::make_unique<RoomOf<T>>()), std::move(f));
  }
  template <class T, class F>
  FarSelect& out_with(const Writer<T>& w, F f) {
    return makes<T>(here<T, core::Side::out>(*w.checked("select"), std::make_unique<RoomOf<T>>()), std::move(f));
  }
  // Guard i is asked first, and those before it last.
  FarSelect& from(int i) {
    first_ = static_cast<std::uint32_t>(i);
    return *this;
  }

  class Awaiter final : public detail::FarWait {
   public:
    Awaiter(FarSelect& s, runtime::ProcessBase* p) : FarWait(p, kKind), s_(s) {
      if (s.guards_.empty()) weft::detail::bad_use("select: no guard");
      if (s.far_ == s.guards_.size()) weft::detail::bad_use("select: all ends are of this program; weft::select is for those");
      if (s.first_ >= s.guards_.size()) weft::detail::bad_use("select: from() says a guard that there is not");
      if (std::all_of(s.guards_.begin(), s.guards_.end(), [](const FarGuard& g) { return g.off; })) weft::detail::none_holds();
      if (!s.spans_ && s.first_ != 0) s.spans_ = true;  // a home keeps to the order of the offer
      guards = s.guards_;
    }
    bool await_ready() {
      if (s_.makers_.empty()) return FarWait::await_ready();
      // While it is parked the process's ops are ours, so that a value is made before the coroutine goes on.
      usual_ = process().ops;
      process().runs_by(kMaking);
      const bool over = FarWait::await_ready();
      if (over) process().runs_by(*usual_);
      return over;
    }
    // The index of the guard that was chosen.
    int await_resume() {
      if (failure_) {
        process().op = nullptr;
        std::rethrow_exception(failure_);
      }
      const auto i = static_cast<int>(outcome.guard);
      look(*s_.places_[outcome.guard], "select", outcome.lost ? -1 : i, [](FarWait&) { return Error::Carried{}; });
      return s_.chosen_ = i;
    }
    int wait(runtime::ThreadProcess& self) {
      block(self);
      while (!woken()) self.block(kind());
      return await_resume();
    }

   private:
    // After a wake-up, in the owner's context. False: it waits on.
    bool woken() {
      if (running_ == kNone) return true;
      process().op = nullptr;
      try {
        s_.makers_[running_]();
      } catch (...) {
        failure_ = std::current_exception();
      }
      const Space::Step step(*peer()->space);
      running_ = kNone;
      if (over_) return true;  // its session has ended meanwhile
      if (failure_) {
        span_ ? span_->failed() : peer()->far.failed(*this);
        return true;
      }
      park();  // before anybody can wake it
      return span_ ? span_->made() : peer()->far.made(*this);
    }
    void committed(std::uint32_t guard) noexcept override {
      running_ = guard;
      FarWait::over();
    }
    void over() noexcept override {
      over_ = true;
      if (running_ == kNone) FarWait::over();
    }
    static void wake(core::Waker* w) noexcept { runtime::executor_of(of_waker(w)).post(w); }
    static void run(core::Waker* w) {
      runtime::ProcessBase& p = of_waker(w);
      auto& me = static_cast<Awaiter&>(of(p));
      runtime::this_context->running = &p;
      if (runtime::Observer* const o = runtime::watched()) o->resumes(p, runtime::this_context);
      if (!me.woken()) return;
      p.runs_by(*me.usual_);
      p.ops->run(&p);
    }
    static runtime::ProcessBase& of_waker(core::Waker* w) noexcept { return *static_cast<runtime::ProcessBase*>(w); }
    static runtime::Executor* executor_of(runtime::ProcessBase& p) noexcept { return &runtime::executor_of(p); }
    static inline const runtime::ProcessOps kMaking{{&Awaiter::wake, &Awaiter::run, nullptr, 0}, &Awaiter::executor_of};
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};

    Peer* peer() const noexcept override { return s_.ends_[outcome.lost ? outcome.guard : s_.far_]->peer.get(); }
    bool start() override {
      if (!s_.spans_) return FarWait::start();
      std::vector<Span::Guard> all;
      for (std::size_t i = 0; i < s_.guards_.size(); ++i)
        all.push_back({s_.ends_[i] ? s_.ends_[i]->peer.get() : nullptr, s_.ports_[i], s_.guards_[i].end, s_.guards_[i].writes,
                       &s_.rooms_[i], false, s_.guards_[i].off, s_.guards_[i].later});
      span_.emplace(*peer()->space, *this, std::move(all), s_.first_);
      return span_->begin();
    }
    void stop() override { span_ ? span_->withdraw() : FarWait::stop(); }
    static void visit(runtime::ProcessBase& p, runtime::Places& v) {
      const FarSelect& s = static_cast<Awaiter&>(of(p)).s_;
      for (std::size_t i = 0; i < s.places_.size(); ++i)
        if (!s.guards_[i].off) v.channel(*s.places_[i], s.guards_[i].writes);
    }
    static constexpr runtime::OpKind kKind{"select", &withdraw, &visit};
    FarSelect& s_;
    std::optional<Span> span_;
    // The space's lock, but for the owner while it runs: the guard whose value it makes, and whether all is over.
    std::uint32_t running_ = kNone;
    bool over_ = false;
    std::exception_ptr failure_;
    const core::WakerOps* usual_ = nullptr;
  };
  struct Go {
    FarSelect& s;
    Awaiter bind(runtime::ProcessBase* p) && { return Awaiter(s, p); }
  };
  // co_await: the index of the guard that was chosen.
  [[nodiscard]] Go go() { return {*this}; }
  // The same in a thread.
  int operator()() {
    runtime::ThreadProcess& self = weft::detail::blocking_caller("select");
    return Awaiter(*this, &self).wait(self);
  }
  // The value of the input that was chosen, once. Throws BadUse if none was, or it is of another type.
  template <class T>
  T value() {
    auto* const room = chosen_ < 0 || guards_[static_cast<std::size_t>(chosen_)].writes
                           ? nullptr
                           : dynamic_cast<RoomOf<T>*>(rooms_[static_cast<std::size_t>(chosen_)].get());
    if (!room || !room->full()) weft::detail::bad_use("value(): no input of this type was chosen, or it was asked for already");
    return room->take();
  }

 private:
  template <class T, class F>
  FarSelect& makes(FarSelect& me, F f) {
    auto* const room = static_cast<RoomOf<T>*>(rooms_.back().get());  // it may move to who decides, and stays the same
    makers_.resize(guards_.size());
    makers_.back() = [room, f = std::move(f)]() mutable { room->put(f()); };
    guards_.back().later = true;
    return me;
  }
  FarSelect& far(const std::shared_ptr<FarEnd>& e, bool writes, std::unique_ptr<Room> room) {
    if (far_ == guards_.size() && !ends_.empty()) spans_ = true;  // after local ones alone
    for (const auto& other : ends_) {
      if (!other) continue;
      if (other->peer->space != e->peer->space) weft::detail::bad_use("select: ends of two spaces of this program");
      spans_ = spans_ || other->peer != e->peer;
    }
    if (far_ == guards_.size()) far_ = ends_.size();
    return add(e, nullptr, e->place, e->number, writes, std::move(room));
  }
  template <class T, core::Side S>
  FarSelect& here(typename Reader<T>::Core& c, std::unique_ptr<Room> room) {
    spans_ = true;
    const bool none_far = far_ == guards_.size();
    add(nullptr, std::make_shared<PortOf<T, S>>(PortOf<T, S>::another_of(c)), c, 0, S == core::Side::out, std::move(room));
    if (none_far) far_ = guards_.size();
    return *this;
  }
  FarSelect& add(std::shared_ptr<FarEnd> e, std::shared_ptr<Port> port, const core::Place& at, std::uint32_t number, bool writes,
                 std::unique_ptr<Room> room) {
    ends_.push_back(std::move(e));
    ports_.push_back(std::move(port));
    places_.push_back(&at);
    guards_.push_back({number, writes, room.get()});
    rooms_.push_back(std::move(room));
    return *this;
  }

  std::vector<std::shared_ptr<FarEnd>> ends_;  // null: of a local guard
  std::vector<std::shared_ptr<Port>> ports_;   // of the local ones
  std::vector<const core::Place*> places_;
  std::vector<std::unique_ptr<Room>> rooms_;
  std::vector<FarGuard> guards_;
  std::vector<std::function<void()>> makers_;  // of outputs with a function, by guard
  std::size_t far_ = 0;                        // the first that is far; none: their number
  std::uint32_t first_ = 0;
  bool spans_ = false;
  int chosen_ = -1;
};

}  // namespace weft::inline WEFT_ABI::wire
