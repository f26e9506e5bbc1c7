// weft_mcu/csp_channel.hpp: channels, their ends, and the operations that a process awaits.
//
// Every operation, when it is over, returns a weft::Status: ok, retired, poisoned or timed_out. An
// operation with a deadline is a choice between the channel and an event of the queue (rules M19,
// M20): the two compete to claim the choice.
//
//   read_until:  IDLE ──arm, enrol──► WAITING ──partner──► DONE       (the event is cancelled, or
//                                        │                             does nothing any more)
//                                        └───the event──► TIMED_OUT  (the node leaves the waiting
//                                                                     queue)
//
// Invariants
//  1 The node, value slot and event of a pending operation lie in the frame of its process, which
//  sleeps until the operation is over.
//  2 When an operation is over, its node is in no waiting queue and its event in no queue.
#pragma once
#include <type_traits>

#include "weft_mcu/csp_scheduler.hpp"

namespace weft::inline WEFT_ABI::mcu {

using core::Side;

template <class T>
using ChannelEngine = core::ChannelEngine<T, OneCore>;

namespace detail {

template <Side S>
inline constexpr std::uint32_t kOp = S == Side::in ? WEFT_FLIGHT_READ : WEFT_FLIGHT_WRITE;

// A plain read or write, for which the process's own node waits.
template <class T, Side S>
struct Plain {
  union {
    ChannelEngine<T>* channel;
    core::Node* me;  // the process's node; await_suspend sets it
  };
  std::conditional_t<S == Side::in, T*, T> value;

  bool await_ready() const noexcept { return false; }
  bool await_suspend(Process::Handle h) noexcept {
    core::Node& n = h.promise();
    ChannelEngine<T>* c = channel;
    me = &n;
    Status s = Status::retired;
    if (c) {
      if constexpr (S == Side::in)
        n.slot = value;
      else
        n.slot = &value;
      using Fast = typename ChannelEngine<T>::FastResult;
      const Fast fast = c->template begin_fast<S>(n, n.slot);
      if (fast == Fast::waits) return h.promise().note_waits(c, kOp<S>), true;
      if (fast == Fast::met) {
        n.status = Status::ok;
        h.promise().note_over(c, kOp<S>, Status::ok);
        return false;
      }
      s = c->template begin_slow<S>(n);
      if (s == Status::pending) return h.promise().note_waits(c, kOp<S>, c->ring), true;
    }
    n.status = s;
    h.promise().note_over(c, kOp<S>, s, c && c->ring);
    return h.promise().gives_way();
  }
  Status await_resume() const noexcept {
    static_cast<Process::promise_type*>(me)->note_goes_on(me->place, kOp<S>, me->status);
    return me->status;
  }
};

// A time that is less than kPast before now is past; any other time is in the future, up to 67
// minutes ahead. Therefore a read with a deadline beyond WEFT_HORIZON does not end early (rule
// 8.5). kHop is needed because a queue compares times over 2^31 us: the event of a far deadline is
// released before its time, and posted again.
inline constexpr std::uint32_t kPast = 1u << 28, kHop = 1u << 30;

inline bool is_past(std::uint32_t t) noexcept { return weft_now32() - t < kPast; }

// An event that ends a choice when the choice's deadline has come.
struct Deadline : weft_event {
  core::Choice* choice = nullptr;
  std::uint32_t until;

  constexpr explicit Deadline(std::uint32_t t) noexcept : weft_event{}, until(t) {}
  void post(Scheduler& s, core::Choice& c) noexcept {
    next = nullptr;
    action = &fire;
    actor = s.actor();
    choice = &c;
    const std::uint32_t now = weft_now32();
    s.outside(+1);
    weft_post(s.queue(), this, until - now < kHop || now - until < kPast ? until : now + kHop);
  }
  // Ends the deadline. Called in an action of the same actor, so the event is still queued, or its
  // action has ended; no core can have committed to the event.
  void end(Scheduler& s) noexcept {
    if (!next) return;
    weft_cancel(s.queue(), this);
    s.outside(-1);
  }
  static std::uint32_t fire(weft_event* e, std::uint32_t release) noexcept {
    Deadline* d = static_cast<Deadline*>(e);
    if (release != d->until) return d->until - release < kHop ? d->until - release : kHop;
    core::Choice* c = d->choice;
    core::Waker* w = c->waker;
    Scheduler& s = static_cast<Process::promise_type*>(w)->scheduler();
    s.outside(-1);
    if (c->finish_as(core::TIMED_OUT)) {
      s.push(w);
      s.run_runnable();
    }
    return WEFT_DONE;
  }
};

// A read or write that an event may end at a deadline.
template <class T, Side S>
struct Timed {
  ChannelEngine<T>* channel;
  std::conditional_t<S == Side::in, T*, T> value;
  Deadline event;
  Process::promise_type* me = nullptr;
  core::Node node{};
  core::Choice choice{};

