// The protocol of a serial line, below a session. On such a line some bytes are lost or spoilt, and
// the peer may restart at any time (WIRE-LINKS.md 12.6). This code does no input or output and
// reads no clock. The owner of the line passes received bytes and the time to the protocol, and
// sends the bytes that the protocol produces.
//
//                  START(t, 0 or mine)        START(t, mine), or a packet under the key of both
//   seeking ──────────────────────────► heard ───────────────────────────────────────────► linked
//   says START(mine, 0)                 says START(mine, t)
//   linked ──START of another, no sign of life for a lease, no acknowledgement──► lost
//
// The bytes on the line are divided into pieces by zero bytes (COBS). A piece is a START or a
// packet. A START has these fields before COBS, with their sizes in bytes, 40 in all: checksum 4,
// `WEFTLINE` 8, mine 4, theirs 4, lease 4 (in ms), again 4 (in ms), zero 12. A packet is that of
// resend.hpp, with its checksum exclusive-or'd with the CRC-32 of {sender's token, receiver's
// token}. So a packet of another session, or an echo of this side's own packet, has a wrong
// checksum.
//
// Invariants
//  1 Bytes are queued and given to the session only while the line is linked, and all of them
//    belong to one start of one peer.
//  2 A packet is taken whole or not at all; after garbage, reading begins again at the next zero
//    byte.
#pragma once
#include <algorithm>
#include <limits>
#include <optional>

#include "resend.hpp"

namespace weft::inline WEFT_ABI::wire {

struct LineOptions {
  std::uint32_t window = 4;  // the maximum number of packets that can be under way
  // The maximum number of the session's bytes in one packet; at most 1,024.
  std::uint32_t most = 192;
  // The time in ms after which a packet without acknowledgement is sent again. Both sides use the
  // longer of their two times.
  std::uint32_t again_ms = 200;
  // The time in ms without a sign of life after which the peer counts as gone; 0 means never. Both
  // sides use the longer of their two times.
  std::uint32_t lease_ms = 3000;
};

namespace detail {

// Appends `in`, encoded without zero bytes, and then a zero byte.
inline void cobs(Bytes in, Buffer& out) {
  std::size_t at = out.size();
  std::uint8_t code = 1;
  out.push_back({});
  for (const std::byte b : in) {
    if (b != std::byte{0}) out.push_back(b), ++code;
    if (b != std::byte{0} && code != 0xFF) continue;
    out[at] = static_cast<std::byte>(code);
    at = out.size();
    code = 1;
    out.push_back({});
  }
  out[at] = static_cast<std::byte>(code);
  out.push_back({});
}
// Decodes the bytes between two zero bytes. Returns false if they are not valid COBS.
inline bool uncobs(Bytes in, Buffer& out) {
  out.clear();
  while (!in.empty()) {
    const auto code = std::to_integer<std::size_t>(in[0]);
    if (code == 0 || code > in.size()) return false;
    put(out, in.subspan(1, code - 1));
    in = in.subspan(code);
    if (code != 0xFF && !in.empty()) out.push_back({});
  }
  return true;
}

class Line {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  static constexpr std::size_t kStart = 40, kMaxPayload = 1024, kLargest = 32'768;

  // Makes the protocol of one line. `token` is random and not 0. If `again_most_ms` is not 0, the
  // link has only one session (WIRE-LINKS.md 13.3): its peer never restarts, and can leave received
  // bytes unacknowledged for as long as it runs. While nothing is acknowledged, the time before
  // packets are sent again doubles, up to this limit; and a packet can have kLargest bytes.
  Line(const LineOptions& o, std::uint32_t token, std::uint32_t again_most_ms = 0)
      : options_(o),
        again_most_(again_most_ms),
        most_(std::clamp<std::size_t>(o.most, 1, again_most_ms == 0 ? kMaxPayload : kLargest)),
        longest_(cobbed(Resender::kPacketHeader + std::max(most_, kMaxPayload))),
        mine_(token),
        again_(o.again_ms),
        lease_(o.lease_ms) {}

  // Returns whether the START that is sent while no peer is known does not contain the byte 3. A
  // MicroPython board whose program has not begun takes that byte for Ctrl-C.
  bool is_gentle() {
    Buffer line;
    start(line);
    return std::find(line.begin(), line.end(), std::byte{3}) == line.end();
  }

