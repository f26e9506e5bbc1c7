// An intrusive doubly linked queue that is one word. Its links belong to their owners; the queue
// allocates nothing.
//
// The head's `prev` is the tail, the tail's `next` is null. So a queue is one word: a channel has
// two queues, and there may be many channels. Invariants: a link is in at most one queue; outside a
// queue its pointers mean nothing. The word of a queue is the address of its head plus kTag (in an
// empty queue kTag alone), so that its owner can use the same word for something else at times
// (waiting_queues.hpp).
#pragma once
#include <cstdint>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::core {

struct Link {
  Link* next = nullptr;
  Link* prev = nullptr;
};

class Queue {
 public:
  // On 32-bit machines only two bits of an address are free.
  static constexpr std::uintptr_t kTag = alignof(Link) >= 8 ? 4 : 3;

  bool empty() const noexcept { return word_ == kTag; }
  Link* front() const noexcept { return reinterpret_cast<Link*>(word_ - kTag); }

  void push_back(Link* n) noexcept {
    n->next = nullptr;
    if (Link* const head = front()) {
      Link* tail = head->prev;
      tail->next = n;
      n->prev = tail;
      head->prev = n;
    } else {
      n->prev = n;
      begin_with(n);
    }
  }

  // Inserts n before `at`, or at the end if `at` is null.
  void insert_before(Link* at, Link* n) noexcept {
    if (!at) return push_back(n);
    n->next = at;
    n->prev = at->prev;
    if (at == front())
      begin_with(n);
    else
      at->prev->next = n;
    at->prev = n;
  }

  void pop_front() noexcept {
    Link* n = front()->next;
    if (n) n->prev = front()->prev;
    begin_with(n);
  }

  void erase(Link* n) noexcept {
    if (n == front()) return pop_front();
    n->prev->next = n->next;
    (n->next ? n->next : front())->prev = n->prev;
  }

  std::uintptr_t word() const noexcept { return word_; }
  void set_word(std::uintptr_t w) noexcept { word_ = w; }

 private:
  void begin_with(Link* n) noexcept { word_ = reinterpret_cast<std::uintptr_t>(n) + kTag; }

  std::uintptr_t word_ = kTag;
};

}  // namespace weft::inline WEFT_ABI::core
