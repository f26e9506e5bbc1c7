// Native components (rules 16): libraries whose processes run without the GIL, on their own threads
// or on the pool.
//
//   component.cpp         loads a library, reads its declarations, and makes a call of one of its
//                         processes
//   component_calls.cpp   a call that runs: the table of functions through which it uses channels,
//                         time and its run (component_calls.hpp lists the files that define them)
//   component_abroad.cpp  the same functions at channels with ends in other OS processes
#pragma once
#include <deque>
#include <unordered_map>

#include "channels/channel.hpp"
#include "processes/process.hpp"
#include "weft/component_abi.h"

namespace weft::py {

struct BarrierObject;
struct ThreadProcess;
class NativeType;

// An operation whose beginning was reported to observers (component_observe.cpp). If `op` is null,
// there is none.
struct Told {
  const char* op = nullptr;
  PyObject* target = nullptr;  // an end or a barrier of the call
};

// One call of a process: its arguments, then its run. The component knows the call as its
// weft_process.
struct NativeCall {
  const weft_process_info* info = nullptr;
  const char* component = nullptr;
  std::string compiler;
  std::vector<EndObject*> ends;          // owned
  std::vector<BarrierObject*> barriers;  // owned
  std::vector<const NativeType*> types;
  std::vector<weft_argument> arguments;
  std::vector<const NativeType*> argument_types;  // null for an end
  int cpu = -1;
  bool started = false;

  // Whether the call's thread is in an operation that it began without the GIL. task_waiter_comes()
  // reads this flag.
  prim::atomic<bool> in_core{false};

  // Whether a channel of this call has ends in other OS processes. If so, the call's operations
  // need the GIL.
  prim::atomic<bool> abroad{false};

  // The fields from here on belong to the call's thread while the call runs.
  ProcessBase* process = nullptr;
  runtime::Run* run = nullptr;
  ThreadProcess* thread = nullptr;  // the same process; null if the process is on the pool
  std::string error;                // the message of the last bad use
  // The ways in which channels ended for the call's operations, as bits: 1 << WEFT_RETIRED, ….
  std::uint8_t met = 0;
  // For each set of guards: the guard at which its next select begins (rule 5.4).
  std::unordered_map<std::uint64_t, std::uint32_t> starts;
  struct Choosing;
  // The choice that is making the value of the computed output that it has chosen; null if there is
  // none. `decided` is the number of that guard.
  Choosing* deciding = nullptr;
  std::uint32_t decided = 0;
  // For a call on the pool: its coroutine's frame, and the operation that it has begun.
  void* frame = nullptr;
  struct Begun {
    weft_status (*finish)(NativeCall&) = nullptr;
    Value slot;
    std::uint32_t end = 0;
    weft_value* value = nullptr;
    weft_guard* guards = nullptr;
    std::uint32_t* chosen = nullptr;
    Choosing* choosing = nullptr;
    Told told;
  } begun;
  // While the program is checked; otherwise null (component_checked.cpp).
  struct Checked;
  std::unique_ptr<Checked> checked;
  // The choices, by their numbers of guards. They are kept, because a report may examine a choice
  // after it has ended.
  std::deque<std::unique_ptr<Choosing>> choosing;

  NativeCall();
  NativeCall(const NativeCall&) = delete;
  NativeCall& operator=(const NativeCall&) = delete;
  ~NativeCall();  // needs the GIL
};

// --- operations at channels with ends in other OS processes (rule 16.7): with the GIL, except
// while they wait ---

// reports bad use; last_error() gives the message
weft_status refuse(NativeCall& c, std::string why);
weft_status read_abroad(NativeCall& c, std::uint32_t end, weft_value* to);
weft_status write_abroad(NativeCall& c, std::uint32_t end, weft_value* from);
weft_status select_abroad(NativeCall& c, weft_guard* guards, std::uint32_t n, bool fair,
                          std::uint32_t* chosen);
// Converts the object `o` (owned), which was taken from a slot. The channel might have been wired
// while the value lay in the slot.
weft_status taken_abroad(NativeCall& c, std::uint32_t end, PyObject* o, weft_value* to);
// Takes back the value from the slot of a write that did not commit.
void unsent_abroad(NativeCall& c, std::uint32_t end, PyObject* o, weft_value* from) noexcept;

// Called on the process's thread, with the GIL. Returns the process's result; null with the
// exception that left the process.
PyObject* run_call(NativeCall& c);

// Returns the call that is the body of a process on the pool. `o` was made by f_call() in
// component.cpp.
NativeCall& native_call(PyObject* o) noexcept;

}  // namespace weft::py
