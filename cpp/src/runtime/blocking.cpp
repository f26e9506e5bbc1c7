// The definitions of runtime/blocking.hpp.
#include <weft/runtime/affinity.hpp>
#include <weft/runtime/blocking.hpp>

namespace weft::inline WEFT_ABI::runtime {

Helpers::~Helpers() {
  {
    const std::lock_guard g(mutex_);
    ending_ = true;
  }
  some_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void Helpers::submit(Job& j) {
  {
    const std::lock_guard g(mutex_);
    queue_.push_back(&j);
    j.run->enter_outside();
    if (waiting_ < queue_.size() && threads_.size() < kMaxThreads) {
      try {
        threads_.emplace_back([this] { help(); });
      } catch (...) {
        if (threads_.empty()) {
          queue_.pop_back();
          j.run->leave_outside();
          throw;
        }
      }
    }
  }
  some_.notify_one();
}

bool Helpers::withdraw(Job& j) noexcept {
  const std::lock_guard g(mutex_);
  return std::erase(queue_, &j) != 0;
}

void Helpers::help() {
  name_this_thread("weft helper");  // otherwise the thread has the name of its starter
  std::unique_lock l(mutex_);
  for (;;) {
    ++waiting_;
    some_.wait(l, [this] { return !queue_.empty() || ending_; });
    --waiting_;
    if (queue_.empty()) return;
    Job* const j = queue_.front();
    queue_.pop_front();
    l.unlock();
    Run& run = *j->run;
    j->call(*j);
    // The job is in the frame of its process, which can be destroyed after this call.
    j->process->ops->wake(j->process);
    run.leave_outside();
    l.lock();
  }
}

}  // namespace weft::inline WEFT_ABI::runtime
