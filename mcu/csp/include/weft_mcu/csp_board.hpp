// A board whose placeable processes are started by a Python program, over a link (rule 21.10;
// python/docs/boards.md). This header is for sources that declare processes by WEFT_PLACEABLE; the
// board's program is board/host.cpp. The PC's part is python/src/weft/_boards/bare.py.
//
// A process of the board uses channels of the board only. A *line* is such a channel, with what the
// board's program knows of it. The other side of a far line is at the PC: the link is a party at
// the channel, and acts for that side.
//
//   the PC writes:  idle ──a process waits to read: look()──► asked ──over(): a value──► offered
//                     ▲                                          └──an end──► closed      │
//                     └───────────────────a process has read the value────────────────────┘
//   the PC reads:   idle ──a process waits to write: look()──► asked ──over(): taken──► idle
//                                                                 └──an end──► closed
//
// Invariants
//  1 The board asks the PC for a value only while a process waits to read. If that process is in a
//    select and another guard is chosen before the value arrives, the value stays offered.
//  2 A process that writes waits until the PC's channel has accepted the value. Only the output of
//    a select is accepted by the link at once, because a select commits at one place.
//  3 Everything here runs in actions of the scheduler's actor.
#pragma once
#include "weft_mcu/csp_link.hpp"
#include "weft_mcu/csp_placed_select.hpp"

namespace weft::inline WEFT_ABI::board {

using core::Side;

enum {
  kLines = 48,       // channels at a time
  kLineBytes = 320,  // the storage of one line
  kFarEnds = 32,     // ends of each side that the PC can have handed out at a time
  kCalls = 16,       // calls at a time
  kHeld = 12,        // ends that a call holds
};

struct Line;
// What a line does depends on the type of its values.
struct LineOps {
  const void* type;  // identifies the type
  void (*look)(Line&) noexcept;
  bool (*withdraw)(Line&, core::Node&, bool writer) noexcept;
  // Closes an end that no process will hold.
  void (*drop)(Line&, bool writer) noexcept;
  std::uint32_t (*ends)(Line&) noexcept;
};

// Stands for a line in a run queue, or at a channel. When the party is run, it calls ops->look().
struct Party : core::Node {
  Line* line = nullptr;
};

struct Line {
  const LineOps* ops = nullptr;  // null: no process has been given an end yet
  core::SyncObject* channel = nullptr;
  std::uint64_t number = 0;      // the PC's number of a channel that is the board's own
  weft_link_end* end = nullptr;  // the PC's end of a far line; null: the channel is the board's own
  Call* call = nullptr;          // the call that holds the board's end of a far line
  Party task;                    // runs look()
  enum State : std::uint8_t { free, idle, asked, offered, closed } state = free;
  bool queued = false;               // whether `task` is runnable
  bool carries = false;              // whether the link has a value that a select has written
  std::uint8_t readers = 0, writers = 0;  // ends here that no process has received yet
  std::uint8_t overflow = 0, immunity = 0;
  std::uint32_t capacity = 0;
};

// What is wrong with an order of the PC: the first reason that was found.
struct Wrong {
  const char* kind = nullptr;  // the name of the exception in Python
  const char* why = "";
  std::uint32_t needs = 0, has = 0;  // bytes, for a lack of memory
};

struct Entry;
// A process that the PC has started. `number` is the PC's.
struct Call {
  enum : std::uint8_t { free, runs, over, told } state = free;
  std::uint8_t news = 0;  // the number of the end for this call's message
  std::uint8_t far = 0;   // how many far lines of this call are open
  std::uint8_t strength = 0;
  Status how = Status::ok;  // how an operation has ended the process
  Wrong wrong;
  bool stuck = false;       // whether the process belongs to a knot (rule 21.8)
  std::uint32_t number = 0;
  const Entry* entry = nullptr;
  detail::PlacedPromise* process = nullptr;
  At at;
  struct Held {
    Line* line;
    bool writes;
  } held[kHeld] = {};
  std::uint8_t holds = 0;
};

// The functions of the board's program (board/host.cpp).
extern constinit mcu::Scheduler scheduler;
extern constinit core::WakerOps parties;
bool offer(weft_link_op& op) noexcept;
void withdraw(weft_link_op& op) noexcept;
void poison(weft_link_end& end, std::uint8_t strength) noexcept;
void look_later(Line& line) noexcept;  // runs line.ops->look when the running process has stopped
void bad_value(Line& line) noexcept;
void closed(Line& line) noexcept;  // the link no longer uses the line
Line* find(Call& call, weft_cbor& order, bool writer, void*& storage) noexcept;
void given_to(Line& line, bool writer) noexcept;  // a process has been given one of the line's ends
void refuse(Line& line, bool writer) noexcept;    // no process will be given this end
void* room_for(std::uint32_t bytes) noexcept;  // for a channel's buffer; null if there is no room
void wrong(const char* kind, const char* why, std::uint32_t needs = 0,
           std::uint32_t has = 0) noexcept;
bool is_wrong() noexcept;
void made(Call& call) noexcept;  // the next process that is made belongs to the call

template <class T>
inline constexpr char kType = 0;
template <class T>
concept Travels = requires { mcu::FarValue<T>::room; };

struct LinkOp : weft_link_op {
  Line* line = nullptr;
};
template <class T, bool = Travels<T>>
struct Far {};
template <class T>
struct Far<T, true> {
  LinkOp op{};
  weft_link_guard guard{};
  T value{};
  std::uint8_t bytes[mcu::FarValue<T>::room] = {};
};

// A line whose values are of type T.
template <class T>
struct LineOf : Line, Far<T> {
  mcu::Channel<T> values;
  Party me;  // the link's party at the channel
  core::Ring<T> ring;

