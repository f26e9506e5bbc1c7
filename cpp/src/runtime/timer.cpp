// The definitions of runtime/timer.hpp.
#include <weft/runtime/timer.hpp>

namespace weft::inline WEFT_ABI::runtime {

void TimerHeap::add(TimerNode& t) {
  pop_ = &take_first;
  t.order = next_order_++;
  *static_cast<TimerNode**>(more(1, sizeof(TimerNode*))) = &t;
  up(size() - 1);
}

void TimerHeap::remove(TimerNode& t) noexcept {
  if (t.at == TimerNode::unset) return;
  const std::size_t i = t.at;
  t.at = TimerNode::unset;
  TimerNode* last = heap()[size() - 1];
  pop_back();
  if (last == &t) return;
  put(i, last);
  up(i);
  down(last->at);
}

TimerNode* TimerHeap::take_first(TimerHeap& h) noexcept {
  TimerNode* t = h.heap()[0];
  h.remove(*t);
  return t;
}

bool TimerHeap::before(const TimerNode* a, const TimerNode* b) noexcept {
  return a->deadline != b->deadline ? a->deadline < b->deadline : a->order < b->order;
}

void TimerHeap::put(std::size_t i, TimerNode* t) noexcept {
  heap()[i] = t;
  t->at = static_cast<std::uint32_t>(i);
}

void TimerHeap::up(std::size_t i) noexcept {
  TimerNode* t = heap()[i];
  for (; i > 0; i = (i - 1) / 2) {
    TimerNode* parent = heap()[(i - 1) / 2];
    if (!before(t, parent)) break;
    put(i, parent);
  }
  put(i, t);
}

void TimerHeap::down(std::size_t i) noexcept {
  TimerNode* t = heap()[i];
  const std::size_t n = size();
  for (;;) {
    std::size_t child = 2 * i + 1;
    if (child >= n) break;
    if (child + 1 < n && before(heap()[child + 1], heap()[child])) ++child;
    if (!before(heap()[child], t)) break;
    put(i, heap()[child]);
    i = child;
  }
  put(i, t);
}

}  // namespace weft::inline WEFT_ABI::runtime
