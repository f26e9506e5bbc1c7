// The definitions of runtime/timer.hpp.
#include <weft/runtime/timer.hpp>

namespace weft::inline WEFT_ABI::runtime {

void TimerHeap::add(TimerNode& t) {
  heap_.push_back(&t);
  t.order = next_order_++;
  up(heap_.size() - 1);
}

void TimerHeap::remove(TimerNode& t) noexcept {
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

TimerNode* TimerHeap::pop() noexcept {
  TimerNode* t = heap_[0];
  remove(*t);
  return t;
}

bool TimerHeap::before(const TimerNode* a, const TimerNode* b) noexcept {
  return a->deadline != b->deadline ? a->deadline < b->deadline : a->order < b->order;
}

void TimerHeap::put(std::size_t i, TimerNode* t) noexcept {
  heap_[i] = t;
  t->at = static_cast<std::uint32_t>(i);
}

void TimerHeap::up(std::size_t i) noexcept {
  TimerNode* t = heap_[i];
  for (; i > 0; i = (i - 1) / 2) {
    TimerNode* parent = heap_[(i - 1) / 2];
    if (!before(t, parent)) break;
    put(i, parent);
  }
  put(i, t);
}

void TimerHeap::down(std::size_t i) noexcept {
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

}  // namespace weft::inline WEFT_ABI::runtime
