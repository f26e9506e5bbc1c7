// The definitions of runtime/parking.hpp.
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <weft/runtime/parking.hpp>

namespace weft::inline WEFT_ABI::runtime {

prim::atomic<std::int64_t>& patience() noexcept {
  constexpr double second = 1e9, most = 9e18;
  static prim::atomic<std::int64_t> ns{[] {
    const char* const text = std::getenv("WEFT_STANDSTILL");
    if (!text || !*text) return static_cast<std::int64_t>(2 * second);
    char* end = nullptr;
    const double s = std::strtod(text, &end);
    if (end == text || *end || !(s >= 0)) {
      std::fprintf(stderr,
                   "weft: WEFT_STANDSTILL=%s is not a number of seconds (0: never); 2 is used\n",
                   text);
      return static_cast<std::int64_t>(2 * second);
    }
    if (s * second >= most) return std::int64_t{0};
    const auto whole = static_cast<std::int64_t>(s * second);
    return static_cast<double>(whole) < s * second ? whole + 1 : whole;
  }()};
  return ns;
}

void Poller::enlist() noexcept {
  next_ = all_.load(std::memory_order_relaxed);
  while (!all_.compare_exchange_weak(next_, this, std::memory_order_seq_cst)) {
  }
}

bool Poller::rouse_any(const Parking& who) noexcept {
  for (Poller* p = all_.load(std::memory_order_seq_cst); p; p = p->next_)
    if (p->rouse_if(who)) return true;
  return false;
}

std::uint32_t Parking::sleep() noexcept {
  // While a thread sleeps in a poller, the links' own thread serves the links.
  Poller* const io = poller();
  const Attending* const served = attending.load(std::memory_order_acquire);
  // Under a global lock a thread attends in park(), instead of yielding, once it has released that
  // lock. If the thread attended here, the links' own thread would be woken meanwhile, and would
  // wait for the lock.
  if (!io && (served ? !around_sleep.begin && served->attend(word_) : give_way())) return take();
  std::uint32_t s = 0;
  if (!word_.compare_exchange_strong(s, idle, std::memory_order_seq_cst)) return take();
  const std::uint32_t standstill = activity ? activity->deactivated() : 0;
  const std::int64_t until = activity ? activity->wake_time() : prim::forever;
  std::int64_t look = standstill ? prim::now() + activity->waits_before() : prim::forever;
  bool timed = false;
  if (asleep()) {
    void* state = around_sleep.begin ? around_sleep.begin(*this) : nullptr;
    if (around_sleep.begin && !state) signal(nudged);
    while (asleep() && !timed) {
      s = idle | disturbed;
      const bool was_stirred = word_.compare_exchange_strong(s, idle, std::memory_order_acq_rel);
      if (!was_stirred) {
        const std::int64_t limit = nap(look < until ? look : until);
        if (io) {
          const Parking* const outer = std::exchange(serves_, this);
          io->sleep(*this, word_, idle, limit);
          serves_ = outer;
        } else if (served) {
          const Parking* const outer = std::exchange(serves_, this);
          served->park(word_, idle, limit, around_sleep.begin != nullptr);
          serves_ = outer;
        } else {
          prim::park(word_, idle, limit);
        }
      }
      timed = until != prim::forever && prim::now() >= until;
      if (look != prim::forever && !was_stirred && prim::now() >= look && asleep()) {
        if (state && around_sleep.step_back) around_sleep.step_back(state);
        const bool again = activity->stood_still(standstill);
        if (state && around_sleep.step_aside) state = around_sleep.step_aside();
        look = again ? prim::now() + activity->waits_before() : prim::forever;
        continue;
      }
      if (!timed && around_sleep.disturbed && asleep() && around_sleep.disturbed(state))
        signal(nudged);
    }
    if (state) around_sleep.end(state);
  }
  // If the time is up, the sleeper is counted as active before the word says so, so that the count
  // is never too low while a thread is awake.
  if (timed && activity) activity->activated();
  const bool by_time = timed && leave_idle();
  // A signaller has counted the sleeper too, so one of the two counts is taken back.
  if (timed && !by_time && activity) activity->deactivated();
  if (activity) activity->awoken();
  return by_time ? 0 : take();
}

void Parking::disturb() noexcept {
  std::uint32_t s = idle;
  if (word_.compare_exchange_strong(s, idle | disturbed, std::memory_order_acq_rel))
    if (!Poller::rouse(*this, poller())) prim::unpark(word_);
}

bool Parking::end_turn() noexcept {
  std::uint32_t s = 0;
  if (!word_.compare_exchange_strong(s, idle, std::memory_order_seq_cst)) return false;
  if (activity) activity->deactivated();
  return true;
}

void Parking::begin_turn() noexcept {
  if (activity) activity->activated();
  if (!leave_idle() && activity) activity->deactivated();  // The signaller has counted the host.
}

void Parking::signal(std::uint32_t bit) noexcept {
  // This object and `a` can be destroyed as soon as the bit is seen. So everything that is needed
  // after that is read before, and the sleeper is counted before.
  Activity* const a = activity;
  void (*const ring)(Parking&) noexcept = bell;
  Poller* const io = poller();
  std::uint32_t s = word_.load(std::memory_order_relaxed);
  bool counted = false;
  do {
    if (a && counted != (sleeps(s) && !(s & bit))) {
      counted = !counted;
      if (counted)
        a->activated();
      else
        // The sleeper was woken by time or by another signaller, and is counted already.
        a->deactivated();
    }
    if (s & bit) return;
  } while (!word_.compare_exchange_weak(s, s | bit, std::memory_order_seq_cst));
  if (!sleeps(s)) return;
  if (ring) {
    ring(*this);                 // A host outlives the calls of its bell.
  } else if (serves_ != this) {  // If this thread serves messages for itself, it needs no waking.
    if (!Poller::rouse(*this, io)) prim::unpark(word_);
    woke_another_ = true;
  }
}

std::int64_t Parking::nap(std::int64_t until) noexcept {
  if (prim::wakes_from_handlers || !around_sleep.disturbed) return until;
  const std::int64_t soon = prim::now() + kNap;
  return soon < until ? soon : until;
}

bool Parking::leave_idle() noexcept {
  std::uint32_t s = word_.load(std::memory_order_relaxed);
  while (sleeps(s))
    if (word_.compare_exchange_weak(s, 0, std::memory_order_seq_cst)) return true;
  return false;
}

bool Parking::give_way() noexcept {
  // This thread would keep the global lock, and the awaited thread would have to wait for that
  // lock.
  if (around_sleep.begin && !around_sleep.step_aside) return false;
  if (!giving_way_.worth_trying()) return false;
  void* state = nullptr;
  const bool came = giving_way_.until([&] {
    if (!state && around_sleep.step_aside) state = around_sleep.step_aside();
    return signalled();
  });
  if (state) around_sleep.step_back(state);
  return came;
}

}  // namespace weft::inline WEFT_ABI::runtime
