// The definitions of checker.hpp.
#include <weft/config.hpp>

#if WEFT_CHECKED
#include <algorithm>
#include <weft/checker.hpp>

#include <weft/compose.hpp>
#include <weft/runtime/names.hpp>

namespace weft::inline WEFT_ABI::runtime {

using checking::Kind;
using checking::kNone;
using checking::Stopped;

// --- one run ------------------------------------------------------------------------------------

void Checker::begin(checking::Strategy& strategy) {
  decided_ = nullptr;
  program_ = nullptr;
  cancelled_ = false;
  lost = 0;
  refused.clear();
  story.clear();
  run.begin(strategy);
  points = this;
  chooser = this;
}
void Checker::end() {
  points = nullptr;
  chooser = nullptr;
  run.end();
}

int Checker::here() const noexcept { return this_process() ? run.record.running : 0; }

void Checker::starts(ProcessBase& p) noexcept {
  const int n = run.record.process(here(), p.function ? p.function : "?");
  p.checked = n;
  while (processes_.size() <= static_cast<std::size_t>(n))
    processes_.push_back(std::make_unique<Checked>(run));
  Checked& c = of(n);
  c.base = &p;
  c.yields = c.yielded_at = 0;
  c.told = -1;
  c.select.forget();
}

// --- deciding -----------------------------------------------------------------------------------

// Notes which processes are ready. A waker that is not a process goes first, and is returned.
core::Waker* Checker::look(core::RunQueue& queue) noexcept {
  core::Waker* other = nullptr;
  wakers_.clear();
  ready_.clear();
  queue.each([&](core::Waker* w) {
    const int n = w->checked;
    if (n == kNone) {
      if (!other) other = w;
      return;
    }
    wakers_.push_back(w);
    ready_.push_back(n);
    if (run.record.at(n).ready) return;
    const ProcessBase& p = *of(n).base;
    if (p.op == &weft::detail::wait_op)
      run.record.woke_waiter(n, p.place);
    else
      run.record.woke(n);
    if (Told* const t = told(of(n)); t && !run.stopped()) {
      t->until = story.size();
      if (of(n).selects) t->guard = of(n).select.committed();
    }
  });
  return other;
}

// Takes the one that goes next out of the queue, and returns it. `goes_on` is a process that has
// just been put into the queue and with which the usual order goes on, or kNone.
core::Waker* Checker::decide(core::RunQueue& queue, int goes_on) noexcept {
  for (;;) {
    if (program_->deadlocked()) run.stop(Stopped::deadlock);
    core::Waker* const other = look(queue);
    if (run.stopped() && !std::exchange(cancelled_, true)) {
      program_->cancel_everybody();
      continue;
    }
    if (other) {
      queue.take(other);
      return other;
    }
    if (queue.empty()) {
      if (run.stopped()) return nullptr;
      if (!program_->any_timer()) {
        if (telling) return nullptr;  // the run concludes that it is deadlocked, and reports it
        run.stop(Stopped::deadlock);
        continue;
      }
      run.go({}, false, true);
      if (run.stopped()) continue;
      run.time_comes(false);
      program_->fire_one();
      continue;
    }
    const auto first = std::find(ready_.begin(), ready_.end(), goes_on);
    const bool can = goes_on != kNone && first != ready_.end();
    if (can) {
      const auto w = wakers_.begin() + (first - ready_.begin());
      std::rotate(wakers_.begin(), w, w + 1);
      std::rotate(ready_.begin(), first, first + 1);
    }
    unsigned i = 0;
    if (!run.stopped()) {
      const bool timer = run.settings.any_time && program_->any_timer();
      i = run.go(ready_, can, timer);
      if (run.stopped()) continue;
      if (i == ready_.size()) {
        run.time_comes(true);
        program_->fire_one();
        continue;
      }
    }
    queue.take(wakers_[i]);
    run.goes(ready_[i]);
    return wakers_[i];
  }
}

core::Waker* Checker::next(Scheduler& s, core::RunQueue& queue) noexcept {
  program_ = &s.run;
  if (decided_) return std::exchange(decided_, nullptr);
  return decide(queue, kNone);
}

// Puts the process that runs into the queue. Returns whether another one goes before it goes on.
bool Checker::another_goes(ProcessBase& p, bool goes_on) noexcept {
  core::RunQueue& queue = *core::current_run_queue;
  run.record.ready(p.checked);
  queue.push(&p);
  core::Waker* const w = decide(queue, goes_on ? p.checked : kNone);
  if (w == &p) return false;
  decided_ = w;
  return true;
}

// --- points -------------------------------------------------------------------------------------

// Returns whether this process yields again and again while no other process goes. In the reduced
// search the ready processes are made to go first only then: a yield that does so depends on all
// processes, and no step would commute with it. In the other searches every yield does so.
bool Checker::is_spinning(int n) noexcept {
  if (!run.record.kept) return true;
  Checked& c = of(n);
  c.yields = c.yielded_at == run.switches ? c.yields + 1 : 0;
  c.yielded_at = run.switches;
  return c.yields >= 5;
}

bool Checker::pauses(ProcessBase& p, bool yields) noexcept {
  if (p.checked == kNone || (run.settings.park && !yields)) return false;
  const bool lets_go = yields && is_spinning(p.checked);
  if (lets_go) {
    look(*core::current_run_queue);
    run.yields(p.checked, ready_);
  }
  return another_goes(p, !lets_go);
}

void Checker::begins(ProcessBase& p) noexcept {
  if (p.checked == kNone) return;
  Checked& c = of(p.checked);
  c.place = nullptr;
  c.how = Access::all;
  c.selects = c.ended = false;
  c.taken = -1;
  c.told = -1;
  run.record.at(p.checked).limited = p.is(core::NodeFlags::limited);
  run.record.select_over(p.checked);
  run.record.forget_woken();
}

void Checker::arrives(ProcessBase& p, const core::SyncObject& place, Access how) noexcept {
  if (p.checked == kNone || weft::detail::is_no_place(&place)) return;
  of(p.checked).place = &place;
  of(p.checked).how = how;
  run.record.arrives(&place, how);
  if (!telling) return;
  const char* const verb = how == Access::read    ? "read "
                           : how == Access::write ? "write "
                           : how == Access::join  ? "sync "
                                                  : "wait for ";
  tell(p, verb + name_of(place));
}

void Checker::sleeps(ProcessBase& p) noexcept {
  if (p.checked == kNone) return;
  run.record.select_begins();
  run.record.arms();
  if (telling) tell(p, "sleep");
}

int Checker::selects(ProcessBase& p, const SelectBegins& s) noexcept {
  if (p.checked == kNone) return -1;
  Checked& c = of(p.checked);
  c.selects = true;
  const int taken = c.select.begins(s);
  if (!telling) return taken;
  std::string what = "select";
  for (std::uint32_t i = 0; i < s.count; ++i) {
    const core::Guard& g = s.guards[i];
    if (!g.enabled) continue;
    what += what.size() == 6 ? " " : ", ";
    what += g.kind == core::Kind::skip ? "skip"
            : g.kind == core::Kind::timer
                ? "a time"
                : (g.kind == core::Kind::output ? "!" : "") + name_of(*g.where);
  }
  tell(p, std::move(what));
  return taken;
}
void Checker::selected(ProcessBase& p, int guard, bool has_ended) noexcept {
  if (p.checked == kNone) return;
  of(p.checked).taken = guard;
  of(p.checked).ended = has_ended;
}

bool Checker::begun(ProcessBase& p, Begun how) noexcept {
  const int n = p.checked;
  if (n == kNone) return false;
  Checked& c = of(n);
  if (telling && c.told < 0 && how == Begun::parked) tell(p, "wait for its processes");
  if (how == Begun::done && c.ended) how = Begun::raised;
  if (Told* const t = told(c)) {
    t->how = how;
    t->guard = c.taken;
  }
  if (how != Begun::parked) c.told = -1;
  if (run.stopped()) return false;
  // notes which processes the operation has woken
  if (run.record.kept) look(*core::current_run_queue);
  if (c.selects) c.place = c.select.begun(c.taken, how, c.how);
  run.record.passes(n, c.place, how, c.how);
  if (how == Begun::parked) return false;
  run.record.select_over(n);
  return !run.settings.park && another_goes(p, true);
}

bool Checker::ends_later(ProcessBase& p) noexcept {
  if (p.checked == kNone || run.stopped() || run.settings.park) return false;
  return another_goes(p, true);
}

void Checker::ended(const Group* group, Ending how) noexcept {
  if (how == Ending::failed) cancels();
  run.record.ended(group);
  if (telling && !run.stopped())
    story.push_back({run.record.running, how == Ending::failed ? "fails" : "ends", "", {}, 0, -1});
}

// --- other effects of a step ---------------------------------------------------------------------

void Checker::made(const core::SyncObject& place, std::uint32_t capacity, bool loses) noexcept {
  run.record.place(&place, here(), static_cast<int>(capacity), loses);
}
void Checker::gone(const core::SyncObject& place, std::uint64_t dropped) noexcept {
  const int n = run.record.gone(&place);
  if (n != kNone && !run.record.places[static_cast<std::size_t>(n)].loses && !run.stopped())
    lost += dropped;
}
void Checker::touches(const core::SyncObject& place, Access how) noexcept {
  if (!run.record.kept) return;
  if (how == Access::all) return run.record.does_all(&place, here());
  run.record.touch(run.record.place_of(&place, here()), how);
}
// The death of an end is an outcome for a select, as poison is.
void Checker::closes(const core::SyncObject& place, bool last, bool died) noexcept {
  run.record.closes(&place, died ? Access::all : last ? Access::close : Access::close_other);
}
void Checker::cancels() noexcept {
  if (!run.stopped()) run.record.cancel();
}
void Checker::limits(bool open) noexcept {
  if (run.stopped()) return;
  if (!open) return run.record.disarms();
  run.record.cancel();
  run.record.arms();
}
void Checker::reads_clock() noexcept { run.record.reads_clock(); }
void Checker::refuses(const char* what) {
  if (refused.empty()) refused = what;
  throw BadUse(std::string("weft::check cannot check this: ") + what);
}

void Checker::tell(ProcessBase& p, std::string what) {
  if (run.stopped()) return;
  of(p.checked).told = static_cast<int>(story.size());
  story.push_back({p.checked, std::move(what), where(p), Begun::done, 0, -1});
}

}  // namespace weft::inline WEFT_ABI::runtime
#endif
