// Tools that observe a program (rule 14): they find processes that are stuck forever, processes
// that hog a scheduler, and channels where time is lost in waiting. Observation costs nothing while
// it is off.
//
//   // from within any process
//   if (auto stuck = weft::deadlocks()) std::puts(stuck.text().c_str());
//   // whenever a scheduler has nothing to do
//   weft::watching_deadlocks w([](const weft::PartialDeadlock& d) { … });
//   weft::watchdog dog(100ms, [](const weft::Hog& h) { … });
//   weft::measuring m;  weft::run(…);  std::puts(m.table().c_str());
//
// The functions that a program passes to these tools must not throw.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/affinity.hpp"
#include "runtime/partial.hpp"
#include "runtime/report.hpp"
#include "runtime/scheduler.hpp"
#include "runtime/text.hpp"
#include "weft.hpp"

namespace weft::inline WEFT_ABI {

// --- partial deadlock ----------------------------------------------------------------------------

// A process that is stuck. It waits for the processes in `waits_for`, which are all stuck; `open`
// is empty.
using Stuck = Waits;

// The result of deadlocks(); converts to false if no process is stuck.
class PartialDeadlock {
 public:
  std::vector<Stuck> processes;  // sorted by path; without those that wait only for stuck children

  explicit operator bool() const noexcept { return !processes.empty(); }
  // Returns a line for each process; if there are very many, only the first ones.
  std::string text() const {
    const std::size_t n = processes.size();
    if (n == 0) return "no process is stuck";
    std::string s = std::to_string(n) + (n == 1 ? " process is" : " processes are") +
                    " stuck: nothing that can run holds an end there";
    for (std::size_t i = 0; i < n; ++i) {
      if (i == runtime::Report::kLines) return s + "\n  … and " + std::to_string(n - i) + " more";
      const Stuck& p = processes[i];
      s += "\n  " + runtime::line_of(p);
      if (p.places.empty()) continue;  // the process waits for no other process
      s += "; held by " +
           (p.waits_for.empty() ? std::string("nobody") : runtime::listed(p.waits_for, " and "));
    }
    return s;
  }
};

namespace detail {

// Examines the processes on `here`, the executor of the calling process. `ids`, unless it is null,
// receives the ids of the processes found.
inline PartialDeadlock look(runtime::Run& run, runtime::Executor& here,
                            std::set<std::uint32_t>* ids = nullptr) {
  PartialDeadlock d;
  runtime::Found found = runtime::look_for_stuck(run, here, wait_op);
  d.processes = std::move(found.processes);
  if (ids) ids->insert(found.ids.begin(), found.ids.end());
  return d;
}
inline ProcessOf<PartialDeadlock> looks() {
  runtime::Executor* const here = runtime::this_context->executor;
  co_return here ? look(runtime::this_process()->group->run, *here) : PartialDeadlock();
}

inline PartialDeadlock look_from_thread() {
  runtime::ThreadProcess& self = runtime::ThreadProcess::self();
  Room<PartialDeadlock> found;
  runtime::Group group(*self.run, &runtime::executor_of(self), &self);
  looks().start(group, &found);
  GroupAwaiter wait{&self, &group};
  if (!wait.begin()) self.block(wait_op);
  wait.await_resume();
  return found ? std::move(*found) : PartialDeadlock();
}

}  // namespace detail

// Returns the processes that are stuck at this moment, among this run's processes on the calling
// process's executor. In a thread process, the executor on which its children run is examined, and
// the call waits for that. Throws BadUse outside any process.
[[nodiscard]] inline PartialDeadlock deadlocks() {
  const runtime::Context* const c = runtime::this_context;
  if (!c || !c->running || !c->running->group)
    detail::bad_use("weft::deadlocks() is for use inside a process");
  if (c->executor) return detail::look(c->running->group->run, *c->executor);
  return detail::look_from_thread();
}

// --- how the tools are called --------------------------------------------------------------------

namespace detail {

// A tool that is called for each event, on the thread of the event, with the lock of the watchers
// held (except for idle()). So a tool is allowed to call the user's code only from idle().
class Tool {
 public:
  virtual ~Tool() = default;
  virtual void resumes(runtime::ProcessBase&, const void*) {}
  virtual void suspended(runtime::ProcessBase*, const void*) {}
  virtual void idle(runtime::Run&, runtime::Executor&) {}

