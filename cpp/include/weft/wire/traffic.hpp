// Records which sessions of this program are open. Sessions have ascending numbers. Once every
// session that was open at some moment has ended, everything that was under way to the program at
// that moment has arrived, or never will. slot.hpp keeps what a session could still refer to until
// all those sessions have ended.
//
//   Traffic() ──open──► over()
#pragma once
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <set>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::wire {

class Traffic {
 public:
  Traffic() {
    const std::lock_guard g(all().lock);
    number_ = ++all().last;
    all().open.insert(number_);
  }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;
  ~Traffic() { over(); }
  // Called when the session can bring nothing more. A second call does nothing.
  void over() noexcept {
    const std::lock_guard g(all().lock);
    all().open.erase(number_);
  }

  // Returns the number of the newest session so far.
  static std::uint64_t latest() noexcept {
    const std::lock_guard g(all().lock);
    return all().last;
  }
  // Returns the number of the oldest open session; the largest number if none is open.
  static std::uint64_t oldest() noexcept {
    const std::lock_guard g(all().lock);
    return all().open.empty() ? std::numeric_limits<std::uint64_t>::max() : *all().open.begin();
  }
  // Forgets the sessions, which belong to the parent. Called in the child of a fork.
  static void forget() noexcept {
    new (&all().lock) std::mutex;  // Another thread of the parent might have held the lock.
    new std::set<std::uint64_t>(std::move(all().open));
    all().open.clear();
  }

 private:
  struct All {
    std::mutex lock;  // no other lock is acquired while this one is held
    std::uint64_t last = 0;
    std::set<std::uint64_t> open;
  };
  static All& all() noexcept {
    static All* const a = new All;  // never destroyed: sessions can outlive the program's statics
    return *a;
  }
  std::uint64_t number_;
};

}  // namespace weft::inline WEFT_ABI::wire
