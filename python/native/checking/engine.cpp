// How the points of Python processes decide, and what they tell the engine (engine.hpp).
#include "checking/engine.hpp"

#include "processes/rare.hpp"

#include <algorithm>

namespace weft::py {

using weft::checking::kNone;
using weft::checking::Stopped;

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
  decided_ = nullptr;
  program_ = nullptr;
  cancelled_ = in_block = false;
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
                 by == services->greenlet_start
             ? number(static_cast<ProcessBase*>(w))
             : kNone;
}

void Checker::starts(ProcessObject* p) noexcept {
  const int n = run.record.process(here(), p->base.function ? p->base.function : "?");
  numbers_[&p->base] = n;
  last_ = nullptr;
  while (processes_.size() <= static_cast<std::size_t>(n))
    processes_.push_back(std::make_unique<Checked>(*this));
  of(n).begin_anew(&p->base);
}

void Checker::wake(int n) noexcept {
  const ProcessBase& p = *of(n).base;
  if (p.op == services->waits_for_group)
    run.record.woke_waiter(n, p.place);
  else
    run.record.woke(n);
}

// --- deciding -----------------------------------------------------------------------------------

// Records which processes are ready. A waker that is no process of the check goes first: it is
// returned.
core::Waker* Checker::look(core::RunQueue& queue) noexcept {
  core::Waker* other = nullptr;
  wakers_.clear();
  ready_.clear();
  queue.each([&](core::Waker* w) {
    const int n = number_in(w);
    if (n == kNone) {
      if (!other) other = w;
      return;
    }
    wakers_.push_back(w);
    ready_.push_back(n);
    if (!run.record.at(n).ready) wake(n);
  });
  return other;
}

// Removes the process that goes next from the queue, and returns it. `goes_on` is a process that
// has just been put into the queue and that goes on in the usual order; kNone if there is none.
core::Waker* Checker::decide(core::RunQueue& queue, int goes_on) noexcept {
  for (;;) {
    core::Waker* const other = look(queue);
    if (program_ && program_->deadlocked()) run.stop(Stopped::deadlock);
    if (run.stopped() && program_ && !std::exchange(cancelled_, true)) {
      services->cancel(*program_);
      continue;
    }
    if (other) {
      queue.take(other);
      return other;
    }
    if (queue.empty()) {
      if (run.stopped() || !program_ || !services->any_timer(*program_)) return nullptr;
      run.go({}, false, true);
      if (run.stopped()) continue;
      run.time_comes(false);
      services->fire_one(*program_);
      continue;
    }
    const auto first = std::find(ready_.begin(), ready_.end(), goes_on);
    const bool can = first != ready_.end();
    if (can) {
      const auto w = wakers_.begin() + (first - ready_.begin());
      std::rotate(wakers_.begin(), w, w + 1);
      std::rotate(ready_.begin(), first, first + 1);
    }
    unsigned i = 0;
    if (!run.stopped()) {
      const bool timer = run.settings.any_time && program_ && services->any_timer(*program_);
      i = run.go(ready_, can, timer);
      if (run.stopped()) continue;
      if (i == ready_.size()) {
        run.time_comes(true);
        services->fire_one(*program_);
        continue;
      }
    }
    if (fair && !run.stopped()) note_who_waits(i);
    queue.take(wakers_[i]);
    run.goes(ready_[i]);
    return wakers_[i];
  }
}

// Records that the ready processes except the chosen one are passed over at this step.
void Checker::note_who_waits(std::size_t chosen) noexcept {
  of(ready_[chosen]).ready_since = 0;
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    if (i == chosen) continue;
    unsigned& since = of(ready_[i]).ready_since;
    if (!since) since = run.steps;
    if (run.steps - since == starving())
      starved.insert(run.record.path(ready_[i]) + " could go on, and did not for " +
                     std::to_string(starving()) + " steps of others");
  }
}

