// A group consists of processes that were started together and are waited for together. One failure
// cancels the others (rule 7).
//
//   add() ──► live ──process ends: finished()──► live == 0 ──► the process that waits is woken
//                ├──a failure──► cancel(): the others, and the owner while its block is open
//                │               (open_block() … close_block(), rule 7.5)
//                └──abandon()──► its owner's group waits in its owner's place
//
//   The block: open ──a failure──► asked ──its owner meets the request──► met
//              └──────────────────┴──close_block(): the request is taken back─┴──► none
//
// State under the group's lock: the list of children, live_, failures, the waiter, the names. A
// group belongs to the frame that waits for it.
#pragma once
#include <exception>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../config.hpp"
#include "../core/policy.hpp"
#include "run.hpp"

namespace weft::inline WEFT_ABI::runtime {

std::uint32_t next_process_id() noexcept;

// The groups that this thread is about to cancel.
struct CancelLine {
  Group* first = nullptr;
  bool at_work = false;
};
inline constinit thread_local CancelLine cancel_line;

class Group {
 public:
  Run& run;
  Executor* executor;  // the executor that runs the group's coroutines
  // The owner, or null. The pointer is no longer valid once the group is abandoned: see owner().
  ProcessBase* parent;
  const char* name = nullptr;  // part of the path; can be null

  Group(Run& r, Executor* e, ProcessBase* p) noexcept;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  // Makes p a child. The caller must make p runnable.
  void add(ProcessBase& p);

  // Removes p, which has finished, from the list. After that, p can be destroyed. The group is
  // informed by finished(), after p has released its ends (rule 7.7).
  void unlink(ProcessBase& p) noexcept;
  // Called when a child has finished. `left` is the child's failure, or, if the group keeps ends,
  // the exception that left the child in a quiet end; otherwise it is null.
  void finished(std::uint32_t order, std::exception_ptr left, Ending how = Ending::failed) noexcept;

  // Adds one item to wait for that is not a process; finished(0, nullptr) completes it.
  void adopt() noexcept;

  // Declares that the group has exactly one process, and that the process or thread that waits for
  // the group throws any exception that leaves that process (rule 7.1). Called before the process
  // is started.
  void keep_end() noexcept { keeps_end_ = true; }
  bool keeps_end() const noexcept { return keeps_end_; }
  // Returns the exception that left the process; null if it returned or failed. Call this once,
  // after the process has ended.
  std::exception_ptr take_end() noexcept { return std::exchange(end_, nullptr); }

  // Waits until no child is live. Returns `ok` if none is live now.
  Status begin_wait(core::Node& n) noexcept;
  // Stops the wait of the process with this node. Returns false if that process has been woken.
  bool end_wait(core::Node& n) noexcept;
  bool done() noexcept;

  // Called when an exception leaves the owner, so that the group will not be waited for (rule 7.5).
  // The children are cancelled, and the owner's group waits for them and fails with them. This is
  // only for a group that was made by new: if abandon() returns true, the group deletes itself when
  // the last child has ended.
  bool abandon() noexcept { return abandon(*parent->group); }
  // Abandons the group like abandon(); `its` is the group that is to wait for the children.
  bool abandon(Group& its) noexcept;
  // Returns the process that waits for the group; for an abandoned group, the owner of its
  // successor. Must be called under Run::still(), or while nothing can run.
  ProcessBase* owner() const noexcept;

  void fail(std::uint32_t order, std::exception_ptr failure);
  // A group that fails with this group (spawned processes fail the run, rule 7.4).
  Group* also = nullptr;
  // Returns the failures in the order of the processes, followed by the failures of `then`. Call
  // this after all processes have ended.
  std::vector<std::exception_ptr> take_failures(Group* then = nullptr);