  bool await_ready() const noexcept { return false; }
  bool await_suspend(Process::Handle h) noexcept {
    me = &h.promise();
    if (!channel) return over(Status::retired);
    if constexpr (S == Side::in)
      node.slot = value;
    else
      node.slot = &value;
    choice.waker = me;
    node.belongs_to(&choice);
    core::Attempt t = channel->template scan<S>(node);
    if (t == core::Attempt::not_ready) {
      if (is_past(event.until)) return over(Status::timed_out);
      choice.arm();
      t = channel->template enrol<S>(node);
    }
    if (t == core::Attempt::committed) return over(Status::ok);
    if (t == core::Attempt::ended) return over(node.status);
    event.post(me->scheduler(), choice);
    me->note_waits(channel, kOp<S>, channel->ring);
    return true;
  }
  Status await_resume() noexcept {
    if (event.action) {
      event.end(me->scheduler());
      channel->template withdraw<S>(node);
      const bool done = choice.done();
      me->note_goes_on(channel, kOp<S>, done ? node.status : Status::timed_out);
      if (!done) return Status::timed_out;
    }
    return node.status;
  }

 private:
  bool over(Status s) noexcept {
    node.status = s;
    me->note_over(channel, kOp<S>, s, channel && channel->ring);
    return me->gives_way();
  }
};

// A sleep, which is an event without a channel.
struct Sleep {
  Deadline event;
  core::Choice choice{};
  bool await_ready() const noexcept { return false; }
  bool await_suspend(Process::Handle h) noexcept {
    if (is_past(event.until)) {
      h.promise().note_over(nullptr, WEFT_FLIGHT_SLEEP, Status::ok);
      return h.promise().gives_way();
    }
    choice.waker = &h.promise();
    choice.arm();
    event.post(h.promise().scheduler(), choice);
    h.promise().note_waits(nullptr, WEFT_FLIGHT_SLEEP);
    return true;
  }
  void await_resume() const noexcept {
    if (WEFT_FLIGHT && choice.waker)
      static_cast<Process::promise_type*>(choice.waker)->note_goes_on(nullptr, WEFT_FLIGHT_SLEEP,
                                                                         Status::ok);
  }
};

// A counted end (rule 2.1). The destructor drops the end; the last end of a side retires the
// channel.
template <class T, Side S>
class End {
 public:
  constexpr End() noexcept = default;
  End(End&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  End& operator=(End&& other) noexcept {
    if (this != &other) {
      drop();
      core_ = std::exchange(other.core_, nullptr);
    }
    return *this;
  }
  ~End() { drop(); }
  // Returns false if the end was moved from or closed, or was obtained after its side of the
  // channel had ended. Operations of such an end return `retired`.
  explicit operator bool() const noexcept { return core_ != nullptr; }
  ChannelEngine<T>* core() const noexcept { return core_; }

  // Closes this end now.
  void drop() noexcept {
    if (ChannelEngine<T>* c = std::exchange(core_, nullptr)) {
      if constexpr (S == Side::in)
        c->drop_reader();
      else
        c->drop_writer();
    }
  }
  // Passes this end's count to the caller.
  [[nodiscard]] ChannelEngine<T>* release() noexcept { return std::exchange(core_, nullptr); }
  // Ends the channel for all its ends, immediately (rule 4).
  void poison(std::uint8_t strength = 1) noexcept {
    if (core_) core_->poison(strength);
  }

 protected:
  explicit End(ChannelEngine<T>* c) noexcept : core_(c) {}
  ChannelEngine<T>* another() const noexcept {
    if (core_) {
      if constexpr (S == Side::in)
        core_->another_reader();
      else
        core_->another_writer();
    }
    return core_;
  }
  ChannelEngine<T>* core_ = nullptr;
};

}  // namespace detail

template <class T, std::uint32_t N>
class Channel;

template <class T>
class Reader : public detail::End<T, Side::in> {
 public:
  constexpr Reader() noexcept = default;
  // Returns another end of the same channel.
  Reader share() const noexcept { return Reader{this->another()}; }
  // Reads a value; co_await the result. The result is ok after `to` was written, or retired, or
  // poisoned.
  [[nodiscard]] auto read(T &to) const noexcept {
    return detail::Plain<T, Side::in>{{this->core_}, &to};
  }
  // Does what read() does, but returns timed_out at the microsecond `deadline`. The deadline may be
  // at most 67 minutes ahead; one that is 4.5 minutes ago or more counts as ahead. A value that is
  // available is read even after the deadline.
  [[nodiscard]] auto read_until(T &to, std::uint32_t deadline) const noexcept {
    return detail::Timed<T, Side::in>{this->core_, &to, detail::Deadline{deadline}};
  }

