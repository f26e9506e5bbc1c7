// Descriptors that go with the bytes of a Unix socket. POSIX.
//
// Invariant: a descriptor leaves with the first byte that was queued after it, and comes with that byte or before.
#pragma once
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
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

  // Takes it over; `queued` bytes are to go before it.
  void attach(int descriptor, std::size_t queued) { attached_.push_back({sent_ + queued, descriptor}); }
  // The next that has come, for the caller to close; -1: none.
  int next() noexcept {
    if (arrived_.empty()) return -1;
    const int fd = arrived_.front();
    arrived_.pop_front();
    return fd;
  }

  // As send(2) and recv(2), without waiting.
  ssize_t send(int socket, Bytes out) noexcept {
    int descriptor = -1;
    if (!attached_.empty()) {
      const std::uint64_t before = attached_.front().at - sent_;
      if (before == 0)
        descriptor = attached_.front().descriptor;
      else
        out = out.first(std::min<std::size_t>(out.size(), static_cast<std::size_t>(before)));
    }
    const ssize_t n = descriptor < 0 ? ::send(socket, out.data(), out.size(), kHow) : send_with(socket, out, descriptor);
    if (n <= 0) return n;
    sent_ += static_cast<std::uint64_t>(n);
    if (descriptor >= 0) {
      ::close(descriptor);
      attached_.pop_front();
    }
    return n;
  }
  ssize_t receive(int socket, std::span<std::byte> room) {
    iovec bytes{room.data(), room.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(kMost * sizeof(int))];
    msghdr m = message(bytes, control, sizeof(control));
    const ssize_t n = ::recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) return n;
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      for (std::size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
        if (arrived_.size() < kMost)
          arrived_.push_back(fd);
        else
          ::close(fd);  // more than anybody asked for
      }
    }
    return n;
  }

 private:
  struct Attached {
    std::uint64_t at;  // of all bytes ever sent, the number of the first that goes with it
    int descriptor;
  };
  static constexpr std::size_t kMost = 16;  // that have come and wait for their frame
  static constexpr int kHow = MSG_NOSIGNAL | MSG_DONTWAIT;

  static msghdr message(iovec& bytes, char* control, std::size_t size) noexcept {
    msghdr m{};
    m.msg_iov = &bytes;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = static_cast<decltype(m.msg_controllen)>(size);
    return m;
  }
  static ssize_t send_with(int socket, Bytes out, int descriptor) noexcept {
    iovec bytes{const_cast<std::byte*>(out.data()), out.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    const msghdr m = message(bytes, control, sizeof(control));
    cmsghdr* const c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &descriptor, sizeof(int));
    return ::sendmsg(socket, &m, kHow);
  }

  std::uint64_t sent_ = 0;
  std::deque<Attached> attached_;
  std::deque<int> arrived_;
};

}  // namespace weft::inline WEFT_ABI::wire::detail
