// Waits for descriptors. There is one engine for each executor of which a process waits for a
// descriptor. An engine is an epoll, in which the executor sleeps in place of its own word, and an
// eventfd, by which other threads wake the executor.
//
// Engines are reused and never destroyed. So a thread that wakes an engine too late does no harm.
#pragma once
#include "watched.hpp"

struct epoll_event;

namespace weft::inline WEFT_ABI::io::detail {

class Engine final : public runtime::Poller {
 public:
  // Returns the engine of the executor on which the calling process runs. Throws BadUse if the
  // process cannot wait for a descriptor: its run has virtual time (rule 18.7), or an event loop of
  // another library runs the process; std::system_error if the system has no descriptor left for
  // the engine.
  static Engine& here(runtime::ProcessBase& p);
  // Returns the engine that here() has returned for this process before.
  static Engine& known(runtime::ProcessBase& p) noexcept;

  void sleep(const runtime::Parking& who, prim::atomic<std::uint32_t>& word, std::uint32_t expected,
             std::int64_t until) noexcept override;
  bool glance() noexcept override;
  void join() noexcept override;
  void leave() noexcept override;

 private:
  friend class Watched;
  static runtime::Poller& make();
  // Called in the child of a fork, with the book's lock held: gives each engine an epoll and an
  // eventfd of its own. An event that the child took from its parent's epoll would be lost to the
  // parent.
  static void in_child() noexcept;
  Engine();
  int open() noexcept;  // makes the two descriptors; returns the system's error number, or 0
  void ring() noexcept override;
  // Returns whether the bell was among the events.
  bool hand_on(const epoll_event* events, int n) noexcept;

  int epoll_ = -1, bell_ = -1;
  std::atomic<std::int32_t> waiting_{0};  // how many operations wait in this engine
  std::atomic<std::int64_t> looked_{0};   // when the engine last polled for events, in ns
  // under the book's lock: how many executors use this engine
  unsigned executors_ = 0;
  Engine* all_next_ = nullptr;   // under the book's lock: the engine made before this one
  Engine* free_next_ = nullptr;  // under the book's lock: the next unused engine
};

}  // namespace weft::inline WEFT_ABI::io::detail
