// Extended reads (rule 1.6). The writer continues when the object x is destroyed:
//
//   { auto x = co_await r.extended(); log(*x); }
//
// The reader's node holds the writer after the read, while the process performs other operations.
// Therefore the node is not the process's own, but belongs to a choice with one guard, inside the
// scope object.
#pragma once
#include "alt.hpp"

namespace weft::inline WEFT_ABI {

template <class T, class P = Shared>
class Extended {
 public:
  using Engine = detail::EngineOf<T, P>;

  Extended(const Extended&) = delete;
  Extended& operator=(const Extended&) = delete;
  ~Extended() {
    if (!state_) return;
    WEFT_POINT(touches(*core_, runtime::Access::all));
    core_->end_extended(state_->guards[0].node);
    state_->slot.value.~T();
    detail::release<T, P>(core_);
  }
  // These operators access the value. Both throw BadUse if the object was moved from.
  T& operator*() { return there().slot.value; }
  T* operator->() { return &there().slot.value; }

  // The state of the scope. Its address stays the same while the scope object is moved out of the
  // awaiter.
  struct State {
    using Value = bool;
    static constexpr bool computes = false;
    static constexpr bool shared = P::shared;
    Engine* c;
    core::Guard guards[1];
    detail::Slot<T> slot;
    core::Select engine;

    explicit State(Engine* to) : c(to) {
      guards[0].kind = core::Kind::input;
      guards[0].ends = true;
      guards[0].ops = &core::channel_ops<Engine, core::Side::in>;
      guards[0].where = c;
      guards[0].node.slot = &slot;
      guards[0].node.set(core::NodeFlags::extended);
    }
    std::uint32_t size() const noexcept { return 1; }
    core::Guard* data() noexcept { return guards; }
    void passed(std::size_t, runtime::Passed& v) noexcept { v.at(*c, false); }
    Value take(std::size_t) noexcept { return true; }
    Status compute(std::size_t) noexcept { return Status::ok; }
    [[noreturn]] void raise(std::size_t, Status s) { detail::throw_end_of(c, s, "extended read"); }
  };
  Extended(Extended&& o) noexcept : core_(o.core_), state_(std::move(o.state_)) {}
  Extended(Engine* c, std::unique_ptr<State> s) noexcept : core_(c), state_(std::move(s)) {
    core_->references.up();
  }

  struct Awaiter {
    std::unique_ptr<State> state;
    detail::SelectAwaiter<State, core::Select> inner;
    Awaiter(Engine* c, runtime::ProcessBase* p)
        : state(prepared(c, p)), inner(*state, state->engine, p) {}
    bool await_ready() { return inner.await_ready(); }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    Extended await_resume() {
      inner.await_resume();
      Engine* const c = state->c;
      return Extended(c, std::move(state));
    }
  };
  static std::unique_ptr<State> prepared(Engine* c, runtime::ProcessBase* p) {
    auto s = std::make_unique<State>(c);
    s->engine.bind(s->guards, 1, Mode::fair, p, 0);
    return s;
  }

 private:
  State& there() {
    if (!state_) [[unlikely]]
      detail::bad_use("this extended read was moved away: use the one to which it was moved");
    return *state_;
  }
  Engine* core_;
  std::unique_ptr<State> state_;
};

template <class T, class P>
struct ExtendedOp {
  detail::EngineOf<T, P>* core;
  typename Extended<T, P>::Awaiter bind(runtime::ProcessBase* p) const { return {core, p}; }
  // Reads from a thread, which is blocked until the read is done. Throws what a plain read throws.
  Extended<T, P> operator()(detail::Here at = detail::Here::now()) const {
    runtime::ThreadProcess& self = detail::blocking_caller("extended()()");
    const detail::ThreadCall call(self, at);
    auto s = Extended<T, P>::prepared(core, &self);
    detail::select_in_thread(*s, s->engine, at);
    return Extended<T, P>(core, std::move(s));
  }
};

}  // namespace weft::inline WEFT_ABI
