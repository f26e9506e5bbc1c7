// Who serves the links in shared memory: whoever waits, else a thread of the wire's own (WIRE.md
// 12.4). Linux.
//
// A program has one attendant while it has such links. Of its threads at most one *looks* for all
// of them: one that would wait (for whatever: a channel of its own, a far end), or the bells'
// thread if a bell was rung while none did. It takes in what has come, spins for a moment if a peer
// runs on another CPU, then parks on its own word and on all bells at once. Deaths come by the life
// words, which are futexes and the bells' thread's business, and by the sockets' end of file, which
// the watching thread polls for, as for the hand-shakes.
//
//   nobody ──attend(), park(), the bells' thread: looks_ is taken──► one looks ──its own wait is over, or somebody needs the list──► nobody
//                                                                        └──park(): it has only woken others, kInVain times──► nobody
//
// Invariants
//  1 Who looks holds `looks_`. Links come and go with `looks_` and `list_` held, so either suffices
//    to walk them.
//  2 Locks are taken in this order: list_, looks_, a space's. Who looks does not take list_.
//  3 A wake-up that was put off (owed_, soft_) is paid before its thread sleeps, or by the bells'
//    thread within 2 ms.
//  4 Who sleeps by `control_` reads it first, and then what it is rung for (stop_, wanted_, the
//    list): a kick between the two is seen.
//  5 Everybody who sleeps in here can be woken by kick(): the last link that goes waits for all who
//    are inside (users_).
#pragma once
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <array>
#include <memory>
#include <thread>

#include "../runtime/thread.hpp"
#include "lazily.hpp"
#include "life.hpp"
#include "patience.hpp"
#include "ring.hpp"
#include "space.hpp"

namespace weft::inline WEFT_ABI::wire {

// A link as its attendant sees it.
class Attended {
 public:
  virtual void take() noexcept = 0;  // what has come; and room may have come too
  // the socket, or writable; sets `watched` false when there is nothing more to come
  virtual void readable() noexcept = 0;
  // the peer is: first what it has published, then the end
  virtual void gone(const char* how) noexcept = 0;
  // on the watching thread, in no step: now it may enter
  virtual void adopted() noexcept = 0;
  virtual void let_go() noexcept = 0;  // the same; it is over, and nobody else has it

  bool busy() const noexcept {
    return open &&
           (inlet.any() || (waits_for_room.load(std::memory_order_relaxed) && outlet.has_room()));
  }

  int socket = -1;
  bool watched = true;
  bool open = false;  // the hand-shake is over
  Inlet inlet;
  Outlet outlet;
  std::atomic<prim::atomic<std::uint32_t>*> life{nullptr};  // the peer's; null once it has ended
  std::atomic<bool> waits_for_room{false}, waits_for_socket{false}, owed{false}, soft{false};
  // for the bells' thread at its next tick: to ring the peer; to look here
  std::atomic<bool> late{false}, left{false};

 protected:
  ~Attended() = default;
};

class Attendant {
 public:
  // two words each, of the 128 that a thread may wait for
  static constexpr std::size_t kLinks = 60;

  // The one there is, or a new one. Throws BadUse where the system cannot wait for several words.
  static std::shared_ptr<Attendant> get() {
    const std::lock_guard g(made_lock_);
    std::shared_ptr<Attendant> a = made_.lock();
    if (!a) made_ = a = std::make_shared<Attendant>();
    return a;
  }
  // In the child of a fork: the one there is stays the parent's, its threads are not here.
  static void forget() noexcept {
    new (&made_lock_) std::mutex;
    new (&made_) std::weak_ptr<Attendant>;
    new (&users_) runtime::Posting;
    current_.store(nullptr);
    runtime::attending.store(nullptr, std::memory_order_release);
  }
  Attendant() {
    if (!can_wait())
      weft::detail::bad_use(
          "links in shared memory need futex_waitv (Linux 5.16), which this system does not have "
          "or "
          "refuses; take a StreamLink");
    control_fd_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (control_fd_.get() < 0)
      weft::detail::bad_use(
          errno == EMFILE || errno == ENFILE
              ? "no descriptor is left: close some, or raise the limit (ulimit -n)"
              : std::string("links in shared memory need eventfd: ") + std::strerror(errno) +
                    "; take a StreamLink");
    const auto run = [this](void (Attendant::*what)()) {
      return std::thread([this, what] {
        (this->*what)();
        if (around_steps) around_steps->end();
      });
    };
    bells_ = run(&Attendant::serve);
    try {
      sockets_ = run(&Attendant::watch);
    } catch (...) {  // std::system_error: the system has no room for another thread
      stop();
      bells_.join();
      throw;
    }
    current_.store(this);
    runtime::attending.store(&kAttending, std::memory_order_release);
  }
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;
  ~Attendant() {
    const std::lock_guard g(made_lock_);  // the next one is made when this one is gone
    runtime::attending.store(nullptr, std::memory_order_release);
    current_.store(nullptr);
    stop();
    users_.wait_until_none();
    bells_.join();
    sockets_.join();
  }

