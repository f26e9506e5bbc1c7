// Memory that two programs share. It has no name and a fixed size, and its pages are allocated when
// it is made (WIRE-LINKS.md 12.4). This file needs Linux.
//
// A memfd is sealed against shrinking and growing, so no program can take pages away while another
// reads them. Its pages are allocated when it is made, so that a lack of memory is an error and not
// SIGBUS. A memfd that a peer has sent is mapped only if it is sealed in this way.
#pragma once
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <algorithm>
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
  // Makes a segment and maps it. `peers` says what programs that receive its descriptor may do with
  // it. `passed` receives the descriptor. Throws BadUse if there is no memory or no descriptor.
  static Segment make(std::size_t size, Peers peers, Descriptor& passed) {
    Segment s;
    if (const int wrong = try_make(size, peers, s, passed)) no_room(size, wrong);
    return s;
  }
  // Makes a segment and maps it, like make(), but returns 0 or the system's error.
  static int try_make(std::size_t size, Peers peers, Segment& made, Descriptor& passed) {
    if (more_than_there_is(size)) return ENOMEM;
    Descriptor fd(::memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd.get() < 0 || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return errno;
    if (const int wrong = allocate(fd.get(), size)) return wrong;
    Segment s;
    if (const int wrong = s.take(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get())) return wrong;
    if (::fcntl(fd.get(), F_ADD_SEALS,
                F_SEAL_SHRINK | F_SEAL_GROW | (peers == Peers::read ? F_SEAL_FUTURE_WRITE : 0)) !=
        0)
      return errno;
    made = std::move(s);
    passed = std::move(fd);
    return 0;
  }
  // Makes a segment whose bytes from `front` on are a copy of `b`, and does not map it. Returns 0
  // or the system's error. Writing to new pages by pwrite(2) takes less time than through a
  // mapping.
  static int try_fill(Bytes b, std::size_t front, Descriptor& made) {
    const std::size_t size = std::max<std::size_t>(front + b.size(), 1);
    if (more_than_there_is(size)) return ENOMEM;
    Descriptor fd(::memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd.get() < 0 || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return errno;
    if (const int wrong = allocate(fd.get(), std::max<std::size_t>(front, 1))) return wrong;
    if (const int wrong = refill(fd, b, front)) return wrong;
    if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return errno;
    made = std::move(fd);
    return 0;
  }
  // Writes these bytes into a segment, from `front` on. Returns 0 or the system's error.
  static int refill(const Descriptor& fd, Bytes b, std::size_t front) noexcept {
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    for (std::size_t at = 0; at < b.size();) {
      const ssize_t n = ::pwrite(fd.get(), b.data() + at, std::min(kPiece, b.size() - at),
                                 static_cast<off_t>(front + at));
      if (n < 0 && errno != EINTR) return errno;
      if (n > 0) at += static_cast<std::size_t>(n);
    }
    return 0;
  }
  // Maps the first bytes of a segment, which other programs may write to. Returns whether that
  // succeeded.
  static bool map_front(const Descriptor& fd, std::size_t front, Segment& out) noexcept {
    return out.take(front, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get()) == 0;
  }
  // Returns whether this error of try_make() means that the system has no memory of this kind, or
  // that a container's profile refuses it. All other errors mean a lack of memory or of
  // descriptors.
  static bool refused(int error) noexcept {
    return error != 0 && error != ENOMEM && error != ENOSPC && error != EMFILE && error != ENFILE;
  }
  // Makes a copy of these bytes that only this program has, and that is never written again. Throws
  // BadUse if there is no memory.
  static Segment alone(Bytes b, std::size_t size) {
    if (more_than_there_is(size)) no_room(size, ENOMEM);
    Segment s;
    if (const int wrong =
            s.take(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1))
      no_room(size, wrong);
    if (!b.empty()) std::memcpy(s.at_, b.data(), b.size());
    (void)::mprotect(s.at_, size, PROT_READ);
    return s;
  }
  // Maps a peer's segment. Returns null, or a text that says what is wrong. kNoRoom is a fault of
  // this program, not of the peer.
  static constexpr char kNoRoom[] = "a segment for which this program has no memory";
  static const char* map(const Descriptor& fd, std::size_t size, Peers we, Segment& out) {
    struct stat st;
    struct statfs fs;
    if (::fstat(fd.get(), &st) != 0 || ::fstatfs(fd.get(), &fs) != 0)
      return "a descriptor that is not open";
    const int seals = ::fcntl(fd.get(), F_GET_SEALS);
    if (!S_ISREG(st.st_mode) || fs.f_type != TMPFS_MAGIC || seals < 0)
      return "a descriptor that is not of a segment of memory";
    if ((seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
      return "a segment that is not sealed against shrinking and growing";
    if (st.st_size != static_cast<off_t>(size)) return "a segment of another size than was agreed";
    if (we == Peers::write && allocate(fd.get(), size) != 0) return kNoRoom;
    return out.take(size, we == Peers::write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                    fd.get())
               ? kNoRoom
               : nullptr;
  }

  std::byte* data() const noexcept { return static_cast<std::byte*>(at_); }
  std::size_t size() const noexcept { return size_; }
  explicit operator bool() const noexcept { return at_ != nullptr; }

  [[noreturn]] static void no_room(std::size_t size, int error) {
    weft::detail::bad_use("no shared memory of " + std::to_string(size) +
                          " bytes: " + std::strerror(error) +
                          ": free memory, or raise the limit of open descriptors");
  }

 private:
  // Returns whether the size is more than half of the machine's memory. A system can promise more
  // memory than it has, and then kill the program that uses the memory, or another program.
  static bool more_than_there_is(std::size_t size) noexcept {
    return size > static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 2;
  }
  // Returns 0, or the system's error. A signal interrupts posix_fallocate(), which then frees what
  // that call has allocated. So the function is called for pieces that take less time than the
  // interval between two signals of a fast timer.
  static int allocate(int fd, std::size_t size) noexcept {
    constexpr std::size_t kPiece = std::size_t{256} << 10;
    for (std::size_t at = 0; at < size;) {
      const std::size_t piece = std::min(kPiece, size - at);
      const int wrong = ::posix_fallocate(fd, static_cast<off_t>(at), static_cast<off_t>(piece));
      if (wrong != 0 && wrong != EINTR) return wrong;
      if (wrong == 0) at += piece;
    }
    return 0;
  }
  int take(std::size_t size, int protection, int flags, int fd) noexcept {
    void* const at = ::mmap(nullptr, size, protection, flags, fd, 0);
    if (at == MAP_FAILED) return errno;
    at_ = at;
    size_ = size;
    return 0;
  }
  void* at_ = nullptr;
  std::size_t size_ = 0;
};

// Sends bytes and descriptors over a Unix socket, in one message. Returns whether that succeeded.
inline bool send_descriptors(int socket, Bytes bytes, std::span<const int> fds) noexcept {
  constexpr std::size_t kMaxDescriptors = 4;
  iovec v{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  if (fds.size() > kMaxDescriptors) return false;
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
// Receives one message with bytes and descriptors. Returns the number of bytes, as recvmsg(2) does.
// `fds` takes ownership of all received descriptors, even if there are too many.
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
