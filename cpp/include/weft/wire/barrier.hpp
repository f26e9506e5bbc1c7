// A barrier whose parties are in several spaces, as its home sees it (WIRE.md 4.9 to 4.11).
//
// A peer holds the barrier as a reader end. A read at that end is an arrival, and is answered when
// all parties have arrived. So withdrawal, choice, the loss of a session and passing a share on
// work as they do for ends. Only the number of parties needs a frame of its own: Home::parties().
//
// Invariant: if a share ends with its session, and not by RETIRE, the barrier dies.
#pragma once
#include "../time.hpp"
#include "moving.hpp"

namespace weft::inline WEFT_ABI::wire {

// The room for an arrival, which carries no value.
class NoRoom final : public Room {
 public:
  void* slot() noexcept override { return nullptr; }
  bool load(const Payload& p, Carrier&) override {
    return full_ = !p.in_body && !p.leased && p.small == 0;
  }
  Payload unload(Buffer&, Carrier&) const override { return {}; }
};

// The room for the number of enrolled parties.
class PartiesRoom final : public Room {
 public:
  void* slot() noexcept override { return nullptr; }
  bool load(const Payload& p, Carrier&) override {
    parties = static_cast<std::uint32_t>(p.small);
    return full_ = !p.in_body && !p.leased && p.small <= UINT32_MAX;
  }
  Payload unload(Buffer&, Carrier&) const override { return {}; }
  std::uint32_t parties = 0;
};

class BarrierPort : public Port {
 public:
  using Engine = core::BarrierEngine<Shared>;

  // The code that makes the port keeps the barrier's engine alive: see BarrierPortOf.
  explicit BarrierPort(Engine& b) noexcept : Port(false), core_(b) {}

  std::string type() const override { return kBarrierType; }
  std::unique_ptr<Room> room() const override { return std::make_unique<NoRoom>(); }
  Status begin(core::Node& n) noexcept override { return core_.begin_sync(n); }
  bool withdraw(core::Node& n) noexcept override { return core_.withdraw(n); }
  // Home::asked() refuses a barrier in a choice that spans several homes.
  bool has_met(const core::Node&) noexcept override { return false; }
  Status watch(core::Node&) noexcept override { return Status::died; }
  const void* channel() const noexcept override { return &core_; }
  const core::SyncObject* place() const noexcept override { return &core_; }
  Status ended() const noexcept override { return core_.has_died() ? Status::died : Status::ok; }
  Engine* barrier() const noexcept override { return &core_; }
  void arm(core::Guard& g) noexcept override {
    g.kind = core::Kind::barrier;
    g.ops = &core::barrier_ops<Engine>;
    g.where = &core_;
  }
  std::uint8_t strength() const noexcept override { return 0; }
  void poison(std::uint8_t) noexcept override {}
  void close(bool died) noexcept override {
    if (died && !std::exchange(closed_, true)) core_.die();
    closed_ = true;
  }

 private:
  Engine& core_;
  bool closed_ = false;
};

// The port of a C++ Barrier.
class BarrierPortOf final : public BarrierPort {
 public:
  explicit BarrierPortOf(Barrier b) noexcept : BarrierPort(*b.core()), keeps_(std::move(b)) {}
  std::shared_ptr<Port> another() const override { return std::make_shared<BarrierPortOf>(keeps_); }

 private:
  const Barrier keeps_;
};

}  // namespace weft::inline WEFT_ABI::wire
