// Work that waits for the next safe point: references that the core dropped; ends and `Outside`
// tokens that were collected (rules 12.1 and 12.2).
//
//   ~Value, ~Reader, ~Writer, ~Outside ──► queues ──run_deferred_now(): the next operation, turn of the scheduler or end of a process──► done
//      └──an end or a token, and no thread of Weft may run next: look_for_ends()──► a sleeper, or a loop of asyncio, runs the deferred work
//
// Invariants
//  1 `something_pending` is true whenever a queue is not empty. Everything here is protected by the
//    GIL.
//  2 While an end or a token is pending, no thread falls asleep, and no run concludes that nothing
//    can wake it (report.cpp). When an end or a token is dropped, a sleeping thread is woken, and
//    runs the deferred work. This wake-up takes no lock, because the finaliser may run under locks
//    of the extension.
#include "interpreter/pending.hpp"

#include "gate.hpp"
#include "interpreter/outside.hpp"
#include "interpreter/owners.hpp"
#include "rounds/report.hpp"
#include "values/cells.hpp"
#include "values/native_types.hpp"
#include "watching/stopped_early.hpp"

namespace weft::py {

namespace {
struct Retirement {
  ChannelObject* channel;  // owned
  bool writer;
};
std::vector<PyObject*> dropped;
std::vector<Retirement> retirements;
std::vector<weft::Outside*> collected_tokens;  // owned
// True while this thread runs the queues. Finalisers on other threads do not matter here.
thread_local bool running_deferred = false;
}  // namespace

bool something_pending = false;

void defer_decref(PyObject* o) noexcept {
  if (is_cell(o)) return drop_cell(o);  // a thread that drops a cell might not have the GIL
  dropped.push_back(o);
  something_pending = true;
}

void defer_retirement(ChannelObject* owned, bool writer) noexcept {
  retirements.push_back({owned, writer});
  something_pending = true;
  if (retirements.size() == 1 && !running_deferred) look_for_ends();
}
void defer_exit(weft::Outside* owned) noexcept {
  collected_tokens.push_back(owned);
  something_pending = true;
  if (collected_tokens.size() == 1 && !running_deferred) look_for_ends();
}
void forget_exits() noexcept { collected_tokens.clear(); }

bool ends_pending() noexcept {
  return !(retirements.empty() && collected_tokens.empty()) && !running_deferred;
}

bool deferred_runs_here() noexcept { return running_deferred; }

void run_deferred_now() noexcept {
  release_lent();
  // A finaliser that runs below can begin an operation, which calls this function again. The loop
  // below handles the work that this operation defers.
  if (running_deferred) return;
  running_deferred = true;
  const SavedException kept;
  while (something_pending) {
    something_pending = false;
    std::vector<Retirement> ends;
    ends.swap(retirements);
    for (const Retirement& r : ends) {
      const Owned channel(r.channel);
      if (r.writer) {
        r.channel->core.drop_writer();
      } else {
        r.channel->readers_returned = kOtherwise;
        r.channel->core.drop_reader();
      }
    }
    for (weft::Outside* t : std::exchange(collected_tokens, {})) exit_now(t);
    std::vector<PyObject*> values;
    values.swap(dropped);
    bool of_others = false;
    {
      const OutsideGate beyond;
      for (PyObject* o : values) {
        of_others = of_others || made_by_another(o);
        Owned(o).reset();
      }
    }
    if (of_others) wake_owners();
  }
  running_deferred = false;
}

}  // namespace weft::py
