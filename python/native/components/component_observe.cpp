// Reports a component's operations to observers (observe.hpp), in the same way as the operations of
// a Python thread.
//
//   tell_begin() ─► core ──pending──► tell_park() ─► block ─► tell_outcome()
//   tell_begin(guards) ─► scan, enrol ──parked──► tell_park() ─► block ─► tell_outcome(guards)
//
// Invariants
//  1 Each function takes the GIL while it reports. None of the functions is called within an
//    Operation, or while there is no observer: the caller checks both.
//  2 An outcome is reported only to observers to which the beginning was reported. At channels with
//    ends in other OS processes the operations are those of a Python thread (component_abroad.cpp),
//    which are reported elsewhere.
//  3 Values are not shown, since they belong to the component. Observation does not change what
//    happens to the process: these functions consume no request to cancel.
#include "channels/marks.hpp"
#include "choice/barrier.hpp"
#include "components/component.hpp"
#include "components/component_calls.hpp"
#include "interpreter/aside.hpp"
#include "interpreter/end_errors.hpp"
#include "interpreter/error_types.hpp"
#include "interpreter/errors.hpp"
#include "watching/observe.hpp"

namespace weft::py::calls {

namespace {

PyObject* object(const void* o) noexcept { return static_cast<PyObject*>(const_cast<void*>(o)); }

// Sets the exception that would have been raised in a Python process. `end` is null for a barrier,
// and for an operation that met no channel.
void raise(Call& c, weft_status s, const EndObject* end, const char* verb, int guard) {
  if (s == WEFT_CANCELLED) {
    PyErr_SetNone(errors.Cancelled);
  } else if (s == WEFT_FAILED) {
    PyErr_SetString(PyExc_RuntimeError, "the function that makes a computed output's value threw");
  } else if (s == WEFT_BAD_USE) {
    bad_use("%s", c.error.c_str());
  } else if (!end) {
    raise_barrier_died(verb, guard);
  } else {
    const Status how = s == WEFT_RETIRED    ? Status::retired
                       : s == WEFT_POISONED ? Status::poisoned
                                            : Status::died;
    raise_end(how, end->channel, verb, guard, nullptr);
  }
}
void outcome(const char* op, PyObject* target, PyObject* result) noexcept {
  observe_returned(op, target, result);
  PyErr_Clear();
}

// Returns the end or the barrier of a guard; null for other guards.
PyObject* target_of(Call& c, const core::Guard& g) noexcept {
  if (g.kind == core::Kind::barrier) {
    for (BarrierObject* b : c.barriers)
      if (&b->core == g.where) return object(b);
  } else if (g.kind <= core::Kind::output) {
    for (EndObject* e : c.ends)
      if (&e->channel->core == g.where && is_reader(object(e)) == (g.kind == core::Kind::input))
        return object(e);
  }
  return nullptr;
}
const char* kind_of(const core::Guard& g) noexcept {
  switch (g.kind) {
    case core::Kind::input: return "input";
    case core::Kind::output: return "output";
    case core::Kind::barrier: return "barrier";
    case core::Kind::skip: return "skip";
    default: return "at";
  }
}
// Describes the guards as Choice::describe() describes Python's; null if there is no memory left.
PyObject* describe_guards(Call& c, Call::Choosing& x) {
  Owned all(PyTuple_New(x.size));
  for (std::uint32_t i = 0; all && i < x.size; ++i) {
    core::Guard& g = x.guards[i];
    PyObject* const target = target_of(c, g);
    const bool silent =
        g.enabled && !g.ends && g.kind <= core::Kind::output && g.state() == core::State::retired;
    PyObject* const one =
        Py_BuildValue("sOOOO", kind_of(g), target ? target : Py_None, Py_None,
                      g.enabled ? Py_True : Py_False, silent ? Py_True : Py_False);
    if (one)
      PyTuple_SET_ITEM(all.get(), i, one);
    else
      all.reset();
  }
  if (!all) PyErr_Clear();
  return all.release();
}
bool any_abroad(Call& c, const Call::Choosing& x) noexcept {
  for (std::uint32_t i = 0; i < x.size; ++i)
    if (x.guards[i].kind <= core::Kind::output)
      for (const EndObject* e : c.ends)
        if (&e->channel->core == x.guards[i].where && is_wired(e->channel)) return true;
  return false;
}

}  // namespace

Told tell_begin(const char* op, EndObject* end) noexcept {
  const With lock;
  if (is_wired(end->channel)) return {};
  observe("begin", op, object(end), nullptr);
  return {op, object(end)};
}
Told tell_begin(const char* op, BarrierObject* barrier) noexcept {
  const With lock;
  observe("begin", op, object(barrier), nullptr);
  return {op, object(barrier)};
}
void tell_park(Call& c, const runtime::OpKind& kind) noexcept {
  const With lock;
  observe_park(*c.process, kind);
}
weft_status tell_outcome(Call& c, const Told& told, weft_status s) noexcept {
  const With lock;
  if (s != WEFT_OK) {
    const bool barrier = Py_IS_TYPE(told.target, &BarrierType);
    raise(c, s, barrier ? nullptr : reinterpret_cast<EndObject*>(told.target), told.op, -1);
  }
  outcome(told.op, told.target, s == WEFT_OK ? Py_None : nullptr);
  return s;
}

bool tell_begin(Call& c, Call::Choosing& x, const runtime::OpKind& kind) noexcept {
  const With lock;
  if (any_abroad(c, x)) return false;
  const Owned guards(describe_guards(c, x));
  observe("begin", kind.verb, guards.get(), nullptr);
  return true;
}
void tell_outcome(Call& c, Call::Choosing& x, const runtime::OpKind& kind, weft_status s,
                  int guard) noexcept {
  const With lock;
  const Owned guards(describe_guards(c, x));
  Owned<> result;
  if (s == WEFT_OK) {
    result.reset(Py_BuildValue("(iO)", guard, Py_None));
  } else {
    PyObject* const target =
        guard < 0 ? nullptr : target_of(c, x.guards[static_cast<std::uint32_t>(guard)]);
    raise(c, s, target && is_end(target) ? reinterpret_cast<EndObject*>(target) : nullptr,
          kind.verb, guard);
  }
  outcome(kind.verb, guards.get(), result.get());
}

}  // namespace weft::py::calls
