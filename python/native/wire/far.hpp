// Far channels, for wire.cpp, far_channel.cpp, abroad.cpp and other files: values in a wire::Room,
// a channel as the code of its home sees it, and the party's side of a far channel. wire.cpp states
// the invariants.
#pragma once
#include <unordered_map>

#include "weft/core/far_engine.hpp"
#include "weft/wire/space.hpp"
#include "wire/packed.hpp"

namespace weft::py {

using wire::Peer;
using wire::Space;

// The types of values, as they are named in a GIVE. A program with an older Weft, where tuples
// arrived as lists, says kOldValues (WIRE-NETWORKS.md 17.6).
inline constexpr const char* kPickle = "pickle";
inline constexpr const char* kCbor = "cbor";
inline constexpr const char* kValues = "typed2";
inline constexpr const char* kOldValues = "typed";
inline const char* type_of(Carries what) noexcept {
  return what == Carries::typed ? kValues : what == Carries::cbor ? kCbor : kPickle;
}

// Returns the value that a frame contains; null if the payload is not a value of that form.
inline PyObject* value_from(Carries what, const wire::Payload& p, wire::Carrier& by) noexcept {
  if (what == Carries::nothing) return p.in_body || p.small ? nullptr : Py_NewRef(Py_None);
  return what == Carries::pickle ? packed_from(p, by) : cbor_from(p, what);
}

class ValueRoom : public wire::Room {
 public:
  explicit ValueRoom(Carries what = Carries::pickle) noexcept : what_(what) {}
  void* slot() noexcept override { return &value; }
  bool load(const wire::Payload& p, wire::Carrier& by) override {
    value.o = value_from(what_, p, by);
    if (!value.o) PyErr_Clear();
    return full_ = value.o != nullptr;
  }
  wire::Payload unload(wire::Buffer& keep, wire::Carrier& by) const override {
    return packed_out(value.o, keep, by);
  }
  wire::Keeper keeper() const override { return packed_keeper(value.o); }
  bool will_come(std::size_t bytes) override { return coming_.will_come(what_, bytes); }
  void more(wire::Bytes piece) override { coming_.more(piece); }
  bool last(wire::Bytes piece) override {
    value.o = coming_.last(piece);
    if (!value.o) PyErr_Clear();
    return full_ = value.o != nullptr;
  }

  Value value;

 private:
  const Carries what_;
  Coming coming_;
};
// A wire::Room over the slot of a party that writes here.
class SlotRoom final : public wire::Room {
 public:
  explicit SlotRoom(const Value& v) noexcept : value_(v) { full_ = true; }
  void* slot() noexcept override { return nullptr; }
  bool load(const wire::Payload&, wire::Carrier&) override { return false; }
  wire::Payload unload(wire::Buffer& keep, wire::Carrier& by) const override {
    return packed_out(value_.o, keep, by);
  }
  wire::Keeper keeper() const override { return packed_keeper(value_.o); }

