// Passes descriptors that belong to frames in a ring of shared memory. Each descriptor is sent over
// the link's socket, with one byte, before its frame is published (WIRE-LINKS.md 12.4), so the
// thread that reads the frame finds the descriptor there. This file needs POSIX.
//
// Invariants
//  1 The list of descriptors to send is protected by the space's lock and is in order. No byte is
//    published that was queued after a descriptor that has not been sent.
//  2 The list of received descriptors is protected by lock_ and is in order. Descriptors are
//    received by the thread that watches the socket or by the thread that reads the frame.
#pragma once
#include <deque>
#include <mutex>

#include "segment.hpp"

namespace weft::inline WEFT_ABI::wire {

class Aside {
 public:
  // --- in a step ---

  // Takes ownership of the descriptor. `queued` bytes are to be published before it.
  void attach(int descriptor, std::size_t queued) {
    to_go_.push_back({published_ + queued, Descriptor(descriptor)});
  }
  // Sends the descriptors that are due. Returns how many bytes may be published now, or -1 if a
  // descriptor could not be sent.
  std::ptrdiff_t may_go(int socket) noexcept {
    while (!to_go_.empty()) {
      const std::byte mark{};
      const int fd = to_go_.front().descriptor.get();
      if (!ready_ || !send_descriptors(socket, Bytes(&mark, 1), std::span(&fd, 1))) {
        const bool later = !ready_ || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
        // A closed socket is not a failure here: the end of the socket is reported elsewhere.
        const bool gone = ready_ && (errno == EPIPE || errno == ECONNRESET);
        if (!later && !gone) return -1;
        waits_ = later && ready_;
        return static_cast<std::ptrdiff_t>(to_go_.front().at - published_);
      }
      to_go_.pop_front();
    }
    waits_ = false;
    return PTRDIFF_MAX;
  }
  void published(std::size_t n) noexcept { published_ += n; }
  // Called when the hand-shake has been sent. From then on descriptors can be sent.
  void begin() noexcept { ready_ = true; }
  // Returns whether the socket is full.
  bool waits() const noexcept { return waits_; }

  // --- may be called by any thread ---

  // Returns the next received descriptor, which the caller must close, or -1 if none was received.
  int next(int socket) noexcept {
    const std::lock_guard g(lock_);
    if (come_.empty()) receive_one(socket);
    if (come_.empty()) return -1;
    const int fd = come_.front().release();
    come_.pop_front();
    return fd;
  }
  // Receives everything that the socket holds. Returns false if the socket has ended, or the peer
  // has violated the protocol.
  bool receive(int socket) noexcept {
    const std::lock_guard g(lock_);
    for (;;) {
      const ssize_t n = receive_one(socket);
      if (n == 0 || come_.size() > kMaxPending) return false;
      if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    }
  }

 private:
  struct ToGo {
    // The position, among all bytes ever published, of the first byte that goes with the
    // descriptor.
    std::uint64_t at;
    Descriptor descriptor;
  };
  // The maximum number of pending descriptors. A ring cannot hold more frames than that.
  static constexpr std::size_t kMaxPending = 2048;

  ssize_t receive_one(int socket) noexcept {
    std::byte mark[64];
    std::vector<Descriptor> fds;
    const ssize_t n = receive_descriptors(socket, mark, fds);
    for (Descriptor& fd : fds) come_.push_back(std::move(fd));
    return n;
  }

  std::uint64_t published_ = 0;
  bool ready_ = false, waits_ = false;
  std::deque<ToGo> to_go_;
  std::mutex lock_;
  std::deque<Descriptor> come_;
};

}  // namespace weft::inline WEFT_ABI::wire
