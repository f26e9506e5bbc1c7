// A select over far ends, which may also contain ends and other guards of this program. The select
// chooses the first guard that is ready, in the order in which the guards were added (rule 5.4).
//
//   wire::FarSelect s;
//   s.in(r).out(w, 5).on(weft::after(1s));
//   if (s() == 0) use(s.value<int>());        // in a coroutine: co_await s.go()
//
// The select owns the values of its outputs. s.unsent<int>(1) gives back a value that was not sent,
// whatever the select has thrown.
//
// If all ends have one home, that home decides, in one round trip (WIRE.md 4.5). Otherwise the
// homes are asked in turn (WIRE.md 5). That takes a round trip for each home until one is ready,
// and two round trips once a partner arrives. At least one end must be far.
//
// A barrier of another program can be a guard too, s.meet(b), if all ends of the select belong to
// channels of that program (WIRE.md 4.10).
//
// One object is one select. For a fair sequence of selects (rule 5.4), let each select begin, by
// from(i), at the guard after the one that was chosen last. A select throws what a select of local
// ends throws, with the index of the guard. PeerDied is in doubt if an output was under way.
//
// With a timer, a process's end, or a value that is made after the commit, the process waits by an
// ordinary select for these and for a latch, which is set when the homes have answered:
//
//   begin ──over at once──► chosen
//     └──► waits ──the latch: over──► chosen
//            ├──the latch: committed──► makes the value ──► waits for the latch again
//            └──a timer, an end──► withdraws at the homes ──► waits for the latch: over, or
//                                                             committed after all
#pragma once
#include <algorithm>
#include <functional>
#include <typeinfo>
#include <variant>

#include "../ended.hpp"
#include "far_barrier.hpp"
#include "inline_vector.hpp"
#include "span.hpp"

namespace weft::inline WEFT_ABI::wire {

class FarSelect {
  static constexpr std::size_t kUsual = 4;  // the number of ends for which no allocation is needed

 public:
  template <class T>
  FarSelect& in(const FarReader<T>& r) {
    return far(r.checked("select"), false, std::make_unique<RoomOf<T>>());
  }
  template <class T>
  FarSelect& out(const FarWriter<T>& w, std::type_identity_t<T> v) {
    return far(w.checked("select"), true, std::make_unique<RoomOf<T>>(std::move(v)));
  }
  // Adds an input from an end of a channel of this program.
  template <class T>
  FarSelect& in(const Reader<T>& r) {
    return here<T, core::Side::in>(*r.checked("select"), std::make_unique<RoomOf<T>>());
  }
  template <class T>
  FarSelect& out(const Writer<T>& w, std::type_identity_t<T> v) {
    return here<T, core::Side::out>(*w.checked("select"),
                                    std::make_unique<RoomOf<T>>(std::move(v)));
  }
  // Adds a guard that is chosen when all other parties of the barrier have arrived (rule 8.4). With
  // such a guard, all ends of the select must have the barrier's home, no when() may be false, and
  // no guard may have ends(); otherwise the select is bad use.
  FarSelect& meet(const FarBarrier& b) {
    far(b.checked("select"), false, std::make_unique<NoRoom>());
    barriers_.push_back(guards_.size() - 1);
    return *this;
  }
  // A barrier of this program cannot be combined with ends of another program.
  FarSelect& meet(const Barrier& b) = delete;
  // Adds an output whose value is made by f, once this guard has been chosen and before the reader
  // continues (rule 5.8). The select throws what f throws.
  template <class T, class F>
  FarSelect& out_with(const FarWriter<T>& w, F f) {
    return makes<T>(far(w.checked("select"), true, std::make_unique<RoomOf<T>>()), std::move(f));
  }
  template <class T, class F>
  FarSelect& out_with(const Writer<T>& w, F f) {
    return makes<T>(here<T, core::Side::out>(*w.checked("select"), std::make_unique<RoomOf<T>>()),
                    std::move(f));
  }
  // Adds weft::after(1s), weft::at(ns), weft::skip(), or a watch's ended(). Each of these guards
  // can have its own when().
  FarSelect& on(std::variant<DeadlineGuard, Skip, EndOf> g) {
    if (const EndOf* e = std::get_if<EndOf>(&g); e && !e->state) weft::detail::moved_end("select");
    others_.push_back({static_cast<int>(number_++), std::move(g)});
    return *this;
  }
  // Gives the end that was added last a precondition. If the precondition is false, the guard takes
  // no part (rule 5.2), but can hold the select open (rule 5.6). when() and ends() throw BadUse if
  // the last guard added was not an end.
  FarSelect& when(bool on) {
    last("when").off = !on;
    spans_ = spans_ || !on;
    return *this;
  }
  // Makes the retirement of a channel an outcome of the select, as poison is (rule 5.6). ends()
  // applies to the channel of the end that was added last.
  FarSelect& ends() {
    static_cast<void>(last("ends"));
    ends_.back().loud = spans_ = true;
    return *this;
  }
  // Asks guard i first, and the guards before it last.
  FarSelect& from(int i) {
    first_ = static_cast<std::uint32_t>(i);
    fair_ = true;
    return *this;
  }

