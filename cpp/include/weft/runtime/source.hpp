// Something outside that can wake only those who wait at one channel, as `signals` can
// (../stopping.hpp). So it is outside (rule 10.3) for a run only while a process of that run waits
// there, and due (10.6).
//
// A token of ../outside.hpp counts as long as it lives, whoever waits where. A source is asked
// instead, each time a run has come to rest (Run::expects()), or says what it waits for
// (../wire/rounds.hpp).
//
// Invariants
//  1 Who brings something to the channel holds an Outside(due) meanwhile. Else a run that looks
//    just then might find neither who waits, since he has got his value, nor that he goes on.
//  2 The list of sources is under the lock of Sources, a leaf.
#pragma once
#include "../core/waiter.hpp"
#include "../threads.hpp"
#include "run.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Source {
 public:
  // It brings values to this channel.
  WEFT_IF_USED explicit Source(const core::SyncObject& channel) : channel_(&channel) { enter(); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  WEFT_IMPL ~Source();

  // Is it a channel of one?
  WEFT_IF_USED static bool is_at(const core::SyncObject& channel) noexcept;

 private:
  WEFT_IF_USED void enter();
  // Does a process of the run wait at one, while all of them sleep?
  WEFT_IF_USED static bool expected_by(Run& run) noexcept;

  const core::SyncObject* const channel_;
  Source* next_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::runtime

#if !defined(WEFT_COMPILED)
#include "../impl/source.ipp"
#endif
