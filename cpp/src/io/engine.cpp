// The definitions of io/engine.hpp.
#include <weft/io/engine.hpp>

#if defined(__linux__)
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

#include <weft/io/descriptors.hpp>

namespace weft::inline WEFT_ABI::io::detail {

namespace {

// How long a busy executor runs before it polls descriptors again, in ns.
constexpr std::int64_t kGlance = 50'000;
constexpr std::uint64_t kBell = ~std::uint64_t{0};  // the key of the eventfd's events
constexpr int kAtOnce = 256;                        // how many events are received at a time

Engine*& unused() noexcept {
  static Engine* first = nullptr;
  return first;
}
Engine*& all() noexcept {
  static Engine* first = nullptr;
  return first;
}

// Calls epoll_wait(). The wait ends at the time `until`, in ns.
int wait_until(int epoll, epoll_event* events, std::int64_t until) noexcept {
  int ms = -1;
  if (until != prim::forever) {
    const std::int64_t left = until - prim::now();
    if (left <= 0) {
      ms = 0;
    } else {
#ifdef SYS_epoll_pwait2
      // This call exists since Linux 5.11, and a container can refuse it (rule 15.11).
      static std::atomic<bool> there{true};
      if (there.load(std::memory_order_relaxed)) {
        const std::int64_t span[2] = {left / 1'000'000'000, left % 1'000'000'000};
        const long n = syscall(SYS_epoll_pwait2, epoll, events, kAtOnce, span, nullptr, 0);
        if (n >= 0 || errno == EINTR) return static_cast<int>(n);
        there.store(false, std::memory_order_relaxed);
      }
#endif
      const std::int64_t up = (left + 999'999) / 1'000'000;
      ms = up > INT_MAX ? INT_MAX : static_cast<int>(up);
    }
  }
  return epoll_wait(epoll, events, kAtOnce, ms);
}

}  // namespace

Engine::Engine() {
  if (const int error = open())
    throw std::system_error(error, std::generic_category(),
                            "weft::io: cannot create an epoll and an eventfd");
  enlist();
}

int Engine::open() noexcept {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  bell_ = epoll_ < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.u64 = kBell;
  if (bell_ >= 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, bell_, &e) == 0) return 0;
  const int error = errno;
  if (epoll_ >= 0) ::close(epoll_);
  if (bell_ >= 0) ::close(bell_);
  epoll_ = bell_ = -1;
  return error;
}

runtime::Poller& Engine::make() {
  {
    const std::lock_guard g(Watched::book());
    if (Engine* const e = unused()) {
      unused() = e->free_next_;
      return *e;
    }
  }
  Engine& e = *new Engine;
  const std::lock_guard g(Watched::book());
  e.all_next_ = std::exchange(all(), &e);
  return e;
}

void Engine::in_child() noexcept {
  for (Engine* e = all(); e; e = e->all_next_) {
    if (e->epoll_ >= 0) ::close(e->epoll_);
    if (e->bell_ >= 0) ::close(e->bell_);
    e->open();  // if open() fails, the executor sleeps without the engine
    // the sleeper was a thread of the parent
    e->sleeper_.store(nullptr, std::memory_order_relaxed);
  }
  Descriptors::all().each([](Watched& w) {
    w.mask_ = 0;
    w.home_ = nullptr;
  });
}

void Engine::join() noexcept {
  const std::lock_guard g(Watched::book());
  ++executors_;
}

void Engine::leave() noexcept {
  const std::lock_guard g(Watched::book());
  if (--executors_ != 0) return;
  Descriptors::all().each([this](Watched& w) {
    if (w.home_ == this) w.unwatch();
  });
  free_next_ = unused();
  unused() = this;
}

Engine& Engine::here(runtime::ProcessBase& p) {
  WEFT_POINT(refuses("weft::io"));
  if (weft::detail::run_of(p).clock() == runtime::Clock::virtual_time)
    weft::detail::bad_use(
        "weft::io: with virtual time no process can wait for a descriptor: nothing says when the "
        "descriptor is ready; run without virtual_time, or give the process a channel instead");
  runtime::Executor* const e =
      runtime::this_context && runtime::this_context->executor && runtime::this_context->running
          ? runtime::this_context->executor
          : &runtime::ThreadProcess::self();
  if (runtime::Poller* const io = e->poller(&make)) return static_cast<Engine&>(*io);
  weft::detail::bad_use(
      "weft::io: this process runs in a loop of another library, which waits for descriptors by "
      "itself: use the operations of that loop, or run the process by weft::run");
}

Engine& Engine::known(runtime::ProcessBase& p) noexcept { return here(p); }

void Engine::ring() noexcept {
  const std::uint64_t one = 1;
  while (write(bell_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void Engine::sleep(const runtime::Parking& who, prim::atomic<std::uint32_t>& word,
                   std::uint32_t expected, std::int64_t until) noexcept {
  const runtime::Parking* nobody = nullptr;
  // One of several workers waits in the epoll; the others sleep as usual.
  if (epoll_ < 0 || !sleeper_.compare_exchange_strong(nobody, &who, std::memory_order_seq_cst))
    return static_cast<void>(prim::park(word, expected, until));
  std::array<epoll_event, kAtOnce> events;
  int n = 0;
  if (word.load(std::memory_order_seq_cst) == expected)
    n = wait_until(epoll_, events.data(), until);
  looked_.store(prim::now(), std::memory_order_relaxed);
  // The bell is meant for the sleeper alone, so no other thread may reset it: the sleeper might not
  // have seen it yet.
  if (n > 0 && hand_on(events.data(), n)) {
    std::uint64_t times = 0;
    static_cast<void>(!read(bell_, &times, sizeof times));
  }
  sleeper_.store(nullptr, std::memory_order_seq_cst);
}

bool Engine::glance() noexcept {
  if (waiting_.load(std::memory_order_relaxed) == 0) return false;
  const std::int64_t now = prim::now();
  if (now - looked_.load(std::memory_order_relaxed) < kGlance) return false;
  looked_.store(now, std::memory_order_relaxed);
  std::array<epoll_event, kAtOnce> events;
  const int n = epoll_wait(epoll_, events.data(), kAtOnce, 0);
  if (n > 0) hand_on(events.data(), n);
  return n > 0;
}

bool Engine::hand_on(const epoll_event* events, int n) noexcept {
  core::Wakes wakes;
  bool rung = false;
  {
    const std::lock_guard g(Watched::book());
    for (int i = 0; i < n; ++i) {
      if (events[i].data.u64 == kBell)
        rung = true;
      else if (Watched* const w = Descriptors::all().find(events[i].data.u64))
        w->came(events[i].events, wakes);
    }
  }
  wakes.run();
  return rung;
}

}  // namespace weft::inline WEFT_ABI::io::detail
#endif
