// Channels and their counted ends (rules 1 and 2), over the freestanding core.
//
//   weft::Channel<int> c;                    // shared: coroutines and threads anywhere meet on it
//   weft::Channel<int, weft::Local> d;       // all its processes on one scheduler; no atomics
//   weft::Channel<int> b{weft::buffer(16)};  // buffered
//   weft::Channel<int, weft::OneToOne> o{weft::buffer(1024)};  // lock-free; one end at each side
//
// Storage: a core exists as long as a channel handle or an end refers to it (`references`).
#pragma once
#include <cstring>
#include <optional>

#include <atomic>
#include "channel_options.hpp"
#include "core/one2one.hpp"
#include "core/select.hpp"
#include "core/stored.hpp"
#include "errors.hpp"
#include "here.hpp"
#include "runtime/points.hpp"
#include "runtime/pool.hpp"
#include "runtime/thread.hpp"
#include "thread_call.hpp"

namespace weft::inline WEFT_ABI {

template <class T, class P>
class Reader;
template <class T, class P>
class Writer;
template <class T, class P = Shared>
class ChannelHandle;  // defined in handle.hpp

namespace detail {

// Returns a copy of `name` that is kept forever, for reports about a channel that no longer exists.
const char* intern(const char* name);

// A channel's engine. V is how a T is stored (core/stored.hpp); only ends and awaiters know T.
template <class V, class P>
using EngineFor =
    std::conditional_t<core::one_to_one<P>, core::OneToOneEngine<V, P>, core::ChannelEngine<V, P>>;
template <class T, class P>
using EngineOf = EngineFor<core::Stored<T>, P>;
struct Unpooled {};  // The pool does not hold an engine that is aligned to cache lines.
template <class V, class P>
struct PooledEngine final : EngineFor<V, P>,
                            std::conditional_t<core::one_to_one<P>, Unpooled, runtime::Pooled> {};

[[noreturn, gnu::cold]] void one_too_many(const core::SyncObject* c, const char* end);
[[noreturn, gnu::cold]] void not_at_home(const core::SyncObject* c, const char* what);
// The places of a closed end, and of a write that was awaited before. No process has used them, so
// an operation there takes the slow path, which detects them (begin_in_full() of coroutine.hpp).
inline constinit core::SyncObject closed_place{}, spent_place{};
inline bool is_no_place(const core::SyncObject* p) noexcept {
  return p == &closed_place || p == &spent_place;
}
template <class>
inline constexpr bool never = false;  // for static_asserts in code that must not be instantiated
// Whether T is a number, which write() takes by value. write() takes any other type by reference,
// and moves from the reference or, if T can be copied, copies.
template <class T>
inline constexpr bool kNumber = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
inline constexpr bool kCopied = std::is_copy_constructible_v<T>;
template <class U>
void cannot_write() {
  static_assert(never<U>,
                "weft: this value cannot be written to this channel: it does not convert to the "
                "channel's type, or it can only be moved (then say std::move(value))");
}

// Returns 0 if an end that is destroyed now retires. If an uncaught poison is leaving the process,
// returns the strength with which the end poisons its channel (rule 4.3).
inline std::uint8_t poison_under_way() noexcept {
  const runtime::Context* c = runtime::this_context;
  if (!c || (c->dying | c->thrown) == 0) [[likely]]
    return 0;
  if (c->dying) return c->dying;
  // A poison that was caught and no longer exists does not spread.
  return std::uncaught_exceptions() > 0 && !c->poisoned.expired() ? c->thrown : 0;
}
// Values that a buffer drops do not belong to the process that happens to drop them. So ends among
// these values are retired, even if that process is passing on a poison (rule 2.4).
class NobodysValues {
 public:
  NobodysValues() noexcept {
    if (runtime::Context* c = runtime::this_context) {
      dying_ = std::exchange(c->dying, 0);
      thrown_ = std::exchange(c->thrown, 0);
    }
  }
  NobodysValues(const NobodysValues&) = delete;
  NobodysValues& operator=(const NobodysValues&) = delete;
  ~NobodysValues() {
    if (runtime::Context* c = runtime::this_context) {
      c->dying = dying_;
      c->thrown = thrown_;
    }
  }

