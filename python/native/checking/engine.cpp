// How the points of Python processes choose the process that runs next, and what they report to the
// engine (engine.hpp).
#include "checking/engine.hpp"

#include "processes/rare.hpp"

#include <algorithm>

namespace weft::py {

using weft::checking::kNone;

// Returns the name of a channel, or the line where it was made.
std::string Checker::name_at(const void* place) const {
  const auto& c = *static_cast<const core::SyncObject*>(place);
  if (!c.name) return "?";
  std::string_view name = c.name;
  if (!c.line) return std::string(name);
  return std::string(name.substr(name.rfind('/') + 1)) + ":" + std::to_string(c.line);
}

void Checker::begin(weft::checking::Strategy& strategy) {
  numbers_.clear();
  last_ = nullptr;
  begin_deciding();
  lost = 0;
  lost_in.clear();
  starved.clear();
  marked.clear();
  run.begin(strategy);
  on = true;
  services->install(this, this);
}
void Checker::end() {
  run.end();
  services->install(nullptr, nullptr);
  on = false;
}

// --- identifying processes ----------------------------------------------------------------------

int Checker::number(const ProcessBase* p) const noexcept {
  if (!p) return kNone;
  if (p == last_) return last_number_;
  const auto found = numbers_.find(p);
  if (found == numbers_.end()) return kNone;
  last_ = p;
  return last_number_ = found->second;
}
int Checker::here() const noexcept {
  const int n = number(services->running());
  return n == kNone ? 0 : n;
}
int Checker::number_in(core::Waker* w) const noexcept {
  const auto by = w->ops->run;
  return by == services->coroutine_run || by == services->greenlet_run ||
                 by == services->greenlet_start || by == services->ordinary_code_run ||
                 by == services->component_run
             ? number(static_cast<ProcessBase*>(w))
             : kNone;
}

void Checker::starts(ProcessObject* p) noexcept {
  const int n = run.record.process(here(), p->base.function ? p->base.function : "?");
  is(&p->base, n);
}
void Checker::is(const ProcessBase* p, int n) noexcept {
  numbers_[p] = n;
  last_ = nullptr;
  while (processes_.size() <= static_cast<std::size_t>(n))
    processes_.push_back(std::make_unique<Checked>(*this));
  of(n).begin_anew(p);
}

// Ordinary code continues only when no process can continue, so all processes that ran before have
// ended. A step of ordinary code begins here.
void Checker::in_ordinary_code(ProcessBase* p, runtime::Run* program) noexcept {
  if (number(p) != 0) is(p, 0);
  program_ = program;
  if (run.stopped() || run.record.running == 0) return;
  if (run.record.kept)
    for (int i = 1; i < run.record.count; ++i) run.record.follow(0, run.record.at(i).last);
  constexpr int itself[] = {0};
  run.go(itself, true, false);
  run.goes(0);
}
void Checker::joined(ProcessBase* p, const void* group) noexcept {
  if (const int n = number(p); n != kNone && !run.stopped()) run.record.follows_ended(n, group);
}

void Checker::wakes(int n) noexcept {
  const ProcessBase& p = *of(n).base;
  if (p.op == services->waits_for_group)
    run.record.woke_waiter(n, p.place);
  else
    run.record.woke(n);
}

// --- deciding -----------------------------------------------------------------------------------

// Called when `chosen` continues. Records that this step passes over all other ready processes.
void Checker::passes_over(std::span<const int> ready, std::size_t chosen) noexcept {
  if (!fair) return;
  of(ready[chosen]).ready_since = 0;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    if (i == chosen) continue;
    unsigned& since = of(ready[i]).ready_since;
    if (!since) since = run.steps;
    if (run.steps - since == starving())
      starved.insert(run.record.path(ready[i]) + " could go on, and did not for " +
                     std::to_string(starving()) + " steps of others");
  }
}

// Puts the running process into the queue, and returns whether another process runs before it. The
// result is false for ordinary code outside a block, since no other process runs beside such code.
bool Checker::another_goes(ProcessBase* p) noexcept {
  core::RunQueue* const queue = services->queue();
  return queue && Deciding::another_goes(*queue, p, number(p), true);
}

// --- points -------------------------------------------------------------------------------------

