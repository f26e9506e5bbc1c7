// A thread that is about to wait says so: a link may then put the ringing of a bell off until it
// parks, if nobody has looked by then.
//
//   Lazily ──a bell is not rung: owe()──► owes ──it parks, or attends: paid()──► done
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
  // Of this thread: has it put something off?
  static bool owes() noexcept { return owes_; }
  static void owe() noexcept { owes_ = true; }
  static void paid() noexcept { owes_ = false; }
  // It does not wait after all. With none of the language's own lock.
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
