// Shared by the operations of a component's process, on a thread of its own and on the pool.
//
//   component_calls.cpp   the table of functions; operations of a thread, which waits in them
//   component_select.cpp  choice, on a thread and on the pool
//   component_pool.cpp    operations of a coroutine, which are begun and finished; its threads
//   component_checked.cpp the operations of a coroutine in a check
//   component_observe.cpp what is reported of operations to observers
#pragma once
#include <memory>
#include <optional>

#include "components/component.hpp"
#include "interpreter/aside.hpp"
#include "watching/observing.hpp"
#include "weft/runtime/timer.hpp"

namespace weft::py {

// The guards of a select, which are kept while the select waits.
struct NativeCall::Choosing {
  explicit Choosing(std::uint32_t n) : size(n), guards(n), slots(std::make_unique<Value[]>(n)) {}
  const std::uint32_t size;
  runtime::FixedArray<core::Guard> guards;
  std::unique_ptr<Value[]> slots;
  std::optional<core::Select> select;
  runtime::TimerNode timer;
  bool armed = false;
  bool told = false;               // whether the beginning of the select was reported to observers
  std::uint32_t* start = nullptr;  // the guard at which the next select over these guards begins
  int at_once = 0;                 // the value that the beginning of the select returned
};

// Adds the process to the group, and marks its call as begun. `ops` defines how the process is run.
NativeCall& join_group(runtime::Group& g, ProcessObject* p, const runtime::ProcessOps& ops);
// Resumes the coroutine, with this table of functions. Returns WEFT_PENDING if it waits, or how it
// has ended.
weft_status resume(NativeCall& c, const weft_api& api, weft_failure& f);
// Called with the GIL when the coroutine has ended. Returns the outcome as Python sees it: the
// result, or null with the exception.
PyObject* call_over(NativeCall& c, weft_status s, weft_failure& f);

namespace calls {

using Call = NativeCall;
inline Call& call_of(weft_process* p) noexcept { return *reinterpret_cast<Call*>(p); }

extern prim::atomic<std::uint32_t> task_waiters;  // written under the GIL
extern std::vector<Call*> running_calls;          // protected by the GIL

// Marks the time that a thread without the GIL spends in a core, except while it sleeps
// (aside.hpp). Either the thread sets its mark before it checks for task waiters, or the code that
// makes the first task waiter sees the mark.
class Operation {
 public:
  explicit Operation(Call& c) noexcept : call_(c) {
    if (!aside()) return;
    c.in_core.store(true, std::memory_order_seq_cst);
    if (task_waiters.load(std::memory_order_seq_cst) == 0 &&
        !c.abroad.load(std::memory_order_seq_cst)) [[likely]]
      return;
    c.in_core.store(false, std::memory_order_release);
    lock_.emplace();
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation() { call_.in_core.store(false, std::memory_order_release); }

 private:
  Call& call_;
  std::optional<With> lock_;
};

inline weft_status bad(Call& c, std::string why) { return refuse(c, std::move(why)); }
// Return the outcome of an operation. An operation that returns cancelled() has consumed the
// request to cancel, so the next operation is not cancelled (rule 6.1).
weft_status cancelled(Call& c) noexcept;
weft_status status_of(Call& c, Status s) noexcept;
// Records that an operation has met this end of a channel (rule 3.5). Returns `end`.
weft_status met(Call& c, weft_status end) noexcept;
bool idle(Call& c, const char* verb);
// Returns false, and reports bad use, on the pool, where no operation can wait on the stack.
bool may_wait(Call& c, const char* verb);
// Return the end or the barrier for an operation; null for bad use.
EndObject* end_at(Call& c, std::uint32_t number, bool reads, const char* verb);
BarrierEngine* barrier_at(Call& c, std::uint32_t number, const char* verb, bool sync = false);
// Returns the place of a barrier that the process has.
core::SyncObject& place_of_barrier(Call& c, std::uint32_t number) noexcept;
void go_to(Call& c, weft_place at) noexcept;
// Moves values between the component and a slot.
weft_status taken(Call& c, std::uint32_t end, PyObject* o, weft_value* to);
PyObject* given(Call& c, std::uint32_t end, const weft_value& v);
void not_sent(Call& c, std::uint32_t end, PyObject* o, weft_value* from) noexcept;
// Returns the outcome as Python sees it: the result, or null with the exception.
PyObject* conclude(Call& c, weft_status s, weft_failure& f);

// --- component_observe.cpp
Told tell_begin(const char* op, EndObject* end) noexcept;
Told tell_begin(const char* op, BarrierObject* barrier) noexcept;
void tell_park(Call& c, const runtime::OpKind& kind) noexcept;
weft_status tell_outcome(Call& c, const Told& told, weft_status s) noexcept;  // returns `s`
// Reports the beginning of a select. Returns false if the select reports itself.
bool tell_begin(Call& c, Call::Choosing& x, const runtime::OpKind& kind) noexcept;
void tell_outcome(Call& c, Call::Choosing& x, const runtime::OpKind& kind, weft_status s,
                  int guard) noexcept;

template <class Place>
Told begins(const char* op, Place* place) noexcept {
  if (observing()) [[unlikely]]
    return tell_begin(op, place);
  return {};
}
inline void parks(Call& c, const runtime::OpKind& kind) noexcept {
  if (observing()) [[unlikely]]
    tell_park(c, kind);
}
inline weft_status ends(Call& c, const Told& told, weft_status s) noexcept {
  if (told.op) [[unlikely]]
    return tell_outcome(c, told, s);
  return s;
}

// --- component_select.cpp
weft_status select(weft_process* p, weft_guard* guards, std::uint32_t n, std::uint32_t fair,
                   std::uint32_t* chosen, weft_place at);
weft_status deliver(weft_process* p, weft_value* from);
weft_status start_select(weft_process* p, weft_guard* guards, std::uint32_t n, std::uint32_t fair,
                         std::uint32_t* chosen, weft_place at);
weft_status finish_select(Call& c);

// --- component_pool.cpp
//
// Called when an operation has completed without waiting. Returns true if the process is on the
// pool and must let other processes run first (rule 7.7); it is then in the run queue.
bool gives_way(Call& c) noexcept;
weft_status start_read(weft_process* p, std::uint32_t end, weft_value* to, weft_place at);
weft_status start_write(weft_process* p, std::uint32_t end, weft_value* from, weft_place at);
weft_status start_sync(weft_process* p, std::uint32_t barrier, weft_place at);
weft_status finish(weft_process* p);
// --- component_checked.cpp
//
void start_checked(runtime::Group& g, ProcessObject* p);
// Called when a select of a process that is checked begins. Returns the guard that the select
// examines first.
std::uint32_t begins_checked(Call& c, Call::Choosing& x, Mode mode, std::uint64_t key,
                             std::uint32_t from) noexcept;

// Reports that an operation at this channel cannot begin on the pool, since that channel has ends
// in other OS processes.
weft_status wired_on_the_pool(Call& c, const char* verb, const ChannelObject* channel);

extern const weft_api table;

}  // namespace calls
}  // namespace weft::py