 private:
  std::uint8_t dying_ = 0;
  std::uint8_t thrown_ = 0;
};

template <class T>
struct HeapRing : core::Ring<T> {
  using Ring = core::Ring<T>;
  explicit HeapRing(std::uint32_t n, Overflow o) {
    this->data = allocate(n);
    this->capacity = n;
    this->overflow = o;
    this->discard = [](Ring& r) noexcept {
      const NobodysValues undelivered;
      r.clear();
      ::operator delete(static_cast<void*>(r.data), std::align_val_t(alignof(T)));
      r.data = nullptr;
    };
    if (o == Overflow::unbounded) this->grow = &double_it;
  }
  ~HeapRing() {
    if (this->data) this->discard(*this);
  }
  static T* allocate(std::uint32_t n) {
    return static_cast<T*>(
        ::operator new (std::size_t{n} * sizeof(T), std::align_val_t(alignof(T))));
  }
  static void free(T* data) noexcept {
    ::operator delete(static_cast<void*>(data), std::align_val_t(alignof(T)));
  }
  static bool double_it(Ring& r) noexcept {
    const std::uint32_t n = r.capacity ? r.capacity * 2 : 8;
    T* to = static_cast<T*>(
        ::operator new (std::size_t{n} * sizeof(T), std::align_val_t(alignof(T)), std::nothrow));
    if (!to) return false;
    const std::uint32_t size = r.size;
    for (std::uint32_t i = 0; i < size; ++i) r.pop_into(to + i);
    ::operator delete(static_cast<void*>(r.data), std::align_val_t(alignof(T)));
    r.data = to;
    r.capacity = n;
    r.head = 0;
    r.size = size;
    return true;
  }
};

// The smallest capacity of a one-to-one ring that is expected to pass many values between two
// sleeps. A smaller ring begins with full fences, and changes to light ones if many values pass.
inline constexpr std::uint32_t kLightFrom = 256;

// Makes a core and its buffer. Throws BadUse if a channel with policy P cannot have that buffer.
template <class V, class P>
EngineFor<V, P>* make_core(const ChannelOptions& o) {
  const std::uint32_t capacity = o.capacity.up_to_32_bits("a channel's capacity");
  const std::uint8_t immunity = strength_of(o.immunity, "a channel's immunity", 0);
  const bool buffered = capacity > 0 || o.overflow == Overflow::unbounded;
  if (!buffered && o.overflow != Overflow::block)
    bad_use("a channel that drops values needs a capacity of at least 1");
  if constexpr (core::one_to_one<P>) {
    if (capacity == 0 || o.overflow != Overflow::block || capacity > (1u << 31))
      bad_use(
          "a one-to-one channel is a blocking buffer: give it a capacity of at least 1, "
          "weft::buffer(n), or use weft::Channel<T>");
    V* const data = HeapRing<V>::allocate(EngineFor<V, P>::slots_for(capacity));
    PooledEngine<V, P>* c;
    try {
      c = new PooledEngine<V, P>;
    } catch (...) {
      HeapRing<V>::free(data);
      throw;
    }
    c->set_storage(data, capacity);
    if (capacity >= kLightFrom && prim::asymmetric()) c->begin_light();
    c->restricted = static_cast<std::uint8_t>(ChannelKind::one2one);
    c->set_immunity(immunity);
    c->discard = [](EngineFor<V, P>& x) noexcept {
      const NobodysValues undelivered;
      x.clear();
    };
    return c;
  } else {
    auto ring =
        buffered ? std::make_unique<HeapRing<V>>(capacity > 0 ? capacity : 8, o.overflow) : nullptr;
    auto* c = new PooledEngine<V, P>;
    c->set_immunity(immunity);
    if (!buffered) return c;
    c->set_ring(ring.release());
    return c;
  }
}
// Makes the core of a channel that has no options.
template <class V, class P>
EngineFor<V, P>* make_plain_core() {
  if constexpr (core::one_to_one<P>)
    return make_core<V, P>({});
  else
    return new PooledEngine<V, P>;
}
template <class V, class P>
void destroy(EngineFor<V, P>* c) noexcept {
  WEFT_POINT(gone(*c, c->poison_strength() == 0 ? c->dropped() : 0));
  if constexpr (core::one_to_one<P>) {
    V* const data = c->storage();
    c->discard(*c);
    delete static_cast<PooledEngine<V, P>*>(c);
    HeapRing<V>::free(data);
  } else {
    delete static_cast<HeapRing<V>*>(c->ring);
    delete static_cast<PooledEngine<V, P>*>(c);
  }
}
template <class T, class P>
void release(EngineOf<T, P>* c) noexcept {
  if (c->references.down() && !c->waited()) destroy<core::Stored<T>, P>(c);
}

[[noreturn, gnu::cold]] void closed_end(const char* what, const char* kind);
// Throws the error for an operation at `place`: closed_place, or spent_place.
[[noreturn, gnu::cold]] void no_place(const core::SyncObject* place, const char* what,
                                      const char* kind);
[[noreturn, gnu::cold]] void awaited_twice(const char* what);

template <class C>
[[noreturn, gnu::cold]] void throw_end_of(C* c, Status s, const char* verb, int guard = -1,
                                          bool met = true) {
  throw_end(s, *c, c->poison_strength(), verb, guard, {}, met);
}
template <class C, class T>
[[noreturn, gnu::cold]] void throw_end_with(C* c, Status s, const char* verb, T&& v,
                                            int guard = -1) {
  throw_end(s, *c, c->poison_strength(), verb, guard, Error::Carried::of(std::forward<T>(v)));
}

// Raw storage for a T, which the party that commits constructs.
template <class T>
union Slot {
  T value;
  Slot() noexcept {}
  ~Slot() {}
  T take() noexcept {
    T v(std::move(value));
    value.~T();
    return v;
  }
};

template <class C, core::Side S>
bool withdraw_plain(runtime::ProcessBase& p) noexcept {
  if (!static_cast<C*>(static_cast<core::SyncObject*>(p.place))->template withdraw<S>(p))
    return false;
  p.status = Status::cancelled;
  return true;
}
template <bool Writing>
void visit_plain(runtime::ProcessBase& p, runtime::WaitVisitor& v) {
  v.channel(*static_cast<core::SyncObject*>(p.place), Writing);
}
using runtime::in_line;
template <class C, bool Writing>
void undecided_plain(runtime::ProcessBase& p, runtime::WaitVisitor& v) {
  C& c = *static_cast<C*>(static_cast<core::SyncObject*>(p.place));
  if (in_line(c, p)) v.channel(c, Writing);
}
template <class C, bool Writing>
void passed_plain(runtime::ProcessBase& p, runtime::Passed& v) {
  v.at(*static_cast<C*>(static_cast<core::SyncObject*>(p.place)), Writing);
}
template <class C>
inline constexpr runtime::OpKind read_op{"read", &withdraw_plain<C, core::Side::in>,
                                         &visit_plain<false>, &undecided_plain<C, false>,
                                         &passed_plain<C, false>};
template <class C>
inline constexpr runtime::OpKind write_op{"write", &withdraw_plain<C, core::Side::out>,
                                          &visit_plain<true>, &undecided_plain<C, true>,
                                          &passed_plain<C, true>};

// --- ends ----------------------------------------------------------------------------------------

// Drops one reference of an end; when the last end and the last handle have been dropped, the
// channel is freed. If a party still waits at the channel through a reference to an end that no
// longer exists, the storage is kept for that party (rules 3.2, 11.3).
template <class V, class P>
[[gnu::noinline]] void give_up(EngineFor<V, P>* c, core::Side side, bool died) noexcept {
  WEFT_POINT(closes(*c, (side == core::Side::in ? c->reader_ends() : c->writer_ends()) == 1, died));
  const bool stays = c->references.is_last() && c->waited();
  if (side == core::Side::in)
    c->drop_reader(died);
  else
    c->drop_writer(died);
  if (!stays) release<V, P>(c);
}
// Called when an end is destroyed. Retires the end, or spreads a poison through it (rule 4.3).
template <class V, class P>
[[gnu::noinline]] void drop(EngineFor<V, P>* c, core::Side side) noexcept {
  if (const std::uint8_t s = poison_under_way()) {
    WEFT_POINT(touches(*c, runtime::Access::all));
    c->poison(s);
  }
  give_up<V, P>(c, side, false);
}

// Throws what an operation at side `side` would throw. If such an operation would throw nothing,
// throws the exception for the end of the other side or, if the other side has not ended, for the
// end of this side (rule 2.5).
template <class V, class P>
[[noreturn, gnu::noinline, gnu::cold]] void no_new_end(EngineFor<V, P>* c, core::Side side,
                                                       bool met) {
  const bool reads = side == core::Side::in;
  const Status in = c->template how_ended<core::Side::in>();
  const Status out = c->template how_ended<core::Side::out>();
  const Status own = reads ? in : out, other = reads ? out : in;
  throw_end_of(c,
               is_end(own)     ? own
               : is_end(other) ? other
                               : Status::retired,
               reads ? "a new reader end" : "a new writer end", -1, met);
}

// Counts a new end; throws if the channel has ended. `met` says whether an operation asked for the
// end.
template <class V, class P>
[[gnu::noinline]] void count_end(EngineFor<V, P>* c, core::Side side, bool met) {
  WEFT_POINT(touches(*c, runtime::Access::make));
  const bool reads = side == core::Side::in;
  const char* const name = reads ? "reader" : "writer";
  const std::uint8_t only_one = reads ? 2 : 1;  // a bit of ChannelKind
  const auto ends = [c, reads] { return reads ? c->reader_ends() : c->writer_ends(); };
  if (!(reads ? c->first_reader() : c->first_writer())) [[unlikely]] {
    if (core::one_to_one<P> && ends() > 0) one_too_many(c, name);
    no_new_end<V, P>(c, side, met);
  }
  if ((c->restricted & only_one) && ends() != 1) [[unlikely]] {
    reads ? c->drop_reader() : c->drop_writer();
    one_too_many(c, name);
  }
  c->references.up();
}

// The base of reader ends and writer ends: one count of the channel, dropped once (rule 2.3).
template <class T, class P, core::Side S>
class EndOf {
 public:
  using value_type = T;
  using policy = P;
  using Engine = EngineOf<T, P>;

