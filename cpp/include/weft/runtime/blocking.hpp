// Helper threads for calls that block (rule 15.9).
//
//   job: ──submit()──► queued ──a helper takes it──► running ──► done: its process is woken
//                        └──withdraw()──► taken back (cancelled before the commit)
//
// State under the lock: the queue, the number of helper threads, and how many of them wait for a
// job. The helper threads end with the run.
#pragma once
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "group.hpp"

namespace weft::inline WEFT_ABI::runtime {

struct Job {
  // The function that a helper thread calls. No exception may leave it.
  void (*call)(Job&) noexcept = nullptr;
  ProcessBase* process = nullptr;
  Run* run = nullptr;
};

class Helpers final : public Part {
 public:
  static constexpr unsigned kMaxThreads = 64;

  ~Helpers() override;

  // Queues a job. Throws std::system_error if there is no helper thread and the system cannot start
  // one.
  void submit(Job& j);
  // Removes a job from the queue. Returns true if the job had not begun; then the job never begins.
  bool withdraw(Job& j) noexcept;

 private:
  void help();

  std::mutex mutex_;
  std::condition_variable some_;
  std::vector<std::thread> threads_;
  std::deque<Job*> queue_;
  std::size_t waiting_ = 0;
  bool ending_ = false;
};

}  // namespace weft::inline WEFT_ABI::runtime
