// A group: processes that were started together, that are waited for together, of which one failure cancels the others (rule 7).
//
//   add() ──► live ──process ends: finished()──► live == 0 ──► whoever waits is woken
//                ├──a failure──► cancel(): the others, and the owner while its block is open (open_block() … close_block(), rule 7.5)
//                └──abandon()──► its owner's group waits in its owner's place
//
// State under the group's lock: the list of children, live, failures, who waits, the names. A group belongs to the frame that waits for it.
#pragma once
#include <algorithm>
#include <exception>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../core/policy.hpp"
#include "run.hpp"

namespace weft::runtime {

inline std::uint32_t next_process_id() noexcept {
  static prim::atomic<std::uint32_t> last{0};
  return Identity::nth(last.fetch_add(1, std::memory_order_relaxed));
}

// The groups that this thread is about to cancel.
struct CancelLine {
  Group* first = nullptr;
  bool at_work = false;
};
inline constinit thread_local CancelLine cancel_line;

class Group {
 public:
  Run& run;
  Executor* executor;          // where its coroutine children run
  ProcessBase* parent;         // who waits for it, or null; gone once it is abandoned: see owner()
  const char* name = nullptr;  // part of the path, may be null

  Group(Run& r, Executor* e, ProcessBase* p) noexcept : run(r), executor(e), parent(p) { run.add_group(*this); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() { run.remove_group(*this); }

  // The process is a child from now on; making it runnable is the caller's.
  void add(ProcessBase& p) {
    p.group = this;
    if (p.id == 0) p.id = next_process_id();
    lock_.lock();
    p.index = count_name(p.function);
    p.set_order(started_++);
    p.sibling_next = children_;
    p.sibling_prev = nullptr;
    if (children_) children_->sibling_prev = &p;
    children_ = &p;
    ++live_;
    if (cancelled_) p.cancel().store(1, std::memory_order_relaxed);
    lock_.unlock();
  }

  // The process has finished and leaves the list; it may be destroyed now. Its group is told by finished() once its ends are let go
  // (rule 7.7).
  void unlink(ProcessBase& p) noexcept {
    lock_.lock();
    if (p.sibling_prev)
      p.sibling_prev->sibling_next = p.sibling_next;
    else
      children_ = p.sibling_next;
    if (p.sibling_next) p.sibling_next->sibling_prev = p.sibling_prev;
    lock_.unlock();
  }
  // `left`: its failure; or what left it, if that was a quiet end and the group keeps ends. Null: neither.
  void finished(std::uint32_t order, std::exception_ptr left, Ending how = Ending::failed) noexcept {
    if (left && how == Ending::failed)
      fail(order, std::move(left));
    else if (left)
      end_ = std::move(left);  // before live_ falls to 0, after which it is read
    core::Node* w = nullptr;
    Group* heir = nullptr;
    lock_.lock();
    const bool last = --live_ == 0;
    if (last) {
      std::swap(w, waiter_);
      heir = heir_;
    }
    lock_.unlock();
    // From here on the group may be gone, if nobody waits by the node, unless it was abandoned: then it is ours.
    if (heir) {
      for (auto& f : failures_) heir->fail(f.first, std::move(f.second));
      delete this;
      heir->finished(0, nullptr);
    }
    if (w) {
      w->status = Status::ok;
      core::Waker* k = core::waker_of(w);
      k->ops->wake(k);
    }
  }

  // One more is to be waited for, which is no process of the list: until finished(0, nullptr).
  void adopt() noexcept {
    lock_.lock();
    ++live_;
    lock_.unlock();
  }

  // It is of exactly one process, and whoever waits for it raises what leaves that (rule 3.5). Before it is started.
  void keep_end() noexcept { keeps_end_ = true; }
  bool keeps_end() const noexcept { return keeps_end_; }
  // Null: it returned, or it failed. Once it has ended.
  std::exception_ptr take_end() noexcept { return std::exchange(end_, nullptr); }

  // Wait until nobody is live. `ok`: so it is already.
  Status begin_wait(core::Node& n) noexcept {
    lock_.lock();
    const bool done = live_ == 0;
    if (!done) {
      n.status = Status::pending;
      waiter_ = &n;
    }
    lock_.unlock();
    return done ? Status::ok : Status::pending;
  }
  // Who waits by this node does not go on waiting. False: it has been woken.
  bool end_wait(core::Node& n) noexcept {
    lock_.lock();
    const bool waits = waiter_ == &n;
    if (waits) waiter_ = nullptr;
    lock_.unlock();
    return waits;
  }
  bool done() noexcept {
    lock_.lock();
    const bool d = live_ == 0;
    lock_.unlock();
    return d;
  }

  // Nobody will wait for it: its owner is left by an exception (rule 7.5). The children are cancelled, and the owner's group waits for
  // them and fails with them. Only for a group made by new; true: it deletes itself when the last of them has ended.
  bool abandon() noexcept { return abandon(*parent->group); }
  // The same; `its`: who is to wait for them, if that is not the owner's group.
  bool abandon(Group& its) noexcept {
    cancel();
    Group* const heir = &its;
    heir->adopt();
    bool live = false;
    run.still([&] {  // the owner is about to go; paths leave it out from here on
      lock_.lock();
      live = live_ > 0;
      if (live) heir_ = heir;
      lock_.unlock();
    });
    if (!live) {  // the last of them has just ended
      bequeath(*heir);
      heir->finished(0, nullptr);
    }
    return live;
  }
  // Who waits for it: of an abandoned group, who waits for its heir. Under Run::still(), or while nothing can run.
  ProcessBase* owner() const noexcept {
    const Group* g = this;
    while (g->heir_) g = g->heir_;
    return g->parent;
  }

  void fail(std::uint32_t order, std::exception_ptr failure) {
    lock_.lock();
    const bool first = failures_.empty();
    failures_.emplace_back(order, std::move(failure));
    lock_.unlock();
    if (!first) return;
    cancel();
    ask_block();
    if (also) {
      also->cancel();
      also->ask_block();
    }
  }
  Group* also = nullptr;  // fails with this one (spawned processes fail the run, rule 7.4)
  // In the order of the processes; after all have ended.
  std::vector<std::exception_ptr> take_failures() {
    std::sort(failures_.begin(), failures_.end(), [](auto& a, auto& b) { return a.first < b.first; });
    std::vector<std::exception_ptr> r;
    for (auto& f : failures_) r.push_back(std::move(f.second));
    failures_.clear();
    return r;
  }

  // Ask every child to end (rule 6). Those started later are asked as well. A child that waits for a group of its own passes it on: that
  // group is put in a line, not called from within, since groups nest deeper than a stack. Its owner is of this thread, so it stays alive.
  void cancel() noexcept {
    CancelLine& line = cancel_line;
    if (line.at_work) {
      if (!std::exchange(in_line_, true)) next_in_line_ = std::exchange(line.first, this);
      return;
    }
    line.at_work = true;
    cancel_children();
    while (Group* g = line.first) {
      line.first = g->next_in_line_;
      g->in_line_ = false;
      g->cancel_children();
    }
    line.at_work = false;
  }
  void cancel(ProcessBase& p) noexcept {
    p.cancel().fetch_or(Identity::Cancel::asked);
    ask(p);
  }
  bool cancelled() const noexcept { return cancelled_; }
  // Its request is set, and before that is seen nothing here is read: a thread process says first where it sleeps and looks then
  // (ThreadProcess::Hosting).
  static void ask(ProcessBase& p) noexcept {
    Executor* e = p.executor();
    if (e->here())
      e->withdraw(p);
    else
      e->nudge();
  }
  // The owner, which waits or is about to, was cancelled: its request stays until the wait ends, and is passed on once (rule 6.1).
  void begin_passing_on() noexcept { passed_on_ = false; }
  void pass_on() noexcept {
    if (std::exchange(passed_on_, true)) return;
    cancel();
    if (also) also->cancel();
  }

  // The owner starts processes here from within a block, which the first failure cancels too (rule 7.5).
  void open_block() noexcept {
    lock_.lock();
    block_ = Block::open;
    lock_.unlock();
  }
  // Its owner is left while what failed here was raised nowhere, and nobody is live: the owner's group fails with it. On the owner's
  // thread.
  void bequeath() { bequeath(*parent->group); }
  // The block has ended, and its owner waits from now on. Withdraws the request if the owner has not met it and nobody else asks.
  void close_block() noexcept {
    lock_.lock();
    const bool asked = std::exchange(block_, Block::none) == Block::cancelled;
    lock_.unlock();
    if (asked && !(parent->group && parent->group->cancelled()) && !run.block_cancelled(*parent))
      parent->cancel().take_back(Identity::Cancel::asked);
  }

  void serve_cancellations(Executor& e) noexcept {
    lock_.lock();
    for (ProcessBase* p = children_; p; p = p->sibling_next)
      if (p->cancel().load(std::memory_order_acquire) != 0 && p->executor() == &e) e.withdraw(*p);
    lock_.unlock();
  }

  template <class F>
  void each_child(F&& f) {
    lock_.lock();
    for (ProcessBase* p = children_; p; p = p->sibling_next) f(*p);
    lock_.unlock();
  }
  // How many of that name were started here (a path has an index only where there are several).
  std::uint32_t started(const char* function) noexcept {
    lock_.lock();
    const auto n = names_.find(function ? function : "");
    const std::uint32_t r = n == names_.end() ? 0 : n->second;
    lock_.unlock();
    return r;
  }

 private:
  friend class Run;

  void cancel_children() noexcept {
    lock_.lock();
    cancelled_ = true;
    for (ProcessBase* p = children_; p; p = p->sibling_next)
      if (p->cancel().fetch_or(Identity::Cancel::asked) == 0) ask(*p);  // else whoever asked before us sees to it
    lock_.unlock();
  }
  // Its request is set: let its executor act on it.
  void ask_block() noexcept {
    lock_.lock();
    if (block_ == Block::open) {
      block_ = Block::cancelled;
      parent->cancel().fetch_or(Identity::Cancel::asked);
      ask(*parent);
    }
    lock_.unlock();
  }
  void bequeath(Group& heir) {
    for (auto& f : failures_) heir.fail(f.first, std::move(f.second));
    failures_.clear();
  }
  std::uint32_t count_name(const char* f) {
    // Processes started in a row mostly have one name, and it is mostly one and the same text.
    if (f != last_name_ || !last_count_) {
      last_name_ = f;
      last_count_ = &names_[f ? f : ""];
    }
    return (*last_count_)++;
  }

  core::SpinLock lock_;
  bool cancelled_ = false;
  bool passed_on_ = false;  // the owner's, or that of who withdraws it
  enum class Block : std::uint8_t { none, open, cancelled };
  Block block_ = Block::none;
  bool keeps_end_ = false;
  std::exception_ptr end_;
  std::uint32_t live_ = 0;
  std::uint32_t started_ = 0;
  Group* heir_ = nullptr;  // of an abandoned group; written under the run's lock too
  ProcessBase* children_ = nullptr;
  core::Node* waiter_ = nullptr;
  std::unordered_map<std::string_view, std::uint32_t> names_;
  const char* last_name_ = nullptr;
  std::uint32_t* last_count_ = nullptr;
  std::vector<std::pair<std::uint32_t, std::exception_ptr>> failures_;
  Group* next_in_line_ = nullptr;  // of those to be cancelled
  bool in_line_ = false;
  Group* next_ = nullptr;  // in the run's list
  Group* prev_ = nullptr;
};

// Where a coroutine process runs.
inline Executor& executor_of(const ProcessBase& p) noexcept {
  return p.at == At::group ? *p.group->executor : p.group->run.executor_at(p.at);
}

inline void Run::add_group(Group& g) noexcept {
  const std::lock_guard lock(groups_mutex_);
  g.next_ = groups_;
  if (groups_) groups_->prev_ = &g;
  groups_ = &g;
}
inline void Run::remove_group(Group& g) noexcept {
  const std::lock_guard lock(groups_mutex_);
  if (g.prev_)
    g.prev_->next_ = g.next_;
  else
    groups_ = g.next_;
  if (g.next_) g.next_->prev_ = g.prev_;
}
inline void Run::cancel_everybody() noexcept {
  const std::lock_guard lock(groups_mutex_);
  for (Group* g = groups_; g; g = g->next_) g->cancel();
}
inline void Run::serve_cancellations(Executor& e) noexcept {
  const std::lock_guard lock(groups_mutex_);
  for (Group* g = groups_; g; g = g->next_) g->serve_cancellations(e);
}
inline bool Run::block_cancelled(const ProcessBase& owner) noexcept {
  const std::lock_guard lock(groups_mutex_);
  bool any = false;
  for (Group* g = groups_; g && !any; g = g->next_) {
    if (g->parent != &owner) continue;
    g->lock_.lock();
    any = g->block_ == Group::Block::cancelled;
    g->lock_.unlock();
  }
  return any;
}
inline void Run::find_watch() noexcept {
  while_all_sleep([this] {
    bool found = false;
    each_process([&](ProcessBase& p) {
      if (found || !p.op) return;
      if (Executor* const e = p.executor()) found = true, e->nudge();
    });
  });
}
template <class F>
void Run::still(F&& f) {
  const std::lock_guard lock(groups_mutex_);
  f();
}
template <class F>
void Run::each_process(F&& f) {
  const std::lock_guard lock(groups_mutex_);
  for (Group* g = groups_; g; g = g->next_) g->each_child(f);
}

}  // namespace weft::runtime
