// Passes descriptors beside the bytes of a Unix socket. This file needs POSIX.
//
// Invariant: a descriptor is sent with the first byte that was queued after it, and arrives with
// that byte or before it.
#pragma once
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>

#include "frame.hpp"

namespace weft::inline WEFT_ABI::wire::detail {

class Descriptors {
 public:
  Descriptors() = default;
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  ~Descriptors() {
    for (const Attached& a : attached_) ::close(a.descriptor);
    for (const int fd : arrived_) ::close(fd);
  }

  // Takes ownership of the descriptor. `queued` bytes are to be sent before it.
  void attach(int descriptor, std::size_t queued) {
    attached_.push_back({sent_ + queued, descriptor});
  }
  // Returns the next received descriptor, which the caller must close, or -1 if none was received.
  int next() noexcept {
    if (arrived_.empty()) return -1;
    const int fd = arrived_.front();
    arrived_.pop_front();
    return fd;
  }

  // The two functions below act as send(2) and recv(2) do, and never block.
  ssize_t send(int socket, Bytes out) noexcept {
    std::array<int, kAtOnce> due;  // the descriptors that go with the next byte
    std::size_t n_due = 0;
    while (n_due < attached_.size() && n_due < kAtOnce && attached_[n_due].at <= sent_) {
      due[n_due] = attached_[n_due].descriptor;
      ++n_due;
    }
    if (n_due < attached_.size()) {
      const std::uint64_t next = attached_[n_due].at;
      out = out.first(std::min<std::size_t>(
          out.size(), next > sent_ ? static_cast<std::size_t>(next - sent_) : 1));
    }
    const ssize_t n = n_due == 0 ? ::send(socket, out.data(), out.size(), kHow)
                                 : send_with(socket, out, std::span(due).first(n_due));
    if (n <= 0) return n;
    sent_ += static_cast<std::uint64_t>(n);
    for (; n_due > 0; --n_due) {
      ::close(attached_.front().descriptor);
      attached_.pop_front();
    }
    return n;
  }
  ssize_t receive(int socket, std::span<std::byte> room) {
    iovec bytes{room.data(), room.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(kAtOnce * sizeof(int))];
    msghdr m = message(bytes, control, sizeof(control));
    const ssize_t n = ::recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) return n;
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      for (std::size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
        if (arrived_.size() < kMaxWaiting)
          arrived_.push_back(fd);
        else
          ::close(fd);  // The peer has sent more descriptors than its frames have asked for.
      }
    }
    return n;
  }

 private:
  struct Attached {
    // The position, among all bytes ever sent, of the first byte that goes with the descriptor.
    std::uint64_t at;
    int descriptor;
  };
  // The maximum number of received descriptors that can wait for their frame: two OFFERs with as
  // many guards as are allowed.
  static constexpr std::size_t kMaxWaiting = 512;
  static constexpr std::size_t kAtOnce = 16;  // descriptors in one message
  static constexpr int kHow = MSG_NOSIGNAL | MSG_DONTWAIT;

  static msghdr message(iovec& bytes, char* control, std::size_t size) noexcept {
    msghdr m{};
    m.msg_iov = &bytes;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = static_cast<decltype(m.msg_controllen)>(size);
    return m;
  }
  static ssize_t send_with(int socket, Bytes out, std::span<const int> descriptors) noexcept {
    iovec bytes{const_cast<std::byte*>(out.data()), out.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(kAtOnce * sizeof(int))] = {};
    const msghdr m = message(bytes, control, CMSG_SPACE(descriptors.size_bytes()));
    cmsghdr* const c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size_bytes());
    return ::sendmsg(socket, &m, kHow);
  }

  std::uint64_t sent_ = 0;
  std::deque<Attached> attached_;
  std::deque<int> arrived_;
};

}  // namespace weft::inline WEFT_ABI::wire::detail
