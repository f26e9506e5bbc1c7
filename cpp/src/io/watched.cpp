// The definitions of io/watched.hpp.
#include <weft/io/engine.hpp>

#if defined(__linux__)
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <weft/io/descriptors.hpp>

namespace weft::inline WEFT_ABI::io::detail {

std::mutex& Watched::book() noexcept {
  static std::mutex& m = *new std::mutex;
  return m;
}

// In the child of a fork the lock must be free, and no engine may be the parent's. These handlers
// are registered before those of inspect.cpp, so that a fork takes the lock of a look first and the
// book's lock after it, in the same order as a look does.
void Watched::at_fork() noexcept {
  pthread_atfork([] { book().lock(); }, [] { book().unlock(); },
                 [] {
                   Engine::in_child();
                   book().unlock();
                 });
}
const bool Watched::forks = (at_fork(), true);

Watched::Watched(int fd, bool owns, bool tcp, bool socket)
    : fd_(fd), owns_(owns), tcp_(tcp), socket_(socket), name_("descriptor " + std::to_string(fd)) {
  for (Direction* const d : {&in_, &out_}) {
    d->name = name_.c_str();
    d->of = this;
  }
  out_.side = Side::out;
}

std::shared_ptr<Watched> Watched::owned(int fd, bool tcp, bool socket) {
  std::shared_ptr<Watched> w;
  try {
    w.reset(new Watched(fd, true, tcp, socket));
  } catch (...) {
    ::close(fd);
    throw;
  }
  core::Wakes wakes;
  std::shared_ptr<Watched> stale;
  {
    const std::lock_guard g(book());
    Descriptors::Entry& e = Descriptors::all().at(fd);
    // The descriptor that has this number now does not belong to the former owner, so that owner
    // must not close it, even if it ends at this moment.
    if (e.watched) e.watched->owns_ = false;
    stale = e.shared.lock();
    if (stale) {  // a process waits for a descriptor that has been closed
      stale->closed_.store(true, std::memory_order_release);
      stale->home_ = nullptr;
      stale->mask_ = 0;
      stale->wake(stale->in_, wakes);
      stale->wake(stale->out_, wakes);
    }
    w->number_ = Descriptors::all().next_number();
    e = {w.get(), w, w->number_};
  }
  wakes.run();
  return w;
}

std::shared_ptr<Watched> Watched::of(int fd) {
  if (fd < 0) weft::detail::bad_use("weft::io: a negative number is no descriptor");
  std::shared_ptr<Watched> made(new Watched(fd, false, false, false));
  std::shared_ptr<Watched> there;
  {
    const std::lock_guard g(book());
    // No object is kept for a number that was never open, since the number can be arbitrary.
    if (!Descriptors::all().has(fd) && fcntl(fd, F_GETFD) < 0) return made;
    Descriptors::Entry& e = Descriptors::all().at(fd);
    there = e.shared.lock();
    if (there && !there->closed()) return there;
    made->number_ = Descriptors::all().next_number();
    e = {made.get(), made, made->number_};
  }
  return made;
}

Watched::~Watched() {
  bool owns = false;
  {
    const std::lock_guard g(book());
    unwatch();
    Descriptors::all().forget(*this, fd_);
    owns = owns_;
  }
  if (owns) ::close(fd_);
}

void Watched::close() noexcept {
  core::Wakes wakes;
  bool ends = false;
  {
    const std::lock_guard g(book());
    if (closed()) return;
    closed_.store(true, std::memory_order_release);
    ends = owns_ && socket_;
    unwatch();
    wake(in_, wakes);
    wake(out_, wakes);
  }
  if (ends) shutdown(fd_, SHUT_RDWR);
  wakes.run();
}

void Watched::more() noexcept {
  core::Wakes wakes;
  {
    const std::lock_guard g(book());
    hint_.store(true, std::memory_order_release);
    wake(in_, wakes);
  }
  wakes.run();
}

void Watched::keeps(bool some) noexcept {
  if (kept() == some) return;
  core::Wakes wakes;
  {
    const std::lock_guard g(book());
    kept_.store(some, std::memory_order_release);
    if (some) wake(in_, wakes);
  }
  wakes.run();
}

int Watched::watch(Side s, Engine& e, bool by_hint) noexcept {
  if (!home_ || (home_ != &e && !anybody())) {
    unwatch();
    home_ = &e;
  }
  std::uint32_t events = mask_ | (s == Side::in ? EPOLLIN | EPOLLRDHUP : EPOLLOUT);
  if (owns_) events |= EPOLLIN | EPOLLRDHUP;
  if (tcp_) events |= EPOLLPRI;
  // The kernel reports later events without a new registration.
  if (by_hint && s == Side::in && mask_ == events) return 0;
  epoll_event x{};
  x.events = events | EPOLLET;
  x.data.u64 = Descriptors::key(fd_, number_);
  // If the registration is changed, even to the same events, the kernel reports again what is
  // available.
  int op = mask_ != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (epoll_ctl(home_->epoll_, op, fd_, &x) != 0) {
    // If `other` is true, the program has closed this descriptor, and the number belongs to another
    // one now.
    const bool other =
        (op == EPOLL_CTL_MOD && errno == ENOENT) || (op == EPOLL_CTL_ADD && errno == EEXIST);
    op = op == EPOLL_CTL_MOD ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (!other || epoll_ctl(home_->epoll_, op, fd_, &x) != 0) {
      const int error = errno;
      settle();
      return error;
    }
  }
  mask_ = events;
  return 0;
}

void Watched::unwatch() noexcept {
  if (mask_ != 0) epoll_ctl(home_->epoll_, EPOLL_CTL_DEL, fd_, nullptr);
  mask_ = 0;
  home_ = nullptr;
}

void Watched::enqueue(core::Node& n, Direction& d, Engine& e) noexcept {
  n.status = Status::pending;
  n.slot = &e;
  n.set(core::NodeFlags::queued);
  d.waiting.push_back(&n);
  e.waiting_.fetch_add(1, std::memory_order_relaxed);
}

void Watched::dequeue(core::Node& n, Direction& d) noexcept {
  n.clear(core::NodeFlags::queued);
  d.waiting.erase(&n);
}

bool Watched::wait(core::Node& n, Side s, Engine& e, bool by_hint) {
  int error = 0;
  {
    const std::lock_guard g(book());
    if (closed() ||
        (s == Side::in && (kept() || (by_hint && hint_.load(std::memory_order_acquire)))))
      return false;
    error = watch(s, e, by_hint);
    if (error == 0) enqueue(n, side(s), e);
  }
  if (error == 0) return true;
  // A regular file is always ready, and an operation at a closed descriptor fails at once.
  if (error == EPERM || error == EBADF) return false;
  throw std::system_error(error, std::generic_category(), "weft::io: watch " + name_);
}

core::Attempt Watched::enrol(core::Guard& g, Side s, Engine& e) noexcept {
  const std::lock_guard l(book());
  if (closed() || (s == Side::in && kept()) || watch(s, e, false) != 0)
    return g.node.choice_->claim_one(core::DONE + g.node.index) ? core::Attempt::committed
                                                                : core::Attempt::gone;
  enqueue(g.node, side(s), e);
  return core::Attempt::not_ready;
}

void Watched::leave(core::Node& n, Side s) noexcept {
  const std::lock_guard g(book());
  if (n.is(core::NodeFlags::queued)) dequeue(n, side(s));
  if (auto* const e = static_cast<Engine*>(std::exchange(n.slot, nullptr)))
    e->waiting_.fetch_sub(1, std::memory_order_relaxed);
  settle();
}

bool Watched::withdraw(core::Node& n, Side s) noexcept {
  const std::lock_guard g(book());
  const bool was = n.is(core::NodeFlags::queued);
  if (was) dequeue(n, side(s));
  return was;
}

bool Watched::waits(const core::Node& n) noexcept {
  const std::lock_guard g(book());
  return n.is(core::NodeFlags::queued);
}

void Watched::settle() noexcept {
  if (!home_) return;
  const core::Link* first = in_.waiting.front() ? in_.waiting.front() : out_.waiting.front();
  if (!first) {
    if (!owns_) unwatch();
    return;
  }
  for (const Direction* const d : {&in_, &out_})
    for (const core::Link* l = d->waiting.front(); l; l = l->next)
      if (static_cast<const core::Node*>(l)->slot == home_) return;
  const std::uint32_t events = mask_;
  unwatch();
  home_ = static_cast<Engine*>(static_cast<const core::Node*>(first)->slot);
  epoll_event x{};
  x.events = events | EPOLLET;
  x.data.u64 = Descriptors::key(fd_, number_);
  if (epoll_ctl(home_->epoll_, EPOLL_CTL_ADD, fd_, &x) == 0) mask_ = events;
}

void Watched::wake(Direction& d, core::Wakes& wakes) noexcept {
  while (core::Link* const l = d.waiting.front()) {
    auto& n = *static_cast<core::Node*>(l);
    dequeue(n, d);
    if (core::Free{}.with(&n) == core::Claim::won) wakes.finish(&n, Status::ok);
  }
}

void Watched::came(std::uint32_t events, core::Wakes& wakes) noexcept {
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLPRI)) short_.store(true, std::memory_order_relaxed);
  if (events & ~static_cast<std::uint32_t>(EPOLLOUT)) {
    hint_.store(true, std::memory_order_release);
    wake(in_, wakes);
  }
  if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) wake(out_, wakes);
}

}  // namespace weft::inline WEFT_ABI::io::detail
#endif
