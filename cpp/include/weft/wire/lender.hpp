// Lends part of a channel to the one peer that may write to it: the free slots of a buffer (WIRE.md
// 6.2, 6.3), or at a rendezvous the place of a reader that waits (6.6). A lender works at the
// channel's home.
//
//   a write's DONE ──► lent ──notified(): half is free again, or any slot and the peer waits──CREDIT──► lent
//                        ├──notified(): another party would write, or the channel has ended──RECALL──►
//                        │     recalled ──close()──► over
//                        └──close(): RECALLED unasked, the end is given back, the session is over──► over
//   at a rendezvous:  go_on() ──a reader waits──CREDIT──► lent ──put()──► queued again
//                                            └──crossed(): an OFFER did not know of it──► over
//
// Invariants (the space's lock)
//  1 `lent_` slots are reserved in the channel. They correspond to the credits that the peer has,
//    and to the credits on their way to or from the peer.
//  2 While the lender is in the channel's queue, or its wake-up is under way, it keeps itself
//    alive.
#pragma once
#include "home.hpp"

namespace weft::inline WEFT_ABI::wire {

class Lender final : public Decided, public std::enable_shared_from_this<Lender> {
 public:
  // Makes a lender that begins with n slots that are already lent; the answer to a write announces
  // them to the peer.
  Lender(Home& h, Session& s, std::uint32_t end, std::shared_ptr<Port> p, std::uint32_t n);

  std::uint32_t lent() const noexcept { return lent_; }
  // Makes the lender lend again whenever enough slots are free.
  void go_on();
  // Handles a WANT, which says that a write of the peer waits for a credit.
  void want();
  // Handles a PUT. Returns null, or a text that says what is wrong with it.
  const char* put(Payload value, Carrier& by);
  // Handles an OFFER at this end. Returns true if this is a rendezvous and the peer did not yet
  // know of a credit that is under way; the lender has then ended.
  bool crossed();
  // Returns whether the lender has ended. At a rendezvous it then lends nothing more.
  bool is_over() const noexcept { return over_; }
  // Gives everything that is still lent back to the channel, and sends nothing more to the peer.
  void close();
  void notified() noexcept override;

 private:
  Session& session_;
  Home& home_;
  const std::uint32_t end_;
  const std::shared_ptr<Port> port_;
  std::shared_ptr<Lender> me_;  // not null while the lender is queued, or woken
  std::uint32_t lent_;
  bool wanted_ = false, recalled_ = false, over_ = false;
};

}  // namespace weft::inline WEFT_ABI::wire