 private:
  friend class Watchers;
  unsigned busy_ = 0;  // calls of idle() that have not returned
};

class Watchers final : public runtime::Observer {
 public:
  static Watchers& all() {
    static Watchers& w = *new Watchers;  // never destroyed: schedulers use it until the end
    return w;
  }
  void add(std::shared_ptr<Tool> t) {
    {
      const std::lock_guard g(mutex_);
      tools_.push_back(std::move(t));
      set();
    }
    if (runtime::Scheduler* s = runtime::Scheduler::current()) s->heed();
  }
  // Once remove() returns, the tool is not called any more.
  void remove(const std::shared_ptr<Tool>& t) {
    std::unique_lock g(mutex_);
    std::erase(tools_, t);
    set();
    if (idling() != t.get()) left_.wait(g, [&] { return t->busy_ == 0; });
  }

  // Sets the flight recorder (flight.hpp), which is called without the lock. Returns false if there
  // is one already.
  bool record(runtime::Observer* recorder) {
    {
      const std::lock_guard g(mutex_);
      runtime::Observer* none = nullptr;
      if (!recorder_.compare_exchange_strong(none, recorder)) return false;
      set();
    }
    if (runtime::Scheduler* s = runtime::Scheduler::current()) s->heed();
    return true;
  }
  void record_no_more() {
    const std::lock_guard g(mutex_);
    recorder_.store(nullptr);
    set();
  }

  void resumes(runtime::ProcessBase& p, const void* where) noexcept override {
    if (runtime::Observer* const r = recorder_.load(std::memory_order_acquire))
      r->resumes(p, where);
    if (!any_.load(std::memory_order_acquire)) return;
    const std::lock_guard g(mutex_);
    for (const auto& t : tools_) t->resumes(p, where);
  }
  void suspended(runtime::ProcessBase* p, const void* where, bool next) noexcept override {
    if (runtime::Observer* const r = recorder_.load(std::memory_order_acquire))
      r->suspended(p, where, next);
    if (!any_.load(std::memory_order_acquire)) return;
    const std::lock_guard g(mutex_);
    for (const auto& t : tools_) t->suspended(p, where);
  }
  void idle(runtime::Run& run, runtime::Executor& here) noexcept override {
    std::unique_lock g(mutex_);
    const std::vector<std::shared_ptr<Tool>> tools = tools_;
    for (const auto& t : tools) ++t->busy_;
    for (const auto& t : tools) {
      g.unlock();
      idling() = t.get();
      t->idle(run, here);
      idling() = nullptr;
      g.lock();
      --t->busy_;
    }
    left_.notify_all();
  }

 private:
  static const Tool*& idling() noexcept {
    static thread_local const Tool* t = nullptr;
    return t;
  }
  // Sets the observer: the recorder itself if there is no tool, since each event would otherwise
  // cost two calls.
  void set() noexcept {
    any_.store(!tools_.empty(), std::memory_order_release);
    runtime::observer.store(tools_.empty() ? recorder_.load() : this, std::memory_order_release);
  }
  std::mutex mutex_;
  std::condition_variable left_;
  std::vector<std::shared_ptr<Tool>> tools_;
  std::atomic<bool> any_{false};  // whether there is a tool
  std::atomic<runtime::Observer*> recorder_{nullptr};
};

class IdleLook final : public Tool {
 public:
  explicit IdleLook(std::function<void(const PartialDeadlock&)> f) : tell_(std::move(f)) {}
  void idle(runtime::Run& run, runtime::Executor& here) override {
    std::set<std::uint32_t> ids;
    const PartialDeadlock found = look(run, here, &ids);
    {
      const std::lock_guard g(mutex_);
      if (std::includes(told_.begin(), told_.end(), ids.begin(), ids.end())) return;
      told_.insert(ids.begin(), ids.end());
    }
    tell_(found);
  }

 private:
  std::function<void(const PartialDeadlock&)> tell_;
  std::mutex mutex_;
  std::set<std::uint32_t> told_;
};

}  // namespace detail

// While this object exists, it examines the processes whenever a single-core scheduler has nothing
// to do, and calls the function, on that scheduler's thread, if a process is stuck that was not
// reported before.
class watching_deadlocks {
 public:
  explicit watching_deadlocks(std::function<void(const PartialDeadlock&)> tell)
      : tool_(std::make_shared<detail::IdleLook>(std::move(tell))) {
    detail::Watchers::all().add(tool_);
  }
  watching_deadlocks(const watching_deadlocks&) = delete;
  watching_deadlocks& operator=(const watching_deadlocks&) = delete;
  ~watching_deadlocks() { detail::Watchers::all().remove(tool_); }

