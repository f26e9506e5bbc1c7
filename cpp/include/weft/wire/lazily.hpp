// A thread makes a Lazily to announce that it is about to wait. A link may then put off ringing a
// bell until the thread parks, and the bell is rung only if the peer has not polled by then.
//
//   Lazily ──a bell is not rung: owe()──► owes ──the thread parks, or attends: paid()──► done
//                                            └──it does not wait: not_so()──► done
#pragma once
#include "../runtime/parking.hpp"

namespace weft::inline WEFT_ABI::wire {

class Lazily {
 public:
  Lazily() noexcept { now_ = true; }
  Lazily(const Lazily&) = delete;
  Lazily& operator=(const Lazily&) = delete;
  ~Lazily() { now_ = false; }
  static bool now() noexcept { return now_; }
  // Returns whether this thread has put off the ringing of a bell.
  static bool owes() noexcept { return owes_; }
  static void owe() noexcept { owes_ = true; }
  static void paid() noexcept { owes_ = false; }
  // Rings the bells that were put off. Called when the thread does not wait after all. The caller
  // must not hold a lock of its language, such as Python's GIL.
  static void not_so() noexcept {
    now_ = false;
    if (!owes_) return;
    paid();
    prim::atomic<std::uint32_t> over{1};
    if (const runtime::Attending* const a = runtime::attending.load(std::memory_order_acquire))
      a->attend(over);
  }

 private:
  static inline thread_local bool now_ = false, owes_ = false;
};

}  // namespace weft::inline WEFT_ABI::wire
