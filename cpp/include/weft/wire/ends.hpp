// Ends of channels whose home is another space, for threads and coroutines.
//
//   wire::FarWriter<int> w = …;   w(7);  co_await w.write(7);
//   wire::FarReader<int> r = …;   int v = r();  int v = co_await r.read();
//
// These ends behave as Writer and Reader do (rules 1 to 4, 6), with two exceptions. A cancellation
// takes a round trip (WIRE.md 4.3). A write that throws PeerDied may be in doubt: `in_doubt` says
// that the value may have been taken (WIRE.md 8). Values pass by copy (rule 9.1).
//
// Copies share one end, which is retired when the last copy is destroyed. An operation keeps its
// session alive.
#pragma once
#include <memory>
#include <optional>

#include "../coroutine.hpp"
#include "lazily.hpp"
#include "space.hpp"

namespace weft::inline WEFT_ABI::wire {

namespace detail {

// The wait of a process while another program carries out its operation. The process waits as in
// any other operation; reports name the ends as the places where it waits.
class FarWait : public FarOp {
 public:
  bool await_ready() { return begin() && weft::detail::goes_on(process_); }
  void await_suspend(std::coroutine_handle<>) const noexcept {}

 protected:
  FarWait(runtime::ProcessBase* p, const runtime::OpKind& kind) noexcept
      : process_(p), kind_(kind) {}
  ~FarWait() = default;

  // Returns true if the process need not wait.
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
  // Waits again, after a wake-up that was not the last one.
  void park() noexcept {
    process_->place = this;
    process_->op = &kind_;
  }
  runtime::ProcessBase& process() const noexcept { return *process_; }
  const runtime::OpKind& kind() const noexcept { return kind_; }
  // Checks the outcome of an operation that has ended. Returns if the operation has committed,
  // otherwise throws. The exception names the guard with index `guard`; -1 means a plain operation.
  void look(const core::SyncObject& at, const char* verb, int guard,
            Error::Carried (*not_done)(FarWait&)) {
    process_->op = nullptr;
    if (outcome.status == Status::ok) return;
    if (outcome.status == Status::pending)
      weft::detail::bad_use(std::string(verb) + " at " + runtime::name_of(at) + ": " + refused);
    if (outcome.status == Status::cancelled)
      weft::detail::throw_cancelled(*process_, not_done(*this));
    if (!outcome.lost)
      weft::detail::throw_end(outcome.status, at, outcome.strength, verb, guard, not_done(*this));
    PeerDied e(std::string(verb) + " at " + runtime::name_of(at) + ": the peer is gone (" +
                   lost_peer()->why() + ")" +
                   (outcome.in_doubt ? "; the value may have been taken" : ""),
               guard, true);
    e.in_doubt = outcome.in_doubt;
    e.carry(not_done(*this));
    throw e;
  }
  static bool withdraw(runtime::ProcessBase& p) noexcept {
    auto& me = of(p);
    const Space::Step step(*me.peer()->space);
    // If the word is `over`, the process has been woken, and the operation has committed (rule
    // 6.3).
    if (me.word() == Word::over) return false;
    me.unwanted_ = true;
    me.stop();
    return false;  // The home's answer will wake the process.
  }
  static FarWait& of(runtime::ProcessBase& p) noexcept { return *static_cast<FarWait*>(p.place); }
  // Returns a peer that takes part in the operation. The operation uses the lock of this peer's
  // space, which is always the same.
  virtual Peer* peer() const noexcept = 0;
  // Returns the peer whose session ended, if the outcome is `lost`.
  virtual Peer* lost_peer() const noexcept { return peer(); }
  // start() and stop() are called in a step; they begin and withdraw the operation, like
  // Far::begin() and Far::withdraw().
  virtual bool start() { return peer()->far.begin(*this); }
  virtual void stop() { peer()->far.withdraw(*this); }

  void over() noexcept override { process_->ops->wake(process_); }

 protected:
  // Returns whether the process was cancelled before the operation ended. Called after the
  // operation has ended.
  bool unwanted() const noexcept { return unwanted_; }