core::Waker* Checker::next(runtime::Scheduler& s, core::RunQueue& queue) noexcept {
  program_ = &s.run;
  if (decided_) return std::exchange(decided_, nullptr);
  return decide(queue, kNone);
}

// Puts the process that runs into the queue. Returns whether another goes before it goes on.
bool Checker::another_goes(ProcessObject* p, bool goes_on) noexcept {
  core::RunQueue& queue = services->queue();
  const int n = number(p);
  run.record.ready(n);
  queue.push(&p->base);
  core::Waker* const w = decide(queue, goes_on ? n : kNone);
  if (w == &p->base) return false;
  decided_ = w;
  return true;
}

// --- points -------------------------------------------------------------------------------------

// Returns whether this process yields again and again while no other runs. In the reduced search
// only then must the ready processes go first: a yield that makes them do so depends on all of
// them, and no step would commute with it. In the other searches every yield does so.
bool Checker::is_spinning(int n) noexcept {
  if (!run.record.kept) return true;
  Checked& c = of(n);
  c.yields = c.yielded_at == run.switches ? c.yields + 1 : 0;
  c.yielded_at = run.switches;
  return c.yields >= 5;
}

// Calls the function with which this process was marked. The call is a part of the step that ends
// here, and it may have operations of its own.
void Checker::call_marked(const ProcessBase* p) noexcept {
  const auto found = marked.find(p);
  if (found == marked.end()) return;
  const Owned callback = new_ref(found->second.get());
  const Owned result(PyObject_CallNoArgs(callback.get()));
  if (!result) PyErr_WriteUnraisable(callback.get());
}

bool Checker::pauses(ProcessObject* p, const void* operation, bool yields) noexcept {
  const int n = number(p);
  if (n == kNone) return false;
  Checked& c = of(n);
  if (!marked.empty() && !(operation && c.paused == operation) && !run.stopped())
    call_marked(&p->base);
  if (operation && c.paused == operation) {
    c.paused = nullptr;
    return false;
  }
  if (run.settings.park && !yields) return false;
  const bool lets_go = yields && is_spinning(n);
  if (lets_go) {
    look(services->queue());
    run.yields(n, ready_);
  }
  if (!another_goes(p, !lets_go)) return false;
  c.paused = operation;
  return true;
}

void Checker::arrives(ProcessObject* p, const void* place, Access how) noexcept {
  const int n = number(p);
  if (n == kNone) return;
  of(n).arrival = {place, how, false, true};
  run.record.at(n).limited = p->base.is(core::NodeFlags::limited);
  run.record.select_over(n);
  if (place)
    run.record.arrives(place, how);
  else
    run.record.forget_woken();
}
int Checker::selects(ProcessObject* p, Choice& choice, std::uint32_t from,
                     std::uint64_t key) noexcept {
  const int n = number(p);
  if (n == kNone) return -1;
  of(n).arrival = {nullptr, Access::all, true, true};
  run.record.at(n).limited = p->base.is(core::NodeFlags::limited);
  return of(n).choice.begins(choice, from, key);
}

bool Checker::begun(ProcessObject* p, Begun how) noexcept {
  const int n = number(p);
  if (n == kNone) return false;
  Arrival a = std::exchange(of(n).arrival, {});
  if (!a.any || run.stopped()) return false;
  if (run.record.kept) look(services->queue());  // records which processes the operation has woken
  if (a.choice) a.place = of(n).choice.begun(how, a.how);
  run.record.passes(n, a.place, how, a.how);
  if (how == Begun::parked) return false;
  run.record.select_over(n);
  return !run.settings.park && another_goes(p, true);
}

void Checker::stops(ProcessObject* p) noexcept {
  while (!services->park(p)) PyErr_Clear();
}

bool Checker::ends_later(ProcessObject* p) noexcept {
  if (run.stopped() || run.settings.park || number(p) == kNone) return false;
  return another_goes(p, true);
}

void Checker::ended(ProcessObject* p, const void* group) noexcept {
  if (number(p) == kNone) return;
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
// The death of an end is an outcome for a select, as poison is.
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