  // Poisons the channel (rule 4). Throws BadUse if the end is closed or `strength` is not 1 to 255.
  void poison(Count strength = 1) const {
    const std::uint8_t s = strength_of(strength, "poison: the strength");
    Engine* const c = checked("poison");
    WEFT_POINT(touches(*c, runtime::Access::all));
    c->poison(s);
  }
  // Closes the end, if it is open; the last end of its side retires the channel (rule 3).
  void retire() noexcept { leave(false); }
  // Closes the end like retire(), for an end whose holder was killed (rule 4.5).
  void die() noexcept { leave(true); }
  explicit operator bool() const noexcept { return open(); }

  [[gnu::always_inline]] Engine* checked(const char* what) const {
    if (!open()) [[unlikely]]
      closed_end(what, kName);
    not_from_outside(*own());
#if WEFT_CHECK_LOCAL
    if constexpr (!P::shared)
      if (own()->waits_elsewhere()) [[unlikely]]
        not_at_home(own(), what);
#endif
    return own();
  }
  Engine* core() const noexcept { return open() ? own() : nullptr; }

 protected:
  EndOf() noexcept = default;
  explicit EndOf(Engine* c) noexcept : place_(c) {}  // takes ownership of one count
  EndOf(const EndOf& o) requires(!core::one_to_one<P>) : place_(o.place_) {
    if (!open()) return;
    Engine* const c = own();
    if (c->restricted & kOnlyOne) [[unlikely]]
      one_too_many(c, kName);
    WEFT_POINT(touches(*c, runtime::Access::make));
    if constexpr (kReads)
      c->another_reader();
    else
      c->another_writer();
    c->references.up();
  }
  EndOf(EndOf&& o) noexcept : place_(std::exchange(o.place_, &closed_place)) {}
  EndOf& operator=(const EndOf& o) requires(!core::one_to_one<P>) {
    EndOf copy(o);
    std::swap(place_, copy.place_);
    return *this;
  }
  EndOf& operator=(EndOf&& o) noexcept {
    EndOf moved(std::move(o));
    std::swap(place_, moved.place_);
    return *this;
  }
  ~EndOf() {
    if (open()) drop<core::Stored<T>, P>(take(), S);
  }

