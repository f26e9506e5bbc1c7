// Barriers whose parties are in several OS processes (rule 8.7, WIRE.md 4.9).
//
// Where it was made a barrier is itself, and a port hands it out. Elsewhere it is a Reader at which
// a read is an arrival: so sync() is a read there, and as a guard it is an input.
//
// Invariant: of a Barrier with `far` nobody uses the core.
#pragma once
#include "choice/barrier.hpp"
#include "weft/wire/barrier.hpp"
#include "wire/far.hpp"

namespace weft::py {

using Parties = wire::FarGuard::Parties;

// The home's side. `dies`: the death of who has it is the barrier's.
class BarrierPort final : public wire::BarrierPort {
 public:
  explicit BarrierPort(BarrierObject* b, bool dies = true) noexcept
      : wire::BarrierPort(b->core), barrier_(b), dies_(dies) {
    Py_INCREF(reinterpret_cast<PyObject*>(b));
  }
  ~BarrierPort() override { defer_decref(reinterpret_cast<PyObject*>(barrier_)); }
  std::shared_ptr<wire::Port> another() const override {
    return std::make_shared<BarrierPort>(barrier_);
  }
  void close(bool died) noexcept override { wire::BarrierPort::close(died && dies_); }
  BarrierObject* of() const noexcept { return barrier_; }

 private:
  BarrierObject* const barrier_;
  const bool dies_;
};

// A barrier of another OS process. Null with an exception.
PyObject* far_barrier(std::shared_ptr<wire::FarEnd> e, const std::string& called);
// What there is to be handed to a peer, or to go in a value. Null, with an exception: it has died.
std::shared_ptr<wire::FarEnd> far_share(const BarrierObject* b);
// Its home is told that it has died, by whoever was to hand it to one that was killed: here it has
// died already. Nothing, if that was said before.
void far_dies(BarrierObject* b);
// Says it to its home, and waits for the answer: for `ask` how many are enrolled, else None. Null
// with an exception.
//
// It is no operation that is awaited and cancelled: what was said has been done (rule 8.2), and
// whoever resigns on its way out, cancelled, must be able to. So it holds up its thread: for a
// round trip, or for 10 s where others need that thread.
PyObject* far_parties(BarrierObject* b, Parties what);

}  // namespace weft::py
