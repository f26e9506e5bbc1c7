// What the files of the extension share: the objects Python sees, and how they stand on the core.
//
// Every channel is a core::ChannelEngine<Value, Shared>, whatever meets on it: coroutine processes
// on a scheduler, thread processes, plain threads. Who calls an operation decides how it waits
// (ways.hpp): in a coroutine process it is an awaitable; elsewhere it blocks the thread, or the
// greenlet (caller.cpp).
//
// Invariants
//  1 Engines over Value, and all that the files here keep, are touched only with the GIL held. It
//    is given up only in a real sleep (runtime::around_sleep) and in calls of the interpreter's,
//    never under a lock. On a free-threaded build "the GIL" means the gate (gate.hpp).
//  2 Under a lock of the core no Python code runs: a Value that is destroyed there is queued
//    (pending.cpp) and dropped at a safe point, and so is the retirement of an end that is
//    collected (rules 12.1, 12.2).
//  3 A process has one outstanding operation; its node is in the process, its slot in the
//    operation.
//    While a greenlet is parked its stack may hold another's frames, so nothing that others may
//    touch is there.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate.hpp"
#include "keywords.hpp"
#include "owned.hpp"
#include "weft/channel.hpp"
#include "weft/runtime/function_info.hpp"

namespace weft::py {

using core::Side;
using runtime::ProcessBase;
using runtime::this_process;

// --- values --------------------------------------------------------------------------------------

void defer_decref(PyObject* o) noexcept;

// An owned reference that moves without touching the count.
struct Value {
  PyObject* o = nullptr;

