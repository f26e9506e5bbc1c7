// Timers: one heap for each run, over the steady or the virtual clock (rules 8.5 and 8.6). A timer
// competes with the guards for the word of a choice.
#pragma once
#include <cstdint>
#include <vector>

#include "../core/waiter.hpp"

namespace weft::inline WEFT_ABI::runtime {

// Returns the time `span` ns after `now`; prim::forever, which is never reached, if that time is at
// or beyond the end of the clock (rule 8.5).
constexpr std::int64_t later(std::int64_t now, std::int64_t span) noexcept {
  std::int64_t at = 0;
  if (!__builtin_add_overflow(now, span, &at)) return at;
  return span > 0 ? prim::forever : INT64_MIN;
}

struct TimerNode {
  static constexpr std::uint32_t unset = UINT32_MAX;
  std::int64_t deadline = 0;       // in ns on the run's clock
  core::Choice* choice = nullptr;  // the choice whose word becomes TIMED_OUT if it is still WAITING
  // Timers with equal deadlines fire in the order in which they were set.
  std::uint64_t order = 0;
  std::uint32_t at = unset;  // the timer's index in the heap
};

// A binary heap of pointers. A timer knows its place in the heap, so that removal is O(log n).
class TimerHeap {
 public:
  bool empty() const noexcept { return heap_.empty(); }
  std::int64_t earliest() const noexcept { return empty() ? prim::forever : heap_[0]->deadline; }

  void add(TimerNode& t);
  void remove(TimerNode& t) noexcept;
  // Drops the timers of choices that have another outcome and whose owners have not removed the
  // timers yet (such as a writer that an extended read holds).
  void drop_dead() noexcept {
    // A word that is LOCKED can become WAITING again.
    while (!empty() && heap_[0]->choice->word() > core::LOCKED) pop();
  }
  TimerNode* pop() noexcept;

 private:
  static bool before(const TimerNode* a, const TimerNode* b) noexcept;
  void put(std::size_t i, TimerNode* t) noexcept;
  void up(std::size_t i) noexcept;
  void down(std::size_t i) noexcept;

  std::vector<TimerNode*> heap_;
  std::uint64_t next_order_ = 0;
};

}  // namespace weft::inline WEFT_ABI::runtime
