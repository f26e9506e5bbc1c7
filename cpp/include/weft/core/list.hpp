// Intrusive doubly linked queue of one word. Links belong to their owners; the queue allocates nothing.
//
// The head's `prev` is the tail, the tail's `next` is null: a channel is two such queues, and channels are many.
// Invariant: a link is in at most one queue; its pointers are meaningless outside.
#pragma once

namespace weft::core {

struct Link {
  Link* next = nullptr;
  Link* prev = nullptr;
};

class Queue {
 public:
  bool empty() const noexcept { return head_ == nullptr; }
  Link* front() const noexcept { return head_; }

  void push_back(Link* n) noexcept {
    n->next = nullptr;
    if (head_) {
      Link* tail = head_->prev;
      tail->next = n;
      n->prev = tail;
      head_->prev = n;
    } else {
      n->prev = n;
      head_ = n;
    }
  }

  // `at` null: at the end.
  void insert_before(Link* at, Link* n) noexcept {
    if (!at) return push_back(n);
    n->next = at;
    n->prev = at->prev;
    if (at == head_)
      head_ = n;
    else
      at->prev->next = n;
    at->prev = n;
  }

  void pop_front() noexcept {
    Link* n = head_->next;
    if (n) n->prev = head_->prev;
    head_ = n;
  }

  void erase(Link* n) noexcept {
    if (n == head_) return pop_front();
    n->prev->next = n->next;
    (n->next ? n->next : head_)->prev = n->prev;
  }

 private:
  Link* head_ = nullptr;
};

}  // namespace weft::core
