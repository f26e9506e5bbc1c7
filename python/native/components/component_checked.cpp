// Coroutines of components while the program is checked (rule 17.2): they run on the scheduler of
// the check, with the GIL, one at a time. The check decides when each of their operations begins,
// and which process runs after it.
//
//   step() ──start_…()──► ask() ──it runs on──► begin_asked() ──ended, it runs on──► step() continues
//     ▲                    │ another runs first    │ parked, or another runs first
//     │                    └──────WEFT_PENDING─────┘
//     └── resumed: an operation that was asked for begins now; finish() gives its status
//
// Invariants
//  1 Such a process has no PoolThread. Its Checked exists as long as its call exists.
//  2 An operation that was asked for and has not begun is in `asked`. Its arguments belong to the
//    frame of the coroutine, which keeps them until finish().
#include <utility>

#include "checking/points.hpp"
#include "components/component.hpp"
#include "components/component_calls.hpp"
#include "components/components.hpp"
#include "interpreter/pending.hpp"
#include "processes/life.hpp"
#include "values/native_types.hpp"
#include "weft/runtime/scheduler.hpp"

namespace weft::py {

using namespace calls;

struct NativeCall::Checked {
  enum class Kind : std::uint8_t { none, read, write, select, sync };
  struct Asked {
    Kind kind = Kind::none;
    std::uint32_t number = 0;  // the number of the end or barrier; for a select, of guards
    std::uint32_t fair = 0;
    weft_value* value = nullptr;
    weft_guard* guards = nullptr;
    std::uint32_t* chosen = nullptr;
    weft_place at{};
  } asked;
  // The outcome of an operation, or of a coroutine, that has ended, while other processes run
  // first.
  weft_status status = WEFT_OK;
  bool ended = false;  // whether the coroutine has ended
  weft_failure failure{};
};

// The constructor and the destructor are defined here, where Checked is complete.
NativeCall::NativeCall() = default;
NativeCall::~NativeCall() {
  for (EndObject* e : ends) Py_DECREF(reinterpret_cast<PyObject*>(e));
  for (BarrierObject* b : barriers) Py_DECREF(reinterpret_cast<PyObject*>(b));
  for (weft_argument& a : arguments) drop_native(a.value);
}

namespace {

using Checked = NativeCall::Checked;

weft_process* handle_of(Call& c) noexcept { return reinterpret_cast<weft_process*>(&c); }

weft_status begin_plainly(Call& c, const Checked::Asked& a) {
  switch (a.kind) {
    case Checked::Kind::read:
      checking->arrives(c.process, place_at(c.ends[a.number]->channel->core), Access::read);
      return start_read(handle_of(c), a.number, a.value, a.at);
    case Checked::Kind::write:
      checking->arrives(c.process, place_at(c.ends[a.number]->channel->core), Access::write);
      return start_write(handle_of(c), a.number, a.value, a.at);
    case Checked::Kind::sync:
      checking->arrives(c.process, place_at(place_of_barrier(c, a.number)), Access::join);
      return start_sync(handle_of(c), a.number, a.at);
    default: return start_select(handle_of(c), a.guards, a.number, a.fair, a.chosen, a.at);
  }
}

// Begins the operation that was asked for. Returns its status; WEFT_PENDING if the process has
// parked, or if other processes run before it.
weft_status begin_asked(Call& c) {
  const Checked::Asked a = std::exchange(c.checked->asked, {});
  c.process->line.begin_anew();  // only the check decides that an operation gives way
  const weft_status s = begin_plainly(c, a);
  const Begun how = s == WEFT_PENDING ? Begun::parked : s == WEFT_OK ? Begun::done : Begun::raised;
  if (!checking->begun(c.process, how)) return s;
  c.checked->status = s;
  c.begun.finish = [](Call& over) { return over.checked->status; };
  return WEFT_PENDING;
}
weft_status ask(Call& c, const Checked::Asked& a) {
  go_to(c, a.at);
  c.checked->asked = a;
  return checking->pauses(c.process, nullptr, false) ? WEFT_PENDING : begin_asked(c);
}

// An operation without a valid end or barrier is refused before anything is decided.
weft_status ask_read(weft_process* p, std::uint32_t end, weft_value* to, weft_place at) {
  Call& c = call_of(p);
  if (!end_at(c, end, true, "read")) return WEFT_BAD_USE;
  return ask(c, {.kind = Checked::Kind::read, .number = end, .value = to, .at = at});
}
weft_status ask_write(weft_process* p, std::uint32_t end, weft_value* from, weft_place at) {
  Call& c = call_of(p);
  if (!end_at(c, end, false, "write")) return WEFT_BAD_USE;
  return ask(c, {.kind = Checked::Kind::write, .number = end, .value = from, .at = at});
}
weft_status ask_select(weft_process* p, weft_guard* guards, std::uint32_t n, std::uint32_t fair,
                       std::uint32_t* chosen, weft_place at) {
  *chosen = n;
  return ask(call_of(p), {.kind = Checked::Kind::select,
                          .number = n,
                          .fair = fair,
                          .guards = guards,
                          .chosen = chosen,
                          .at = at});
}
weft_status ask_sync(weft_process* p, std::uint32_t number, weft_place at) {
  Call& c = call_of(p);
  if (!barrier_at(c, number, "sync", true)) return WEFT_BAD_USE;
  return ask(c, {.kind = Checked::Kind::sync, .number = number, .at = at});
}

// The functions that do not wait report the places that they touch.
weft_status checked_poison(weft_process* p, std::uint32_t end, std::uint32_t strength) {
  Call& c = call_of(p);
  if (end < c.ends.size()) checking->touches(place_at(c.ends[end]->channel->core), Access::all);
  return table.poison(p, end, strength);
}
void touch_barrier(Call& c, std::uint32_t number) noexcept {
  if (number < c.barriers.size())
    checking->touches(place_at(place_of_barrier(c, number)), Access::all);
}
weft_status checked_enrol(weft_process* p, std::uint32_t number) {
  touch_barrier(call_of(p), number);
  return table.enrol(p, number);
}
weft_status checked_resign(weft_process* p, std::uint32_t number) {
  touch_barrier(call_of(p), number);
  return table.resign(p, number);
}
std::int64_t checked_now(weft_process* p) {
  checking->reads_clock();
  return table.now(p);
}

const weft_api& checked_table() noexcept {
  static const weft_api made = [] {
    weft_api t = table;
    t.start_read = &ask_read;
    t.start_write = &ask_write;
    t.start_select = &ask_select;
    t.start_sync = &ask_sync;
    t.poison = &checked_poison;
    t.enrol = &checked_enrol;
    t.resign = &checked_resign;
    t.now = &checked_now;
    return t;
  }();
  return made;
}

void end_checked(ProcessObject* p, Call& c) {
  PyObject* const r = call_over(c, c.checked->status, c.checked->failure);
  runtime::this_context->running = nullptr;  // operations of finalisers belong to no process
  const Owned held(p);
  end_process(p, p->base, r);
}

// Runs the process until it waits, lets other processes run first, or has ended.
void go_on(ProcessObject* p, Call& c) {
  Checked& k = *c.checked;
  if (k.ended) return end_checked(p, c);
  if (k.asked.kind != Checked::Kind::none) {
    const weft_status s = begin_asked(c);
    if (s == WEFT_PENDING) return;
    k.status = s;
    c.begun.finish = [](Call& over) { return over.checked->status; };
  }
  weft_failure f{0, nullptr, nullptr};
  const weft_status s = resume(c, checked_table(), f);
  if (s == WEFT_PENDING) return;
  k.status = s;
  k.failure = f;
  k.ended = true;
  if (!checking->ends_later(p)) end_checked(p, c);
}

const runtime::ProcessOps checked_ops{{&post_to_group, &checked_component_run, nullptr, 0},
                                      &executor_of_group};

}  // namespace

void checked_component_run(core::Waker* w) {
  ProcessObject* const p = object_of(static_cast<CoroutineProcess*>(static_cast<ProcessBase*>(w)));
  runtime::this_context->running = &p->base;
  p->base.waits_in(nullptr);
  p->base.line.begin_anew();
  go_on(p, *p->native);
  runtime::this_context->running = nullptr;
  run_deferred();
}

namespace calls {

void start_checked(runtime::Group& g, ProcessObject* p) {
  auto& here = *static_cast<runtime::Scheduler*>(g.executor);
  Call& c = join_group(g, p, here.ops_here(checked_ops));
  c.checked = std::make_unique<Checked>();
  running_calls.push_back(&c);
  Py_INCREF(reinterpret_cast<PyObject*>(p));
  here.post(&p->base);
}

std::uint32_t begins_checked(Call& c, Call::Choosing& x, Mode mode, std::uint64_t key,
                             std::uint32_t from) noexcept {
  const auto chosen = [](const void* of) noexcept {
    return static_cast<const Call::Choosing*>(of)->at_once;
  };
  const auto committed = [](const void* of) noexcept {
    return static_cast<const Call::Choosing*>(of)->select->committed_to();
  };
  const SeenSelect seen{x.guards.get(), x.size, mode, x.size > 1, &x, chosen, committed};
  const int taken = checking->selects(c.process, seen, from, key);
  return taken < 0 ? from : static_cast<std::uint32_t>(taken);
}

}  // namespace calls
}  // namespace weft::py
