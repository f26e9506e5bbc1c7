// The definitions of checker.hpp.
#include <weft/config.hpp>

#if WEFT_CHECKED
#include <weft/checker.hpp>

#include <weft/compose.hpp>
#include <weft/runtime/names.hpp>

namespace weft::inline WEFT_ABI::runtime {

using checking::Kind;
using checking::kNone;

// --- one run ------------------------------------------------------------------------------------

void Checker::begin(checking::Strategy& strategy) {
  begin_deciding();
  lost = 0;
  refused.clear();
  story.clear();
  run.begin(strategy);
  points = this;
  chooser = this;
}
void Checker::end() {
  if (used_from_outside.exchange(false) && refused.empty())
    refused = "what it has made on a thread that is not Weft's, such as a std::thread";
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
  c.polls = false;
  c.told = -1;
  c.select.forget();
}

// --- thread processes ----------------------------------------------------------------------------

const ProcessOps Checker::thread_ops{
    {[](core::Waker* w) noexcept { executor_of(*static_cast<ProcessBase*>(w)).post(w); },
     [](core::Waker* w) {
       static_cast<Checker*>(points)->enters(
           *static_cast<ThreadProcess*>(static_cast<ProcessBase*>(w)));
     },
     nullptr, 0},
    [](ProcessBase& p) noexcept { return &executor_of(p); }};

void Checker::starts_thread(ThreadProcess& p, void (*body)(void*), void* of) {
  if (idle_.empty()) idle_.push_back(std::make_unique<checking::Fibre>());
  starts(p);
  Checked& c = this->of(p.checked);
  c.fibre = std::move(idle_.back());
  idle_.pop_back();
  c.context = nullptr;
  c.fibre->begin(body, of);
  p.runs_by(thread_ops);
  executor_of(p).post(&p);
}

// When a thread process begins, it sets itself as the thread's process, and its context; when it
// ends, it restores both (ThreadProcess::Scope). So enters() sets both only in between.
void Checker::enters(ThreadProcess& p) noexcept {
  Checked& c = of(p.checked);
  checking::Fibre& fibre = *c.fibre;
  Context* const outer_context = this_context;
  ThreadProcess* const outer = ThreadProcess::current_or_null();
  if (c.context) {
    ThreadProcess::become(&p);
    this_context = c.context;
  }
  fibre.enter();
  ThreadProcess::become(outer);
  this_context = outer_context;
  if (fibre.over()) idle_.push_back(std::move(c.fibre));  // The process does not exist any more.
}

void Checker::parks(ThreadProcess& p) noexcept {
  Checked& c = of(p.checked);
  c.context = this_context;
  c.fibre->leave();
}

// --- deciding -----------------------------------------------------------------------------------

void Checker::wakes(int n) noexcept {
  const ProcessBase& p = *of(n).base;
  if (p.op == &weft::detail::wait_op)
    run.record.woke_waiter(n, p.place);
  else
    run.record.woke(n);
  if (StoryEntry* const t = told(of(n)); t && !run.stopped()) {
    t->until = story.size();
    if (of(n).selects) t->guard = of(n).select.committed();
  }
}

bool Checker::another_goes(ProcessBase& p) noexcept {
  return Deciding::another_goes(*core::current_run_queue, &p, p.checked, true);
}

// --- points -------------------------------------------------------------------------------------

bool Checker::pauses(ProcessBase& p, bool yields) noexcept {
  if (p.checked == kNone) return false;
  of(p.checked).polls = yields;
  if (run.settings.park && !yields) return false;
  return yields ? Deciding::yields(*core::current_run_queue, &p, p.checked) : another_goes(p);
}

void Checker::begins(ProcessBase& p) noexcept {
  if (p.checked == kNone || !notes()) return;
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
  if (p.checked != kNone && notes()) notes_arrival(p, place, how);
}
void Checker::notes_arrival(ProcessBase& p, const core::SyncObject& place, Access how) noexcept {
  if (weft::detail::is_no_place(&place)) return;
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
  Checked& c = of(p.checked);
  c.taken = guard;
  c.ended = has_ended;
  c.polls = c.select.skips(guard);
}

bool Checker::begun(ProcessBase& p, Begun how) noexcept {
  if (p.checked == kNone) return false;
  if (notes()) notes_begun(p, how);
  run.begun(of(p.checked).polls);
  if (how == Begun::parked || run.stopped()) return false;
  return (!run.settings.park || run.has_gone_on_for_long()) && another_goes(p);
}
void Checker::notes_begun(ProcessBase& p, Begun how) noexcept {
  const int n = p.checked;
  Checked& c = of(n);
  if (telling && c.told < 0 && how == Begun::parked) tell(p, "wait for its processes");
  if (how == Begun::done && c.ended) how = Begun::raised;
  if (StoryEntry* const t = told(c)) {
    t->how = how;
    t->guard = c.taken;
  }
  if (how != Begun::parked) c.told = -1;
  if (run.stopped() || !run.record.kept) return;
  look(*core::current_run_queue);  // notes which processes the operation has woken
  if (c.selects) c.place = c.select.begun(c.taken, how, c.how);
  run.record.passes(n, c.place, how, c.how);
  if (how != Begun::parked) run.record.select_over(n);
}

bool Checker::ends_later(ProcessBase& p) noexcept {
  if (p.checked == kNone || run.stopped() || run.settings.park) return false;
  return another_goes(p);
}

void Checker::ended(const Group* group, Ending how) noexcept {
  if (how == Ending::failed) cancels();
  run.record.ended(group);
  if (telling && !run.stopped())
    story.push_back({run.record.running, how == Ending::failed ? "fails" : "ends", "", {}, 0, -1});
}

// --- other effects of a step ---------------------------------------------------------------------

void Checker::made(const core::SyncObject& place, std::uint32_t capacity, bool loses) noexcept {
  place.in_check = true;
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

void Checker::stands_at_lock() noexcept {
  if (refused.empty())
    refused =
        "a lock (std::mutex) that one process keeps in an operation, while another process locks "
        "it";
}

void Checker::tell(ProcessBase& p, std::string what) {
  if (run.stopped()) return;
  of(p.checked).told = static_cast<int>(story.size());
  story.push_back({p.checked, std::move(what), where(p), Begun::done, 0, -1});
}

}  // namespace weft::inline WEFT_ABI::runtime
#endif