 private:
  const Value& value_;
};

// --- the home's side -----------------------------------------------------------------------------

template <Side S>
class ChannelPort : public wire::Port {
 public:
  static constexpr Carries kCarries = Carries::pickle;
  // Takes ownership of one count of the core, if `counted`.
  explicit ChannelPort(ChannelObject* c, bool counted = true) noexcept
      : Port(S == Side::out), closed_(!counted), channel_(c) {
    Py_INCREF(reinterpret_cast<PyObject*>(c));
  }
  ~ChannelPort() override {
    close(false);
    defer_decref(reinterpret_cast<PyObject*>(channel_));
  }
  std::string type() const override { return kPickle; }
  std::shared_ptr<wire::Port> another() const override {
    if constexpr (S == Side::in)
      core().another_reader();
    else
      core().another_writer();
    return std::make_shared<ChannelPort>(channel_);
  }
  std::unique_ptr<wire::Room> room() const override { return std::make_unique<ValueRoom>(); }
  Status begin(core::Node& n) noexcept override { return core().template begin<S>(n); }
  bool withdraw(core::Node& n) noexcept override { return core().template withdraw<S>(n); }
  bool has_met(const core::Node& n) noexcept override { return core().has_met(n); }
  Status watch(core::Node& n) noexcept override { return core().template watch<S>(n); }
  int lend(core::Node* n, std::uint32_t wanted) noexcept override {
    if constexpr (S == Side::out) return core().lend(n, wanted);
    return wire::Port::lend(n, wanted);
  }
  bool put(const wire::Payload& value, wire::Carrier& by) noexcept override {
    return put_into(value, by, Carries::pickle);
  }
  void end_lending(std::uint32_t n) noexcept override {
    if constexpr (S == Side::out) core().end_lending(n);
  }
  Status deliver(core::Node& n) noexcept override {
    if constexpr (S == Side::out) return core().deliver(n);
    return wire::Port::deliver(n);
  }
  void abandon(core::Node& n) noexcept override {
    if constexpr (S == Side::out) core().abandon(n);
  }
  void end_extended(core::Node& n) noexcept override {
    if constexpr (S == Side::in) core().end_extended(n);
  }
  Status give_back(core::Node& n, core::Node& again) noexcept override {
    if constexpr (S == Side::in) return core().give_back(n, again);
    return wire::Port::give_back(n, again);
  }
  bool buffered() const noexcept override { return core().buffered(); }
  Status ended() const noexcept override { return core().template how_ended<S>(); }
  const void* channel() const noexcept override { return &core(); }
  void arm(core::Guard& g) noexcept override {
    g.kind = S == Side::in ? core::Kind::input : core::Kind::output;
    g.ops = &core::channel_ops<Engine, S>;
    g.where = &core();
  }
  std::uint8_t strength() const noexcept override { return core().poison_strength(); }
  void poison(std::uint8_t s) noexcept override { core().poison(s); }
  ChannelObject* of() const noexcept { return channel_; }
  void close(bool died) noexcept override {
    if (std::exchange(closed_, true)) return;
    if constexpr (S == Side::in)
      core().drop_reader(died);
    else
      core().drop_writer(died);
  }

 private:
  bool closed_;

 protected:
  bool put_into(const wire::Payload& value, wire::Carrier& by, Carries what) noexcept {
    if constexpr (S == Side::out) {
      ValueRoom room(what);
      if (!room.load(value, by)) return false;
      core::Node n;
      n.slot = room.slot();
      core().put(n);
      return true;
    }
    return false;
  }
  Engine& core() const noexcept { return channel_->core; }
  ChannelObject* const channel_;
};

// Like ChannelPort, for a board or for an untrusted program on another machine: values are CBOR.
template <Side S, Carries What>
class CborPort : public ChannelPort<S> {
 public:
  using ChannelPort<S>::ChannelPort;
  static constexpr Carries kCarries = What;
  std::string type() const override { return type_of(What); }
  std::unique_ptr<wire::Room> room() const override { return std::make_unique<ValueRoom>(What); }
  bool put(const wire::Payload& value, wire::Carrier& by) noexcept override {
    return this->put_into(value, by, What);
  }
};

// The last value that a plain read has given to a reader; null after the reader has asked for the
// next value. A value with ends is replaced by an Ellipsis, since it would keep the ends open.
struct LastRead {
  ~LastRead() { is(nullptr); }
  void is(PyObject* value) noexcept {
    if (PyObject* const before = std::exchange(o, Py_XNewRef(value))) defer_decref(before);
  }
  PyObject* o = nullptr;
  bool plain = true;  // whether the read under way is a plain one
};

// A room that records, in a LastRead, the value that leaves the room.
class NotedRoom final : public ValueRoom {
 public:
  NotedRoom(Carries what, std::shared_ptr<LastRead> last) noexcept
      : ValueRoom(what), last_(std::move(last)) {}
  wire::Payload unload(wire::Buffer& keep, wire::Carrier& by) const override {
    if (last_->plain) last_->is(has_ends(value.o) ? Py_Ellipsis : value.o);
    return ValueRoom::unload(keep, by);
  }

