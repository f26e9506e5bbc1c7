// Serves the links in shared memory. A thread that waits anyway does the work; if no thread waits,
// a helper thread does the work (WIRE-LINKS.md 12.4). This file needs Linux.
//
// A program has one attendant while it has such links. At most one of the program's threads, the
// *looker*, polls all links: a thread that would wait anyway (at a channel of its own, at a far end
// …), or the bells' thread if a bell was rung while no other thread polled. The looker receives
// what the peers have published, spins for a moment if a peer runs on another CPU, then parks on
// its own word and on all bells at once. The death of a peer shows in two ways: in its life word, a
// futex at which the bells' thread waits, and as end of file on its socket, which the watching
// thread polls. The watching thread polls for hand-shakes too.
//
//   nobody ──attend(), park(), the bells' thread: looks_ is taken──► one thread looks
//   one looks ──its own wait is over, or another thread needs the list──► nobody
//             └──park(): it has only woken other threads, kInVain times──► nobody
//
// Invariants
//  1 The looker holds `looks_`. Links are added and removed with both `looks_` and `list_` held, so
//    a thread that holds either lock may walk the list of links.
//  2 Locks are taken in this order: list_, looks_, the lock of a space. The looker does not take
//    list_.
//  3 A wake-up that was put off (Attended::owed, soft, late) is sent before the thread that put it
//    off sleeps, or by the bells' thread within 2 ms.
//  4 Before a thread sleeps at `control_`, it reads `control_`, and then what a kick announces
//    (stop_, wanted_, the list). So a kick between the two reads is noticed.
//  5 kick() wakes every thread that sleeps in this class, because the destructor waits until no
//    thread is inside (users_).
#pragma once
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <array>
#include <memory>
#include <thread>

#include "../runtime/thread.hpp"
#include "../runtime/waiting.hpp"
#include "lazily.hpp"
#include "life.hpp"
#include "ring.hpp"
#include "space.hpp"

namespace weft::inline WEFT_ABI::wire {

// A link as its attendant sees it.
class Attended {
 public:
  // Receives what the peer has published. The peer might also have made room in the ring, so that
  // this side can send again.
  virtual void take() noexcept = 0;
  // Called when the socket is readable or writable. Sets `watched` to false when nothing more can
  // arrive on the socket.
  virtual void readable() noexcept = 0;
  // Called when the peer has ended. Receives what the peer has published, then ends the link.
  virtual void gone(const char* how) noexcept = 0;
  // Called on the watching thread, outside of steps. From now on the link may call enter().
  virtual void adopted() noexcept = 0;
  // Called like adopted(), when the link has ended and nothing else refers to it.
  virtual void let_go() noexcept = 0;

  bool busy() const noexcept {
    return open &&
           (inlet.any() || (waits_for_room.load(std::memory_order_relaxed) && outlet.has_room()));
  }

  int socket = -1;
  bool watched = true;
  bool open = false;  // true once the hand-shake is complete
  Inlet inlet;
  Outlet outlet;
  // The peer's life word; null once the peer has ended.
  std::atomic<prim::atomic<std::uint32_t>*> life{nullptr};
  std::atomic<bool> waits_for_room{false}, waits_for_socket{false}, owed{false}, soft{false};
  // Both flags are set for the bells' thread, which handles them at its next tick. `late` asks that
  // thread to ring the peer's bell, `left` asks it to poll this link.
  std::atomic<bool> late{false}, left{false};

 protected:
  ~Attended() = default;
};

class Attendant {
 public:
  // Each link takes two of the 128 words that a thread can wait for.
  static constexpr std::size_t kLinks = 60;

  // Returns the existing attendant, or a new one. Throws BadUse if the system cannot wait for
  // several words.
  static std::shared_ptr<Attendant> get() {
    const std::lock_guard g(made_lock_);
    std::shared_ptr<Attendant> a = made_.lock();
    if (!a) made_ = a = std::make_shared<Attendant>();
    return a;
  }
  // Called in the child of a fork. The attendant belongs to the parent: its threads do not run in
  // the child.
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
    } catch (...) {  // A std::system_error says that the system cannot start another thread.
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
    const std::lock_guard g(made_lock_);  // The next attendant is made when this one is destroyed.
    runtime::attending.store(nullptr, std::memory_order_release);
    current_.store(nullptr);
    stop();
    users_.wait_until_none();
    bells_.join();
    sockets_.join();
  }

  // Adds a link. Neither enter() nor leave() may be called in a step. Returns null, or a text that
  // says what is wrong.
  const char* enter(Attended& l, Life& w) noexcept {
    const Change c(*this);
    if (links_.size() == kLinks) return "at most 60 links in shared memory";
    w.begin(lives_);
    links_.push_back(&l);
    return nullptr;
  }
  // Takes ownership of a link that was made in a step and has no other owner. Calls the link's
  // adopted(), and its let_go() when the link has ended.
  void adopt(std::shared_ptr<Attended> l) {
    {
      const std::lock_guard g(unadopted_lock_);
      unadopted_.push_back(std::move(l));
    }
    look_at_sockets();
  }
  void look_at_sockets() noexcept {
    const std::uint64_t one = 1;
    // If the write fails, the thread has been woken already.
    if (::write(control_fd_.get(), &one, sizeof(one)) < 0) return;
  }
  void leave(Attended& l, Life& w) {
    const Change c(*this);
    std::erase(links_, &l);
    w.end();
  }
  // Called by the watching thread, from Attended::readable(), when the link's hand-shake is
  // complete. From now on the looker polls the link.
  void opened(Attended& l) {
    const Change c(*this, true);
    l.open = true;
  }

