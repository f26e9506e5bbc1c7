// Something outside that brings values to one channel, as `signals` does (../stopping.hpp). A
// source can wake only processes that wait at this channel. So a source counts as outside (rule
// 10.3), and as due (10.6), only for a run that has a process waiting there.
//
// A token of ../outside.hpp counts as long as it exists, wherever processes wait. A source, in
// contrast, is asked each time a run has become idle (Run::expects()), or reports what it waits for
// (../wire/rounds.hpp).
//
// Invariants
//  1 The thread that brings something to the channel holds an Outside(due) meanwhile. Otherwise a
//    run might check just after a process has received its value and before the process continues:
//    then the run would find neither a process that waits there nor one that runs.
//  2 The list of sources is protected by the lock of Sources, under which no other lock is taken.
#pragma once
#include <thread>
#include "../core/waiter.hpp"
#include "run.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Source {
 public:
  // Declares a source that brings values to this channel.
  explicit Source(const core::SyncObject& channel) : channel_(&channel) { enter(); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source();

  // Returns whether `channel` is the channel of a source.
  static bool is_at(const core::SyncObject& channel) noexcept;

 private:
  void enter();
  // Returns whether a process of the run waits at a source. Called while all of its processes
  // sleep.
  static bool expected_by(Run& run) noexcept;

  const core::SyncObject* const channel_;
};

}  // namespace weft::inline WEFT_ABI::runtime