  class Awaiter final : public detail::FarWait {
   public:
    Awaiter(FarSelect& s, runtime::ProcessBase* p) : FarWait(p, kKind), s_(s) {
      if (std::exchange(s.used_, true))
        weft::detail::bad_use("select: a FarSelect is used once: make another for the next");
      if (s.guards_.empty())
        weft::detail::bad_use("select: add an end of a channel, by in() or out()");
      if (s.far_ == s.guards_.size())
        weft::detail::bad_use("select: all ends are of this program; weft::select is for those");
      if (s.first_ >= s.number_) weft::detail::bad_use("select: from(i): there is no guard i");
      if (std::all_of(s.guards_.begin(), s.guards_.end(),
                      [](const FarGuard& g) { return g.off; }) &&
          std::none_of(s.others_.begin(), s.others_.end(),
                       [](const Other& o) { return o.is_on(); }))
        weft::detail::none_holds();
      if (s.spans_ && s.delegated())
        weft::detail::bad_use(
            "select: a barrier can be a guard only if its program has made the channels of all "
            "other guards, and none of them is off or has ends(): make the channels there, or wait "
            "for the barrier in a process of its own");
      // A home tries guards in the order of the offer, so it cannot begin at another guard.
      if (s.first_ != 0 && !s.delegated()) s.spans_ = true;
      guards = std::span(s.guards_.begin(), s.guards_.size());
    }
    bool await_ready() {
      if (s_.simple()) return FarWait::await_ready();
      // While the process is parked it has the ops of this awaiter, so that woken() runs before the
      // coroutine does.
      struct Ops {
        Awaiter* a;
        explicit Ops(Awaiter* me) : a(me) {
          a->usual_ = a->process().ops;
          a->process().runs_by(kOps);
        }
        ~Ops() {
          if (a) a->process().runs_by(*a->usual_);
        }
      } ops(this);
      const bool over = begin_and_wait();
      if (!over) ops.a = nullptr;
      return over && weft::detail::goes_on(&process());
    }
    // Returns the index of the guard that was chosen. Throws what an operation at that guard
    // throws, and Cancelled.
    int await_resume() {
      process().op = nullptr;
      if (failure_) std::rethrow_exception(failure_);
      if (instead_ >= 0 && outcome.status == Status::cancelled && !unwanted()) return instead_;
      const std::size_t i = end_of(outcome.guard);
      const End& e = s_.ends_[i];
      if (s_.is_barrier(i)) detail::check_barrier(outcome, "select", e.number);
      look(*e.place, "select", outcome.lost ? -1 : e.number,
           [](FarWait&) { return Error::Carried{}; });
      s_.chosen_ = static_cast<int>(i);
      return e.number;
    }
    int wait(runtime::ThreadProcess& self) {
      if (s_.simple()) {
        block(self);
      } else {
        for (bool over = begin_and_wait(); !over; over = woken()) self.block(kind());
      }
      return await_resume();
    }

