// Go-back-n retransmission, below a session on a link that loses, doubles, delays, reorders or
// spoils what it carries (WIRE-LINKS.md 13). This code does no input or output and reads no clock:
// a link passes received packets to it, asks it for packets to send, and calls waited() when a
// resend interval has passed.
//
//   sender:    [ acknowledged ][ window: sent, kept ][ not sent yet ]      base ──ack(n), base < n ≤ next──► n
//   receiver:  takes a packet if it is the next; acknowledges what was taken so far, whatever comes
//              hold(true): does not acknowledge what is taken from now on ──hold(false)──► that too
//
// A packet consists of these fields, with their sizes in bytes: checksum 4 (CRC-32 of all that
// follows), number 4, acknowledged 4 (all packets below this number), length 2, flags 2 (1 says
// that the packet has a number and bytes), and the bytes. Numbers wrap.
//
// Invariants
//  1 next − base ≤ window; the kept packets are those from base to next, in order.
//  2 The bytes that input() gives are those that the peer queued, from the first on, each once.
#pragma once
#include <array>
#include <deque>

#include "../prim.hpp"
#include "frame.hpp"

namespace weft::inline WEFT_ABI::wire::detail {

inline std::uint32_t crc32(Bytes in) noexcept {  // IEEE 802.3, reflected
  static constexpr auto kTable = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = c & 1 ? 0xEDB88320u ^ c >> 1 : c >> 1;
      t[i] = c;
    }
    return t;
  }();
  std::uint32_t c = 0xFFFFFFFFu;
  for (const std::byte b : in) c = kTable[(c ^ std::to_integer<std::uint32_t>(b)) & 0xFF] ^ c >> 8;
  return ~c;
}

class Resender {
 public:
  static constexpr std::size_t kPacketHeader = 16;

  // Begins a link. `window` is the maximum number of packets under way, `most` the maximum number
  // of the session's bytes in one packet, `patience` the number of resend intervals without an
  // acknowledgement after which the link is lost.
  explicit Resender(std::uint32_t window = 4, std::size_t most = 1024, std::uint32_t patience = 50,
                    std::uint32_t first = 0) noexcept
      : window_(window),
        most_(most),
        patience_(patience),
        base_(first),
        next_(first),
        due_(first),
        seen_(first) {}

  // Queues as many of these bytes as there is room for. Returns how many it has queued.
  std::size_t queue(Bytes out) {
    std::size_t took = 0;
    while (took < out.size() && next_ - base_ < window_) {
      const Bytes piece = out.subspan(took, std::min(most_, out.size() - took));
      kept_.emplace_back(piece.begin(), piece.end());
      ++next_;
      took += piece.size();
    }
    return took;
  }
  // Makes the next packet to send. Returns false if there is none. If `patient` is true, an
  // acknowledgement that could go with the next packet waits for it, until a quarter of a window is
  // not acknowledged.
  bool next(Buffer& packet, bool patient = false) {
    if (sent_ < kept_.size()) {
      make(packet, base_ + static_cast<std::uint32_t>(sent_), kept_[sent_], 1);
      ++sent_;
      return true;
    }
    if (!owes_ || (patient && untold_ < window_ / 4)) return false;
    make(packet, 0, {}, 0);
    return true;
  }
  // Sends again what is not acknowledged. Called when a resend interval has passed. Returns false
  // if `patience` intervals have passed without an acknowledgement, and the link is lost.
  bool waited() noexcept {
    if (kept_.empty()) return true;
    sent_ = 0;
    return ++whiles_ < patience_;
  }
  // Makes this side send an acknowledgement, so that the peer knows that this side is alive.
  void beat() noexcept { owes_ = true; }
  // While the hold is on, received packets are not acknowledged, so the peer sends at most one
  // window more.
  void hold(bool on) noexcept {
    if (on == holds_) return;
    holds_ = on;
    told_ = due_;
    owes_ = owes_ || !on;
  }
  // Returns whether an acknowledgement of received packets is still owed to the peer.
  bool owes() const noexcept { return owes_; }
  // Accepts a received packet, and appends the bytes of the session that are due. Anything that is
  // not a packet is ignored: the sender will send again.
  void input(Bytes packet, Buffer& in) {
    if (packet.size() < kPacketHeader ||
        get<std::uint32_t>(packet.data()) != crc32(packet.subspan(4)))
      return;
    const auto number = get<std::uint32_t>(packet.data() + 4),
               acknowledged = get<std::uint32_t>(packet.data() + 8);
    const auto length = get<std::uint16_t>(packet.data() + 12),
               flags = get<std::uint16_t>(packet.data() + 14);
    if (flags > 1 || packet.size() != kPacketHeader + length) return;
    acknowledge(acknowledged);
    if (!flags) return;
    owes_ = true;
    const std::uint32_t ahead = number - due_;
    if (number - seen_ < 0x8000'0000u) seen_ = number + 1;
    if (ahead == 0) {
      put(in, packet.subspan(kPacketHeader));
      due_ = number + 1;
      ++untold_;
    }
  }
  bool idle() const noexcept { return kept_.empty() && !owes_; }
  std::uint32_t under_way() const noexcept { return next_ - base_; }

 private:
  void acknowledge(std::uint32_t n) noexcept {
    const std::uint32_t moves = n - base_;
    if (moves > next_ - base_) return;
    if (moves == 0) return;
    base_ = n;
    whiles_ = 0;
    const std::size_t goes = std::min<std::size_t>(moves, kept_.size());
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(goes));
    sent_ -= std::min(sent_, goes);
  }
  void make(Buffer& packet, std::uint32_t number, Bytes bytes, std::uint16_t flags) {
    owes_ = false;
    untold_ = 0;
    packet.clear();
    put(packet, std::uint32_t{0});
    put(packet, number);
    put(packet, holds_ ? told_ : due_);
    put(packet, static_cast<std::uint16_t>(bytes.size()));
    put(packet, flags);
    put(packet, bytes);
    const std::uint32_t sum = crc32(Bytes(packet).subspan(4));
    for (std::size_t i = 0; i < 4; ++i) packet[i] = static_cast<std::byte>(sum >> (8 * i) & 0xFF);
  }

  const std::uint32_t window_;
  const std::size_t most_;
  const std::uint32_t patience_;
  // For the sender: the number of the oldest packet without acknowledgement, and the next number.
  std::uint32_t base_, next_;
  std::deque<Buffer> kept_;
  std::size_t sent_ = 0;  // how many of kept_ were sent since the last waited()
  std::uint32_t whiles_ = 0;
  // For the receiver: the next number that it accepts; one more than the highest received number.
  std::uint32_t due_, seen_;
  bool owes_ = false;  // an acknowledgement is owed
  bool holds_ = false;
  // While the hold is on: the number up to which packets are acknowledged.
  std::uint32_t told_ = 0;
  std::uint32_t untold_ = 0;  // packets accepted since the last acknowledgement was sent
};

}  // namespace weft::inline WEFT_ABI::wire::detail