  Value() noexcept = default;
  explicit Value(PyObject* owned) noexcept : o(owned) {}
  Value(Value&& x) noexcept : o(x.o) { x.o = nullptr; }
  Value& operator=(Value&&) = delete;
  ~Value() {
    if (o) defer_decref(o);
  }
  PyObject* take() noexcept {
    PyObject* r = o;
    o = nullptr;
    return r;
  }
};

using Engine = core::ChannelEngine<Value, Shared>;
using BarrierEngine = core::BarrierEngine<Shared>;

// --- objects -------------------------------------------------------------------------------------

struct ChannelObject {
  // str: the name, or the file of its birth; the core's name points into it
  PyObject_HEAD PyObject* name;
  // of the operating system's process that made it (rule 11.2, fork); with kCarries: see held.cpp
  std::uint32_t generation;
  std::uint8_t immunity;
  bool traced;                    // by the garbage collector (leaf.hpp)
  std::uint8_t readers_returned;  // see stopped_early.cpp
  Engine core;
};

enum class EndState : std::uint8_t { open, retired, let_go, sent, died };

struct EndObject {
  PyObject_HEAD ChannelObject* channel;
  std::uint32_t holders;  // processes that were given it and have not finished (rule 2.3)
  EndState state : 4;
  bool traced : 1;          // as its channel is, or all are (leaf.hpp)
  bool received : 1;        // by a process that has not ended (held.cpp)
  std::uint32_t site : 24;  // where it was made (sites.hpp)
};
static_assert(sizeof(EndObject) == sizeof(PyObject) + 16);

struct BarrierObject {
  PyObject_HEAD PyObject* name;
  // of one that another OS process has made: the Reader at which a read is an arrival. Null: it was
  // made here, and the core is its
  PyObject* far;
  std::uint32_t generation;  // as of a channel
  BarrierEngine core;
};

extern PyTypeObject ChannelType, ReaderType, WriterType, OpType, ProcessType, ProcessFunctionType,
    BarrierType, TimerType, GuardType, EndType, InputType, OutputType, SelectOpType,
    AlternativeType, ExtendedType, GroupType, GroupOpType, LinkType, GuestType;

inline bool is_reader(PyObject* o) noexcept { return Py_IS_TYPE(o, &ReaderType); }
inline bool is_writer(PyObject* o) noexcept { return Py_IS_TYPE(o, &WriterType); }
inline bool is_end(PyObject* o) noexcept { return is_reader(o) || is_writer(o); }

using Ends = std::vector<Owned<EndObject>>;

// --- what a channel is marked with --------------------------------------------------------------

extern std::uint32_t generation;
// of a channel's generation: ends come through it
inline constexpr std::uint32_t kCarries = 0x80000000;
inline constexpr std::uint32_t kMarks = 0xFC000000;  // kCarries and the marks below
inline bool of_this_fork(const ChannelObject* c) noexcept {
  return (c->generation & ~kMarks) == generation;
}

// Marks in a channel's generation, beside kCarries, which a wired channel has too: its reads and
// writes take the long way round.
inline constexpr std::uint32_t kWired = 0x40000000;
inline constexpr std::uint32_t kFar = 0x20000000;
// it has had an end of a component (cells.hpp)
inline constexpr std::uint32_t kNative = 0x10000000;
// wired to a board, or to a program elsewhere that nobody trusts: its values are CBOR (WIRE.md
// 12.8, 17.6); and those of the latter may be objects (17.15)
inline constexpr std::uint32_t kBoard = 0x08000000;
inline constexpr std::uint32_t kObjects = 0x04000000;
inline bool is_wired(const ChannelObject* c) noexcept { return (c->generation & kWired) != 0; }
inline bool is_board(const ChannelObject* c) noexcept { return (c->generation & kBoard) != 0; }

// What goes through an end: pickles, CBOR for a board or for a program elsewhere, or, of a barrier,
// nothing.
enum class Carries : std::uint8_t { pickle, cbor, typed, nothing };
inline constexpr std::uint32_t marks_of(Carries what) noexcept {
  return what == Carries::typed ? kBoard | kObjects : what == Carries::cbor ? kBoard : 0;
}
inline Carries carries(const ChannelObject* c) noexcept {
  if (!is_board(c)) return Carries::pickle;
  return (c->generation & kObjects) != 0 ? Carries::typed : Carries::cbor;
}
inline bool is_far(const ChannelObject* c) noexcept { return (c->generation & kFar) != 0; }
inline bool is_native(const ChannelObject* c) noexcept { return (c->generation & kNative) != 0; }
// What is written to it is packed first.
inline bool packs(const ChannelObject* c) noexcept {
  return (c->generation & (kWired | kNative)) != 0;
}

// A value of ChannelObject::readers_returned: a reader end went in another way than by the return
// of its process, or there were too many to count.
inline constexpr std::uint8_t kOtherwise = 255;
// Counts the ends closed so far, and what else makes alternatives look at their guards again.
extern std::uint64_t ends_closed;

// --- pending: what is done at the next safe point ------------------------------------------------

extern bool something_pending;
void run_deferred_now() noexcept;
bool ends_pending() noexcept;        // are ends queued, which this thread may retire?
void look_for_ends() noexcept;       // wakes a thread that sleeps, to retire them
bool deferred_runs_here() noexcept;  // a finaliser runs (pending.cpp)
void ring_loops() noexcept;          // wakes the loops of asyncio in which somebody waits
inline void run_deferred() noexcept {
  if (something_pending) [[unlikely]]
    run_deferred_now();
}

// This thread begins what another program answers, and waits for it next: what it says goes then
// (feed.hpp).
inline constinit thread_local bool says_and_waits = false;

// --- errors --------------------------------------------------------------------------------------

struct Errors {
  PyObject *ChannelEnd, *Retired, *Poisoned, *PeerDied, *Cancelled, *BadUse, *Deadlock, *several,
      *Blocked, *Ended, *NoResult;
};
extern Errors errors;
int import_errors();

// All set a Python exception and return null.
PyObject* bad_use(const char* format, ...);
// Is `o` a whole number from `least` to `most`, which `range` says in words? Else an exception is set.
bool whole_number(PyObject* o, const char* what, const char* range, Py_ssize_t least,
                  Py_ssize_t most, Py_ssize_t& to);
PyObject* raise_closed(EndObject* e, const char* verb);
// The channel has ended for the caller. `value`: what it meant to write, or null.
PyObject* raise_end(Status s, ChannelObject* c, const char* verb, int guard, PyObject* value,
                    bool met = true);
// a Retired or Poisoned: did an operation make it (rule 3.5)?
bool is_met(PyObject* end);
void only_failed(ChannelObject* c, const char* verb, const char* done) noexcept;  // errors.cpp
// asyncio was called where no loop runs: says what to do
void explain_no_loop(PyObject* failure) noexcept;
// Of which this is the core.
ChannelObject* channel_of_core(const Engine& core) noexcept;
std::string channel_name(ChannelObject* c);
PyObject* to_str(const std::string& s);
PyObject* take_exception();           // fetch, normalised, with its traceback; clears
void restore_exception(PyObject* e);  // steals

// PeerDied (rule 8.7). Null.
PyObject* raise_barrier_died(const char* verb, int guard = -1);
// __reduce_ex__ of a channel, an end, a barrier and a process (errors.cpp): bad use.
PyObject* no_copy(PyObject* o, PyObject*);

inline bool interpreter_ends() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

std::int64_t now_ns() noexcept;
std::optional<std::int64_t> to_ns(PyObject* seconds, const char* what);

inline int add_type(PyObject* m, const char* name, PyTypeObject* t) {
  return PyModule_AddObjectRef(m, name, reinterpret_cast<PyObject*>(t));
}

// A function that keeps its arguments in `To`: what the package's Python gives the extension when
// the package is imported.
template <PyObject**... To>
PyObject* keep_given(PyObject*, PyObject* args) {
  if (PyTuple_GET_SIZE(args) != sizeof...(To))
    return PyErr_Format(PyExc_TypeError, "%zu arguments are wanted", sizeof...(To));
  Py_ssize_t i = 0;
  (Owned(std::exchange(*To, Py_NewRef(PyTuple_GET_ITEM(args, i++)))).reset(), ...);
  Py_RETURN_NONE;
}

template <class F>
PyCFunction method(F f) noexcept {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

}  // namespace weft::py