   private:
    std::size_t end_of(std::uint32_t guard) const noexcept {
      return order_.empty() ? guard : order_[guard];
    }
    Peer* peer() const noexcept override { return s_.ends_[s_.far_].far->peer.get(); }
    Peer* lost_peer() const noexcept override {
      return s_.ends_[end_of(outcome.guard)].far->peer.get();
    }
    bool start() override {
      if (!s_.spans_ && !looks_ && !s_.delegated()) return FarWait::start();
      if (order_.empty())
        for (std::size_t i = 0; i < s_.guards_.size(); ++i)
          order_.push_back((s_.first_ + i) % s_.guards_.size());
      if (s_.delegated()) return start_at_barriers();
      Span::Guards all;
      for (const std::size_t i : order_) {
        End& e = s_.ends_[i];
        const FarGuard& g = s_.guards_[i];
        all.push_back({e.far ? e.far->peer.get() : nullptr, e.port, g.end, g.writes, &e.room,
                       e.loud, g.off, g.later});
      }
      span_.emplace(*peer()->space, *this, std::move(all), 0, Span::kept(kinds()), looks_);
      return span_->begin();
    }
    // The home of the barriers decides. That home also decides a select that polls; such a
    // select offers its guards and withdraws them immediately.
    bool start_at_barriers() {
      for (const std::size_t i : order_) offer_.push_back(s_.guards_[i]);
      guards = offer_;
      if (FarWait::start()) return true;
      if (looks_) FarWait::stop();
      return false;
    }
    void stop() override { span_ ? span_->withdraw() : FarWait::stop(); }
    core::Kinds kinds() const {
      core::Kinds seen;
      core::Guard g;
      for (const FarGuard& x : s_.guards_) {
        g.kind = x.writes ? core::Kind::output : core::Kind::input;
        g.enabled = !x.off;
        seen.add(g);
      }
      for (const Other& o : s_.others_) {
        o.fill(g, process());
        seen.add(g);
      }
      return seen;
    }

    // --- with a timer, a process's end or a value made later: see the top of the file ---

    static constexpr std::uint32_t kNone = ~std::uint32_t{0};

