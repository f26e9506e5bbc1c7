// The definitions of runtime/run.hpp.
#include <algorithm>
#include <cstdio>

#include <weft/runtime/run.hpp>

namespace weft::inline WEFT_ABI::runtime {

Run::Run(Clock clock) noexcept : clock_(clock) {}
Run::~Run() { dismiss(); }

std::uint32_t Run::deactivated() noexcept {
  return active_.fetch_sub(1, std::memory_order_seq_cst) == 1 ? quiescent() : 0;
}

void Run::tell_who_is_held() const noexcept {
  std::fprintf(stderr,
               "weft: %s\nweft: all were cancelled; the rest is held by an extended read whose "
               "block nobody ends (rule 1.6), and the run waits for that\n",
               report_.c_str());
}

void Run::gone() noexcept {
  if (deactivated()) find_watch();
}

std::int64_t Run::wake_time() noexcept {
  return clock_ == Clock::steady ? earliest() : prim::forever;
}

void Run::leave_outside(bool due) noexcept {
  if (!due) not_due_.fetch_sub(1, std::memory_order_seq_cst);
  const std::int32_t left = outside_.fetch_sub(1, std::memory_order_seq_cst) - 1;
  if (left == unsure() && active_.load(std::memory_order_seq_cst) == 0 && quiescent()) find_watch();
}

std::uint32_t Run::conclude() noexcept {
  const std::int32_t left = outside_.fetch_sub(1, std::memory_order_seq_cst) - 1;
  if (left != not_due_.load(std::memory_order_seq_cst) ||
      active_.load(std::memory_order_seq_cst) != 0) {
    outside_.fetch_add(1, std::memory_order_seq_cst);
    return 0;
  }
  const std::uint32_t n = quiescent();
  outside_.fetch_add(1, std::memory_order_seq_cst);
  return n;
}

bool Run::stood_still(std::uint32_t number) noexcept {
  if (!is_standstill(number)) return false;
  if (const auto ask = asks_links()) return ask(), false;
  if (Standstill* const found = look_at_standstill.load()(*this)) {
    found->tell();
    delete found;
  }
  return false;
}

bool Run::stands_still() noexcept {
  const std::lock_guard g(mutex_);
  timers_.drop_dead();
  return active_.load(std::memory_order_seq_cst) == 0 && timers_.empty() &&
         outside_.load(std::memory_order_seq_cst) == not_due_.load(std::memory_order_seq_cst);
}

std::int64_t Run::waits_before() const noexcept {
  const bool asked = links_are_asked.load(std::memory_order_relaxed) &&
                     due_tokens.load(std::memory_order_relaxed) != 0;
  return asked || asks_links() ? kSoon : Activity::waits_before();
}

bool Run::waits_for_links() noexcept {
  const std::lock_guard g(mutex_);
  timers_.drop_dead();
  return active_.load(std::memory_order_seq_cst) == 0 && timers_.empty() &&
         outside_.load(std::memory_order_seq_cst) == unsure();
}

bool Run::condemn(std::string report, std::vector<std::string> knot) {
  const std::lock_guard g(mutex_);
  if (active_.load(std::memory_order_seq_cst) != 0 || deadlocked()) return false;
  activated();  // The count keeps other threads from deciding meanwhile that the run is deadlocked.
  report_ = std::move(report);
  knot_ = std::move(knot);
  deadlocked_.store(true, std::memory_order_release);
  return true;
}

void Run::carry_out() noexcept {
  if (on_deadlock && !told_.exchange(true)) on_deadlock(report_);
  cancel_everybody();
  gone();
}

bool Run::declare(std::string report, std::vector<std::string> knot) {
  const bool so = condemn(std::move(report), std::move(knot));
  if (so) carry_out();
  return so;
}

bool Run::is_standstill(std::uint32_t number) noexcept {
  const std::lock_guard g(mutex_);
  return number == standstill_ && active_.load(std::memory_order_seq_cst) == 0;
}

void Run::awoken() noexcept {
  if (closed_.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
    const std::lock_guard g(door_);
  }
}

bool Run::first_of(std::uint64_t places) {
  const std::lock_guard g(mutex_);
  if (std::ranges::find(told_of_, places) != told_of_.end()) return false;
  told_of_.push_back(places);
  return true;
}

void Run::arm(TimerNode& t) {
  if (t.deadline == prim::forever) return;  // A timer with this deadline never fires (rule 8.5).
  const std::lock_guard g(mutex_);
  timers_.add(t);
  set_earliest();
}

void Run::disarm(TimerNode& t) noexcept {
  const std::lock_guard g(mutex_);
  timers_.remove(t);
  set_earliest();
}

void Run::fire_due() noexcept {
  core::Wakes wakes;
  {
    const std::lock_guard g(mutex_);
    fire(now(), wakes);
  }
  wakes.run();
}

void Run::list(const void* key, Executor& e) {
  const std::lock_guard g(hiring_);
  enlist(key, e);
}

RunsAt Run::which_executor(const Executor& e) const noexcept {
  for (std::size_t i = 0; i < executors_.size(); ++i) {
    const Executor* x = executors_[i].load(std::memory_order_acquire);
    if (x == &e) return at_of(i);
    if (!x) break;
  }
  return RunsAt::group;
}

void Run::dismiss() noexcept {
  decltype(own_executors_)().swap(own_executors_);
  decltype(parts_)().swap(parts_);
}

void Run::keep(void (*body)(void*), void* of) {
  std::list<std::thread> done;
  {
    const std::lock_guard g(mutex_);  // thread_done() searches for the thread under the same lock.
    threads_.emplace_back(body, of);
    done.swap(threads_done_);
  }
  for (std::thread& t : done) t.join();
}

void Run::thread_done() noexcept {
  const std::lock_guard g(mutex_);
  const auto me = std::ranges::find(threads_, std::this_thread::get_id(), &std::thread::get_id);
  if (me == threads_.end()) return;  // If the thread is not in the list, join_threads() joins it.
  threads_done_.splice(threads_done_.begin(), threads_, me);
}

std::size_t Run::threads_kept() noexcept {
  const std::lock_guard g(mutex_);
  return threads_.size() + threads_done_.size();
}

void Run::join_threads() noexcept {
  for (;;) {
    std::list<std::thread> those;
    {
      const std::lock_guard g(mutex_);
      those.swap(threads_done_.empty() ? threads_ : threads_done_);
    }
    if (those.empty()) return;
    for (std::thread& t : those) t.join();
  }
}

// Acquires the host language's lock, if this thread does not hold it.
class Concluding {
 public:
  Concluding() noexcept : state_(around_sleep.conclude ? around_sleep.conclude() : nullptr) {}
  Concluding(const Concluding&) = delete;
  Concluding& operator=(const Concluding&) = delete;
  ~Concluding() {
    if (state_) around_sleep.concluded(state_);
  }