  core::SyncObject* place_ = &closed_place;

 private:
  static constexpr bool kReads = S == core::Side::in;
  static constexpr const char* kName = kReads ? "reader" : "writer";
  // the bit of ChannelKind that means one end of this side
  static constexpr std::uint8_t kOnlyOne = kReads ? 2 : 1;

  bool open() const noexcept { return place_ != &closed_place; }
  Engine* own() const noexcept { return static_cast<Engine*>(place_); }
  Engine* take() noexcept { return static_cast<Engine*>(std::exchange(place_, &closed_place)); }
  void leave(bool died) noexcept {
    if (open()) give_up<core::Stored<T>, P>(take(), S, died);
  }
};

}  // namespace detail

// The operations that co_await takes; see coroutine.hpp. A read is represented by a pointer: the
// pointer's value is the place, and its type says what to do there. In an await expression g++
// reserves room in the frame for an object of class type, but not for a pointer.
template <class T, class P>
struct ReadOp;
template <class T, class P>
struct NextOp;
template <class T, class P>
struct [[nodiscard(
    "nothing is written until it is awaited: co_await w.write(v); in a thread w(v)")]] WriteOp {
  core::SyncObject* place;
  T value;
};
template <class T, class P>
struct ExtendedOp;  // defined in extended.hpp

// A counted reader end. A copy is another end; a move moves the end. The destructor retires the end
// or, while a poison leaves the process, poisons the channel (rule 4.3).
template <class T, class P = Shared>
class Reader : public detail::EndOf<T, P, core::Side::in> {
  using End = detail::EndOf<T, P, core::Side::in>;
  using End::place_;

