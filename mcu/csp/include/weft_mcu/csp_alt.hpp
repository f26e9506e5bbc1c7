// weft_mcu/csp_alt.hpp: choice over several channels, and a deadline.
//
//   Alternative<2> alt;
//   alt.input(0, a, x);  alt.output(1, b, &y);
//   switch (co_await alt.select_until(deadline)) { case 0: … case 1: … case alt.timed_out: … }
//
// Invariant: between two selects no guard's node is in a waiting queue and the event is in no
// queue. While a select is pending, its process sleeps.
#pragma once
#include "weft_mcu/csp_channel.hpp"

// This header must come after the header above, which names the platform's primitives.
#include "weft/core/select.hpp"

namespace weft::inline WEFT_ABI::mcu {

template <std::uint32_t N>
class Alternative {
 public:
  static constexpr int timed_out = -1;

  // Makes an alternative. Mode::fair serves the guards in turn, Mode::priority prefers the lowest
  // index, and Mode::random takes any ready guard (rule 5.4).
  explicit Alternative(Mode mode = Mode::fair) noexcept : mode_(mode) {}
  Alternative(const Alternative&) = delete;
  Alternative& operator=(const Alternative&) = delete;

  // Sets guard i: read from `in` into `to`, or write what `from` points to when the guard is
  // chosen. `to` and `*from` must live as long as the alternative is used.
  template <class T>
  void input(std::uint32_t i, const Reader<T>& in, T& to) noexcept {
    guard(i, core::Kind::input, &core::channel_ops<ChannelEngine<T>, Side::in>, in.core(), &to);
  }
  template <class T>
  void output(std::uint32_t i, const Writer<T>& out, T* from) noexcept {
    guard(i, core::Kind::output, &core::channel_ops<ChannelEngine<T>, Side::out>, out.core(), from);
  }
  // Sets the precondition of guard i for the following selects (rule 5.2).
  void enable(std::uint32_t i, bool on) noexcept { guards_[i].enabled = on; }
  // Makes the retirement of guard i's channel an outcome of the select, as poison always is.
  // Without this call the guard falls silent when its channel retires, and the select ends once
  // all guards that decide are silent: the enabled outputs, or the inputs if there are none (rule
  // 5.6).
  void ends(std::uint32_t i, bool yes = true) noexcept { guards_[i].ends = yes; }
  // Returns the outcome of the chosen guard: ok, or how its channel has ended. `retired` without
  // ends() means that all deciding guards are silent.
  Status status() const noexcept { return select_.status(); }

  // Selects; co_await the result, which is the index of the chosen guard.
  [[nodiscard]] auto select() noexcept { return Awaiter<false>{this, 0}; }
  // Does what select() does, but returns `timed_out` at the microsecond `deadline`. A ready guard
  // is chosen even after the deadline.
  [[nodiscard]] auto select_until(std::uint32_t deadline) noexcept {
    return Awaiter<true>{this, deadline};
  }

 private:
  template <bool Limited>
  struct Awaiter {
    Alternative* alt;
    std::uint32_t deadline;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(Process::Handle h) noexcept {
#if WEFT_FLIGHT
      if (alt->begin(&h.promise(), Limited, deadline)) {
        h.promise().note_waits(nullptr, WEFT_FLIGHT_SELECT);
        return true;
      }
      h.promise().note_over(alt->place(), alt->op(), alt->status(), true);
      return h.promise().gives_way();
#else
      return alt->begin(&h.promise(), Limited, deadline) || h.promise().gives_way();
#endif
    }
    int await_resume() noexcept {
#if WEFT_FLIGHT
      alt->chosen_ = alt->finish();
      alt->me_->note_goes_on(alt->place(), alt->op(), alt->status(), alt->place() != nullptr);
      return alt->chosen_;
#else
      return alt->finish();
#endif
    }
  };
#if WEFT_FLIGHT
  // What the flight recorder shows of the outcome (rule M24).
  const void* place() const noexcept { return chosen_ < 0 ? nullptr : guards_[chosen_].where; }
  std::uint32_t op() const noexcept {
    if (chosen_ < 0) return WEFT_FLIGHT_SELECT;
    return guards_[chosen_].kind == core::Kind::input ? WEFT_FLIGHT_SELECT_INPUT
                                                      : WEFT_FLIGHT_SELECT_OUTPUT;
  }
#endif

  void guard(std::uint32_t i, core::Kind kind, const core::GuardOps *ops, core::SyncObject *where,
             void *slot) noexcept {
    core::Guard& g = guards_[i];
    g.kind = kind;
    g.ops = ops;
    g.where = where;
    g.node.slot = slot;
    g.enabled = where != nullptr;
  }

  bool begin(Process::promise_type* me, bool limited, std::uint32_t deadline) noexcept {
    select_.bind(guards_, N, mode_, me, select_.next_start());
    select_.choice.reset();
    me_ = me;
    event_.action = nullptr;
    chosen_ = select_.scan([] { return std::int64_t{0}; });
    if (chosen_ == core::Select::none) {
      if (limited && detail::is_past(deadline)) {
        chosen_ = timed_out;
        return false;
      }
      chosen_ = select_.enrol();
    }
    if (chosen_ != core::Select::parked) return false;
    if (limited) {
      event_.until = deadline;
      event_.post(me->scheduler(), select_.choice);
    }
    return true;
  }
  int finish() noexcept {
    if (chosen_ != core::Select::parked) return chosen_;
    if (event_.action) event_.end(me_->scheduler());
    return select_.finish();  // If no guard was chosen, the index is timed_out.
  }
  static_assert(core::Select::none == timed_out);

  core::Guard guards_[N];
  core::Select select_;
  detail::Deadline event_{0};
  Process::promise_type* me_ = nullptr;
  int chosen_ = 0;
  Mode mode_;
};

}  // namespace weft::mcu
