// Peers that owe an answer. An operation at a far end that is given up (a cancellation, a time that
// has come) is over with its home's answer (WIRE.md 4.3, 5.9): where the peer is stopped none comes,
// and who waits for it is told of after the time of a standstill (rule 10.6), once for each peer.
//
//   nothing ──owes()──► ticks: looks at all who owe ──none is left──► nothing
//
// Invariants
//  1 What a peer owes is under its space's lock, the list of those peers under lock_. Nobody takes a
//    space's lock with lock_ held; the reverse is done.
//  2 It is never destroyed: its thread may look while the program ends.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "../runtime/process.hpp"
#include "../threads.hpp"
#include "space.hpp"

namespace weft::inline WEFT_ABI::wire::detail {

class Unanswered {
 public:
  // In a step: this process waits for the peer's answer; it has come.
  static void owes(Peer& p, const runtime::ProcessBase& waits) noexcept {
    try {
      if (p.owed.empty()) p.answered_at = prim::now();
      p.owed.push_back(&waits);
      if (!std::exchange(p.watched, true)) all().watch(p.weak_from_this());
    } catch (...) {  // without memory, or a thread, nothing is told
    }
  }
  static void answered(Peer& p, const runtime::ProcessBase& waits) noexcept {
    std::erase(p.owed, &waits);
    p.answered_at = prim::now();
  }

 private:
  static Unanswered& all() {
    static auto& u = *new Unanswered;
    return u;
  }
  void watch(std::weak_ptr<Peer> p) {
    const std::lock_guard g(lock_);
    peers_.push_back(std::move(p));
    if (!std::exchange(thread_, true)) std::thread([this] { tick(); }).detach();
    some_.notify_one();
  }
  [[noreturn]] void tick() {
    std::vector<std::weak_ptr<Peer>> look, left;
    for (;;) {
      std::chrono::nanoseconds patience;
      {
        std::unique_lock l(lock_);
        peers_.insert(peers_.end(), left.begin(), left.end());
        left.clear();
        some_.wait(l, [this] { return !peers_.empty(); });
        patience = std::chrono::nanoseconds(runtime::patience().load());
        some_.wait_for(l, patience.count() > 0 ? patience / 2 : std::chrono::seconds(1),
                       [] { return false; });
        look.swap(peers_);
      }
      for (const std::weak_ptr<Peer>& w : look)
        if (const std::shared_ptr<Peer> p = w.lock(); p && still_owes(*p, patience.count()))
          left.push_back(w);
      look.clear();
    }
  }
  static bool still_owes(Peer& p, std::int64_t patience) {
    std::string told;
    {
      const Space::Step step(*p.space);
      p.watched = !p.owed.empty();
      if (!p.watched) return false;
      if (patience > 0 && prim::now() - p.answered_at >= patience &&
          !std::exchange(p.owing_told, true))
        told = runtime::path_of(*p.owed.front()) + " has given up what it waits for at the peer '" +
               p.session.theirs().name +
               "', which does not answer: is that program stopped? It waits on";
    }
    if (!told.empty()) std::fprintf(stderr, "weft: %s\n", told.c_str());
    return true;
  }

  std::mutex lock_;
  std::condition_variable some_;
  std::vector<std::weak_ptr<Peer>> peers_;
  bool thread_ = false;
};

}  // namespace weft::inline WEFT_ABI::wire::detail