    // Returns true if the select has ended. Otherwise its process waits, and woken() must be called
    // after each wake-up.
    bool begin_and_wait() {
      weft::detail::meet_request(process());
      put_in_order();
      // If order_ is empty, no home need be asked: the guard that is chosen without asking is the
      // first one.
      if (order_.empty() && instead_ >= 0) {
        outcome.status = Status::cancelled;
        return true;
      }
      {
        const Space::Step step(*peer()->space);
        if (start()) return true;
      }
      return wait_on(static_cast<std::uint32_t>(lasting_.size()) + 1);
    }
    // Decides which homes to ask, what to wait for, and which guard is chosen without waiting if no
    // home has a guard that is ready.
    void put_in_order() {
      const std::int64_t now = weft::detail::run_of(process()).now();
      std::int64_t earliest = 0;
      int skip = -1, timer = -1;
      bool asks = true;
      meanwhile_ = runtime::FixedArray<core::Guard>(s_.others_.size() + 1);
      for (std::uint32_t k = 0; k < s_.number_ && asks; ++k) {
        const auto number = static_cast<int>((s_.first_ + k) % s_.number_);
        const auto far = std::find_if(s_.ends_.begin(), s_.ends_.end(),
                                      [&](const End& e) { return e.number == number; });
        if (far != s_.ends_.end()) {
          order_.push_back(static_cast<std::size_t>(far - s_.ends_.begin()));
          continue;
        }
        const Other& o = *std::find_if(s_.others_.begin(), s_.others_.end(),
                                       [&](const Other& x) { return x.number == number; });
        if (!o.is_on()) continue;
        core::Guard& g = meanwhile_[lasting_.size() + 1];
        o.fill(g, process());
        if (g.kind == core::Kind::skip) {
          skip = skip < 0 ? number : skip;
          asks = s_.fair_;
        } else if (g.kind == core::Kind::latch && g.state() == core::State::ready) {
          instead_ = number;
          asks = false;
        } else {
          if (g.kind == core::Kind::timer && g.deadline <= now &&
              (timer < 0 || g.deadline < earliest))
            timer = number, earliest = g.deadline;
          lasting_.push_back(number);
          // This program decides whether the select has ended (rule 5.6). If the select has a
          // barrier, the barrier holds it open anyway.
          if (g.kind == core::Kind::latch && !s_.delegated()) s_.spans_ = true;
        }
      }
      if (instead_ < 0) instead_ = skip >= 0 ? skip : timer;
      looks_ = instead_ >= 0;
      if (looks_) lasting_.clear();
    }
    bool wait_on(std::uint32_t n) {
      core::Guard& word = meanwhile_[0];
      word.kind = core::Kind::latch;
      word.ops = &core::barrier_ops<core::LatchEngine<Shared>>;
      word.where = &latches_[latch_];
      select_.bind(meanwhile_.get(), n, Mode::priority, &process(), 0);
      select_.choice.reset();
      park();
      int k = select_.scan([&] { return weft::detail::run_of(process()).now(); });
      if (k == core::Select::none) k = select_.enrol();
      if (k != core::Select::parked) return heard(k);
      const int t = select_.earliest_timer();
      if (t == core::Select::none ||
          meanwhile_[static_cast<std::size_t>(t)].deadline == prim::forever)
        return false;
      timer_.deadline = meanwhile_[static_cast<std::size_t>(t)].deadline;
      timer_.choice = &select_.choice;
      weft::detail::run_of(process()).arm(timer_);
      armed_ = true;
      return false;
    }
    // Called after a wake-up, in the owner's context. Returns false if the select must wait again.
    bool woken() {
      process().op = nullptr;
      if (std::exchange(armed_, false)) weft::detail::run_of(process()).disarm(timer_);
      const int timer = select_.earliest_timer();
      const int k = select_.finish();
      return heard(k == core::Select::none ? timer : k);
    }
    bool heard(int k) {
      process().op = nullptr;
      std::uint32_t make;
      {
        const Space::Step step(*peer()->space);
        if (k > 0 && !over_ && making_ == kNone) {
          instead_ = lasting_[static_cast<std::size_t>(k) - 1];
          span_ ? span_->look_once() : stop();
        }
        if (over_) return true;
        make = std::exchange(making_, kNone);
        if (make != kNone) latch_ = 1;  // The first latch has been set.
      }
      if (make == kNone) return wait_on(1);
      try {
        s_.makers_[end_of(make)]();
      } catch (...) {
        failure_ = weft::detail::caught(process());
      }
      {
        const Space::Step step(*peer()->space);
        if (over_) return true;  // The session has ended meanwhile.
        if (failure_) {
          span_ ? span_->failed() : peer()->far.failed(*this);
          return true;
        }
        if (span_ ? span_->made() : peer()->far.made(*this)) return true;
      }
      return wait_on(1);
    }
    void committed(std::uint32_t guard) noexcept override {
      making_ = guard;
      latches_[0].set();
    }
    void over() noexcept override {
      if (s_.simple()) return FarWait::over();
      over_ = true;
      latches_[latch_].set();
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
    static runtime::ProcessBase& of_waker(core::Waker* w) noexcept {
      return *static_cast<runtime::ProcessBase*>(w);
    }
    static runtime::Executor* executor_of(runtime::ProcessBase& p) noexcept {
      return &runtime::executor_of(p);
    }
    static inline const runtime::ProcessOps kOps{{&Awaiter::wake, &Awaiter::run, nullptr, 0},
                                                 &Awaiter::executor_of};

    static void visit(runtime::ProcessBase& p, runtime::WaitVisitor& v) {
      const FarSelect& s = static_cast<Awaiter&>(of(p)).s_;
      for (std::size_t i = 0; i < s.ends_.size(); ++i)
        if (s.is_barrier(i))
          v.barrier(*s.ends_[i].place);
        else if (!s.guards_[i].off)
          v.channel(*s.ends_[i].place, s.guards_[i].writes);
    }
    static constexpr runtime::OpKind kKind{"select", &withdraw, &visit};

    FarSelect& s_;
    // The indices of the ends, in the order in which their homes are asked. The list is used for a
    // choice that spans several homes or has a barrier.
    InlineVector<std::size_t, kUsual> order_;
    std::vector<FarGuard> offer_;  // used with a barrier: the guards in that order
    bool looks_ = false;
    // The guard that is chosen if the homes answer that nothing has happened, or -1.
    int instead_ = -1;
    std::vector<int> lasting_;
    // The local guards that the process waits for: the latch, and lasting_.
    runtime::FixedArray<core::Guard> meanwhile_;
    core::Select select_;
    runtime::TimerNode timer_;
    bool armed_ = false;
    std::exception_ptr failure_;
    const core::WakerOps* usual_ = nullptr;
    // Protected by the space's lock: the guard that has committed and whose value is still to be
    // made.
    std::uint32_t making_ = kNone;
    std::uint32_t latch_ = 0;  // which of the two latches is set next
    bool over_ = false;
    core::LatchEngine<Shared> latches_[2];
    // The last member, because its destructor ends the choice if the choice is still under way.
    std::optional<Span> span_;
  };
  struct Go {
    FarSelect& s;
    Awaiter bind(runtime::ProcessBase* p) && { return Awaiter(s, p); }
  };
  // Selects; co_await the result. Returns the index of the guard that was chosen. Throws what an
  // operation at that guard throws, and Cancelled.
  [[nodiscard]] Go go() { return {*this}; }
  // Selects in a thread, and blocks the thread meanwhile. Returns and throws what go() does.
  int operator()() {
    runtime::ThreadProcess& self = weft::detail::blocking_caller("select");
    return Awaiter(*this, &self).wait(self);
  }
  // Returns the value of the input that was chosen. value() can be called once. Throws BadUse if no
  // input was chosen, or its value is of another type.
  template <class T>
  T value() {
    Room* const room = chosen_ < 0 || guards_[static_cast<std::size_t>(chosen_)].writes
                           ? nullptr
                           : ends_[static_cast<std::size_t>(chosen_)].room.get();
    if (!room || typeid(*room) != typeid(RoomOf<T>) || !room->full())
      weft::detail::bad_use(
          "value(): no input of this type was chosen, or its value was taken already");
    return static_cast<RoomOf<T>*>(room)->take();
  }
  // Returns the value of output `guard` (an index), which was not sent: another guard was chosen,
  // or the select threw (rule 5.10). unsent() can be called once. Throws BadUse if the value was
  // sent, or the guard is not an output of this type.
  template <class T>
  T unsent(int guard) {
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      Room* const room = ends_[i].room.get();
      if (ends_[i].number != guard || static_cast<int>(i) == chosen_ || !guards_[i].writes ||
          typeid(*room) != typeid(RoomOf<T>) || !room->full())
        continue;
      return static_cast<RoomOf<T>*>(room)->take();
    }
    weft::detail::bad_use(
        "unsent(): this guard is not an output of this type, or its value was sent or taken "
        "already: call unsent() once, for an output that was not chosen");
  }

