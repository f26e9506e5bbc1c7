// Barriers whose parties are in several OS processes (rule 8.7, WIRE.md 4.9).
//
// At its home such a barrier is an ordinary one, which a port lends to peers. Elsewhere the barrier
// is a Reader at which a read is an arrival, so sync() is a read there, and a guard is an input.
//
// Invariant: the core of a Barrier with `far` is never used.
#pragma once
#include "choice/barrier.hpp"
#include "weft/wire/barrier.hpp"
#include "wire/far.hpp"

namespace weft::py {

using Parties = wire::FarGuard::Parties;

// The port at the home. `dies` says whether the barrier dies with a peer that has it.
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

// Makes the Barrier object for a barrier of another OS process. Returns null with an exception on
// failure.
PyObject* far_barrier(std::shared_ptr<wire::FarEnd> e, const std::string& called);
// Returns the share to be handed to a peer, or to be sent in a value. Returns null, with an
// exception, if the barrier has died.
std::shared_ptr<wire::FarEnd> far_share(const BarrierObject* b);
// Reports to the home that the barrier has died, because a process that was to receive it was
// killed. In this program the barrier has already died. Only the first report is sent.
void far_dies(BarrierObject* b);
// Sends a message about the parties to the home, and waits for the answer. Returns the number of
// enrolled parties for `ask`, otherwise None; null with an exception on failure.
//
// The message cannot be withdrawn or cancelled: once it has been sent, it takes effect (rule 8.2).
// Also, a process that was cancelled must still be able to resign. Therefore the call blocks its
// thread for a round trip, or for at most 10 s if other processes need that thread.
PyObject* far_parties(BarrierObject* b, Parties what);

}  // namespace weft::py