 public:
  using End::checked;
  using typename End::Engine;

  Reader() noexcept = default;
  explicit Reader(Engine* c) noexcept : End(c) {}  // takes ownership of one count

  // Reads a value; co_await the result. Throws Retired, Poisoned, PeerDied, Cancelled, BadUse.
  [[nodiscard]] ReadOp<T, P>* read() const { return reinterpret_cast<ReadOp<T, P>*>(place_); }
  // Reads the next value; co_await the result. The result is empty once the channel has retired
  // (rule 3.4). Otherwise throws what read() throws.
  [[nodiscard]] NextOp<T, P>* next() const { return reinterpret_cast<NextOp<T, P>*>(place_); }
  // Reads a value as an Extended<T>; co_await the result. The writer continues when that object is
  // destroyed (rule 1.6). Throws what read() throws.
  [[nodiscard]] auto extended() const requires(!core::one_to_one<P>) {
    return ExtendedOp<T, P>{checked("extended read")};
  }

  // Reads from a thread, which is blocked until the read is done. Throws what read() throws.
  T operator()(detail::Here at = detail::Here::now()) const {
    static_assert(P::shared, "a channel that threads use must be weft::Shared");
    Engine* c = checked("read");
    runtime::ThreadProcess& self = detail::blocking_caller("reader()");
    const detail::ThreadCall call(self, at);
    detail::meet_request(self);
    detail::Slot<T> slot;
    Status s = detail::begin_blocking<core::Side::in>(c, self, &slot);
    if (s == Status::pending) {
      detail::waits_at(self, at);
      self.block(detail::read_op<Engine>);
      s = self.status;
    }
    if (s != Status::ok) detail::throw_end_of(c, s, "read");
    c->last_reader = self.id;
    return slot.take();
  }
  // Iterates in a thread: for (T v : reader) … The loop ends when the channel retires.
  class Iterator {
   public:
    explicit Iterator(const Reader* r, detail::Here at = detail::Here::nowhere()) : r_(r), at_(at) {
      if (r_) ++*this;
    }
    T& operator*() { return *v_; }
    Iterator& operator++() {
      try {
        v_.emplace((*r_)(at_));
      } catch (const Retired&) {
        r_ = nullptr;
      }
      return *this;
    }
    bool operator!=(const Iterator& o) const { return r_ != o.r_; }

