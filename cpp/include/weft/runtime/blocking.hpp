// Helper threads for calls that block (rule 15.9).
//
//   job: ──submit()──► queued ──a helper takes it──► running ──► done: its process is woken
//                        └──withdraw()──► taken back (cancelled before the commit)
//
// State under the lock: the queue, how many helpers there are and how many wait for a job. They end
// with the run.
#pragma once
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "group.hpp"

namespace weft::inline WEFT_ABI::runtime {

struct Job {
  void (*call)(Job&) noexcept = nullptr;  // the function, on a helper; nothing escapes
  ProcessBase* process = nullptr;
  Run* run = nullptr;
};

class Helpers final : public Part {
 public:
  static constexpr unsigned kMost = 64;

  ~Helpers() override;

  // Throws std::system_error if there is no helper and the system gives none.
  void submit(Job& j);
  // True: it had not begun, and will not.
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
