// The definitions of stopping.hpp.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <weft/runtime/affinity.hpp>
#include <weft/stopping.hpp>

namespace weft::inline WEFT_ABI {

signals::signals(std::initializer_list<int> which) {
  WEFT_POINT(refuses("weft::signals"));
  if (::pipe2(pipe_, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "weft::signals: pipe");
  ::fcntl(pipe_[1], F_SETFL, O_NONBLOCK);
  try {
    for (const int n : which) {
      if (n <= 0 || n >= kSignals || which_[static_cast<std::size_t>(n)]) refuse(n);
      which_[static_cast<std::size_t>(n)] = true;
    }
    open();
    claim();
    thread_ = std::thread([this] { pass_on(); });
  } catch (...) {  // The exception is BadUse, or std::system_error if the system cannot start
                   // another thread.
    give_back();
    close_pipe();
    throw;
  }
}

signals::~signals() {
  {
    const std::lock_guard g(mutex_);
    give_back();
  }
  const unsigned char end = 0;
  while (::write(pipe_[1], &end, 1) < 0 && (errno == EINTR || errno == EAGAIN))
    std::this_thread::yield();
  thread_.join();
  close_pipe();
}

void signals::refuse(int n) {
  detail::bad_use("weft::signals: signal " + std::to_string(n) +
                  " cannot be handled, or a weft::signals has it already");
}

// Makes the signals go to the pipe from now on. Throws BadUse if one of the signals cannot be
// claimed, for example because another `signals` object has it; then none of the signals goes to
// the pipe.
void signals::claim() const {
  for (std::size_t n = 1; n < kSignals; ++n) {
    if (!which_[n]) continue;
    struct sigaction a {};
    a.sa_handler = &handle;
    sigemptyset(&a.sa_mask);
    a.sa_flags = SA_RESTART;
    int none = -1;
    const bool free = to()[n].compare_exchange_strong(none, pipe_[1]);
    if (free && ::sigaction(static_cast<int>(n), &a, &before_[n]) == 0) {
      claimed_[n] = true;
      continue;
    }
    if (free) to()[n] = -1;
    give_back();
    refuse(static_cast<int>(n));
  }
}

void signals::give_back() const noexcept {
  for (std::size_t n = 1; n < kSignals; ++n) {
    if (!std::exchange(claimed_[n], false)) continue;
    ::sigaction(static_cast<int>(n), &before_[n], nullptr);
    to()[n] = -1;
  }
}

// Makes a new channel, which has no reader yet.
void signals::open() const {
  source_.reset();
  channel_.emplace(ChannelOptions{16, Overflow::drop_oldest, 0, "signals", ChannelKind::any2any});
  writer_ = channel_->writer();
  source_.emplace(*channel_->core());
}

// Makes a reader end; the caller holds the lock.
Reader<int> signals::new_reader() const {
  const bool all = claimed_ == which_;
  try {
    if (all) return channel_->reader();
  } catch (const ChannelEnd&) {  // The last reader has just been closed.
  }
  if (!all) claim();
  open();
  return channel_->reader();
}
Reader<int> signals::reader() const {
  const std::lock_guard g(mutex_);
  return new_reader();
}
const Reader<int>& signals::own() const {
  const std::lock_guard g(mutex_);
  if (!own_) own_ = new_reader();
  return own_;
}

void signals::pass_on() noexcept {
  runtime::name_this_thread("weft signals");
  for (unsigned char n = 0;;) {
    const ssize_t got = ::read(pipe_[0], &n, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1 || n == 0) return;
    bool nobody = false;
    {
      const Outside brings(Outside::due);  // See invariant 1 of runtime/source.hpp.
      const std::lock_guard g(mutex_);
      try {
        writer_(int{n});
      } catch (const ChannelEnd&) {
        give_back();
        nobody = true;
      }
    }
    if (nobody) ::kill(::getpid(), n);
  }
}

std::array<std::atomic<int>, signals::kSignals>& signals::to() noexcept {
  static auto* const all = [] {
    auto* const a = new std::array<std::atomic<int>, kSignals>;
    for (auto& x : *a) x = -1;
    return a;
  }();
  return *all;
}

void signals::handle(int n) {
  const int saved = errno;
  const unsigned char byte = static_cast<unsigned char>(n);
  // If the pipe is full, enough signals are queued.
  if (const int fd = to()[static_cast<std::size_t>(n)].load(); fd >= 0 && ::write(fd, &byte, 1) < 0)
    errno = 0;
  errno = saved;
}

void signals::close_pipe() noexcept {
  ::close(pipe_[0]);
  ::close(pipe_[1]);
}

}  // namespace weft::inline WEFT_ABI
