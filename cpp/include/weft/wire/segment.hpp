// Memory that two programs share: without a name, of a fixed size, there at once (WIRE.md 12.4).
// Linux.
//
// A memfd is sealed against shrinking and growing, so nobody can take pages away under somebody who
// reads them; its pages are allocated when it is made, so that a lack of memory is an error and not
// SIGBUS. One that came from a peer is mapped only if it is such a one.
#pragma once
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <utility>

#include "../errors.hpp"
#include "descriptor.hpp"
#include "frame.hpp"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace weft::inline WEFT_ABI::wire {

class Segment {
 public:
  Segment() = default;
  Segment(Segment&& o) noexcept : at_(std::exchange(o.at_, nullptr)), size_(o.size_) {}
  Segment& operator=(Segment&& o) noexcept {
    std::swap(at_, o.at_);
    std::swap(size_, o.size_);
    return *this;
  }
  ~Segment() {
    if (at_) ::munmap(at_, size_);
  }

  enum class Peers : std::uint8_t { write, read };
  // Makes one and maps it; `peers`: what those may do to whom its descriptor is passed. Throws
  // BadUse if there is no memory, or no descriptor.
  static Segment make(std::size_t size, Peers peers, Descriptor& passed) {
    // More than there is can be promised: what tries to have it is killed, or another is.
    if (size > static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                   static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 2)
      errno = ENOMEM, no_room(size);
    Descriptor fd(::memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd.get() < 0 || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) no_room(size);
    if (int wrong; (wrong = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(size))) != 0)
      errno = wrong, no_room(size);
    Segment s;
    s.size_ = size;
    s.at_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (s.at_ == MAP_FAILED) s.at_ = nullptr, no_room(size);
    if (::fcntl(fd.get(), F_ADD_SEALS,
                F_SEAL_SHRINK | F_SEAL_GROW | (peers == Peers::read ? F_SEAL_FUTURE_WRITE : 0)) !=
        0)
      no_room(size);
    passed = std::move(fd);
    return s;
  }
  // Maps a peer's. Null, or what is wrong with it; kNoRoom is for us to mend, not for them.
  static constexpr char kNoRoom[] = "a segment for which this program has no memory";
  static const char* map(const Descriptor& fd, std::size_t size, Peers we, Segment& out) {
    struct stat st;
    struct statfs fs;
    if (::fstat(fd.get(), &st) != 0 || ::fstatfs(fd.get(), &fs) != 0)
      return "a descriptor that is none";
    const int seals = ::fcntl(fd.get(), F_GET_SEALS);
    if (!S_ISREG(st.st_mode) || fs.f_type != TMPFS_MAGIC || seals < 0)
      return "a descriptor that is no segment of memory";
    if ((seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
      return "a segment that is not sealed against shrinking and growing";
    if (st.st_size != static_cast<off_t>(size)) return "a segment of another size than was agreed";
    if (we == Peers::write && ::posix_fallocate(fd.get(), 0, static_cast<off_t>(size)) != 0)
      return kNoRoom;
    out.size_ = size;
    out.at_ = ::mmap(nullptr, size, we == Peers::write ? PROT_READ | PROT_WRITE : PROT_READ,
                     MAP_SHARED, fd.get(), 0);
    if (out.at_ == MAP_FAILED) return out.at_ = nullptr, kNoRoom;
    return nullptr;
  }

  std::byte* data() const noexcept { return static_cast<std::byte*>(at_); }
  std::size_t size() const noexcept { return size_; }
  explicit operator bool() const noexcept { return at_ != nullptr; }

 private:
  [[noreturn]] static void no_room(std::size_t size) {
    weft::detail::bad_use("a segment of " + std::to_string(size) +
                          " bytes cannot be had: " + std::strerror(errno));
  }
  void* at_ = nullptr;
  std::size_t size_ = 0;
};

// Bytes and descriptors over a Unix socket, in one message. False: the socket does not take it.
inline bool send_descriptors(int socket, Bytes bytes, std::span<const int> fds) noexcept {
  constexpr std::size_t kMost = 4;
  iovec v{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMost * sizeof(int))] = {};
  if (fds.size() > kMost) return false;
  msghdr m{};
  m.msg_iov = &v;
  m.msg_iovlen = 1;
  if (!fds.empty()) {
    m.msg_control = control;
    m.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
  }
  return ::sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size());
}
// One such message: how many bytes, as recvmsg(2). All descriptors that came are taken over, also
// too many.
inline ssize_t receive_descriptors(int socket, std::span<std::byte> bytes,
                                   std::vector<Descriptor>& fds) {
  iovec v{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))];
  msghdr m{};
  m.msg_iov = &v;
  m.msg_iovlen = 1;
  m.msg_control = control;
  m.msg_controllen = sizeof(control);
  const ssize_t n = ::recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0) return n;
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return n;
}

}  // namespace weft::inline WEFT_ABI::wire