 private:
  bool unwanted_ = false;  // protected by the space's lock
  runtime::ProcessBase* const process_;
  const runtime::OpKind& kind_;
};

// Returns the end of an operation that can be awaited once. Throws BadUse the second time.
inline std::shared_ptr<FarEnd> once(std::shared_ptr<FarEnd>& e, const char* what) {
  if (!e) weft::detail::awaited_twice(what);
  return std::move(e);
}

// One plain operation at a far end.
template <class T, core::Side S>
class FarAwaiter final : public FarWait {
 public:
  FarAwaiter(std::shared_ptr<FarEnd> e, runtime::ProcessBase* p)
      : FarWait(p, kKind), end_(std::move(e)) {
    bind_guard();
  }
  FarAwaiter(std::shared_ptr<FarEnd> e, runtime::ProcessBase* p, T v)
      : FarWait(p, kKind), room_(std::move(v)), end_(std::move(e)) {
    bind_guard();
  }
  auto await_resume() {
    look(end_->place, kVerb, -1, &not_done);
    if constexpr (S == core::Side::in) return room_.take();
  }
  // Waits in a thread.
  auto wait(runtime::ThreadProcess& self) {
    block(self);
    return await_resume();
  }

 private:
  static constexpr const char* kVerb = S == core::Side::in ? "read" : "write";
  void bind_guard() noexcept {
    // The place records which process used the end last (WIRE.md 10.6).
    (S == core::Side::in ? end_->place.last_reader : end_->place.last_writer) = process().id;
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
  static void visit(runtime::ProcessBase& p, runtime::WaitVisitor& v) {
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
  // Poisons the channel for all copies of the end. Throws BadUse if this copy is closed.
  void poison(weft::detail::Count strength = 1) const {
    const std::uint8_t s = weft::detail::strength_of(strength, "poison: the strength");
    checked("poison")->poison(s);
  }
  // Closes this copy. The last copy to be closed retires the end.
  void retire() noexcept { end_.reset(); }
  explicit operator bool() const noexcept { return static_cast<bool>(end_); }

  const std::shared_ptr<FarEnd>& checked(const char* what) const {
    if (!end_)
      weft::detail::bad_use(std::string(what) +
                            " on an end that is closed (retired, moved away or never opened)");
    return end_;
  }

 private:
  std::shared_ptr<FarEnd> end_;
};

template <class T>
struct FarExtendedOp;  // defined in held.hpp
struct Redeliver {};
inline constexpr Redeliver redeliver{};

template <class T>
class FarReader : public FarEndOf<T> {
 public:
  using FarEndOf<T>::FarEndOf;
  struct Read {
    std::shared_ptr<FarEnd> end;
    auto bind(runtime::ProcessBase* p) && {
      return detail::FarAwaiter<T, core::Side::in>(detail::once(end, "read"), p);
    }
  };
  // Reads the next value; co_await the result. Throws Retired, Poisoned, PeerDied, Cancelled,
  // BadUse.
  [[nodiscard]] Read read() const { return {this->checked("read")}; }
  // Reads a value as a FarExtended<T>; co_await the result. The writer continues when the
  // FarExtended is destroyed (rule 1.6). With `redeliver`, if this program dies before that, the
  // next reader of the channel reads this value.
  [[nodiscard]] auto extended() const {
    return FarExtendedOp<T>{this->checked("extended read"), false};
  }
  [[nodiscard]] auto extended(Redeliver) const {
    return FarExtendedOp<T>{this->checked("extended read"), true};
  }
  // Reads in a thread, and blocks the thread meanwhile. Throws what read() throws.
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
    auto bind(runtime::ProcessBase* p) && {
      return detail::FarAwaiter<T, core::Side::out>(detail::once(end, "write"), p,
                                                    std::move(value));
    }
  };
  // Writes the value; co_await the result. The operation is done when the value has been taken or
  // is in the buffer. Throws Retired, Poisoned, PeerDied and Cancelled, each with the value, and
  // BadUse.
  [[nodiscard]] Write write(T v) const { return {this->checked("write"), std::move(v)}; }
  // Writes in a thread, and blocks the thread meanwhile. Throws what write() throws.
  void operator()(T v) const {
    runtime::ThreadProcess& self = weft::detail::blocking_caller("writer(value)");
    detail::FarAwaiter<T, core::Side::out>(this->checked("write"), &self, std::move(v)).wait(self);
  }
};

}  // namespace weft::inline WEFT_ABI::wire
