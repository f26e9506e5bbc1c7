// The Services that the extension offers to the engine of a check, and the reports of operations to
// the engine (points.hpp).
#include "checking/points.hpp"

#include "processes/block_thread.hpp"
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

core::RunQueue* queue() {
  if (core::current_run_queue) return core::current_run_queue;
  runtime::ThreadProcess* const t = runtime::ThreadProcess::current_or_null();
  return t ? queue_of_block(*t) : nullptr;
}

bool park(ProcessBase* p) {
  if (ProcessObject* const g = greenlet_of(p)) return greenlet_park(g);
  go_on_in_block(*static_cast<runtime::ThreadProcess*>(p));
  return true;
}

const Services services{
    Services::kVersion,
    &install,
    [] { return this_process(); },
    &queue,
    &coroutine_run,
    &greenlet_run,
    &greenlet_start,
    &block_thread_run,
    &wait_op,
    [](runtime::Run& r) { r.cancel_everybody(); },
    [](runtime::Run& r) { return r.any_timer(); },
    [](runtime::Run& r) { r.fire_one(); },
    &park,
};

}  // namespace

void CheckedCall::begin(Caller& caller, bool yields) noexcept {
  process_ = &caller.process();
  if (!caller.greenlet()) {
    auto* const t = static_cast<runtime::ThreadProcess*>(process_);
    checking->in_ordinary_code(t, scheduler_of_block(*t) ? t->run : nullptr);
  }
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