 private:
  std::shared_ptr<detail::Tool> tool_;
};

// --- watchdog ------------------------------------------------------------------------------------

// A process that keeps other processes from its scheduler.
struct Hog {
  std::string path;
  Span seconds;  // how long the step has taken so far (a lower bound)
  // file:line of the last operation at which the process waited; if there was none, of the
  // process's function
  std::string at;
};

namespace detail {

class Dog final : public Tool {
 public:
  Dog(Span limit, std::function<void(const Hog&)> f)
      : limit_(limit.count()), tell_(std::move(f)), thread_([this] { watch(); }) {}
  // Stops the thread. Waits until a call in progress has returned.
  void stop() {
    {
      const std::lock_guard g(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void resumes(runtime::ProcessBase& p, const void* where) override {
    if (!where) return;
    const std::lock_guard g(mutex_);
    std::string& path = paths_[p.id];
    if (path.empty()) path = runtime::path_of(p);
    steps_[where] = {p.id, prim::now(), runtime::where(p), false};
    if (steps_.size() == 1) changed_.notify_all();
  }
  void suspended(runtime::ProcessBase* p, const void* where) override {
    if (!where) return;
    const std::lock_guard g(mutex_);
    const auto s = steps_.find(where);
    if (s == steps_.end()) return;
    if (!p) paths_.erase(s->second.id);
    steps_.erase(s);
  }

 private:
  struct Step {
    std::uint32_t id;
    std::int64_t since;
    std::string at;
    bool told;
  };
  void watch() {
    runtime::name_this_thread("weft watchdog");
    std::unique_lock g(mutex_);
    while (!stopping_) {
      if (steps_.empty())
        changed_.wait(g, [&] { return stopping_ || !steps_.empty(); });
      else
        changed_.wait_for(g, std::chrono::nanoseconds(std::max<std::int64_t>(limit_ / 4, 100'000)),
                          [&] { return stopping_; });
      std::vector<Hog> hogs;
      const std::int64_t now = prim::now();
      for (auto& [where, s] : steps_)
        if (!s.told && now - s.since > limit_) {
          s.told = true;
          hogs.push_back({paths_[s.id], Span(now - s.since), s.at});
        }
      g.unlock();
      for (const Hog& h : hogs) tell_(h);
      g.lock();
    }
  }
  const std::int64_t limit_;
  std::function<void(const Hog&)> tell_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::unordered_map<const void*, Step> steps_;  // the steps that are running
  std::unordered_map<std::uint32_t, std::string> paths_;
  std::thread thread_;  // the last member, since the thread uses the others
};

}  // namespace detail

// While this object exists, it calls the function, on a thread of its own, for each step of a
// coroutine process that takes longer than the limit, once and while the step is still running. The
// constructor throws BadUse if the limit is not positive.
class watchdog {
 public:
  watchdog(detail::Lasting limit, std::function<void(const Hog&)> tell) {
    if (limit.count() <= 0) detail::bad_use("watchdog: the limit must be positive");
    if (!tell) detail::bad_use("watchdog: the function to call is empty");
    dog_ = std::make_shared<detail::Dog>(limit, std::move(tell));
    detail::Watchers::all().add(dog_);
  }
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog() {
    detail::Watchers::all().remove(dog_);
    dog_->stop();
  }

 private:
  std::shared_ptr<detail::Dog> dog_;
};

// --- measuring -----------------------------------------------------------------------------------

// The counts of all channels with one name.
struct ChannelCounts {
  std::string name;
  std::uint64_t channels = 0;
  // How many values have passed, and how many were dropped, as of the last time that a process
  // which had waited there resumed.
  std::uint64_t transfers = 0, dropped = 0;
  // operations that had to wait and have resumed
  std::uint64_t parked_reads = 0, parked_writes = 0;
  // for these operations, the sum of the times from when they began to wait until they resumed
  Span blocked_readers{0}, blocked_writers{0};
};

namespace detail {

class Measure final : public Tool {
 public:
  void suspended(runtime::ProcessBase* p, const void*) override {
    if (p && p->op && p->op->passed) since_[p->id] = prim::now();
  }
  void resumes(runtime::ProcessBase& p, const void*) override {
    const auto since = since_.find(p.id);
    if (since == since_.end()) return;
    const std::int64_t t = prim::now() - since->second;
    since_.erase(since);
    if (!p.op || !p.op->passed) return;
    runtime::Passed at;
    p.op->passed(p, at);
    if (!at.place) return;
    const std::lock_guard g(mutex_);
    One& one = channels_[{at.place, {at.place->name, at.place->line}}];
    if (one.name.empty()) one.name = runtime::name_of(*at.place);
    one.transfers = at.transfers;
    one.dropped = at.dropped;
    ++(at.writing ? one.writes : one.reads);
    (at.writing ? one.writers : one.readers) += t;
  }
  std::vector<ChannelCounts> rows() const {
    std::map<std::string, ChannelCounts> by_name;
    const std::lock_guard g(mutex_);
    for (const auto& [key, one] : channels_) {
      ChannelCounts& r = by_name[one.name];
      r.name = one.name;
      ++r.channels;
      r.transfers += one.transfers;
      r.dropped += one.dropped;
      r.parked_reads += one.reads;
      r.parked_writes += one.writes;
      r.blocked_readers = Span(r.blocked_readers.count() + one.readers);
      r.blocked_writers = Span(r.blocked_writers.count() + one.writers);
    }
    std::vector<ChannelCounts> all;
    for (auto& [name, r] : by_name) all.push_back(std::move(r));
    std::stable_sort(all.begin(), all.end(), [](const ChannelCounts& a, const ChannelCounts& b) {
      return a.blocked_readers.count() + a.blocked_writers.count() >
             b.blocked_readers.count() + b.blocked_writers.count();
    });
    return all;
  }

 private:
  struct One {
    std::string name;
    std::uint64_t transfers = 0, dropped = 0, reads = 0, writes = 0;
    std::int64_t readers = 0, writers = 0;  // in ns
  };
  using Key = std::pair<const void*, std::pair<const char*, std::uint32_t>>;
  // when a process parked, in ns; protected by the lock of the watchers
  std::unordered_map<std::uint32_t, std::int64_t> since_;
  mutable std::mutex mutex_;
  std::map<Key, One> channels_;
};

}  // namespace detail

// While this object exists, or until stop(), it measures how often and how long operations wait,
// for each channel at which an operation waits.
class measuring {
 public:
  measuring() : tool_(std::make_shared<detail::Measure>()) { detail::Watchers::all().add(tool_); }
  measuring(const measuring&) = delete;
  measuring& operator=(const measuring&) = delete;
  ~measuring() { stop(); }

  void stop() {
    if (!std::exchange(stopped_, true)) detail::Watchers::all().remove(tool_);
  }
  // Returns a row for each name of channels; the channels at which most time was lost are first.
  std::vector<ChannelCounts> rows() const { return tool_->rows(); }
  // Returns the rows as text for people.
  std::string table() const {
    std::string s =
        "  blocked readers     reads   blocked writers    writes    transfers      dropped  "
        "channel\n";
    for (const ChannelCounts& r : rows()) {
      char line[160];
      std::snprintf(line, sizeof line, "%15.6f s %9llu %15.6f s %9llu %12llu %12llu  ",
                    seconds(r.blocked_readers), number(r.parked_reads), seconds(r.blocked_writers),
                    number(r.parked_writes), number(r.transfers), number(r.dropped));
      s += line + r.name +
           (r.channels > 1 ? " (" + std::to_string(r.channels) + " channels)\n" : "\n");
    }
    return s;
  }
  // Returns the rows for programs: an array of objects with the names of ChannelCounts; times are
  // in seconds.
  std::string json() const {
    std::string s = "[";
    for (const ChannelCounts& r : rows()) {
      char line[320];
      std::snprintf(line, sizeof line,
                    ", \"channels\": %llu, \"transfers\": %llu, \"dropped\": %llu, "
                    "\"parked_reads\": %llu, \"parked_writes\": %llu, "
                    "\"blocked_readers\": %.9f, \"blocked_writers\": %.9f}",
                    number(r.channels), number(r.transfers), number(r.dropped),
                    number(r.parked_reads), number(r.parked_writes), seconds(r.blocked_readers),
                    seconds(r.blocked_writers));
      s += s.size() > 1 ? ",\n {\"name\": " : "{\"name\": ";
      runtime::put_json(s, r.name);
      s += line;
    }
    return s + "]";
  }

 private:
  static double seconds(Span t) noexcept { return static_cast<double>(t.count()) * 1e-9; }
  static unsigned long long number(std::uint64_t n) noexcept { return n; }
  std::shared_ptr<detail::Measure> tool_;
  bool stopped_ = false;
};

}  // namespace weft::inline WEFT_ABI
