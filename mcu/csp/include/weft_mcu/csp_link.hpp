// weft_mcu/csp_link.hpp: lets processes read and write channels of a Weft program on a PC
// (mcu/LINK.md).
//
// The home of the channel is the PC. An operation is an offer to the PC; the operation's data lies
// in the frame of its process. The operation waits until the PC has handed out the end. When the
// session is over the operation returns died (or in_doubt if a value may have been taken), and the
// next operation waits for the next session.
//
// Invariant: only actions of the scheduler's actor use the link. A process that becomes runnable in
// a turn of the link runs after that turn.
#pragma once
#include <bit>
#include <concepts>
#include <limits>

#include "link_uart.h"
#include "weft_mcu/cbor.h"
#include "weft_mcu/csp_scheduler.hpp"

namespace weft::inline WEFT_ABI::mcu {

// Converts a T to a value of the PC and back. Specialise FarValue for a type of your own: `room`
// bytes are enough for each value; get() sets r.bad for a value that is not a T.
template <class T>
struct FarValue;
template <std::integral T>
struct FarValue<T> {
  static constexpr std::uint16_t room = 9;
  static void put(weft_cbor& w, T v) noexcept {
    if constexpr (std::unsigned_integral<T>)
      weft_cbor_uint(&w, v);
    else
      weft_cbor_int(&w, v);
  }
  static T get(weft_cbor& r) noexcept {
    if constexpr (sizeof(T) == 8 && std::unsigned_integral<T>) {
      const weft_cbor_item i = weft_cbor_next(&r);
      r.bad |= i.kind != WEFT_CBOR_UINT;
      return i.n;
    } else {
      const std::int64_t n = weft_cbor_read_int(&r);
      r.bad |= n < static_cast<std::int64_t>(std::numeric_limits<T>::min()) ||
               n > static_cast<std::int64_t>(std::numeric_limits<T>::max());
      return static_cast<T>(n);
    }
  }
};
template <>
struct FarValue<bool> {
  static constexpr std::uint16_t room = 1;
  static void put(weft_cbor& w, bool v) noexcept { weft_cbor_bool(&w, v); }
  static bool get(weft_cbor& r) noexcept { return weft_cbor_read_bool(&r); }
};
template <>
struct FarValue<float> {
  static constexpr std::uint16_t room = 9;  // A PC sends doubles, of 64 bits.
  static void put(weft_cbor& w, float v) noexcept { weft_cbor_float(&w, v); }
  static float get(weft_cbor& r) noexcept { return weft_cbor_read_float(&r); }
};

template <>
struct FarValue<double> {
  static constexpr std::uint16_t room = 9;
  static void put(weft_cbor& w, double v) noexcept {
    std::uint8_t bytes[room] = {0xfb};  // a float of 64 bits (RFC 8949, 3.3)
    const auto bits = std::bit_cast<std::uint64_t>(v);
    for (unsigned i = 0; i < 8; ++i) bytes[i + 1] = static_cast<std::uint8_t>(bits >> (56 - 8 * i));
    w.bad |= w.end - w.at < room;
    if (!w.bad)
      for (const std::uint8_t b : bytes) *w.at++ = b;
  }
  static double get(weft_cbor& r) noexcept {
    const std::uint8_t* const from = r.at;
    const weft_cbor_item i = weft_cbor_next(&r);
    if (i.kind == WEFT_CBOR_UINT) return static_cast<double>(i.n);
    if (i.kind == WEFT_CBOR_NEGATIVE) return -1.0 - static_cast<double>(i.n);
    r.bad |= i.kind != WEFT_CBOR_FLOAT;
    if (r.bad || *from != 0xfb) return i.f;
    std::uint64_t bits = 0;
    for (unsigned k = 1; k < room; ++k) bits = bits << 8 | from[k];
    return std::bit_cast<double>(bits);
  }
};

// Makes a link with these ends; bytes to be sent wait in `room`.
template <std::size_t Ends, std::size_t Bytes>
constexpr weft_link make_link(weft_link_end (&ends)[Ends], std::uint8_t (&room)[Bytes],
                              const char* name) noexcept {
  static_assert(Bytes >= 128 && Bytes < 65536);
  weft_link l{};
  l.ends = ends;
  l.count = Ends;
  l.out = room;
  l.out_room = Bytes;
  l.name = name;
  return l;
}

// The serial line to the PC. After each turn of the link, it runs the processes that became ready.
class Pc : weft_link_uart {
 public:
  constexpr Pc(Scheduler& s, weft_link& l) noexcept : weft_link_uart{}, scheduler_(&s) {
    link = &l;
    actor = s.actor();
    after = [](weft_link_uart* line) { static_cast<Pc*>(line)->scheduler_->run_runnable(); };
  }
  Pc(const Pc&) = delete;
  Pc& operator=(const Pc&) = delete;