 private:
  void* const state_;
};

bool Run::expects() noexcept {
  bool so = true;
  while_all_sleep([&] { so = source_is_expected.load(std::memory_order_acquire)(*this); });
  return so;
}

std::uint32_t Run::quiescent() noexcept {
  const Concluding hold;
  core::Wakes wakes;
  bool dead = false, again = false;
  {
    std::unique_lock g(mutex_);
    // The number of the standstill, if one begins.
    const std::uint32_t number = ++standstill_ != 0 ? standstill_ : ++standstill_;
    if (active_.load(std::memory_order_seq_cst) != 0) return 0;
    const std::int32_t outside = outside_.load(std::memory_order_seq_cst);
    if (outside != 0 && outside != unsure()) return 0;
    timers_.drop_dead();
    if (timers_.empty() && source_is_expected.load(std::memory_order_relaxed)) [[unlikely]] {
      g.unlock();
      if (expects()) return 0;
      g.lock();
      // If any of these values has changed, another thread has become idle meanwhile, or will; that
      // thread decides.
      if (standstill_ != number || active_.load(std::memory_order_seq_cst) != 0 ||
          outside_.load(std::memory_order_seq_cst) != outside)
        return 0;
    }
    const bool reports = look_at_standstill.load() && waits_before() != 0;
    if (outside != 0) return reports && (timers_.empty() || clock_ != Clock::steady) ? number : 0;
    if (!timers_.empty()) {
      if (clock_ == Clock::steady) return 0;
      activated();  // This count is held until the processes that were woken are counted.
      virtual_now_.store(timers_.earliest(), std::memory_order_relaxed);
      fire(timers_.earliest(), wakes);
    } else {
      dead = detect_deadlock && !(anything_outside && anything_outside(*this)) && anybody_blocked();
      if (!dead) return reports ? number : 0;
      activated();  // The count keeps other threads from declaring the same deadlock.
      again = deadlocked();
      if (!again) describe();
      deadlocked_.store(true, std::memory_order_release);
    }
  }
  wakes.run();
  if (dead && on_deadlock && !told_.exchange(true)) on_deadlock(report_);
  if (dead) cancel_everybody();
  // The remaining processes cannot be withdrawn, and nothing lets them continue (such as a writer
  // that an extended read holds, rules 1.6, 6.3). Without this check the run would declare the same
  // deadlock again and again.
  if (std::int32_t ours = 1;
      again && active_.compare_exchange_strong(ours, 0, std::memory_order_seq_cst)) {
    if (!told_.exchange(true)) tell_who_is_held();
    return 0;
  }
  return deactivated();
}

void Run::fire(std::int64_t now, core::Wakes& wakes) noexcept {
  while (timers_.earliest() <= now) {
    TimerNode* t = timers_.pop();
    core::Choice* c = t->choice;
    if (c->finish_as(core::TIMED_OUT)) wakes.add(c->waker);
  }
  set_earliest();
}

}  // namespace weft::inline WEFT_ABI::runtime
