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
#include <memory>
#include <optional>

#include "../coroutine.hpp"
#include "space.hpp"

namespace weft::inline WEFT_ABI::wire {

// An end, for all its copies here.
class FarEnd {
 public:
  FarEnd(std::shared_ptr<Peer> p, const Peer::Offered& o) : peer(std::move(p)), number(o.end) {
    place.name = weft::detail::intern(o.name.c_str());
  }
  FarEnd(const FarEnd&) = delete;
  FarEnd& operator=(const FarEnd&) = delete;
  ~FarEnd() { close(false); }

  void close(bool died) {
    const Space::Step step(*peer->space);
    if (std::exchange(open_, false)) peer->retire(number, died);
  }
  void poison(std::uint8_t strength) {
    const Space::Step step(*peer->space);
    if (open_) peer->poison(number, strength);
  }

  const std::shared_ptr<Peer> peer;
  const std::uint32_t number;
  core::Place place;

 private:
  bool open_ = true;
};

namespace detail {

// One plain operation of a process. Waits as any other does; its place in reports is the end's.
template <class T, core::Side S>
class FarAwaiter final : public FarOp {
 public:
  FarAwaiter(std::shared_ptr<FarEnd> e, runtime::ProcessBase* p) : end_(std::move(e)), process_(p) { bind_guard(); }
  FarAwaiter(std::shared_ptr<FarEnd> e, runtime::ProcessBase* p, T v) : room_(std::move(v)), end_(std::move(e)), process_(p) {
    bind_guard();
  }

  // True: it need not wait.
  bool begin() {
    weft::detail::meet_request(*process_);
    process_->place = this;
    process_->op = &kKind;
    const Space::Step step(*end_->peer->space);
    return end_->peer->far.begin(*this);
  }
  bool await_ready() { return begin(); }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  auto await_resume() { return finish(); }

  auto finish() {
    process_->op = nullptr;
    switch (outcome.status) {
      case Status::ok:
        if constexpr (S == core::Side::in)
          return room_.take();
        else
          return;
      case Status::pending: weft::detail::bad_use("a value that does not fit into a frame of the session: send it in pieces");
      case Status::cancelled: weft::detail::throw_cancelled(*process_, not_done());
      default: break;
    }
    if (outcome.status == Status::died && !end_->peer->session.why().empty()) {
      PeerDied e(std::string(kVerb) + " at " + runtime::name_of(end_->place) + ": the peer is gone (" + end_->peer->session.why() + ")" +
                     (outcome.in_doubt ? "; the value may have been taken" : ""),
                 -1, true);
      e.in_doubt = outcome.in_doubt;
      e.carry(not_done());
      throw e;
    }
    weft::detail::throw_end(outcome.status, end_->place, outcome.strength, kVerb, -1, not_done());
  }

  // In a thread.
  auto block(runtime::ThreadProcess& self) {
    if (!begin()) self.block(kKind);
    return finish();
  }

 private:
  static constexpr const char* kVerb = S == core::Side::in ? "read" : "write";
  void bind_guard() noexcept {
    guard_ = {end_->number, S == core::Side::out, &room_};
    guards = std::span(&guard_, 1);
  }
  Error::Carried not_done() {
    if constexpr (S == core::Side::out)
      return Error::Carried::of(room_.take());
    else
      return {};
  }
  void over() noexcept override { process_->ops->wake(process_); }
  static bool withdraw(runtime::ProcessBase& p) noexcept {
    auto* const me = static_cast<FarAwaiter*>(p.place);
    const Space::Step step(*me->end_->peer->space);
    me->end_->peer->far.withdraw(*me);
    return false;  // the answer will wake it
  }
  static void visit(runtime::ProcessBase& p, runtime::Places& v) {
    v.channel(static_cast<FarAwaiter*>(p.place)->end_->place, S == core::Side::out);
  }
  static constexpr runtime::OpKind kKind{kVerb, &withdraw, &visit};

  RoomOf<T> room_;
  const std::shared_ptr<FarEnd> end_;
  runtime::ProcessBase* const process_;
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

 protected:
  const std::shared_ptr<FarEnd>& checked(const char* what) const {
    if (!end_) weft::detail::bad_use(std::string(what) + " on an end that is closed (retired, moved away or never opened)");
    return end_;
  }

 private:
  std::shared_ptr<FarEnd> end_;
};

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
  // The same in a thread.
  T operator()() const {
    runtime::ThreadProcess& self = weft::detail::blocking_caller("reader()");
    return detail::FarAwaiter<T, core::Side::in>(this->checked("read"), &self).block(self);
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
    detail::FarAwaiter<T, core::Side::out>(this->checked("write"), &self, std::move(v)).block(self);
  }
};

}  // namespace weft::inline WEFT_ABI::wire