  bool linked() const noexcept { return resender_.has_value() && !lost_; }
  // Returns the reason why the line is lost; null if it is not lost.
  const char* lost() const noexcept { return lost_; }
  // Returns whether all bytes that were queued are acknowledged.
  bool settled() const noexcept { return !resender_ || resender_->under_way() == 0; }

  // While the hold is on, received packets are not acknowledged.
  void hold(bool on) noexcept {
    holds_ = on;
    if (resender_) resender_->hold(on);
  }
  // Returns whether output() has put off an acknowledgement.
  bool owes() const noexcept { return linked() && resender_->owes(); }
  // Resends at once everything that is not acknowledged. Called when the carrier below works again.
  void hurry(std::int64_t now) {
    wait_ = again_;
    if (!settled()) again_at_ = now;
  }

  // Queues as many of these bytes as there is room for. Returns how many it has queued.
  std::size_t queue(Bytes out) { return linked() ? resender_->queue(out) : 0; }

  // Accepts bytes that were received from the line. Appends bytes of the session to `session`.
  void input(Bytes in, std::int64_t now, Buffer& session) {
    for (const std::byte b : in) {
      if (b != std::byte{0}) {
        if (piece_.size() <= longest_) piece_.push_back(b);
        continue;
      }
      if (!piece_.empty() && piece_.size() <= longest_ && uncobs(piece_, packet_))
        packet(now, session);
      piece_.clear();
    }
  }
  // Appends the bytes that are to be sent now. If `patient` is true, acknowledgements that can go
  // with the next packet wait for it; the caller must soon call again with `patient` false.
  void output(std::int64_t now, Buffer& line, bool patient = false) {
    if (lost_) return;
    if (says_start_ || (!linked() && now >= start_at_)) {
      says_start_ = false;
      start_at_ = now + again_;
      start(line);
    }
    if (!linked()) return;
    if (lease_ != 0 && now >= beat_at_) resender_->beat();
    while (resender_->next(packet_, patient)) {
      mark(key(mine_, theirs_));
      cobs(packet_, line);
      beat_at_ = now + lease_ / 3;
    }
    if (settled())
      again_at_ = kNever;
    else if (again_at_ == kNever)
      again_at_ = now + wait_;
  }
  // Receives the current time, in ms: sends again what was not acknowledged, and can end a lease.
  void passed(std::int64_t now) {
    if (!linked()) return;
    if (lease_ != 0 && now - heard_at_ >= lease_) lost_ = "nothing was heard of it for the lease";
    if (now < again_at_) return;
    again_at_ = kNever;
    wait_ = std::min(2 * wait_, std::max(again_most_, again_));
    if (!resender_->waited() && again_most_ == 0) lost_ = "it acknowledges nothing";
  }
  // Returns the time, in ms, at which output() or passed() has something to do.
  std::int64_t due() const noexcept {
    if (lost_) return kNever;
    if (!linked()) return says_start_ ? 0 : start_at_;
    const std::int64_t lease = lease_ == 0 ? kNever : std::min(beat_at_, heard_at_ + lease_);
    return says_start_ ? 0 : std::min(again_at_, lease);
  }

 private:
  static constexpr char kMagic[] = "WEFTLINE";

  // Returns the maximum size of n bytes in COBS, without the zero at the end.
  static constexpr std::size_t cobbed(std::size_t n) noexcept { return n + n / 254 + 2; }

  static std::uint32_t key(std::uint32_t from, std::uint32_t to) noexcept {
    std::array<std::byte, 8> b{};
    for (std::size_t i = 0; i < 4; ++i) {
      b[i] = static_cast<std::byte>(from >> (8 * i));
      b[4 + i] = static_cast<std::byte>(to >> (8 * i));
    }
    return crc32(b);
  }
  void mark(std::uint32_t key) noexcept {
    for (std::size_t i = 0; i < 4; ++i) packet_[i] ^= static_cast<std::byte>(key >> (8 * i));
  }
  void start(Buffer& line) {
    Buffer rest;
    put(rest, std::as_bytes(std::span(kMagic, 8)));
    for (const std::uint32_t n : {mine_, theirs_, options_.lease_ms, options_.again_ms, 0u, 0u, 0u})
      put(rest, n);
    packet_.clear();
    put(packet_, crc32(rest));
    put(packet_, Bytes(rest));
    cobs(packet_, line);
  }