   private:
    const Reader* r_;
    detail::Here at_;
    std::optional<T> v_;
  };
  Iterator begin(detail::Here at = detail::Here::now()) const { return Iterator(this, at); }
  Iterator end() const { return Iterator(nullptr); }

  template <class U = T>
  void write(U&&) const {
    static_assert(detail::never<U>,
                  "weft: this is a reader end, it cannot write: take a writer end of the channel, "
                  "c.writer()");
  }
};

// A counted writer end. It is copied, moved and destroyed like a Reader.
template <class T, class P = Shared>
class Writer : public detail::EndOf<T, P, core::Side::out> {
  using End = detail::EndOf<T, P, core::Side::out>;
  using Here = detail::Here;
  using End::place_;

 public:
  using End::checked;
  using typename End::Engine;

  Writer() noexcept = default;
  explicit Writer(Engine* c) noexcept : End(c) {}  // takes ownership of one count

  // Writes the value; co_await the result. The write is done when a reader has received the value,
  // or when the value is in a buffer. Throws Retired, Poisoned, PeerDied, Cancelled, BadUse, with
  // the value in e.value<T>(). A value of another type is converted at the call, where the compiler
  // warns if it does not fit (-Wconversion).
  WriteOp<T, P> write(const T& v) const requires(!detail::kNumber<T> && detail::kCopied<T>) {
    return {place_, v};
  }
  WriteOp<T, P> write(T&& v) const requires(!detail::kNumber<T>) { return {place_, std::move(v)}; }
  // Takes a number by value, since a reference would force it into memory.
  WriteOp<T, P> write(T v) const requires detail::kNumber<T> { return {place_, v}; }
  template <class U>
  void write(U&&) const requires(!std::is_convertible_v<U&&, T>) {
    detail::cannot_write<U>();
  }

  // Writes from a thread, which is blocked until the write is done. Throws what write() throws.
  void operator()(const T& v, Here at = Here::now()) const requires detail::kCopied<T> {
    (*this)(T(v), at);
  }
  void operator()(T&& value, Here at = Here::now()) const {
    static_assert(P::shared, "a channel that threads use must be weft::Shared");
    Engine* c = checked("write");
    runtime::ThreadProcess& self = detail::blocking_caller("writer(value)");
    const detail::ThreadCall call(self, at);
    if (self.cancel().load(std::memory_order_relaxed) != 0) [[unlikely]]
      detail::throw_cancelled(self, Error::Carried::of(std::move(value)));
    Status s = detail::begin_blocking<core::Side::out>(c, self, &value);
    if (s == Status::pending) {
      detail::waits_at(self, at);
      self.block(detail::write_op<Engine>);
      s = self.status;
    }
    if (s != Status::ok) detail::throw_end_with(c, s, "write", std::move(value));
    c->last_writer = self.id;
  }
  template <class U>
  void operator()(U&&) const requires(!std::is_convertible_v<U&&, T>) {
    detail::cannot_write<U>();
  }

  template <class X = T>
  void read() const {
    static_assert(
        detail::never<X>,
        "weft: this is a writer end, it cannot read: take a reader end of the channel, c.reader()");
  }
};

// A handle to a channel. It makes ends, but is not an end itself. Copies refer to the same channel.
template <class T, class P = Shared>
class Channel {
  using Here = detail::Here;

 public:
  using value_type = T;
  using policy = P;
  using Engine = detail::EngineOf<T, P>;