  // Not in a step; nor leave(). Null, or what is wrong.
  const char* enter(Attended& l, Life& w) noexcept {
    const Change c(*this);
    if (links_.size() == kLinks) return "at most 60 links in shared memory";
    w.begin(lives_);
    links_.push_back(&l);
    return nullptr;
  }
  // A link that was made in a step, and belongs to nobody here: it is told adopted(), and let_go()
  // when it is over.
  void adopt(std::shared_ptr<Attended> l) {
    {
      const std::lock_guard g(foundlings_lock_);
      foundlings_.push_back(std::move(l));
    }
    look_at_sockets();
  }
  void look_at_sockets() noexcept {
    const std::uint64_t one = 1;
    if (::write(control_fd_.get(), &one, sizeof(one)) < 0) return;  // it is rung already
  }
  void leave(Attended& l, Life& w) {
    const Change c(*this);
    std::erase(links_, &l);
    w.end();
  }
  // The hand-shake of a link is over: it can be looked at. By the watching thread, from
  // Attended::readable().
  void opened(Attended& l) {
    const Change c(*this, true);
    l.open = true;
  }

  // After something was published; in a step. If nobody waits for it, and no thread of the peer's
  // waits at all, it may take its time.
  void knock(Attended& l, bool hurries) noexcept {
    Direction& d = l.outlet.direction();
    const std::uint32_t who = d.bell.who.load(std::memory_order_seq_cst);
    if (alone_ >= 0 && who == Bell::parked &&
        d.cpu.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(alone_) &&
        put_off(l.soft))
      return;
    if (!hurries) {
      if (who != Bell::standby || !put_off(l.late)) ring(l);
      return;
    }
    if (!Lazily::now()) return ring(l);
    l.owed.store(true, std::memory_order_relaxed);
    Lazily::owe();
  }

 private:
  static constexpr long kWaitv = 449;
  // of one look, before the lives of the peers are looked at again
  static constexpr int kRounds = 16;
  // times in a row that who looks wakes others, and is not woken by what it takes in
  static constexpr int kInVain = 3;
  // ticks without anything that was put off, after which they end
  static constexpr int kQuiet = 8;
  struct Waited {
    std::uint64_t value = 0, at = 0;
    std::uint32_t flags = 0, zero = 0;
  };
  static constexpr std::uint32_t kShared = 2, kPrivate = 2 | 128;  // words of 32 bits
  using Words = std::array<Waited, 2 * kLinks + 2>;

  // The list changes: who looks is asked to leave off. `held`: by who holds the lock of the list
  // already.
  class Change {
   public:
    explicit Change(Attendant& a, bool held = false) : a_(a), held_(held) {
      if (!held_) a_.list_.lock();
      a_.wanted_.fetch_add(1);
      a_.kick();
      a_.looks_.lock();
    }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    ~Change() {
      a_.looks_.unlock();
      a_.wanted_.fetch_sub(1);
      if (!held_) a_.list_.unlock();
      a_.kick();
    }

   private:
    Attendant& a_;
    const bool held_;
  };