  // Called when the first process receives an end. Returns false without room for the buffer.
  bool begin() noexcept {
    if (capacity) {
      ring.data = static_cast<T*>(room_for(capacity * sizeof(T)));
      if (!ring.data) return false;
      ring.capacity = capacity;
      ring.overflow = static_cast<Overflow>(overflow);
      values.set_ring(&ring);
    }
    values.name = reinterpret_cast<const char*>(static_cast<Line*>(this));
    values.set_immunity(immunity);
    channel = &values;
    ops = &kOps;
    task.line = me.line = this;
    task.ops = me.ops = &parties;
    // The line holds the ends that processes will receive, and the link's end.
    for (unsigned n = end ? 1 : writers; n > 0; --n) (void)values.writer().release();
    for (unsigned n = end ? 1 : readers; n > 0; --n) (void)values.reader().release();
    return true;
  }

  static LineOf& of(Line& l) noexcept { return static_cast<LineOf&>(l); }
  static void look(Line& l) noexcept {
    if constexpr (Travels<T>) {
      LineOf& its = of(l);
      if (its.end && its.state != closed) its.end->writes ? its.send() : its.fetch();
    }
  }
  static bool withdraw(Line& l, core::Node& n, bool writer) noexcept {
    return writer ? of(l).values.template withdraw<Side::out>(n)
                  : of(l).values.template withdraw<Side::in>(n);
  }
  static void drop(Line& l, bool writer) noexcept {
    writer ? of(l).values.drop_writer() : of(l).values.drop_reader();
  }
  static std::uint32_t ends(Line& l) noexcept {
    return of(l).values.reader_ends() + of(l).values.writer_ends();
  }
  static constexpr LineOps kOps{&kType<T>, &look, &withdraw, &drop, &ends};