  // Asks every child to end (rule 6). Children that are started later are asked as well. A child
  // that waits for a group of its own passes the request on to that group. That group is queued,
  // and not called from here, since groups can nest deeper than the stack allows. The owner of the
  // group is on this thread, so the group is not destroyed meanwhile.
  void cancel() noexcept;
  void cancel(ProcessBase& p) noexcept;
  bool cancelled() const noexcept { return cancelled_; }
  // Makes p check its request, which is set. Nothing in p is read before p sees the request: a
  // thread process first announces where it sleeps, and then checks for the request
  // (ThreadProcess::Hosting).
  static void ask(ProcessBase& p) noexcept;
  // Called when the owner, which waits for the group or is about to wait, was cancelled. The
  // owner's request stays until the wait ends, and is passed on once (rule 6.1).
  void begin_passing_on() noexcept { passed_on_ = false; }
  void pass_on() noexcept;

  // Called when the owner starts processes in this group from within a block; the first failure
  // cancels the block too (rule 7.5).
  void open_block() noexcept;
  // Called on the owner's thread when an exception leaves the owner while failures of this group
  // have not been thrown, and no child is live. The owner's group then fails with them.
  void hand_over() { hand_over(*parent->group); }
  // Called when the block has ended, after which its owner waits. Withdraws the request if the
  // owner has not met it and no other block of the owner has asked.
  void close_block() noexcept;

  void serve_cancellations(Executor& e) noexcept;

  template <class F>
  void each_child(F&& f) {
    const std::lock_guard g(lock_);
    for (ProcessBase* p = children_; p; p = p->sibling_next) f(*p);
  }
  // Returns how many processes of that name were started in this group. (A path has an index only
  // if there are several.)
  std::uint32_t started(const char* function) noexcept;

 private:
  friend class Run;

  void cancel_children() noexcept;
  // Lets the owner's executor act on the owner's request, which is set.
  void ask_block() noexcept;
  void hand_over(Group& successor);
  std::uint32_t count_name(const char* f);

  core::SpinLock lock_;
  bool cancelled_ = false;
  // Used by the owner, or by a thread that withdraws the owner's operation.
  bool passed_on_ = false;

  // Several of the blocks that a process is in can ask the process to end at the same time. The
  // blocks share one bit (Identity::Cancel::block), which is set while any of them is `asked`.
  // block_ is written under the run's groups_mutex_ too.
  enum class Block : std::uint8_t { none, open, asked, met };
  Block block_ = Block::none;
  bool keeps_end_ = false;
  std::exception_ptr end_;
  std::uint32_t live_ = 0;
  std::uint32_t started_ = 0;
  Group* successor_ = nullptr;  // for an abandoned group; written under the run's lock too
  ProcessBase* children_ = nullptr;
  core::Node* waiter_ = nullptr;
  // the names, and how many processes were started under each name; most groups have one name
  std::optional<std::string_view> first_name_;
  std::uint32_t first_count_ = 0;
  std::unordered_map<std::string_view, std::uint32_t> other_names_;
  const char* last_name_ = nullptr;
  std::uint32_t* last_count_ = nullptr;
  struct Failure {
    std::uint32_t order;
    std::exception_ptr what;
  };
  std::vector<Failure> failures_;
  Group* next_in_line_ = nullptr;  // the next group in the queue of groups that are to be cancelled
  bool in_line_ = false;
  Group* next_ = nullptr;  // the next group in the run's list of groups
  Group* prev_ = nullptr;
};

// Returns the executor on which a coroutine process runs.
inline Executor& executor_of(const ProcessBase& p) noexcept {
  return p.at == RunsAt::group ? *p.group->executor : p.group->run.executor_at(p.at);
}

template <class F>
void Run::still(F&& f) {
  const std::lock_guard lock(groups_mutex_);
  f();
}
template <class F>
bool Run::try_still(F&& f) {
  const std::unique_lock lock(groups_mutex_, std::try_to_lock);
  if (lock) f();
  return lock.owns_lock();
}
template <class F>
void Run::each_process_still(F&& f) {
  for (Group* g = groups_; g; g = g->next_) g->each_child(f);
}
template <class F>
void Run::each_group_still(F&& f) {
  for (Group* g = groups_; g; g = g->next_) f(*g);
}
template <class F>
void Run::each_process(F&& f) {
  still([&] { each_process_still(f); });
}

}  // namespace weft::inline WEFT_ABI::runtime