 private:
  template <class U, std::uint32_t N>
  friend class Channel;
  explicit Reader(ChannelEngine<T>* c) noexcept : detail::End<T, Side::in>(c) {}
};

template <class T>
class Writer : public detail::End<T, Side::out> {
 public:
  constexpr Writer() noexcept = default;
  Writer share() const noexcept { return Writer{this->another()}; }
  [[nodiscard]] auto write(T value) const noexcept {
    return detail::Plain<T, Side::out>{{this->core_}, value};
  }
  [[nodiscard]] auto write_until(T value, std::uint32_t deadline) const noexcept {
    return detail::Timed<T, Side::out>{this->core_, value, detail::Deadline{deadline}};
  }

 private:
  template <class U, std::uint32_t N>
  friend class Channel;
  explicit Writer(ChannelEngine<T>* c) noexcept : detail::End<T, Side::out>(c) {}
};

// Sleeps until the microsecond t, or not at all if t is past; co_await the result.
[[nodiscard]] inline auto sleep_until(std::uint32_t t) noexcept {
  return detail::Sleep{detail::Deadline{t}};
}

// A channel: a rendezvous (N = 0) or a buffer of N values; `overflow` determines the behaviour of a
// full buffer. A channel is meant for static storage with constant initialisation.
template <class T, std::uint32_t N = 0>
class Channel : public ChannelEngine<T> {
  static_assert(std::is_trivially_copyable_v<T>,
                "a channel of a microcontroller carries trivially copyable values");

 public:
  constexpr Channel() noexcept {}
  constexpr explicit Channel(Overflow overflow) noexcept
    requires(N > 0)
  {
    ring_.overflow = overflow;
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // The first call of reader() or writer() connects the buffer. An end that is obtained after its
  // side has ended is empty.
  Reader<T> reader() noexcept {
    connect();
    return Reader<T>{this->first_reader() ? this : nullptr};
  }
  Writer<T> writer() noexcept {
    connect();
    return Writer<T>{this->first_writer() ? this : nullptr};
  }
  // Return an end of a count that End::release() has passed to the caller.
  Reader<T> held_reader() noexcept { return Reader<T>{this}; }
  Writer<T> held_writer() noexcept { return Writer<T>{this}; }
  // Returns the number of values that the full buffer has dropped.
  core::Tally dropped() const noexcept
    requires(N > 0)
  {
    return static_cast<core::Tally>(ring_.dropped);
  }

 private:
  void connect() noexcept {
    if constexpr (N > 0)
      if (!this->ring) {
        ring_.data = reinterpret_cast<T*>(storage_);
        ring_.capacity = N;
        this->set_ring(&ring_);
      }
  }
  struct None {};
  [[no_unique_address]] std::conditional_t<(N > 0), core::Ring<T>, None> ring_{};
  alignas(T) unsigned char storage_[N ? N * sizeof(T) : 1] = {};
};

}  // namespace weft::mcu