 private:
  const std::shared_ptr<LastRead> last_;
};

// Like ChannelPort, for a process that is supervised (SEMANTICS.md 7.13): the end does not die with
// the process, since the supervisor holds it as well. With the list `in_hand`, a value that the
// process holds in an extended read goes to the list instead of back to the channel. With the list
// `lost`, the last value that a plain read has given to the process goes to that list when the
// process dies, unless the process has asked for the next value.
template <Side S, class Base = ChannelPort<S>>
class SupervisedPort final : public Base {
 public:
  SupervisedPort(ChannelObject* c, bool last, PyObject* in_hand, PyObject* lost) noexcept
      : Base(c), last_(last), in_hand_(Py_XNewRef(in_hand)), lost_(Py_XNewRef(lost)) {}
  ~SupervisedPort() override {
    if (in_hand_) defer_decref(in_hand_);
    if (lost_) defer_decref(lost_);
  }
  std::unique_ptr<wire::Room> room() const override {
    if constexpr (S == Side::in)
      if (lost_) return std::make_unique<NotedRoom>(Base::kCarries, last_read_);
    return Base::room();
  }
  Status begin(core::Node& n) noexcept override {
    asks(!n.is(core::NodeFlags::extended));
    return Base::begin(n);
  }
  void arm(core::Guard& g) noexcept override {
    asks(true);
    Base::arm(g);
  }
  void close(bool died) noexcept override {
    if (died && last_read_->o && PyList_Append(lost_, last_read_->o) < 0) PyErr_Clear();
    last_read_->is(nullptr);
    Base::close(died && last_);
  }
  Status give_back(core::Node& n, core::Node& again) noexcept override {
    if (!in_hand_) return Base::give_back(n, again);
    if constexpr (S == Side::in) {
      const Value value = std::move(*static_cast<Value*>(n.slot));
      if (PyList_Append(in_hand_, value.o) < 0) PyErr_Clear();
      if (this->buffered()) this->end_extended(n);
    }
    return Status::ok;
  }

 private:
  void asks(bool plainly) noexcept {
    last_read_->is(nullptr);
    last_read_->plain = plainly;
  }
  const bool last_;  // whether no process will be started in this process's place
  PyObject* const in_hand_;
  PyObject* const lost_;
  // Shared with rooms, which can live longer than the port.
  const std::shared_ptr<LastRead> last_read_ = std::make_shared<LastRead>();
};

// --- the party's side ----------------------------------------------------------------------------

class FarSide;

// One operation that the home is asked to carry out.
class Asked final : public wire::FarOp {
 public:
  Asked(FarSide& f, core::Node& n);
  bool holds() const noexcept { return guard_.holds; }
  FarSide& far;
  core::Node& node;
  ValueRoom room;
  SlotRoom from;

 private:
  void over() noexcept override;
  wire::FarGuard guard_;
};

// The agent of a far channel, and this program's knowledge of the end at the home.
class FarSide : public core::FarAgent {
 public:
  FarSide(std::shared_ptr<wire::FarEnd> e, bool reads, Carries what) noexcept
      : peer(e->peer),
        number(e->number),
        key(e->key),
        reads(reads),
        carries(what),
        end(std::move(e)) {
    ops = &kOps;
    leaves = [](core::FarAgent& a, core::Node& n) noexcept { of(&a).leave(n); };
    poisons = [](core::FarAgent& a, std::uint8_t s) noexcept { of(&a).poison(s); };
  }
  core::FarEngine<Value, Shared>* core = nullptr;
  const std::shared_ptr<Peer> peer;
  const std::uint32_t number;
  const std::uint64_t key;
  const bool reads;
  const Carries carries;
  bool is_barrier() const noexcept { return carries == Carries::nothing; }
  // Whether the value of an extended read goes to the next reader if this program dies (WIRE.md
  // 4.7).
  bool keeps = false;
  // How a loop over this reader reads: 0 for plain reads; otherwise the number of Terms.loops
  // (weft._hosts.attempt), and 4 if a MemoryError ends this OS process (weft._hosts.loops).
  int loops = 0;
  std::shared_ptr<wire::FarEnd> end;  // null if the end was given back

  // Returns the number by which the home knows an extended read that has committed. Called once for
  // each such read, when its block has ended.
  std::uint64_t happened(const core::Node& n) noexcept {
    const Space::Step step(*peer->space);
    const auto at = blocks_.extract(&n);
    return at ? at.mapped() : 0;
  }
  void held_end(std::uint64_t number, bool back) noexcept {
    const Space::Step step(*peer->space);
    peer->far.held_end(number, back);
  }
  // Asks the home about each party that has joined the waiting queue. A closed end is given back
  // once the earlier parties have been asked about.
  void look() noexcept {
    const Space::Step step(*peer->space);
    while (core::Node* n = reads ? core->next<Side::in>() : core->next<Side::out>()) {
      auto a = std::make_unique<Asked>(*this, *n);
      Asked& asked = *a;
      asked_.emplace(n, std::move(a));
      if (peer->far.begin(asked)) over(asked);
    }
    if (reads ? core->closed<Side::in>() : core->closed<Side::out>())
      give_back(reads ? core->died_here<Side::in>() : core->died_here<Side::out>());
  }
  // Returns whether the home was asked about this party and has not answered.
  bool asks_for(core::Node& n) const noexcept {
    const Space::Step step(*peer->space);
    return asked_.count(&n) != 0;
  }
  void give_back(bool died) noexcept {
    if (end && died) end->will_have_died();
    end.reset();
  }
  void leave(core::Node& n) noexcept {
    const Space::Step step(*peer->space);
    const auto at = asked_.find(&n);
    if (at != asked_.end()) peer->far.withdraw(*at->second);
  }
  void poison(std::uint8_t strength) noexcept {
    const Space::Step step(*peer->space);
    if (end) peer->poison(number, strength);
  }
  void has_ended(Status s, std::uint8_t strength) noexcept {
    if (reads)
      core->has_ended<Side::in>(s, strength);
    else
      core->has_ended<Side::out>(s, strength);
  }