  void packet(std::int64_t now, Buffer& session) {
    if (lost_) return;
    const Bytes p = packet_;
    if (p.size() == kStart && get<std::uint32_t>(p.data()) == crc32(p.subspan(4)) &&
        std::memcmp(p.data() + 4, kMagic, 8) == 0)
      return started(now);
    if (theirs_ == 0 || p.size() < Resender::kPacketHeader) return;
    mark(key(theirs_, mine_));
    if (get<std::uint32_t>(p.data()) != crc32(p.subspan(4))) return;
    if (!resender_) link(now);
    heard_at_ = now;
    knows_me_ = true;
    unnamed_at_ = kNever;
    const std::uint32_t before = resender_->under_way();
    resender_->input(p, session);
    if (resender_->under_way() == before) return;
    wait_ = again_;
    again_at_ = settled() ? kNever : now + again_;
  }
  void started(std::int64_t now) {
    const auto field = [this](std::size_t i) {
      return get<std::uint32_t>(packet_.data() + 12 + 4 * i);
    };
    const std::uint32_t from = field(0), to = field(1);
    if (from == 0 || from == mine_) return;  // The START is an echo of this side's own.
    if (linked()) {
      // Either the peer has drawn the same token again, or the peer sent this START before it knew
      // this side, and its later packets have overtaken the START. The second case occurs once, and
      // packets follow.
      const bool unnamed = knows_me_ && to == 0;
      if (from == theirs_ && unnamed && unnamed_at_ == kNever) {
        unnamed_at_ = now;
        return;
      }
      if (from != theirs_ || (unnamed && now - unnamed_at_ >= again_ / 2)) {
        if (again_most_ == 0) lost_ = "it has started anew";
        return;
      }
      if (unnamed) return;
      heard_at_ = now;
      says_start_ = says_start_ || to != mine_;
      return;
    }
    says_start_ = true;
    // If `to` is another token, the START is meant for an earlier program; this side's START
    // corrects the peer.
    if (to != 0 && to != mine_) return;
    theirs_ = from;
    lease_ = options_.lease_ms == 0 || field(2) == 0
                 ? 0
                 : std::max(options_.lease_ms, std::min(field(2), std::uint32_t{3'600'000}));
    again_ = std::max(options_.again_ms, std::min(field(3), std::uint32_t{60'000}));
    if (to == mine_) link(now);
  }
  void link(std::int64_t now) {
    const std::uint32_t patience =
        lease_ == 0 ? 0xFFFF'FFFFu : 10 + 2 * (lease_ / std::max(again_, std::uint32_t{1}));
    resender_.emplace(options_.window, most_, patience);
    resender_->hold(holds_);
    wait_ = again_;
    heard_at_ = now;
    beat_at_ = now + lease_ / 3;
  }

  const LineOptions options_;
  // The maximum of `wait_` in ms; 0 if this is not a link of one session.
  const std::uint32_t again_most_;
  // The maximum number of the session's bytes in a packet; the maximum size of a packet in COBS.
  const std::size_t most_, longest_;
  const std::uint32_t mine_;
  std::uint32_t theirs_ = 0;  // the peer's token; 0 if no peer has been noticed
  // wait_ is the time before packets are sent again: `again_`, or a doubling of it.
  std::uint32_t again_, lease_, wait_ = 0;
  std::optional<Resender> resender_;  // has a value once the line is linked
  const char* lost_ = nullptr;
  bool says_start_ = false, holds_ = false;
  // Whether a packet of the peer has arrived. From then on the peer's START names this side, unless
  // the peer has restarted.
  bool knows_me_ = false;
  // The arrival time of a START that did not name this side and that no packet has followed.
  std::int64_t unnamed_at_ = kNever;
  std::int64_t start_at_ = 0, again_at_ = kNever, heard_at_ = 0, beat_at_ = 0;
  Buffer piece_, packet_;
};

}  // namespace detail
}  // namespace weft::inline WEFT_ABI::wire
