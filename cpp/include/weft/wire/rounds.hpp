// Detects deadlock over several programs, and determines where the processes of all these programs
// wait (rule 10.1, WIRE.md 10.6).
//
//   auto space = wire::Space::make("main");
//   wire::Rounds rounds(space);                  // before the links; one for each program
//   …
//   std::puts(rounds.everywhere().text().c_str());
//
// While this object exists, its program answers the questions of other programs. A run that has
// waited only for links for 50 ms asks whether all runs in all programs do so, and no frame is
// under way. If so, nothing will ever wake these runs: each of them throws Deadlock, and the report
// contains the knot over all programs. The following programs prevent any conclusion in all
// programs that can reach them: a program without Rounds, a program with a thread that is not a
// process (a weft::Outside), a program that waits for a signal (weft::signals), and a program with
// links of another space.
//
//   a run stands ──links_stand──► look(): a round ──some process can go on──► later, five times
//                                   │ all stand still
//                                   └──a second round: nothing has moved──► TELL: all declare it
// asking.hpp describes how the questions reach all programs.
//
// Invariants
//  1 `found_`, `condemned_`, `stands_` and `stop_` are protected by `lock_`; no other lock is taken
//    under it. Runs are condemned in the step that learns of the deadlock, before other programs
//    that were notified can act; the thread of this object cancels their processes, and holds no
//    lock while it does so.
//  2 What a program says describes one moment. The program says it in a step of its space, so no
//    frame is received meanwhile, and all its runs are idle at once.
#pragma once
#include <unistd.h>
#include <chrono>
#include <condition_variable>
#include <thread>
#include <utility>
#include <vector>

#include "../runtime/names.hpp"
#include "../runtime/outside.hpp"
#include "../runtime/source.hpp"
#include "asking.hpp"
#include "everywhere.hpp"

namespace weft::inline WEFT_ABI::wire {

namespace detail {

// Holds the runs that exist now: none of them ends while this object exists.
class PinnedRuns {
 public:
  PinnedRuns() : runs_(runtime::Outsiders::all().pin()) {}
  PinnedRuns(PinnedRuns&& o) noexcept
      : runs_(std::move(o.runs_)), here_(std::exchange(o.here_, false)) {}
  PinnedRuns& operator=(PinnedRuns&&) = delete;
  ~PinnedRuns() {
    if (here_) runtime::Outsiders::all().unpin();
  }
  const std::vector<runtime::Run*>& runs() const noexcept { return runs_; }

 private:
  std::vector<runtime::Run*> runs_;
  bool here_ = true;
};

}  // namespace detail

class Rounds final : private Asking {
 public:
  // Makes this program answer questions and ask them. Throws BadUse if it has a Rounds already.
  explicit Rounds(std::shared_ptr<Space> space);
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  ~Rounds();

  // Asks all programs that can be reached for their state. Waits at most `patience` for the
  // answers; if some are missing, `whole` is false. Can be called from any thread, but not in a
  // coroutine, because it blocks.
  Everywhere everywhere(std::chrono::nanoseconds patience = std::chrono::seconds(1));

 private:
  void asked_first(std::uint64_t asker, std::uint32_t round) override;
  void found(std::uint32_t round, Bytes all, bool whole) override;
  void on_tell(Bytes what) override;
  InProgram mine();
  Everywhere round(std::chrono::nanoseconds patience, bool all);
  void look();
  void serve();
  static std::shared_ptr<Space> alone(std::shared_ptr<Space> space, Rounds* me);
  static void stand() noexcept;
  static void forget_me() noexcept;

  std::mutex asking_;  // held during a round: this program has one round at a time
  std::mutex lock_;
  std::condition_variable news_;
  std::optional<Everywhere> found_;
  std::vector<std::pair<detail::PinnedRuns, std::vector<runtime::Run*>>> condemned_;
  bool stands_ = false, stop_ = false;
  std::thread thread_;

  static inline std::mutex one_lock_;
  static inline Rounds* one_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::wire
