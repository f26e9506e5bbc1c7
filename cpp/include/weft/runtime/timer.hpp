// Timers: one heap per run, over the steady or the virtual clock (rules 8.5 and 8.6). A timer competes for the word of a choice.
#pragma once
#include <cstdint>
#include <vector>

#include "../core/waiter.hpp"

namespace weft::inline WEFT_ABI::runtime {

// The time `span` ns after `now`; prim::forever, which never comes, if that lies at or beyond the end of the clock (rule 8.5).
constexpr std::int64_t later(std::int64_t now, std::int64_t span) noexcept {
  std::int64_t at = 0;
  if (!__builtin_add_overflow(now, span, &at)) return at;
  return span > 0 ? prim::forever : INT64_MIN;
}

struct TimerNode {
  static constexpr std::uint32_t unset = UINT32_MAX;
  std::int64_t deadline = 0;       // ns on the run's clock
  core::Choice* choice = nullptr;  // becomes TIMED_OUT if it is still WAITING
  std::uint64_t order = 0;         // equal deadlines fire in the order in which they were set
  std::uint32_t at = unset;        // in the heap
};

// A binary heap of pointers; a node knows its place, so that removal is O(log n).
class TimerHeap {
 public:
  bool empty() const noexcept { return heap_.empty(); }
  std::int64_t earliest() const noexcept { return heap_.empty() ? prim::forever : heap_[0]->deadline; }

  void add(TimerNode& t) {
    t.order = next_order_++;
    heap_.push_back(&t);
    up(heap_.size() - 1);
  }
  void remove(TimerNode& t) noexcept {
    if (t.at == TimerNode::unset) return;
    const std::size_t i = t.at;
    t.at = TimerNode::unset;
    TimerNode* last = heap_.back();
    heap_.pop_back();
    if (last == &t) return;
    put(i, last);
    up(i);
    down(last->at);
  }
  // Timers of those that were decided otherwise and have not come to take them away (a writer held by an extended read).
  void drop_dead() noexcept {
    while (!heap_.empty() && heap_[0]->choice->word() > core::LOCKED) pop();  // LOCKED may become WAITING again
  }
  TimerNode* pop() noexcept {
    TimerNode* t = heap_[0];
    remove(*t);
    return t;
  }

 private:
  static bool before(const TimerNode* a, const TimerNode* b) noexcept {
    return a->deadline != b->deadline ? a->deadline < b->deadline : a->order < b->order;
  }
  void put(std::size_t i, TimerNode* t) noexcept {
    heap_[i] = t;
    t->at = static_cast<std::uint32_t>(i);
  }
  void up(std::size_t i) noexcept {
    TimerNode* t = heap_[i];
    for (; i > 0; i = (i - 1) / 2) {
      TimerNode* parent = heap_[(i - 1) / 2];
      if (!before(t, parent)) break;
      put(i, parent);
    }
    put(i, t);
  }
  void down(std::size_t i) noexcept {
    TimerNode* t = heap_[i];
    const std::size_t n = heap_.size();
    for (;;) {
      std::size_t child = 2 * i + 1;
      if (child >= n) break;
      if (child + 1 < n && before(heap_[child + 1], heap_[child])) ++child;
      if (!before(heap_[child], t)) break;
      put(i, heap_[child]);
      i = child;
    }
    put(i, t);
  }

  std::vector<TimerNode*> heap_;
  std::uint64_t next_order_ = 0;
};

}  // namespace weft::inline WEFT_ABI::runtime
