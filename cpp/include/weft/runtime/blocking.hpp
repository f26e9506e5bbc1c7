// Helper threads for calls that block (rule 15.9).
//
//   job: ──submit()──► queued ──a helper takes it──► running ──► done: its process is woken
//                        └──withdraw()──► taken back (cancelled before the commit)
//
// State under the lock: the queue, how many helpers there are and how many wait for a job. They end with the run.
#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "group.hpp"

namespace weft::inline WEFT_ABI::runtime {

struct Job {
  void (*call)(Job&) noexcept = nullptr;  // the function, on a helper; nothing escapes
  ProcessBase* process = nullptr;
  Run* run = nullptr;
  Job* next = nullptr;
};

class Helpers final : public Part {
 public:
  static constexpr unsigned kMost = 64;

  ~Helpers() override {
    {
      const std::lock_guard g(mutex_);
      ending_ = true;
    }
    some_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  // Throws what std::thread throws if there is no helper and the system gives none.
  void submit(Job& j) {
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
  // True: it had not begun, and will not.
  bool withdraw(Job& j) noexcept {
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

 private:
  void help() {
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

  std::mutex mutex_;
  std::condition_variable some_;
  std::vector<std::thread> threads_;
  Job* first_ = nullptr;
  Job* last_ = nullptr;
  std::size_t queued_ = 0;
  std::size_t waiting_ = 0;
  bool ending_ = false;
};

}  // namespace weft::inline WEFT_ABI::runtime
