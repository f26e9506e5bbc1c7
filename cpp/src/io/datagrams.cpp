// The definitions of io/datagrams.hpp.
#include <weft/io/datagrams.hpp>

#if defined(__linux__)
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace weft::inline WEFT_ABI::io {

Datagrams::Datagrams(const Address& at) {
  const int fd = socket(at.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int error = fd < 0 ? errno : 0;
  if (error == 0 && bind(fd, at.data(), at.size()) != 0) {
    error = errno;
    ::close(fd);
  }
  if (error != 0)
    throw std::system_error(error, std::generic_category(), "weft::io: Datagrams at " + at.text());
  w_ = detail::Watched::owned(fd, false, true);
}

Address Datagrams::address() const { return detail::address_of(*watched(), &getsockname); }

detail::Tried detail::ReceiveWork::attempt() noexcept {
  if (w->closed()) return n = -EBADF, Tried::over;
  if (!w->taken()) return Tried::would_block;
  sockaddr_storage s{};
  socklen_t size = sizeof s;
  do n = recvfrom(w->fd(), into.data(), into.size(), 0, reinterpret_cast<sockaddr*>(&s), &size);
  while (n < 0 && errno == EINTR);
  if (n < 0) {
    n = -errno;
    if (detail::blocks(n)) return Tried::would_block;
  } else {
    from = Address(reinterpret_cast<const sockaddr*>(&s), size);
  }
  w->more();
  if (w->closed()) n = -EBADF;
  return Tried::over;
}

detail::Tried detail::SendWork::attempt() noexcept {
  if (w->closed()) return n = -EBADF, Tried::over;
  do n = sendto(w->fd(), data.data(), data.size(), MSG_NOSIGNAL, to.data(), to.size());
  while (n < 0 && errno == EINTR);
  if (n < 0) n = -errno;
  return detail::blocks(n) ? Tried::would_block : Tried::over;
}

}  // namespace weft::inline WEFT_ABI::io
#endif