  void stop() noexcept {
    stop_.store(true);
    wanted_.fetch_add(1);
    kick();
  }
  void kick() noexcept {
    control_.fetch_add(1, std::memory_order_seq_cst);
    ::syscall(SYS_futex, &control_, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
    look_at_sockets();
  }
  static void wake(prim::atomic<std::uint32_t>& word) noexcept {
    ::syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  }
  static void add(Words& w, std::size_t& n, prim::atomic<std::uint32_t>& word, std::uint32_t value,
                  std::uint32_t flags) noexcept {
    w[n++] = {value, reinterpret_cast<std::uint64_t>(&word), flags, 0};
  }
  static void wait(Words& w, std::size_t n, std::int64_t until) noexcept {
    const timespec t{until / 1'000'000'000, until % 1'000'000'000};
    if (::syscall(kWaitv, w.data(), n, 0, until == prim::forever ? nullptr : &t, CLOCK_MONOTONIC) <
            0 &&
        errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT)
      // The system lacks memory for it, or the program has shut itself in since it began. The caller
      // looks again in a while, and does not keep a CPU busy meanwhile.
      prim::park(*reinterpret_cast<prim::atomic<std::uint32_t>*>(w[0].at),
                 static_cast<std::uint32_t>(w[0].value), std::min(until, prim::now() + 1'000'000));
  }
  // To wait for no word is an invalid argument (EINVAL) where the system has the call. An older one
  // says ENOSYS. What a container's profile says is the profile's choice, often EPERM.
  static bool can_wait() noexcept {
    return ::syscall(kWaitv, nullptr, 0, 0, nullptr, 0) < 0 &&
           (errno == EINVAL || errno == EINTR || errno == EAGAIN || errno == ENOMEM);
  }

  // --- looking, with looks_ held ---

  void say(Bell::Who who) noexcept {
    for (Attended* l : links_)
      if (l->open) l->inlet.say(who);
  }
  bool anything() const noexcept {
    for (const Attended* l : links_)
      if (l->busy()) return true;
    return false;
  }
  void take_all() noexcept {
    for (Attended* l : links_)
      if (l->busy()) l->take();
  }
  // Nobody looks from here on but who is rung.
  void stand_by() noexcept {
    say(Bell::standby);
    for (int round = 0; round < 4 && anything(); ++round) take_all();
    // A peer that never stops does not keep a thread from what it has to do: the rest is the bells'
    // thread's, and may take its time if nobody waits for it.
    for (Attended* l : links_)
      if (l->busy() && (l->waits_for_room.load(std::memory_order_relaxed) || l->inlet.hurries() ||
                        !put_off(l->left)))
        if (const Knock k = wire::knock(l->inlet.direction().bell, false, true); k.wake)
          wake(*k.wake);
  }
  // We look from now on. Who has parked is woken first: on a CPU that we share it runs at once, and
  // what it answers needs no bell.
  void begin_to_look() noexcept {
    say(Bell::looking);
    for (Attended* l : links_) {
      // Taken back first: what another thread owes from now on stays.
      if (!l->owed.load(std::memory_order_relaxed) || !l->owed.exchange(false)) continue;
      if (const Knock k = wire::knock(l->outlet.direction().bell, true, false); k.wake)
        wake(*k.wake);
      else
        l->owed.store(true, std::memory_order_relaxed);
    }
    take_all();
  }
  // Whose bell was to be rung when we park, unless they had looked by then.
  void pay_owed() noexcept {
    Lazily::paid();
    for (Attended* l : links_)
      if (l->owed.load(std::memory_order_relaxed) && l->owed.exchange(false) && l->outlet.unread())
        ring(*l);
  }
  bool anybody_to_pay() const noexcept {
    for (const Attended* l : links_)
      if (l->soft.load(std::memory_order_relaxed)) return true;
    return false;
  }
  void pay() noexcept {
    pay_owed();
    for (Attended* l : links_)
      if (l->soft.load(std::memory_order_relaxed) && l->soft.exchange(false)) ring(*l);
  }
  static void ring(Attended& l) noexcept {
    if (const Knock k = wire::knock(l.outlet.direction().bell); k.wake) wake(*k.wake);
  }
  // Says to all peers where who looks is. Does one of them run elsewhere?
  bool peers_elsewhere() const noexcept {
    const auto cpu = static_cast<std::uint32_t>(::sched_getcpu());
    bool other = false;
    for (const Attended* l : links_) {
      if (!l->open || !l->life.load(std::memory_order_relaxed)) continue;
      prim::atomic<std::uint32_t>& here = l->inlet.direction().cpu;
      if (here.load(std::memory_order_relaxed) != cpu) here.store(cpu, std::memory_order_relaxed);
      const std::uint32_t theirs = l->outlet.direction().cpu.load(std::memory_order_relaxed);
      if (theirs != cpu && theirs != UINT32_MAX) other = true;
    }
    return other;
  }

  // What it has been worth to spin where a thread waits: for each place by itself.
  struct Here {
    const void* place = nullptr;
    Patience patience{};
    std::int64_t began = 0;  // of the wait that goes on; 0: it did not spin
  };
  static Here& patience_here() noexcept {
    static thread_local std::array<Here, 16> all;
    const runtime::ThreadProcess* const p = runtime::ThreadProcess::current_or_null();
    const void* const place = p ? p->place : nullptr;
    Here& here = all[(reinterpret_cast<std::uintptr_t>(place) >> 4) % all.size()];
    if (here.place != place) here = {place};
    return here;
  }
  // Has each peer that does not sleep a CPU, and we too? Else who spins takes it from one of them.
  bool room_for_all() const noexcept {
    static const std::int32_t cpus = runtime::usable_cpus();
    std::int32_t awake = 1;
    for (const Attended* l : links_)
      if (l->open && l->outlet.direction().bell.who.load(std::memory_order_relaxed) != Bell::parked)
        ++awake;
    return awake <= cpus;
  }

  // For as long as it pays, while a peer runs elsewhere; or lets those that do not run.
  template <class Came>
  void spin(const Came& came) noexcept {
    if (came()) return;
    Here& here = patience_here();
    here.began = 0;
    if (!peers_elsewhere()) return give_way(came);
    std::int64_t most = here.patience.now();
    if (most > Patience::kLongest && !room_for_all()) most = Patience::kLongest;
    const std::int64_t began = here.began = prim::now();
    const std::int64_t end = began + most;
    do {
      for (int i = 0; i < 16 && !came(); ++i) {
        prim::relax();
        if (anything()) take_all();
      }
    } while (!came() && wanted_.load(std::memory_order_relaxed) == 0 && prim::now() < end);
    if (came())
      here.patience.came(prim::now() - began);
    else
      here.patience.in_vain();
  }

  // Where we have one CPU a peer that looks too is about to run, and we run again when it looks for
  // our answer: so nobody sleeps or is woken. Who has parked is woken first.
  static runtime::GivingWay& giving_way_here() noexcept {
    static thread_local runtime::GivingWay here;
    return here;
  }
  template <class Came>
  void give_way(const Came& came) noexcept {
    runtime::GivingWay& ours = giving_way_here();
    if (alone_ < 0 || !ours.worth_trying() || ours.forgoes()) return;
    pay();
    if (came() || !anybody_looks()) return;
    const std::int64_t began = prim::now();
    ours.until([&] {
      if (came() || wanted_.load(std::memory_order_relaxed) != 0) return true;
      if (!anything()) return false;
      take_all();
      return came();
    });
    ours.took(prim::now() - began);
  }
  // Of the bells' thread, which waits for nothing else.
  bool anything_soon() noexcept {
    give_way([&] { return anything(); });
    return anything();
  }
  bool anybody_looks() const noexcept {
    for (const Attended* l : links_) {
      if (!l->open) continue;
      const std::uint32_t who = l->outlet.direction().bell.who.load(std::memory_order_relaxed);
      if (who == Bell::looking || who == Bell::rung) return true;
    }
    return false;
  }

  bool attend(prim::atomic<std::uint32_t>& word) noexcept {
    const auto came = [&] { return word.load(std::memory_order_acquire) != 0; };
    if (came() || wanted_.load() != 0 || !looks_.try_lock()) {
      const std::lock_guard g(list_);
      came() ? pay_owed() : pay();
      return came();
    }
    begin_to_look();
    spin(came);
    came() ? pay_owed() : pay();
    stand_by();
    looks_.unlock();
    return came();
  }
  // False: the thread is to sleep by itself. Another looks, or is about to; or what this one has
  // taken in was for others: the next of them that waits is to look for itself.
  // `spins`: it has not attended before.
  bool park(prim::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t until,
            bool spins) noexcept {
    if (wanted_.load() != 0 || !looks_.try_lock()) {
      const std::lock_guard g(list_);
      pay();
      return false;
    }
    const auto came = [&] { return word.load(std::memory_order_acquire) != expected; };
    if (spins) {
      begin_to_look();
      spin(came);
    }
    int in_vain = 0;
    while (!came() && in_vain < kInVain) {
      pay();
      Words words;
      std::size_t n = 0;
      add(words, n, word, expected, kPrivate);
      add(words, n, control_, control_.load(std::memory_order_seq_cst), kPrivate);
      for (Attended* l : links_) {
        if (!l->open) continue;
        Bell& b = l->inlet.direction().bell;
        add(words, n, b.thread, b.thread.load(std::memory_order_seq_cst), kShared);
      }
      say(Bell::parked);
      if (!anything() && wanted_.load() == 0 && !came()) wait(words, n, until);
      say(Bell::looking);
      (void)runtime::Parking::woke_another();
      take_all();
      if (!runtime::Parking::woke_another()) break;
      ++in_vain;
    }
    if (Here& here = patience_here(); here.began != 0 && came())
      here.patience.slept(prim::now() - here.began);
    came() ? pay_owed() : pay();
    stand_by();
    looks_.unlock();
    return in_vain < kInVain;
  }

  // --- wake-ups that are put off: where the peer can only run once we sleep, or nobody waits for
  // what was said ---

  bool put_off(std::atomic<bool>& what) noexcept {
    // It has been said, and the next tick takes it back before it looks: so it sees ours as well.
    if (what.load(std::memory_order_seq_cst) && ticking_.load(std::memory_order_seq_cst))
      return true;
    const std::uint32_t n = put_off_.fetch_add(1, std::memory_order_relaxed);
    what.store(true,
               // before it is asked whether the ticks go on: the last of them looks after they have
               // ended
               std::memory_order_seq_cst);
    if (ticking_.load(std::memory_order_seq_cst)) return true;
    if (n > 8 && !ticking_.exchange(true)) kick();
    return false;
  }

  // --- the two threads ---

  void serve() {
    lives_.enrol();
    std::uint32_t seen = 0;
    int quiet = 0;
    while (true) {
      Words words;
      std::size_t n = 0;
      add(words, n, control_, control_.load(std::memory_order_seq_cst), kPrivate);
      if (stop_.load()) return;
      bool look = false;
      {
        const std::lock_guard g(list_);
        for (Attended* l : links_) {
          if (!l->open) continue;
          Bell& b = l->inlet.direction().bell;
          add(words, n, b.service, b.service.load(std::memory_order_seq_cst), kShared);
          if (b.who.load(std::memory_order_seq_cst) == Bell::rung) look = true;
          prim::atomic<std::uint32_t>* const life = l->life.load();
          if (!life) continue;
          const std::uint32_t w = life->load(std::memory_order_seq_cst);
          if (Life::lives(w))
            add(words, n, *life, w, kShared);
          else
            l->gone("its program has ended");
        }
        if (ticking_.load()) {
          const std::uint32_t now = put_off_.load(std::memory_order_relaxed);
          quiet = now == seen ? quiet + 1 : 0;
          if (quiet == kQuiet) ticking_.store(false), put_off_.store(0), quiet = 0;
          seen = now;
          pay();  // also what was put off just before the ticking ended
          for (Attended* l : links_) {
            if (l->late.load() && l->late.exchange(false) && l->outlet.unread()) ring(*l);
            if (l->left.load() && l->left.exchange(false) && l->busy()) look = true;
          }
        }
      }
      if (look) {  // until it is done, by us or by who looks meanwhile: it may just be leaving
        if (wanted_.load() == 0 && looks_.try_lock()) {
          say(Bell::looking);
          (void)peers_elsewhere();
          take_all();
          // On one CPU those who are rung run now, and what they answer needs no bell: we still
          // look.
          for (int round = 0; round < kRounds && (anybody_to_pay() || anything_soon()); ++round) {
            pay();
            take_all();
          }
          stand_by();
          looks_.unlock();
        } else {
          std::this_thread::yield();
        }
        continue;
      }
      wait(words, n, ticking_.load() ? prim::now() + 2'000'000 : prim::forever);
    }
  }

  void watch() {
    std::vector<pollfd> fds;
    std::vector<Attended*> whose;
    while (!stop_.load()) {
      look_after_foundlings();
      fds.assign(1, {control_fd_.get(), POLLIN, 0});
      {
        const std::lock_guard g(list_);
        for (Attended* l : links_)
          if (l->watched)
            fds.push_back(
                {l->socket,
                 static_cast<short>(
                     POLLIN | (l->waits_for_socket.load(std::memory_order_seq_cst) ? POLLOUT : 0)),
                 0});
      }
      if (::poll(fds.data(), fds.size(), -1) < 0) continue;
      if (fds[0].revents) {
        std::uint64_t count;
        if (::read(control_fd_.get(), &count, sizeof(count)) < 0) continue;
      }
      const std::lock_guard g(list_);
      whose = links_;
      for (Attended* l : whose)
        for (const pollfd& f : fds)
          if (f.fd == l->socket && f.revents && l->watched) {
            l->readable();
            break;
          }
    }
  }

  void look_after_foundlings() {
    std::vector<std::shared_ptr<Attended>> fresh;
    {
      const std::lock_guard g(foundlings_lock_);
      fresh.swap(foundlings_);
    }
    for (auto& l : fresh) {
      l->adopted();
      adopted_.push_back(std::move(l));
    }
    // A session that is over has shut its socket down, or had it shut: that is seen here, and
    // nobody watches it after that.
    std::erase_if(adopted_, [this](const std::shared_ptr<Attended>& l) {
      {
        const std::lock_guard g(list_);
        if (l->watched) return false;
      }
      l->let_go();
      return true;
    });
  }

  // --- from the runtime's sleep, on any thread ---

  template <class F>
  static bool with(F&& f) noexcept {
    const runtime::Posting::Now use(users_);
    Attendant* const a = current_.load();
    if (!a) return false;
    // Who sleeps here is woken as from any other thread, also by what it does itself meanwhile.
    core::RunQueue* const queue = std::exchange(core::current_run_queue, nullptr);
    const bool done = f(*a);
    core::current_run_queue = queue;
    return done;
  }
  static const runtime::Attending kAttending;

  static inline std::mutex made_lock_;
  static inline std::weak_ptr<Attendant> made_;
  static inline std::atomic<Attendant*> current_{nullptr};
  // never destroyed: a thread may sleep in here while the program ends
  static inline runtime::Posting& users_ = *new runtime::Posting;

  std::mutex looks_, list_;
  std::atomic<int> wanted_{0};
  std::vector<Attended*> links_;
  // within a step or not, and nothing is locked within it
  std::mutex foundlings_lock_;
  // not yet looked after; the watching thread's own
  std::vector<std::shared_ptr<Attended>> foundlings_, adopted_;
  Life::List lives_;
  prim::atomic<std::uint32_t> control_{0};
  Descriptor control_fd_;
  std::atomic<bool> stop_{false}, ticking_{false};
  std::atomic<std::uint32_t> put_off_{0};
  const int alone_ = [] {
    cpu_set_t c;
    return ::sched_getaffinity(0, sizeof(c), &c) == 0 && CPU_COUNT(&c) == 1 ? ::sched_getcpu() : -1;
  }();
  std::thread bells_, sockets_;
};

inline constexpr runtime::Attending Attendant::kAttending{
    [](prim::atomic<std::uint32_t>& word) noexcept {
      return with([&](Attendant& a) { return a.attend(word); });
    },
    [](prim::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t until,
       bool spins) noexcept {
      if (!with([&](Attendant& a) { return a.park(word, expected, until, spins); }))
        prim::park(word, expected, until);
    }};

}  // namespace weft::inline WEFT_ABI::wire
