// The definitions of stopping.hpp; see config.hpp.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "../stopping.hpp"

namespace weft::inline WEFT_ABI {

WEFT_IF_USED_IMPL WEFT_IMPL signals::signals(std::initializer_list<int> which)
    : outside_(Outside::due),
      channel_(ChannelOptions{16, Overflow::drop_oldest, 0, "signals", ChannelKind::any2any}),
      reader_(channel_.reader()) {
  if (::pipe2(pipe_, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "weft::signals: pipe");
  ::fcntl(pipe_[1], F_SETFL, O_NONBLOCK);
  for (const int n : which) {
    struct sigaction a {};
    a.sa_handler = &handle;
    sigemptyset(&a.sa_mask);
    a.sa_flags = SA_RESTART;
    int free = -1;
    if (n <= 0 || n >= kSignals ||
        !to()[static_cast<std::size_t>(n)].compare_exchange_strong(free, pipe_[1]) ||
        ::sigaction(n, &a, &before_[static_cast<std::size_t>(n)]) != 0) {
      give_back();
      close_pipe();
      detail::bad_use("weft::signals: signal " + std::to_string(n) +
                      " cannot be handled, or another weft::signals has it");
    }
    mine_[static_cast<std::size_t>(n)] = true;
  }
  try {
    thread_ = std::thread([w = channel_.writer(), from = pipe_[0]] {
      for (unsigned char n = 0;;) {
        const ssize_t got = ::read(from, &n, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got != 1 || n == 0) return;
        try {
          w(static_cast<int>(n));
        } catch (const ChannelEnd&) {
          return;
        }
      }
    });
  } catch (...) {  // std::system_error: the system has no room for another thread
    give_back();
    close_pipe();
    throw;
  }
}

WEFT_IMPL signals::~signals() {
  give_back();
  const unsigned char end = 0;
  while (::write(pipe_[1], &end, 1) < 0 && (errno == EINTR || errno == EAGAIN))
    std::this_thread::yield();
  thread_.join();
  close_pipe();
}

WEFT_IMPL std::array<std::atomic<int>, signals::kSignals>& signals::to() noexcept {
  static auto* const all = [] {
    auto* const a = new std::array<std::atomic<int>, kSignals>;
    for (auto& x : *a) x = -1;
    return a;
  }();
  return *all;
}

WEFT_IMPL void signals::handle(int n) {
  const int saved = errno;
  const unsigned char byte = static_cast<unsigned char>(n);
  // full: enough have come
  if (const int fd = to()[static_cast<std::size_t>(n)].load(); fd >= 0 && ::write(fd, &byte, 1) < 0)
    errno = 0;
  errno = saved;
}

WEFT_IMPL void signals::give_back() noexcept {
  for (std::size_t n = 1; n < kSignals; ++n) {
    if (!mine_[n]) continue;
    ::sigaction(static_cast<int>(n), &before_[n], nullptr);
    to()[n] = -1;
    mine_[n] = false;
  }
}

WEFT_IMPL void signals::close_pipe() noexcept {
  ::close(pipe_[0]);
  ::close(pipe_[1]);
}

}  // namespace weft::inline WEFT_ABI
