// Intrusive doubly linked queue. Links belong to their owners; the queue allocates nothing.
//
// Invariant: a link is in at most one queue; its pointers are meaningless outside.
#pragma once

namespace weft::core {

struct Link {
  Link* next = nullptr;
  Link* prev = nullptr;
};

// Null-terminated (not circular), so that an empty queue is two null words and a channel can be moved before it is used.
class Queue {
 public:
  bool empty() const noexcept { return head_ == nullptr; }
  Link* front() const noexcept { return head_; }

  void push_back(Link* n) noexcept {
    n->next = nullptr;
    n->prev = tail_;
    if (tail_)
      tail_->next = n;
    else
      head_ = n;
    tail_ = n;
  }

  void push_front(Link* n) noexcept {
    n->prev = nullptr;
    n->next = head_;
    if (head_)
      head_->prev = n;
    else
      tail_ = n;
    head_ = n;
  }

  void insert_before(Link* at, Link* n) noexcept {
    if (!at) return push_back(n);
    n->next = at;
    n->prev = at->prev;
    if (at->prev)
      at->prev->next = n;
    else
      head_ = n;
    at->prev = n;
  }

  void erase(Link* n) noexcept {
    if (n->prev)
      n->prev->next = n->next;
    else
      head_ = n->next;
    if (n->next)
      n->next->prev = n->prev;
    else
      tail_ = n->prev;
  }

 private:
  Link* head_ = nullptr;
  Link* tail_ = nullptr;
};

}  // namespace weft::core
