// The definitions of runtime/blocking.hpp.
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
  j.run->enter_outside();
  {
    const std::lock_guard g(mutex_);
    if (waiting_ <= queued_ && threads_.size() < kMost) {
      try {
        threads_.emplace_back([this] { help(); });
      } catch (...) {
        if (threads_.empty()) {
          j.run->leave_outside();
          throw;
        }
      }
    }
    j.next = nullptr;
    (last_ ? last_->next : first_) = &j;
    last_ = &j;
    ++queued_;
  }
  some_.notify_one();
}

bool Helpers::withdraw(Job& j) noexcept {
  {
    const std::lock_guard g(mutex_);
    Job* before = nullptr;
    Job* x = first_;
    while (x && x != &j) before = std::exchange(x, x->next);
    if (!x) return false;
    (before ? before->next : first_) = j.next;
    if (last_ == &j) last_ = before;
    --queued_;
  }
  return true;
}

void Helpers::help() {
  std::unique_lock l(mutex_);
  for (;;) {
    ++waiting_;
    some_.wait(l, [this] { return first_ || ending_; });
    --waiting_;
    if (!first_) return;
    Job* j = first_;
    first_ = j->next;
    if (!first_) last_ = nullptr;
    --queued_;
    l.unlock();
    Run& run = *j->run;
    j->call(*j);
    j->process->ops->wake(j->process);  // the job is in its frame, which may be gone now
    run.leave_outside();
    l.lock();
  }
}

}  // namespace weft::inline WEFT_ABI::runtime
