// std::thread, a thread that calls a plain function, and a condition variable. With libstdc++
// without the rest of <thread> and <condition_variable>, whose std::stop_token takes as long to
// parse as a third of weft.hpp; and the plain thread without the sixty functions that a std::thread
// is made by.
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
class PlainThread {
 public:
  // Calls f(x) in a new thread, once. It must stay where it is until then. Throws std::system_error
  // if the system gives none.
  void start(void (*f)(void*), void* x) {
    f_ = f;
    x_ = x;
    if (const int e = ::pthread_create(&it_, nullptr, &run, this)) std::__throw_system_error(e);
  }
  void join() noexcept { ::pthread_join(it_, nullptr); }
  bool is_this() const noexcept { return ::pthread_equal(it_, ::pthread_self()) != 0; }

 private:
  static void* run(void* me) {
    auto& t = *static_cast<PlainThread*>(me);
    t.f_(t.x_);
    return nullptr;
  }
  void (*f_)(void*) = nullptr;
  void* x_ = nullptr;
  pthread_t it_{};
};

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
class PlainThread {
 public:
  void start(void (*f)(void*), void* x) { it_ = std::thread(f, x); }
  void join() noexcept { it_.join(); }
  bool is_this() const noexcept { return it_.get_id() == std::this_thread::get_id(); }

 private:
  std::thread it_;
};
using Condition = std::condition_variable;
#endif

}  // namespace weft::inline WEFT_ABI::runtime