// Calls the function with which this process was marked. The call is part of the step that ends
// here, and the function can itself begin operations.
void Checker::call_marked(const ProcessBase* p) noexcept {
  const auto found = marked.find(p);
  if (found == marked.end()) return;
  const Owned callback = new_ref(found->second.get());
  const Owned result(PyObject_CallNoArgs(callback.get()));
  if (!result) PyErr_WriteUnraisable(callback.get());
}

bool Checker::pauses(ProcessBase* p, const void* operation, bool yields) noexcept {
  const int n = number(p);
  if (n == kNone) return false;
  Checked& c = of(n);
  c.yields = yields;
  if (!marked.empty() && !(operation && c.paused == operation) && !run.stopped()) call_marked(p);
  if (operation && c.paused == operation) {
    c.paused = nullptr;
    return false;
  }
  if (run.settings.park && !yields) return false;
  core::RunQueue* const queue = yields ? services->queue() : nullptr;
  if (!(queue ? Deciding::yields(*queue, p, n) : another_goes(p))) return false;
  c.paused = operation;
  return true;
}

void Checker::arrives(ProcessBase* p, const void* place, Access how) noexcept {
  const int n = number(p);
  if (n == kNone) return;
  of(n).arrival = {place, how, false, true};
  run.record.at(n).limited = p->is(core::NodeFlags::limited);
  run.record.select_over(n);
  if (place)
    run.record.arrives(place, how);
  else
    run.record.forget_woken();
}
int Checker::selects(ProcessBase* p, const SeenSelect& select, std::uint32_t from,
                     std::uint64_t key) noexcept {
  const int n = number(p);
  if (n == kNone) return -1;
  of(n).arrival = {nullptr, Access::all, true, true};
  run.record.at(n).limited = p->is(core::NodeFlags::limited);
  return of(n).choice.begins(select, from, key);
}

bool Checker::begun(ProcessBase* p, Begun how) noexcept {
  const int n = number(p);
  if (n == kNone) return false;
  Arrival a = std::exchange(of(n).arrival, {});
  if (!a.any || run.stopped()) return false;
  run.begun(a.choice ? how == Begun::done && of(n).choice.skips() : of(n).yields);
  if (run.record.kept)  // records which processes the operation has woken
    if (core::RunQueue* const queue = services->queue()) look(*queue);
  if (a.choice) a.place = of(n).choice.begun(how, a.how);
  run.record.passes(n, a.place, how, a.how);
  if (how == Begun::parked) return false;
  run.record.select_over(n);
  return (!run.settings.park || run.has_gone_on_for_long()) && another_goes(p);
}

void Checker::stops(ProcessBase* p) noexcept {
  while (!services->park(p)) PyErr_Clear();
}

bool Checker::ends_later(ProcessObject* p) noexcept {
  if (run.stopped() || run.settings.park || number(&p->base) == kNone) return false;
  return another_goes(&p->base);
}

void Checker::ended(ProcessObject* p, const void* group) noexcept {
  if (number(&p->base) == kNone) return;
  if (p->how == Ending::failed) run.record.cancel();
  run.record.ended(group);
  if (p->watch()) touches(place_at(p->watch()->latch), Access::all);
}

// --- what else a step does ----------------------------------------------------------------------

void Checker::made(const void* place, std::uint32_t capacity, bool loses) noexcept {
  run.record.place(place, here(), static_cast<int>(capacity), loses);
}
void Checker::gone(const void* place, std::uint64_t dropped) noexcept {
  const int n = run.record.gone(place);
  if (n == kNone || !dropped || run.record.places[static_cast<std::size_t>(n)].loses) return;
  lost += dropped;
  lost_in[name_at(place)] += dropped;
}
void Checker::touches(const void* place, Access how) noexcept {
  if (!run.record.kept) return;
  if (how == Access::all) return run.record.does_all(place, here());
  run.record.touch(run.record.place_of(place, here()), how);
}
// To a select, the death of an end is an outcome, as poison is.
void Checker::closes(const void* place, bool last, bool died) noexcept {
  run.record.closes(place, died ? Access::all : last ? Access::close : Access::close_other);
}
void Checker::cancels() noexcept { run.record.cancel(); }
void Checker::limits(ProcessObject*, bool open) noexcept {
  if (!open) return run.record.disarms();
  run.record.cancel();
  run.record.arms();
}
void Checker::reads_clock() noexcept { run.record.reads_clock(); }

}  // namespace weft::py