  // Called in a step, after something was published. Rings the peer's bell, or puts that off. The
  // ring is put off if the peer is parked and shares the only CPU with this thread; if the peer is
  // in standby, and no party waits for what was published; or if this thread is about to wait
  // (Lazily).
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
  // How many times the looker polls all links before it checks the peers' life words again.
  static constexpr int kRounds = 16;
  // How many times in a row the looker may receive only frames that wake other threads and not the
  // looker itself.
  static constexpr int kInVain = 3;
  // The ticking ends after this many ticks in which nothing was put off.
  static constexpr int kQuiet = 8;
  struct Waited {
    std::uint64_t value = 0, at = 0;
    std::uint32_t flags = 0, zero = 0;
  };
  static constexpr std::uint32_t kShared = 2, kPrivate = 2 | 128;  // for words of 32 bits
  using Words = std::array<Waited, 2 * kLinks + 2>;

  // Asks the looker to stop polling while the list of links is changed. `held` says that the caller
  // already holds the lock of the list.
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
      // The system lacks memory for this call, or a filter of system calls has been set since the
      // program began. The caller polls again after a while, and keeps no CPU busy meanwhile.
      prim::park(*reinterpret_cast<prim::atomic<std::uint32_t>*>(w[0].at),
                 static_cast<std::uint32_t>(w[0].value), std::min(until, prim::now() + 1'000'000));
  }
  // Calls the system with no word to wait for. A system that has the call reports an invalid
  // argument (EINVAL). An older system reports ENOSYS. A container's profile chooses its own error,
  // often EPERM.
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
  // Ends this thread's time as the looker: from now on a thread polls only after a bell has been
  // rung.
  void stand_by() noexcept {
    say(Bell::standby);
    for (int round = 0; round < 4 && anything(); ++round) take_all();
    // A peer that never stops sending must not keep this thread from its own work. The bells'
    // thread receives the remaining frames, later if no operation waits for them.
    for (Attended* l : links_)
      if (l->busy() && (l->waits_for_room.load(std::memory_order_relaxed) || l->inlet.hurries() ||
                        !put_off(l->left)))
        if (const Knock k = wire::knock(l->inlet.direction().bell, false, true); k.wake)
          wake(*k.wake);
  }
  // Makes this thread the looker from now on. The thread first wakes peers that have parked: on a
  // shared CPU they run immediately, and their answers need no bell.
  void begin_to_look() noexcept {
    say(Bell::looking);
    for (Attended* l : links_) {
      // The flag is cleared before the bell is rung, so a flag that another thread sets from now on
      // stays set.
      if (!l->owed.load(std::memory_order_relaxed) || !l->owed.exchange(false)) continue;
      if (const Knock k = wire::knock(l->outlet.direction().bell, true, false); k.wake)
        wake(*k.wake);
      else
        l->owed.store(true, std::memory_order_relaxed);
    }
    take_all();
  }
  // Rings the bells that were to be rung before parking, unless the peer has polled meanwhile.
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
  // Stores the looker's CPU where the peers read it. Returns whether a peer runs on another CPU.
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

  // Records for each place where this thread waits how long spinning is worthwhile.
  struct Here {
    const void* place = nullptr;
    runtime::SpinTime spin_time{};
    std::int64_t began = 0;  // when the present wait began, in ns; 0 if the thread did not spin
  };
  static Here& spin_time_here() noexcept {
    static thread_local std::array<Here, 16> all;
    const runtime::ThreadProcess* const p = runtime::ThreadProcess::current_or_null();
    const void* const place = p ? p->place : nullptr;
    Here& here = all[(reinterpret_cast<std::uintptr_t>(place) >> 4) % all.size()];
    if (here.place != place) here = {place};
    return here;
  }
  // Returns whether there are enough CPUs for this thread and for each peer that is awake. If not,
  // spinning would take a CPU from one of them.
  bool room_for_all() const noexcept {
    static const std::int32_t cpus = runtime::usable_cpus();
    std::int32_t awake = 1;
    for (const Attended* l : links_)
      if (l->open && l->outlet.direction().bell.who.load(std::memory_order_relaxed) != Bell::parked)
        ++awake;
    return awake <= cpus;
  }

  // Spins as long as spinning pays, if a peer runs on another CPU; otherwise lets the peers run.
  template <class Came>
  void spin(const Came& came) noexcept {
    if (came()) return;
    Here& here = spin_time_here();
    here.began = 0;
    if (!peers_elsewhere()) return give_way(came);
    std::int64_t most = here.spin_time.now();
    if (most > runtime::SpinTime::kLongest && !room_for_all()) most = runtime::SpinTime::kLongest;
    const std::int64_t began = here.began = prim::now();
    const std::int64_t end = began + most;
    do {
      for (int i = 0; i < 16 && !came(); ++i) {
        prim::relax();
        if (anything()) take_all();
      }
    } while (!came() && wanted_.load(std::memory_order_relaxed) == 0 && prim::now() < end);
    if (came())
      here.spin_time.came(prim::now() - began);
    else
      here.spin_time.in_vain();
  }

  // On one CPU this thread yields instead of sleeping. A peer that also polls then runs, and this
  // thread runs again when that peer yields in turn. Peers that have parked are woken first.
  static runtime::GivingWay& giving_way_here() noexcept {
    static thread_local runtime::GivingWay here;
    return here;
  }
  template <class Came>
  void give_way(const Came& came) noexcept {
    runtime::GivingWay& ours = giving_way_here();
    if (alone_ < 0 || !ours.worth_trying()) return;
    pay();
    if (came() || !anybody_looks()) return;
    ours.until([&] {
      if (came() || wanted_.load(std::memory_order_relaxed) != 0) return true;
      if (!anything()) return false;
      take_all();
      return came();
    });
  }
  // Lets other threads run for a while, and returns whether anything has arrived. Called by the
  // bells' thread, which waits for nothing of its own.
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
  // Parks the thread. Returns false if the thread must sleep without polling, because another
  // thread polls or is about to poll, or because this thread has received only frames for other
  // threads, and the next thread that waits must poll. `spins` says that the thread has not called
  // attend() before.
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
    if (Here& here = spin_time_here(); here.began != 0 && came())
      here.spin_time.slept(prim::now() - here.began);
    came() ? pay_owed() : pay();
    stand_by();
    looks_.unlock();
    return in_vain < kInVain;
  }

  // --- wake-ups that are put off: the peer can run only once this thread sleeps, or no operation
  // waits for what was published ---

  bool put_off(std::atomic<bool>& what) noexcept {
    // The flag was set already. The next tick clears the flag before it polls the link, so that
    // tick handles what this thread has put off too.
    if (what.load(std::memory_order_seq_cst) && ticking_.load(std::memory_order_seq_cst))
      return true;
    const std::uint32_t n = put_off_.fetch_add(1, std::memory_order_relaxed);
    what.store(true,
               // `what` is stored before the check whether the ticks continue, because the last
               // tick checks the flags after it has ended the ticks.
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
          pay();  // The owed bells are rung even if ticking has just ended: rings might have been
                  // put off before that.
          for (Attended* l : links_) {
            if (l->late.load() && l->late.exchange(false) && l->outlet.unread()) ring(*l);
            if (l->left.load() && l->left.exchange(false) && l->busy()) look = true;
          }
        }
      }
      // The loop repeats until some thread has polled: this thread or the looker, which might just
      // be leaving.
      if (look) {
        if (wanted_.load() == 0 && looks_.try_lock()) {
          say(Bell::looking);
          (void)peers_elsewhere();
          take_all();
          // On one CPU the peers whose bells are rung run now, and their answers need no bell,
          // because this thread still polls.
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
      const std::lock_guard g(unadopted_lock_);
      fresh.swap(unadopted_);
    }
    for (auto& l : fresh) {
      l->adopted();
      adopted_.push_back(std::move(l));
    }
    // When a session has ended, its socket is shut down, and readable() sets `watched` to false.
    // From then on nothing else refers to the link.
    std::erase_if(adopted_, [this](const std::shared_ptr<Attended>& l) {
      {
        const std::lock_guard g(list_);
        if (l->watched) return false;
      }
      l->let_go();
      return true;
    });
  }

  // --- called by the runtime when a thread sleeps, on any thread ---

  template <class F>
  static bool with(F&& f) noexcept {
    const runtime::Posting::Now use(users_);
    Attendant* const a = current_.load();
    if (!a) return false;
    // A thread that sleeps here is woken as if by another thread, even by what the thread itself
    // receives.
    core::RunQueue* const queue = std::exchange(core::current_run_queue, nullptr);
    const bool done = f(*a);
    core::current_run_queue = queue;
    return done;
  }
  static const runtime::Attending kAttending;

  static inline std::mutex made_lock_;
  static inline std::weak_ptr<Attendant> made_;
  static inline std::atomic<Attendant*> current_{nullptr};
  // The objects below are never destroyed: a thread can sleep in this class while the program ends.
  static inline runtime::Posting& users_ = *new runtime::Posting;

  std::mutex looks_, list_;
  std::atomic<int> wanted_{0};
  std::vector<Attended*> links_;
  // This lock can be acquired in a step or outside one; no other lock is taken while it is held.
  std::mutex unadopted_lock_;
  // Links not yet adopted; links that the watching thread has adopted.
  std::vector<std::shared_ptr<Attended>> unadopted_, adopted_;
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
