// weft_mcu/csp_port.hpp: lets an interrupt, an actor or the other core write into a channel.
//
// post_value() puts a value into a small ring, under the lock of the scheduler's queue, and posts
// the port's event. The action of the event belongs to the scheduler's actor. It writes the values
// of the ring into the channel like any writer; while no reader takes them they wait in the ring.
// So an interrupt never touches a channel.
//
//   IDLE ──post_value, event──► pumping ──ring empty──► IDLE
//                                │  ▲
//                    no reader   ▼  │ a reader takes the value
//                               WAITING
//
// Invariants
//  1 in_ and ring_ change under the queue's lock; only the scheduler's actions change out_.
//  2 A ring that is not empty has its event queued, or is being pumped, or waits for a reader, or
//  its channel has ended.
#pragma once
#include "weft_mcu/csp_channel.hpp"

namespace weft::inline WEFT_ABI::mcu {

template <class T, std::uint32_t N>
class Port : core::Node {
  static_assert(std::is_trivially_copyable_v<T> && N > 0 && (N & (N - 1)) == 0,
                "a port holds trivially copyable values, a power of two of them");

 public:
  constexpr explicit Port(Scheduler &s) noexcept
      : ops_{&woken, &run, nullptr, 0},
        scheduler_(&s),
        event_{WEFT_EVENT(&pump_action, s.actor()), this} {}
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  // Sets the channel for the values. Must be called before the first value is posted. The port
  // holds its end as any writer does.
  void connect(Writer<T> out) noexcept {
    channel_ = out.release();
    ops_.home = scheduler_->home;
    ops = &ops_;
    ended_ = false;
    scheduler_->outside(+1);
  }

  // Puts a value into the ring. Returns false if the ring was full, the channel has ended, or the
  // port is not connected yet (a debug build panics); the value is then dropped and counted. May be
  // called from any core, interrupt or action; if another core calls it, the scheduler's queue must
  // have a lock.
  bool post_value(T value) noexcept {
    weft_queue* q = scheduler_->queue();
    const weft_irq_t irq = weft_lock(q->lock);
    const std::uint32_t in = in_;
    const bool room = in - WEFT_PEEK(out_) < N && !ended_;
    if (room) {
      ring_[in % N] = value;
      WEFT_POKE(in_, in + 1);
    } else {
      ++dropped_;
    }
    weft_unlock(q->lock, irq);
    if (!room && !ops)
      (void)WEFT_MISTAKE(0, "a value is posted to a port that is not connected; connect() it first");
    if (room && !WEFT_PEEK(waiting_)) weft_post_as(q, &event_, weft_now32(), WEFT_KEEP);
    return room;
  }
  // Does what post_value() does with each of n values, under one lock and with one event. Returns
  // the number of values that were put into the ring; the later ones are dropped and counted.
  std::uint32_t post_values(const T* values, std::uint32_t n) noexcept {
    weft_queue* q = scheduler_->queue();
    const weft_irq_t irq = weft_lock(q->lock);
    const std::uint32_t in = in_, room = ended_ ? 0 : N - (in - WEFT_PEEK(out_));
    const std::uint32_t put = n < room ? n : room;
    for (std::uint32_t i = 0; i < put; ++i) ring_[(in + i) % N] = values[i];
    WEFT_POKE(in_, in + put);
    dropped_ += n - put;
    weft_unlock(q->lock, irq);
    if (n != 0 && !ops)
      (void)WEFT_MISTAKE(0, "values are posted to a port that is not connected; connect() it first");
    if (put != 0 && !WEFT_PEEK(waiting_)) weft_post_as(q, &event_, weft_now32(), WEFT_KEEP);
    return put;
  }
  // Ends the stream of values. Called from a process of the scheduler. The port closes its end when
  // the ring is empty.
  void close() noexcept {
    closing_ = true;
    if (!waiting_) pump();
  }

  std::uint32_t dropped() const noexcept { return WEFT_PEEK(dropped_); }
  // Returns true if the port is not connected, or has found that its channel has ended.
  bool ended() const noexcept { return WEFT_PEEK(ended_); }

 private:
  struct Event : weft_event {
    Port* port;
  };
  static void woken(core::Waker* w) noexcept { w->ops->home->push(w); }
  static void run(core::Waker* w) noexcept {
    Port* p = static_cast<Port*>(w);
    p->waiting_ = false;
    if (p->status != Status::ok) return p->end();
    weft_flight_note(p, p->channel_, WEFT_FLIGHT_GOES_ON | WEFT_FLIGHT_WRITE << WEFT_FLIGHT_OP);
    WEFT_POKE(p->out_, p->out_ + 1);
    p->pump();
  }
  static std::uint32_t pump_action(weft_event* e, std::uint32_t) noexcept {
    Port* p = static_cast<Event*>(e)->port;
    if (!p->waiting_) p->pump();
    p->scheduler_->run_runnable();
    return WEFT_DONE;
  }
  void pump() noexcept {
    ChannelEngine<T>* c = channel_;
    while (c && out_ != WEFT_PEEK(in_)) {
      slot = &ring_[out_ % N];
      // The flag is set before the value can be taken or an interrupt checks the flag.
      WEFT_POKE(waiting_, true);
      const Status s = c->template begin<Side::out>(*this);
      if (s == Status::pending) {
        weft_flight_note(this, c, WEFT_FLIGHT_WAITS | WEFT_FLIGHT_WRITE << WEFT_FLIGHT_OP |
                                      (c->ring ? WEFT_FLIGHT_BUFFERED : 0));
        return;
      }
      WEFT_POKE(waiting_, false);
      if (s != Status::ok) return end();
      weft_flight_note(this, c, WEFT_FLIGHT_OVER | WEFT_FLIGHT_WRITE << WEFT_FLIGHT_OP |
                                    (c->ring ? WEFT_FLIGHT_BUFFERED : 0));
      WEFT_POKE(out_, out_ + 1);
    }
    if (closing_ || !c) end();
  }
  void end() noexcept {
    weft_queue* q = scheduler_->queue();
    const weft_irq_t irq = weft_lock(q->lock);
    ended_ = true;
    dropped_ += in_ - out_;
    out_ = in_;
    weft_unlock(q->lock, irq);
    if (ChannelEngine<T>* c = std::exchange(channel_, nullptr)) {
      scheduler_->outside(-1);
      c->drop_writer();
    }
  }

  core::WakerOps ops_;
  Scheduler* scheduler_;
  Event event_;
  // A counted writer end of the channel. It is not a Writer, so that a static port needs no
  // destructor.
  ChannelEngine<T>* channel_ = nullptr;
  std::uint32_t in_ = 0, out_ = 0, dropped_ = 0;
  bool waiting_ = false, ended_ = true, closing_ = false;  // connect() clears `ended_`
  T ring_[N] = {};
};

}  // namespace weft::mcu