  // Called in a step when an operation has ended and has its outcome.
  void over(Asked& a) noexcept {
    const wire::Outcome o = a.outcome;
    core::Node& n = a.node;
    if (o.status == Status::ok && reads) new (n.slot) Value(std::move(a.room.value));
    if (o.status == Status::ok && a.holds()) blocks_[&n] = a.number();
    asked_.erase(&n);
    // A value that fits into no frame was already refused when it was packed. So at a barrier a
    // pending outcome means that no party is enrolled.
    const Status s = o.status == Status::pending ? is_barrier() ? Status::retired : Status::died
                     : o.in_doubt                ? Status::in_doubt
                                                 : o.status;
    core::FarEngine<Value, Shared>::finish(n, s);
    if (o.lost)
      has_ended(Status::died, 0);
    else
      told(o);
  }
  // The answer to one operation usually holds for later operations. But a death can concern only
  // that operation (rule 5.8: a function that was to make its value has raised). So after a death
  // the next operation asks again.
  void told(const wire::Outcome& o) noexcept {
    if (is_end(o.status) && o.status != Status::died && !is_barrier())
      has_ended(o.status, o.strength);
  }

 private:
  static FarSide& of(core::Node* a) noexcept {
    return *static_cast<FarSide*>(static_cast<core::FarAgent*>(a));
  }
  static void tell(core::Node* a) noexcept { of(a).look(); }
  static constexpr core::WakerOps kOps{nullptr, nullptr, nullptr, 0, &tell};

  std::unordered_map<core::Node*, std::unique_ptr<Asked>> asked_;
  // The extended reads that have committed, but whose process has not run yet, with their numbers.
  std::unordered_map<const core::Node*, std::uint64_t> blocks_;
};

inline Asked::Asked(FarSide& f, core::Node& n)
    : far(f), node(n), room(f.carries), from(*static_cast<Value*>(n.slot)) {
  guard_ = {f.number, !f.reads, nullptr, n.is(core::NodeFlags::extended),
            n.is(core::NodeFlags::kept)};
  guard_.keeps = guard_.holds && (guard_.keeps || f.keeps);
  if (f.reads)
    guard_.room = &room;
  else
    guard_.room = &from;
  guards = std::span(&guard_, 1);
}
inline void Asked::over() noexcept { far.over(*this); }

// Defined in wiring.cpp: from now on the channel's values are packed, including those that wait in
// it. Returns -1 if a value in its buffer cannot be packed.
int wire_channel(ChannelObject* c, Carries what);
// Defined in far_channel.cpp: makes an end of a channel from what a peer has handed to this
// program.
PyObject* far_end(std::shared_ptr<wire::FarEnd> e, bool writes, const std::string& called,
                  Carries what = Carries::pickle);

std::shared_ptr<Space> this_space() noexcept;  // null if no link has been made yet
// The far channels of each session, which are notified when the session ends.
extern std::unordered_map<Peer*, std::vector<FarSide*>> far_sides;
// Calls f(side) for each far channel.
template <class F>
void each_far_side(F&& f) {
  for (const auto& [peer, all] : far_sides)
    for (const FarSide* one : all) f(*one);
}

struct FarChannelObject {
  PyObject_HEAD PyObject* name;
  std::uint32_t generation;
  std::uint8_t immunity;
  bool traced;
  std::uint8_t readers_returned;
  core::FarEngine<Value, Shared> core;
  FarSide* side;
};
inline FarSide& side_of(const ChannelObject* c) noexcept {
  return *reinterpret_cast<FarChannelObject*>(const_cast<ChannelObject*>(c))->side;
}

}  // namespace weft::py
