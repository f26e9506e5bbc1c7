// An end of a channel as the code of its home sees it, without the type of its values.
//
// A port owns the end that was handed to a peer, and so one count of that end (WIRE.md 7.1). It
// gives the count back once, as retired or as died.
#pragma once
#include <memory>

#include "../channel.hpp"
#include "value.hpp"

namespace weft::inline WEFT_ABI::wire {

class Port {
 public:
  Port(bool writes) noexcept : writes_(writes) {}
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  virtual ~Port() = default;

  bool writes() const noexcept { return writes_; }
  virtual std::string type() const = 0;
  // Returns a port with a further count of the same end.
  virtual std::shared_ptr<Port> another() const = 0;
  virtual std::unique_ptr<Room> room() const = 0;
  // Begins an operation at this channel alone.
  virtual Status begin(core::Node&) noexcept = 0;
  virtual bool withdraw(core::Node&) noexcept = 0;  // returns true if the node was still queued
  // Returns whether an operation that became pending has met its partner
  // (core::ChannelEngine::has_met).
  virtual bool has_met(const core::Node&) noexcept = 0;
  // Wakes the node once this end might commit (core::ChannelEngine::watch), until withdraw().
  virtual Status watch(core::Node&) noexcept = 0;
  virtual const void* channel() const noexcept = 0;
  // Returns the channel as reports name it; null if reports cannot name it.
  virtual const core::SyncObject* place() const noexcept { return nullptr; }
  // Returns how the channel has ended for this side; `ok` if it has not.
  virtual Status ended() const noexcept = 0;
  // Lends credits to the holder of this writer end, as core::Lending lends them.
  virtual int lend(core::Node*, std::uint32_t) noexcept { return -1; }
  // Puts a value that the holder of credits has sent. Returns false if the payload is not a value
  // of the type, and nothing was put.
  virtual bool put(const Payload&, Carrier&) noexcept { return false; }
  virtual void end_lending(std::uint32_t) noexcept {}
  // For a writer end: announces that the value that a committed output was to make is in its slot,
  // or could not be made (core::ChannelEngine::deliver).
  virtual Status deliver(core::Node&) noexcept { return Status::ok; }
  virtual void abandon(core::Node&) noexcept {}
  // For a reader end: ends an extended read (rule 1.6), or returns its value to the channel, as
  // core::Lending::give_back does.
  virtual void end_extended(core::Node&) noexcept {}
  virtual Status give_back(core::Node&, core::Node&) noexcept { return Status::ok; }
  virtual bool buffered() const noexcept { return false; }
  // Returns the engine of the barrier; null if this is not a barrier. A barrier is handed out as a
  // reader end without values (WIRE.md 4.9).
  virtual core::BarrierEngine<Shared>* barrier() const noexcept { return nullptr; }
  // Makes g a guard of a select at this end.
  virtual void arm(core::Guard&) noexcept = 0;
  virtual std::uint8_t strength() const noexcept = 0;
  virtual void poison(std::uint8_t strength) noexcept = 0;
  // Gives the end's count back. A second call does nothing.
  virtual void close(bool died) noexcept = 0;

 private:
  const bool writes_;
};

template <class T, core::Side S>
class PortOf final : public Port {
  using End = std::conditional_t<S == core::Side::in, Reader<T>, Writer<T>>;
  using Engine = typename End::Engine;

 public:
  explicit PortOf(End e)
      : Port(S == core::Side::out), end_(std::move(e)), core_(end_.checked("to hand out")) {
    core_->references.up();
  }
  // Makes one more owner of an open end. This is possible even for a channel that may have only one
  // end at a time (rule 1.8), because one of the two owners will be destroyed.
  static End another_of(Engine& c) noexcept {
    if constexpr (S == core::Side::in)
      c.another_reader();
    else
      c.another_writer();
    c.references.up();
    return End(&c);
  }
  ~PortOf() override {
    close(false);
    weft::detail::release<T, Shared>(core_);  // Visitors might have outlived the end.
  }

  std::string type() const override { return Value<T>::type(); }
  std::shared_ptr<Port> another() const override {
    return std::make_shared<PortOf>(another_of(*core_));
  }
  // Returns the end, for a process of this program.
  End end() const noexcept { return another_of(*core_); }
  std::unique_ptr<Room> room() const override { return std::make_unique<RoomOf<T>>(); }
  Status begin(core::Node& n) noexcept override { return core_->template begin<S>(n); }
  bool withdraw(core::Node& n) noexcept override { return core_->template withdraw<S>(n); }
  bool has_met(const core::Node& n) noexcept override { return core_->has_met(n); }
  Status watch(core::Node& n) noexcept override { return core_->template watch<S>(n); }
  int lend(core::Node* n, std::uint32_t wanted) noexcept override {
    if constexpr (S == core::Side::out) return core_->lend(n, wanted);
    return Port::lend(n, wanted);
  }
  bool put(const Payload& value, Carrier& by) noexcept override {
    if constexpr (S == core::Side::out) {
      RoomOf<T> room;
      if (!room.load(value, by)) return false;
      core::Node n;
      n.slot = room.slot();
      core_->put(n);
      return true;
    }
    return Port::put(value, by);
  }
  void end_lending(std::uint32_t n) noexcept override {
    if constexpr (S == core::Side::out) core_->end_lending(n);
  }
  Status deliver(core::Node& n) noexcept override {
    if constexpr (S == core::Side::out) return core_->deliver(n);
    return Port::deliver(n);
  }
  void abandon(core::Node& n) noexcept override {
    if constexpr (S == core::Side::out) core_->abandon(n);
  }
  void end_extended(core::Node& n) noexcept override {
    if constexpr (S == core::Side::in) core_->end_extended(n);
  }
  Status give_back(core::Node& n, core::Node& again) noexcept override {
    if constexpr (S == core::Side::in) return core_->give_back(n, again);
    return Port::give_back(n, again);
  }
  bool buffered() const noexcept override { return core_->buffered(); }
  Status ended() const noexcept override { return core_->template how_ended<S>(); }
  const void* channel() const noexcept override { return core_; }
  const core::SyncObject* place() const noexcept override { return core_; }
  void arm(core::Guard& g) noexcept override {
    g.kind = S == core::Side::in ? core::Kind::input : core::Kind::output;
    g.ops = &core::channel_ops<Engine, S>;
    g.where = core_;
  }
  std::uint8_t strength() const noexcept override { return core_->poison_strength(); }
  void poison(std::uint8_t s) noexcept override { core_->poison(s); }
  void close(bool died) noexcept override {
    if (died)
      end_.die();
    else
      end_.retire();
  }

 private:
  End end_;
  Engine* const core_;
};

}  // namespace weft::inline WEFT_ABI::wire