 private:
  struct Other {
    int number;
    std::variant<DeadlineGuard, Skip, EndOf> guard;
    bool is_on() const {
      return std::visit([](const auto& g) { return g.enabled; }, guard);
    }
    void fill(core::Guard& g, runtime::ProcessBase& p) const {
      auto mine = guard;
      g.enabled = is_on();
      std::visit([&](auto& x) { x.fill(g, p); }, mine);
    }
  };
  // Returns whether one home decides the whole select because it has a barrier.
  bool delegated() const noexcept { return !barriers_.empty(); }
  bool is_barrier(std::size_t i) const noexcept {
    return std::find(barriers_.begin(), barriers_.end(), i) != barriers_.end();
  }
  bool simple() const noexcept { return others_.empty() && makers_.empty(); }
  FarGuard& last(const char* what) {
    if (guards_.empty() || ends_.back().number != static_cast<int>(number_) - 1)
      weft::detail::bad_use(std::string("select: ") + what +
                            "() belongs to an end: call it right after in() or out()");
    return guards_.back();
  }
  template <class T, class F>
  FarSelect& makes(FarSelect& me, F f) {
    // The room can move to the part that decides, but stays the same object.
    auto* const room = static_cast<RoomOf<T>*>(ends_.back().room.get());
    makers_.resize(guards_.size());
    makers_.back() = [room, f = std::move(f)]() mutable { room->put(f()); };
    guards_.back().later = true;
    return me;
  }
  FarSelect& far(const std::shared_ptr<FarEnd>& e, bool writes, std::unique_ptr<Room> room) {
    // If a far end is added while all ends so far are local, the select spans.
    if (far_ == guards_.size() && !ends_.empty()) spans_ = true;
    for (const End& other : ends_) {
      if (!other.far) continue;
      if (other.far->peer->space != e->peer->space)
        weft::detail::bad_use(
            "select: the ends belong to two Spaces of this program: take ends of one Space");
      spans_ = spans_ || other.far->peer != e->peer;
    }
    if (far_ == guards_.size()) far_ = ends_.size();
    return add(e, nullptr, e->place, e->number, writes, std::move(room));
  }
  template <class T, core::Side S>
  FarSelect& here(typename Reader<T>::Engine& c, std::unique_ptr<Room> room) {
    spans_ = true;
    const bool none_far = far_ == guards_.size();
    add(nullptr, std::make_shared<PortOf<T, S>>(PortOf<T, S>::another_of(c)), c, 0,
        S == core::Side::out, std::move(room));
    if (none_far) far_ = guards_.size();
    return *this;
  }
  FarSelect& add(std::shared_ptr<FarEnd> e, std::shared_ptr<Port> port, const core::SyncObject& at,
                 std::uint32_t end, bool writes, std::unique_ptr<Room> room) {
    guards_.push_back({end, writes, room.get()});
    ends_.push_back(
        {std::move(e), std::move(port), &at, std::move(room), static_cast<int>(number_++)});
    return *this;
  }

  struct End {
    std::shared_ptr<FarEnd> far;  // null if the end is local
    std::shared_ptr<Port> port;   // the port, if the end is local
    const core::SyncObject* place;
    std::unique_ptr<Room> room;
    int number;  // the end's index among all guards
    bool loud = false;
  };
  // These lists contain one element for each end, in the order in which the ends were added:
  InlineVector<End, kUsual> ends_;
  InlineVector<FarGuard, kUsual> guards_;
  std::vector<std::size_t> barriers_;          // the indices of the ends that are barriers
  std::vector<std::function<void()>> makers_;  // the functions that make the values of outputs
  std::vector<Other> others_;
  std::size_t far_ = 0;  // the index of the first far end; if there is none, the number of ends
  std::uint32_t first_ = 0, number_ = 0;
  bool fair_ = false, spans_ = false, used_ = false;
  int chosen_ = -1;  // the end that was chosen, or -1
};

}  // namespace weft::inline WEFT_ABI::wire
