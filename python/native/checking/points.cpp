// What the extension gives to the engine of a check, and how operations are reported to the engine
// (points.hpp).
#include "checking/points.hpp"

#include "processes/caller.hpp"
#include "processes/greenlet.hpp"
#include "processes/group.hpp"
#include "processes/loops.hpp"
#include "processes/outcome.hpp"

namespace weft::py {

constinit Checking checking;

namespace {

void install(Points* points, runtime::Chooser* chooser) {
  checking.set(points);
  runtime::chooser = chooser;
  check_operations(points != nullptr);
  check_selects(points != nullptr);
}

const Services services{
    Services::kVersion,
    &install,
    [] { return this_process(); },
    []() -> core::RunQueue& { return *core::current_run_queue; },
    &coroutine_run,
    &greenlet_run,
    &greenlet_start,
    &wait_op,
    [](runtime::Run& r) { r.cancel_everybody(); },
    [](runtime::Run& r) { return r.any_timer(); },
    [](runtime::Run& r) { r.fire_one(); },
    [](ProcessObject* p) { return greenlet_park(p); },
};

}  // namespace

void CheckedCall::begin(bool yields) noexcept {
  if (!process_) return checking->in_ordinary_code();
  if (checking->pauses(process_, nullptr, yields)) checking->stops(process_);
}

PyObject* CheckedCall::over(PyObject* owned) noexcept {
  if (!checking) return owned;
  Outcome kept;
  kept.keep(owned);
  if (checking->begun(process_, kept.value() ? Begun::done : Begun::raised))
    checking->stops(process_);
  return kept.take();
}

int init_checking(PyObject* m) {
  const Owned capsule(PyCapsule_New(const_cast<Services*>(&services), Services::kCapsule, nullptr));
  return capsule ? PyModule_AddObjectRef(m, "_checking", capsule.get()) : -1;
}

}  // namespace weft::py