  // The PC writes, and processes of the board read.
  void fetch() noexcept {
    const bool gone = values.reader_ends() == 0, poisoned = values.poison_strength() != 0;
    if (state == offered && !values.is_waiting(me)) state = idle;  // The value was read.
    if (state == asked) {
      if (gone || poisoned) board::withdraw(this->op);
      return;
    }
    if (gone || poisoned) {
      if (state == offered) values.template withdraw<Side::out>(me);
      return close(poisoned);
    }
    if (state == idle && values.waited()) ask();
  }
  // The PC reads, and processes of the board write.
  void send() noexcept {
    if (values.poison_strength() != 0 && state == idle && !carries) return close(true);
    if (state == asked) return;
    core::Node* first = nullptr;
    values.with_lock([&](core::Queue& readers, core::Queue& writers_) {
      (void)readers;
      first = static_cast<core::Node*>(writers_.front());
    });
    if (!first) {
      if (values.writer_ends() == 0) close(false);
      return;
    }
    this->value = *static_cast<T*>(first->slot);
    if (first->choice()) {
      if (!take()) return;
      carries = true;
    }
    ask();
  }
  // Takes the value of the first writer. Returns false if there is none.
  bool take() noexcept {
    me.slot = &this->value;
    if (values.template begin<Side::in>(me) == Status::ok) return true;
    values.template withdraw<Side::in>(me);
    return false;
  }
  void ask() noexcept {
    auto& op = this->op;
    state = asked;
    op.line = this;
    op.guards = &this->guard;
    op.count = 1;
    op.into = this->bytes;
    op.room = sizeof this->bytes;
    op.over = [](weft_link_op* o) { of(*static_cast<LinkOp*>(o)->line).over(); };
    this->guard.end = end;
    if (end->writes) {
      weft_cbor w = weft_cbor_writer(this->bytes, sizeof this->bytes);
      mcu::FarValue<T>::put(w, this->value);
      this->guard.value = this->bytes;
      this->guard.length = static_cast<std::uint16_t>(w.at - this->bytes);
    }
    if (!offer(op)) over();
  }
  // Called when the link's operation has ended.
  void over() noexcept {
    state = idle;
    const auto status = static_cast<weft_link_status>(this->op.status);
    const Side mine = end->writes ? Side::in : Side::out;
    if (status == WEFT_LINK_OK && mine == Side::in) {
      if (!std::exchange(carries, false)) (void)take();
    } else if (status == WEFT_LINK_OK) {
      weft_cbor r = weft_cbor_reader(this->bytes, this->op.length);
      this->value = mcu::FarValue<T>::get(r);
      if (r.bad) return bad_value(*this);
      me.slot = &this->value;
      if (values.template begin<Side::out>(me) == Status::pending) state = offered;
    } else if (status == WEFT_LINK_POISONED) {
      carries = false;
      values.poison(end->strength);
      return close(false);
    } else if (status != WEFT_LINK_WITHDRAWN) {
      if (status == WEFT_LINK_TOO_LONG) return bad_value(*this);
      carries = false;
      const bool died = status == WEFT_LINK_DIED;
      mine == Side::in ? values.drop_reader(died) : values.drop_writer(died);
      state = closed;
      return board::closed(*this);
    }
    look_later(*this);
  }
  void close(bool poisons) noexcept {
    state = closed;
    if (poisons) board::poison(*end, values.poison_strength());
    end->writes ? values.drop_reader() : values.drop_writer();
    board::closed(*this);
  }
};

// --- the arguments of a call ---------------------------------------------------------------------

// Returns the channel of an end that the order names; null if the order is wrong.
template <class T>
mcu::Channel<T>* given(Call& call, weft_cbor& order, bool writer) noexcept {
  static_assert(sizeof(LineOf<T>) <= kLineBytes, "weft: the values of this channel are too large");
  void* storage = nullptr;
  Line* line = find(call, order, writer, storage);
  if (!line) return nullptr;
  bool right = true;
  if (!Travels<T> && line->end) {
    right = false;
    wrong("BadUse", "the type of a channel's values does not go over a line");
  } else if (line->ops && line->ops->type != &kType<T>) {
    right = false;
    wrong("BadUse", "a channel's reader and its writer are of different types");
  } else if (!line->ops) {
    const Line described = *line;
    auto* const its = ::new (storage) LineOf<T>;
    static_cast<Line&>(*its) = described;
    right = its->begin();
  }
  if (!right) return refuse(*line, writer), nullptr;
  given_to(*line, writer);
  return &LineOf<T>::of(*line).values;
}

template <class A>
struct Argument {
  static_assert(Travels<A>,
                "weft: a process that a Python program places on a board has parameters that are "
                "ends, integers, bool, float and double");
  static A take(Call&, weft_cbor& order) noexcept {
    const A v = mcu::FarValue<A>::get(order);
    if (order.bad) wrong("BadUse", "an argument is not of its parameter's type");
    return v;
  }
};
// An end, which the line has held for the process.
template <class T>
struct Argument<weft::Reader<T>> {
  static weft::Reader<T> take(Call& call, weft_cbor& order) noexcept {
    auto* const c = given<T>(call, order, false);
    if (!c) return mcu::Reader<T>();
    return c->held_reader();
  }
};
template <class T>
struct Argument<weft::Writer<T>> {
  static weft::Writer<T> take(Call& call, weft_cbor& order) noexcept {
    auto* const c = given<T>(call, order, true);
    if (!c) return mcu::Writer<T>();
    return c->held_writer();
  }
};
template <>
struct Argument<weft::Barrier> {
  static weft::Barrier take(Call&, weft_cbor&) noexcept {
    static constinit mcu::Barrier none{1};
    wrong("BadUse", "a barrier stays in its program");
    return none;
  }
};

// A process that the PC can start, by its place in the board's table.
struct Entry {
  const char* name;
  const char* file;
  std::uint32_t line;
  std::uint32_t parameters;
  // Starts the process for the call. If that is not possible, calls wrong() with the reason.
  void (*start)(Call&, weft_cbor&) noexcept;
};

template <auto F>
struct Started;
template <class... A, weft::Process (*F)(A...)>
struct Started<F> {
  static constexpr std::uint32_t kParameters = sizeof...(A);
  static void start(Call& call, weft_cbor& order) noexcept {
    std::tuple<A...> arguments{Argument<A>::take(call, order)...};
    if (is_wrong()) return;
    weft::detail::PlacedPromise::makes(scheduler);
    std::apply(
        [&](A&... a) {
          made(call);
          weft::Process p = F(static_cast<A&&>(a)...);
          if (p) {
            call.process = weft::detail::PlacedPromise::of(p);
            (void)weft::detail::PlacedPromise::starts(scheduler, static_cast<weft::Process&&>(p));
          } else {
            wrong("MemoryError", "", scheduler.last_frame(), 0);
          }
        },
        arguments);
  }
};

}  // namespace weft::inline WEFT_ABI::board

#define WEFT_PLACING_DECLARE(F)                                                              \
  static_assert(::weft::placing::fits_board(&F));                                            \
  extern "C" const ::weft::board::Entry weft_board_##F;                                      \
  extern "C" const ::weft::board::Entry weft_board_##F = {                                   \
      #F, __FILE__, __LINE__, ::weft::board::Started<&F>::kParameters, \
      &::weft::board::Started<&F>::start};
