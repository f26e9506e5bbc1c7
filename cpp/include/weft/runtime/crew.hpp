// OS threads for thread processes: when one has ended its thread waits for the next, so that starting a process in a loop does not cost a
// thread each time. At most kIdle wait; others end. The crew is never destroyed: its threads wait until the program ends, whatever ends it.
//
//   run(job) ──an idle thread, or a new one──► job() ──► idle ──next job──► …        kIdle wait already: it ends
//
// The list of idle threads is under mutex_; a worker's job is handed over under its own lock. In the child of a fork there are none.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>
#if defined(__unix__)
#include <unistd.h>
#endif

namespace weft::runtime {

class Crew {
 public:
  using Job = std::function<void()>;

  static Crew& all() {
    static Crew* const c = new Crew;
    return *c;
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Throws std::system_error if the system gives no thread.
  void run(Job job) {
    std::unique_ptr<Worker> w;
    {
      const std::lock_guard g(mutex_);
      if (const long now = process(); now != home_) {
        for (auto& lost : idle_) static_cast<void>(lost.release());  // they did not come along
        idle_.clear();
        home_ = now;
      }
      if (!idle_.empty()) {
        w = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (!w) {
      w = std::make_unique<Worker>();
      w->job = std::move(job);
      Worker* const self = w.get();
      w->thread = std::thread([this, self] { work(self); });
    } else {
      const std::lock_guard g(w->mutex);
      w->job = std::move(job);
      w->told.notify_one();
    }
    static_cast<void>(w.release());  // it is its thread's until it is idle
  }

 private:
  static constexpr std::size_t kIdle = 64;

  struct Worker {
    std::mutex mutex;
    std::condition_variable told;
    Job job;  // mutex, once the thread runs
    std::thread thread;
  };

  Crew() = default;
  ~Crew() = default;
  static long process() noexcept {
#if defined(__unix__)
    return ::getpid();
#else
    return 0;
#endif
  }

  void work(Worker* self) {
    Job job;
    {
      const std::lock_guard g(self->mutex);
      job = std::move(self->job);
    }
    for (;;) {
      // It tells its run that it is done as its last act, and is idle only after that: the run does not wait for the thread itself.
      job();
      job = nullptr;
      {
        const std::lock_guard g(mutex_);
        self->job = nullptr;
        if (idle_.size() >= kIdle) {
          self->thread.detach();
          break;
        }
        idle_.emplace_back(self);
      }
      std::unique_lock g(self->mutex);
      self->told.wait(g, [&] { return static_cast<bool>(self->job); });
      job = std::move(self->job);
      self->job = nullptr;
    }
    delete self;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
  long home_ = process();
};

// How many jobs of a run are under way; outlives the run, for those that are just telling it.
class Latch {
 public:
  void up() {
    const std::lock_guard g(mutex_);
    ++n_;
  }
  void down() {
    const std::lock_guard g(mutex_);
    if (--n_ == 0) zero_.notify_all();
  }
  std::size_t count() {
    const std::lock_guard g(mutex_);
    return n_;
  }
  void wait() {
    std::unique_lock g(mutex_);
    zero_.wait(g, [&] { return n_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable zero_;
  std::size_t n_ = 0;
};

}  // namespace weft::runtime
