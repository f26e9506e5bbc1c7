// The ready list of a standing alternative: which of its channels may have become ready while the
// alternative was not waiting.
//
// An arriving party, with the channel's lock held, queues itself, calls mark(), and then reads the
// alternative's word again: if the word is WAITING, the party claims it. The owner, with no lock
// held, sets the word to WAITING if the list is empty, and then reads the list again: if the list
// is not empty, the owner takes WAITING back. Both second reads are needed. All four accesses are
// sequentially consistent, so at least one side sees the other.
#pragma once
#include "policy.hpp"
#include "waiter.hpp"

namespace weft::inline WEFT_ABI::core {

struct ReadyLink : Link {};

struct StandingNode : Node, ReadyLink {
  // ReadyLink, the node's second link, is its link in the ready list (protected by the ready list's
  // lock).
  bool marked = false;  // whether the node is in the ready list (under the ready list's lock)
  // The guard of this node has found only foreign readers or watches, which must be notified once
  // the select waits. Only the owner uses this member.
  bool contested = false;
  StandingNode() = default;
  StandingNode(const StandingNode&) = delete;
  StandingNode& operator=(const StandingNode&) = delete;
};

class StandingChoice : public Choice {
 public:
  void mark(StandingNode* n) noexcept {
    lock_.lock();
    if (!n->marked) {
      n->marked = true;
      list_.push_back(static_cast<ReadyLink*>(n));
      some_.store(1, std::memory_order_seq_cst);
    }
    lock_.unlock();
  }

  StandingNode* pop() noexcept {
    if (!some()) return nullptr;
    lock_.lock();
    StandingNode* n = nullptr;
    if (Link* l = list_.front()) {
      n = static_cast<StandingNode*>(static_cast<ReadyLink*>(l));
      list_.erase(l);
      n->marked = false;
    }
    if (list_.empty()) some_.store(0, std::memory_order_seq_cst);
    lock_.unlock();
    return n;
  }

  void forget(StandingNode* n) noexcept {
    lock_.lock();
    if (n->marked) list_.erase(static_cast<ReadyLink*>(n));
    n->marked = false;
    if (list_.empty()) some_.store(0, std::memory_order_seq_cst);
    lock_.unlock();
  }

  bool some() const noexcept { return some_.load(std::memory_order_seq_cst) != 0; }

 private:
  SpinLock lock_;  // acquired while a channel's lock is held; no lock is acquired under this one
  Queue list_;
  prim::atomic<std::uint32_t> some_{0};
};

inline void mark_ready(Node* n) noexcept {
  static_cast<StandingChoice*>(n->choice_)->mark(static_cast<StandingNode*>(n));
}

}  // namespace weft::inline WEFT_ABI::core
