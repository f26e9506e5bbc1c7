// std::thread, and a condition variable. With libstdc++ without the rest of <thread> and
// <condition_variable>, whose std::stop_token takes as long to parse as a third of weft.hpp.
#pragma once
#include <mutex>
#include <version>
#if defined(__GLIBCXX__) && __has_include(<bits/std_thread.h>)
#include <bits/std_thread.h>
#include <pthread.h>
#else
#include <condition_variable>
#include <thread>
#endif

#include "config.hpp"

namespace weft::inline WEFT_ABI::runtime {

#if defined(__GLIBCXX__) && __has_include(<bits/std_thread.h>)
class Condition {
 public:
  Condition() noexcept = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  ~Condition() { ::pthread_cond_destroy(&it_); }
  template <class F>
  void wait(std::unique_lock<std::mutex>& l, F&& until) noexcept {
    while (!until()) ::pthread_cond_wait(&it_, l.mutex()->native_handle());
  }
  void notify_one() noexcept { ::pthread_cond_signal(&it_); }
  void notify_all() noexcept { ::pthread_cond_broadcast(&it_); }

 private:
  pthread_cond_t it_ = PTHREAD_COND_INITIALIZER;
};
#else
using Condition = std::condition_variable;
#endif

}  // namespace weft::inline WEFT_ABI::runtime