  // Makes a rendezvous without a name of its own. Throws BadUse for OneToOne, which needs a buffer.
  // A program that uses only this constructor does not compile the code for buffers and names.
  explicit Channel(Here at = Here::now()) : core_(detail::make_plain_core<core::Stored<T>, P>()) {
    core_->references.up();
    WEFT_POINT(made(*core_, 0, false));
    detail::made_at(*core_, at);
  }
  // Makes a channel with a buffer, a name or another option. Throws BadUse if the options clash.
  explicit Channel(ChannelOptions o, Here at = Here::now())
      : core_(detail::make_core<core::Stored<T>, P>(o)) {
    core_->references.up();
    WEFT_POINT(made(*core_, o.overflow == Overflow::unbounded ? 8 : o.capacity.up_to_32_bits(""),
                    o.overflow != Overflow::block));
    detail::made_at(*core_, at);
    if (o.name) core_->name = detail::intern(o.name), core_->line = 0;
    if (!core::one_to_one<P>) core_->restricted = static_cast<std::uint8_t>(o.kind);
  }
  Channel(const Channel& o) noexcept : core_(o.core_) { core_->references.up(); }
  Channel& operator=(const Channel& o) noexcept {
    Channel c(o);
    std::swap(core_, c.core_);
    return *this;
  }
  ~Channel() { detail::release<T, P>(core_); }

  // Makes a new end. Throws Retired, Poisoned or PeerDied if the channel has ended (rule 2.5); if
  // that exception leaves the process, the process has failed (rule 3.5).
  Reader<T, P> reader(Here at = Here::now()) const { return new_reader(false, at); }
  Writer<T, P> writer(Here at = Here::now()) const { return new_writer(false, at); }
  Reader<T, P> operator+() const { return new_reader(false); }
  Writer<T, P> operator-() const { return new_writer(false); }
  // Where an end is expected, a channel converts to a new end: Reader<int> r = c;
  operator Reader<T, P>() const { return new_reader(false); }
  operator Writer<T, P>() const { return new_writer(false); }

  // Poisons the channel (rule 4). Throws BadUse if `strength` is not 1 to 255.
  void poison(detail::Count strength = 1) const {
    const std::uint8_t s = detail::strength_of(strength, "poison: the strength");
    WEFT_POINT(touches(*core_, runtime::Access::all));
    core_->poison(s);
  }
  // Returns the channel's name in quotes, or the file:line that made the channel.
  std::string name() const { return runtime::name_of(*core_); }
  // Return how many values have passed, and how many the buffer has dropped (rules 1.4, 3.3, 4.2).
  std::uint64_t transfers() const noexcept {
    WEFT_POINT(touches(*core_, runtime::Access::all));
    return core_->transfers();
  }
  std::uint64_t dropped() const noexcept {
    WEFT_POINT(touches(*core_, runtime::Access::all));
    return core_->dropped();
  }
  Engine* core() const noexcept { return core_; }

 private:
  friend class ChannelHandle<T, P>;
  // `met` says whether an operation asks for the end.
  Reader<T, P> new_reader(bool met, Here at = Here::nowhere()) const {
    detail::used_at(*core_, at);
    detail::count_end<core::Stored<T>, P>(core_, core::Side::in, met);
    return Reader<T, P>(core_);
  }
  Writer<T, P> new_writer(bool met, Here at = Here::nowhere()) const {
    detail::used_at(*core_, at);
    detail::count_end<core::Stored<T>, P>(core_, core::Side::out, met);
    return Writer<T, P>(core_);
  }
  Engine* core_;
};

// A restricted channel, as in `one2one<int>(buffer(8))`. A side that the name calls `one` may have
// one open end at a time; making a second end throws BadUse (rule 1.8).
template <class T, class P = Shared>
Channel<T, P> one2one(ChannelOptions o = {}, detail::Here at = detail::Here::now()) {
  o.kind = ChannelKind::one2one;
  return Channel<T, P>(o, at);
}
template <class T, class P = Shared>
Channel<T, P> one2any(ChannelOptions o = {}, detail::Here at = detail::Here::now()) {
  o.kind = ChannelKind::one2any;
  return Channel<T, P>(o, at);
}
template <class T, class P = Shared>
Channel<T, P> any2one(ChannelOptions o = {}, detail::Here at = detail::Here::now()) {
  o.kind = ChannelKind::any2one;
  return Channel<T, P>(o, at);
}
template <class T, class P = Shared>
Channel<T, P> any2any(ChannelOptions o = {}, detail::Here at = detail::Here::now()) {
  o.kind = ChannelKind::any2any;
  return Channel<T, P>(o, at);
}

}  // namespace weft::inline WEFT_ABI