  void start() noexcept {
    queue = scheduler_->queue();
    scheduler_->outside(+1);
    weft_link_uart_start(this);
  }
  // Returns true if the operation is under way.
  bool offer(weft_link_op& op) noexcept {
    const bool waits = weft_link_offer(link, &op);
    weft_link_uart_kick(this);
    return waits;
  }
  void retire(weft_link_end& e) noexcept {
    weft_link_retire(link, &e);
    weft_link_uart_kick(this);
  }
  void poison(weft_link_end& e, std::uint8_t strength = 1) noexcept {
    weft_link_poison(link, &e, strength);
    weft_link_uart_kick(this);
  }
  // Makes the line send the bytes of a call to the link that was made outside `over` and `news`.
  void kick() noexcept { weft_link_uart_kick(this); }
  // Ends the session. The next session begins automatically.
  void close(const char* why) noexcept {
    weft_link_close(link, why);
    weft_link_uart_kick(this);
  }
  const weft_link& state() const noexcept { return *link; }

 private:
  Scheduler* scheduler_;
};

namespace detail {

constexpr Status status_of(const weft_link_op& op) noexcept {
  switch (op.status) {
    case WEFT_LINK_OK: return Status::ok;
    case WEFT_LINK_POISONED: return Status::poisoned;
    case WEFT_LINK_DIED: return op.in_doubt ? Status::in_doubt : Status::died;
    default: return Status::retired;  // The end was given up, or its channel has retired.
  }
}

template <class T, bool Writes>
struct Far : weft_link_op {
  static constexpr std::uint32_t kOp = Writes ? WEFT_FLIGHT_WRITE : WEFT_FLIGHT_READ;
  Pc* pc;
  T* value;
  weft_link_guard guard{};
  Process::promise_type* me = nullptr;
  std::uint8_t bytes[FarValue<T>::room];

  Far(Pc& p, weft_link_end& e, T* v) noexcept : weft_link_op{}, pc(&p), value(v) {
    guard.end = &e;
    count = 1;
    into = bytes;
    room = sizeof bytes;
    over = [](weft_link_op* op) {
      Process::promise_type* const who = static_cast<Far*>(op)->me;
      who->scheduler().push(who);
    };
  }
  Far(const Far&) = delete;
  bool await_ready() const noexcept { return false; }
  bool await_suspend(Process::Handle h) noexcept {
    me = &h.promise();
    guards = &guard;
    if constexpr (Writes) {
      weft_cbor w = weft_cbor_writer(bytes, sizeof bytes);
      FarValue<T>::put(w, *value);
      guard.value = bytes;
      guard.length = static_cast<std::uint16_t>(w.at - bytes);
    }
#if WEFT_FLIGHT
    if (pc->offer(*this)) return me->note_waits(guard.end, kOp), true;
    me->note_over(guard.end, kOp, status_of(*this));
    return me->gives_way();
#else
    return pc->offer(*this) || h.promise().gives_way();
#endif
  }
  Status await_resume() noexcept {
    me->note_goes_on(guard.end, kOp, status_of(*this));
    if constexpr (!Writes) {
      weft_cbor r = weft_cbor_reader(bytes, length);
      const T v = status == WEFT_LINK_OK ? FarValue<T>::get(r) : T{};
      if (status == WEFT_LINK_TOO_LONG || r.bad) {  // close() tells the PC why no value is read.
        pc->close("a value that is not of the type that the board reads");
        return Status::died;
      }
      if (status == WEFT_LINK_OK) *value = v;
    }
    return status_of(*this);
  }
};

}  // namespace detail

// An end that belongs to one process. The destructor gives the end up.
template <class T, bool Writes>
class FarEnd {
 public:
  FarEnd(Pc& pc, weft_link_end& e) noexcept : pc_(&pc), end_(&e) { e.dropped = false; }
  FarEnd(FarEnd&& other) noexcept : pc_(std::exchange(other.pc_, nullptr)), end_(other.end_) {}
  FarEnd& operator=(FarEnd&&) = delete;
  ~FarEnd() { drop(); }
  void drop() noexcept {
    if (Pc* p = std::exchange(pc_, nullptr)) {
      end_->dropped = true;  // Later sessions give the end up too, since no process would use it.
      p->retire(*end_);
    }
  }
  void poison(std::uint8_t strength = 1) noexcept { pc_->poison(*end_, strength); }

 protected:
  Pc* pc_;
  weft_link_end* end_;
};
template <class T>
struct FarReader : FarEnd<T, false> {
  using FarEnd<T, false>::FarEnd;
  // Reads a value; co_await the result. The result is ok after `to` was written, or retired,
  // poisoned or died.
  [[nodiscard]] auto read(T& to) noexcept {
    return detail::Far<T, false>{*this->pc_, *this->end_, &to};
  }
};
template <class T>
struct FarWriter : FarEnd<T, true> {
  using FarEnd<T, true>::FarEnd;
  // Writes a value; co_await the result. The result is ok once the PC's channel has accepted the
  // value, or retired, poisoned, died or in_doubt.
  [[nodiscard]] auto write(T value) noexcept {
    struct Write : detail::Far<T, true> {
      T held;
      Write(Pc& p, weft_link_end& e, T v) noexcept : detail::Far<T, true>{p, e, &held}, held(v) {}
    };
    return Write{*this->pc_, *this->end_, value};
  }
};

}  // namespace weft::inline WEFT_ABI::mcu
