// How a thread that only carries bytes waits for input of a connection (WIRE-NETWORKS.md 17.25). A
// CPU that sleeps often takes longer to wake than an answer takes to arrive. So such a thread polls
// before it sleeps, as long as polling pays (runtime/waiting.hpp).
//
//   poll() ──there is input──► over
//     └──polls, and yields its CPU──input comes──► came()
//                                ├──in vain──► sleeps ──input comes──► slept()
//                                └──a yield took long: the next waits do not poll
//
// If the thread shares its CPU with the peer, or with a thread that it has just woken, it yields
// the CPU at once.
#pragma once
#include <poll.h>

#include <algorithm>
#include <utility>

#include "../runtime/waiting.hpp"

namespace weft::inline WEFT_ABI::wire::detail {

class Lookout {
 public:
  // Waits like ::poll(). Only one thread uses a Lookout.
  int poll(pollfd* fds, nfds_t n, int ms) noexcept {
    int found = ::poll(fds, n, 0);
    if (found != 0 || ms == 0) return found;
    const std::int64_t began = prim::now();
    if (giving_way_.worth_trying()) found = look(fds, n, began);
    if (found != 0) return found;
    const std::int64_t waited = (prim::now() - began) / 1'000'000;
    found = ::poll(fds, n, ms < 0 ? ms : static_cast<int>(std::max<std::int64_t>(ms - waited, 0)));
    if (found > 0) spin_time_.slept(prim::now() - began);
    return found;
  }

 private:
  int look(pollfd* fds, nfds_t n, std::int64_t began) noexcept {
    const std::int64_t until = began + spin_time_.now();
    std::int64_t now = began, longest = 0;
    int found = 0;
    while (found == 0 && now < until) {
      prim::yield();
      found = ::poll(fds, n, 0);
      const std::int64_t before = std::exchange(now, prim::now());
      longest = std::max(longest, now - before);
    }
    giving_way_.took(longest);
    found > 0 ? spin_time_.came(now - began) : spin_time_.in_vain();
    return found;
  }

  runtime::SpinTime spin_time_;
  runtime::GivingWay giving_way_;
};

}  // namespace weft::inline WEFT_ABI::wire::detail
