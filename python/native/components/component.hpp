// Native components (rules 16): libraries whose processes run without the GIL, as thread processes
// or on the pool.
//
//   component.cpp        loading a library, what it declares, making a call of one of its processes
//   component_calls.cpp  a call that runs: the table of functions through which it touches channels, time and its run
//                        (component_calls.hpp: in which files)
//   component_abroad.cpp the same at channels with ends in other OS processes
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

// An operation whose beginning those who observe were told of (component_observe.cpp). `op` null:
// of none.
struct Told {
  const char* op = nullptr;
  PyObject* target = nullptr;  // an end or a barrier of the call
};

// One call of a process: its arguments, then its run. The component knows it as its weft_process.
struct NativeCall {
  const weft_process_info* info = nullptr;
  const char* component = nullptr;
  std::string compiler;
  std::vector<EndObject*> ends;          // owned
  std::vector<BarrierObject*> barriers;  // owned
  std::vector<const NativeType*> types;
  std::vector<weft_argument> arguments;
  std::vector<const NativeType*> argument_types;  // null: an end
  int cpu = -1;
  bool started = false;

  // in an operation that was begun without the GIL: of its thread; looked at by task_waiter_comes()
  prim::atomic<bool> in_core{false};

  // one of its channels has ends in other OS processes: its operations are done with the GIL
  prim::atomic<bool> abroad{false};

  // While it runs, of its thread alone.
  ProcessBase* process = nullptr;
  runtime::Run* run = nullptr;
  ThreadProcess* thread = nullptr;  // the same process; null: it is on the pool
  std::string error;                // of the last bad use
  std::uint8_t met = 0;             // the ends that its operations met: 1 << WEFT_RETIRED, …
  // where selects begin, by their guards (rule 5.4)
  std::unordered_map<std::uint64_t, std::uint32_t> starts;
  struct Choosing;
  // it has chosen a computed output, which is guard `decided`, and makes its value
  Choosing* deciding = nullptr;
  std::uint32_t decided = 0;
  // On the pool: its coroutine's frame, and the operation that it has begun.
  void* frame = nullptr;
  struct Begun {
    weft_status (*finish)(NativeCall&) = nullptr;
    Value slot;
    std::uint32_t end = 0;
    int at_once = 0;  // of a select that gives way: what it has chosen
    weft_value* value = nullptr;
    weft_guard* guards = nullptr;
    std::uint32_t* chosen = nullptr;
    Choosing* choosing = nullptr;
    Told told;
  } begun;
  // by how many guards; kept: whoever reports may look at one that is over
  std::deque<std::unique_ptr<Choosing>> choosing;

  NativeCall();
  NativeCall(const NativeCall&) = delete;
  NativeCall& operator=(const NativeCall&) = delete;
  ~NativeCall();  // with the GIL
};

// --- operations at channels with ends in other OS processes (rule 16.7): with the GIL; they give
// it up while they wait -------------------

weft_status refuse(NativeCall& c, std::string why);  // bad use, which last_error() tells
weft_status read_abroad(NativeCall& c, std::uint32_t end, weft_value* to);
weft_status write_abroad(NativeCall& c, std::uint32_t end, weft_value* from);
weft_status select_abroad(NativeCall& c, weft_guard* guards, std::uint32_t n, bool fair,
                          std::uint32_t* chosen);
// What came out of a slot (owned), also if the channel was wired while it lay there.
weft_status taken_abroad(NativeCall& c, std::uint32_t end, PyObject* o, weft_value* to);
// What was in the slot of a write that did not happen.
void unsent_abroad(NativeCall& c, std::uint32_t end, PyObject* o, weft_value* from) noexcept;

// On the process's thread, with the GIL: what it returned; null with the exception that left it.
PyObject* run_call(NativeCall& c);

// The call that a process on the pool is; `o` is what f_call of component.cpp made.
NativeCall& native_call(PyObject* o) noexcept;

}  // namespace weft::py
