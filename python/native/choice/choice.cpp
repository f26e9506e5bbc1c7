// A choice over the core's Select and Standing (rule 5): how its guards are set, how it begins, and
// what happens after the commit.
#include "choice/choice.hpp"

#include <algorithm>
#include "checking/points.hpp"

#include "channels/ends.hpp"
#include "channels/held.hpp"
#include "channels/marks.hpp"
#include "channels/transit.hpp"
#include "choice/abroad.hpp"
#include "choice/barrier.hpp"
#include "choice/choices.hpp"
#include "choice/guard.hpp"
#include "choice/time.hpp"
#include "choice/watch.hpp"
#include "gate.hpp"
#include "interpreter/end_errors.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/pending.hpp"
#include "processes/rare.hpp"
#include "weft/runtime/visiting.hpp"
#include "wire/values.hpp"

namespace weft::py {

// A guard in the form in which Python code gave it.
struct Spec {
  GuardKind kind;
  PyObject* target;
  GuardObject* guard;  // null if the end or barrier was given without a Guard object
};

namespace {

bool is_guard(PyObject* o) noexcept { return PyObject_TypeCheck(o, &GuardType); }

bool spec_of(PyObject* o, Spec& s) noexcept {
  s.guard = nullptr;
  s.target = o;
  if (is_reader(o))
    s.kind = GuardKind::input;
  else if (Py_IS_TYPE(o, &BarrierType))
    s.kind = GuardKind::barrier;
  else if (Py_IS_TYPE(o, &TimerType))
    s.kind = GuardKind::timer;
  else if (is_guard(o)) {
    s.guard = guard_of(o);
    s.kind = s.guard->kind;
    s.target = s.guard->target;
  } else {
    return false;
  }
  if (s.kind == GuardKind::barrier) {
    if (PyObject* const far = reinterpret_cast<BarrierObject*>(s.target)->far) {
      s.kind = GuardKind::input;
      s.target = far;
    }
  }
  return true;
}

}  // namespace

std::uint64_t next_seed() noexcept {  // splitmix64, Steele, Lea and Flood 2014
  static std::uint64_t state = static_cast<std::uint64_t>(prim::now());
  std::uint64_t z = state += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return (z ^ (z >> 31)) | 1;
}

std::uint64_t ends_closed = 1;

std::uint32_t& SelectMemory::of(std::uint64_t k) {
  if (key == k || key == 0) {
    key = k;
    return start;
  }
  if (!more) more = std::make_unique<std::vector<std::pair<std::uint64_t, std::uint32_t>>>();
  for (auto& [other, at] : *more)
    if (other == k) {
      std::swap(key, other);  // moves the entry that was used last to the front
      std::swap(start, at);
      return start;
    }
  if (more->size() >= 64) more->erase(more->begin());
  more->emplace_back(key, start);
  key = k;
  start = 0;
  return start;
}

Choice::~Choice() {
  give_up_far();
  standing_.reset();
  for (std::uint32_t i = 0; i < n_; ++i) {
    Owned v(slots_[i].take());
    if (transits_) transits_[i].abandon(v.release());
  }
  for (PyObject* o : sent_) Py_XDECREF(o);
  for (PyObject* o : owners_) Py_XDECREF(o);
}

void Choice::add_channel(std::uint32_t i, const Spec& s) {
  core::Guard& g = guards_[i];
  ChannelObject* const c = end_of(s.target)->channel;
  const bool in = s.kind == GuardKind::input;
  far_ = far_ || is_far(c);
  g.where = &c->core;
  g.kind = in ? core::Kind::input : core::Kind::output;
  g.ops = in ? &core::channel_ops<Engine, Side::in> : &core::channel_ops<Engine, Side::out>;
  if (in) return;
  if (s.guard->make) {
    g.node.set(core::NodeFlags::compute);
    return carry_ends(c);
  }
  if (sent_.empty()) sent_.resize(n_, nullptr);
  sent_[i] = Py_NewRef(s.guard->value);
  if (!is_end(sent_[i])) return;
  carry_ends(c);
  if (!transits_) transits_ = std::make_unique<Transit[]>(n_);
}

int Choice::raise_no_guard(std::uint32_t i, PyObject* o, const char* verb) const {
  if (is_writer(o))
    bad_use("%s: guard %u is a bare writer: say what to write, Output(writer, value)", verb, i);
  else
    bad_use(
        "%s: guard %u must be a guard, not %R: use a reader, Output(writer, value), after(s), "
        "at(t), skip(), a Barrier, a Timer, a process's ended(), or for a socket or a pipe "
        "readable(file) or writable(file)",
        verb, i, o);
  return -1;
}

int Choice::add(std::uint32_t i, PyObject* o, const char* verb) {
  Spec s;
  if (!spec_of(o, s)) return raise_no_guard(i, o, verb);
  core::Guard& g = guards_[i];
  g.enabled = !s.guard || s.guard->enabled;
  g.ends = s.guard && s.guard->loud;
  g.node.slot = &slots_[i];
  switch (s.kind) {
    case GuardKind::input:
    case GuardKind::output: add_channel(i, s); break;
    case GuardKind::barrier:
      g.where = &reinterpret_cast<BarrierObject*>(s.target)->core;
      g.kind = core::Kind::barrier;
      g.ops = &core::barrier_ops<BarrierEngine>;
      break;
    case GuardKind::end:
      g.where = &proc(s.target)->watch()->latch;
      g.kind = core::Kind::latch;
      g.ops = &core::barrier_ops<core::LatchEngine<Shared>>;
      break;
    case GuardKind::skip: g.kind = core::Kind::skip; break;
    case GuardKind::readable:
    case GuardKind::writable:
      descriptors_.add(g, static_cast<int>(s.guard->ns), s.kind == GuardKind::writable);
      break;
    case GuardKind::after:
    case GuardKind::at:
    case GuardKind::timer:
      timers_ = true;
      g.kind =
          s.kind == GuardKind::after && s.guard->ns <= 0 ? core::Kind::skip : core::Kind::timer;
      break;
  }
  if (g.enabled) ++enabled_;
  // The hash is FNV-1a.
  key_ = (key_ ^ reinterpret_cast<std::uintptr_t>(g.where) ^ static_cast<std::uint64_t>(g.kind)) *
         0x100000001B3ull;
  return 0;
}

int Choice::fill(PyObject* const* guards, Py_ssize_t n, Mode mode, const char* verb, bool loud) {
  mode_ = mode;
  n_ = static_cast<std::uint32_t>(n);
  guards_ = runtime::FixedArray<core::Guard>(n_);
  slots_ = std::make_unique<Value[]>(n_);
  owners_.reserve(n_);
  key_ = 0xCBF29CE484222325ull;
  for (std::uint32_t i = 0; i < n_; ++i) {
    if (add(i, guards[i], verb) < 0) return -1;
    if (loud) guards_[i].ends = true;
    owners_.push_back(Py_NewRef(guards[i]));
    barriers_ = barriers_ || guards_[i].kind == core::Kind::barrier;
  }
  if (raise_fault(core::find_fault(guards_.get(), n_), verb) < 0) return -1;
  if (far_ && check_far(verb) < 0) return -1;
  if (far_ && descriptors_.any()) {
    bad_use(
        "%s: readable() and writable() cannot be chosen beside an end of a channel that another OS "
        "process has made: wait for the descriptor in a process of its own",
        verb);
    return -1;
  }
  for (std::uint32_t i = 0; i < n_; ++i) load_output(i);
  return PyErr_Occurred() ? -1 : 0;
}

// Raises BadUse for a fault that the core has found (rule 5.5). Returns -1, or 0 if there is no
// fault. Whether any guard is enabled is checked separately, before each select.
int Choice::raise_fault(const core::Fault& f, const char* verb) {
  switch (f.what) {
    case core::Fault::no_guard:
      bad_use("%s without guards would wait for ever: give it at least one", verb);
      return -1;
    case core::Fault::barrier_twice:
      bad_use(
          "%s with one barrier twice (guards %u and %u): a process is one party; give each barrier "
          "once",
          verb, f.a, f.b);
      return -1;
    case core::Fault::both_ends: {
      Spec s;
      spec_of(owners_[f.a], s);
      const Owned name(to_str(channel_name(end_of(s.target)->channel)));
      if (name)
        bad_use(
            "%s with both ends of channel %U: a process cannot talk to itself; give one end to "
            "another process",
            verb, name.get());
      return -1;
    }
    default: return 0;
  }
}

int Choice::fill_timer(GuardKind kind, std::int64_t ns, TimerObject* timer) {
  GuardObject* g = timer ? nullptr : PyObject_GC_New(GuardObject, &GuardType);
  if (!timer && !g) return -1;
  n_ = 1;
  guards_ = runtime::FixedArray<core::Guard>(1);
  slots_ = std::make_unique<Value[]>(1);
  if (g) {
    g->target = g->value = g->make = nullptr;
    g->ns = ns;
    g->kind = kind;
    g->enabled = true;
    g->loud = false;
    PyObject_GC_Track(reinterpret_cast<PyObject*>(g));
  }
  owners_.push_back(timer ? Py_NewRef(reinterpret_cast<PyObject*>(timer))
                          : reinterpret_cast<PyObject*>(g));
  guards_[0].kind = kind == GuardKind::after && ns <= 0 ? core::Kind::skip : core::Kind::timer;
  timers_ = true;
  enabled_ = 1;
  return 0;
}

void Choice::stand() {
  if (mode_ == Mode::fair && !far_ && !descriptors_.any() && !checking)
    standing_.emplace(guards_.get(), n_, nullptr);
}

ChannelObject* Choice::channel_of(std::uint32_t i) const noexcept {
  Spec s;
  spec_of(owners_[i], s);
  return end_of(s.target)->channel;
}

// Puts the value of an output into its slot, for the next commit.
void Choice::load_output(std::uint32_t i) {
  if (sent_.empty() || !sent_[i]) return;
  Spec s;
  spec_of(owners_[i], s);
  ChannelObject* const c = end_of(s.target)->channel;
  PyObject* send = slots_[i].take();
  if (send)
    ;
  else if (!transits_)
    send = Py_NewRef(sent_[i]);
  else if (Transit::prepare(sent_[i], transits_[i], send) < 0)
    return;
  slots_[i].o = packs(c) ? pack(c, send) : send;
}

int Choice::check(const char* verb) {
  if (enabled_ == 0) {
    bad_use(
        "%s: no guard's precondition holds, so it would wait for ever: switch one on, or add "
        "skip()",
        verb);
    return -1;
  }
  for (std::uint32_t i = 0; barriers_ && i < n_; ++i) {
    if (guards_[i].kind != core::Kind::barrier || !guards_[i].enabled) continue;
    Spec s;
    spec_of(owners_[i], s);
    if (check_barrier(reinterpret_cast<BarrierObject*>(s.target), verb) < 0) return -1;
    if (static_cast<BarrierEngine*>(guards_[i].where)->enrolled() == 0) {
      bad_use(
          "%s with a barrier that has nobody enrolled (guard %u): make it with parties, or enrol() "
          "first",
          verb, i);
      return -1;
    }
  }
  if (descriptors_.any() && Descriptors::check(verb) < 0) return -1;
  return check_open(verb);
}

int Choice::check_open(const char* verb) {
  if (checked_ == ends_closed) return 0;
  for (std::uint32_t i = 0; i < n_; ++i) {
    core::Guard& g = guards_[i];
    if (g.kind >= core::Kind::barrier) continue;
    Spec s;
    spec_of(owners_[i], s);
    if (g.enabled) {
      if (check_end(end_of(s.target), verb) < 0) return -1;
    } else if (!standing_ && end_of(s.target)->state != EndState::open) {
      // the guard can never be switched on again, so it holds no select open (rule 5.6)
      g.where = nullptr;
    }
  }
  for (std::uint32_t i = 0; i < n_ && !sent_.empty(); ++i) {
    load_output(i);
    if (PyErr_Occurred()) return -1;
  }
  checked_ = ends_closed;
  return 0;
}

int Choice::enable(Py_ssize_t i, bool on) {
  if (i < 0 || i >= static_cast<Py_ssize_t>(n_)) {
    bad_use("enable(%zd): the alternative has guards 0 to %u", i, n_ - 1);
    return -1;
  }
  core::Guard& g = guards_[static_cast<std::size_t>(i)];
  if (g.enabled == on) return 0;
  if (on &&
      raise_fault(core::fault_with(guards_.get(), n_, static_cast<std::uint32_t>(i)), "enable") < 0)
    return -1;
  enabled_ += on ? 1u : -1u;
  checked_ = 0;
  if (standing_)
    standing_->enable(static_cast<std::uint32_t>(i), on);
  else
    g.enabled = on;
  return 0;
}

void Choice::set_deadlines(std::int64_t now) noexcept {
  for (std::uint32_t i = 0; i < n_; ++i) {
    if (guards_[i].kind != core::Kind::timer) continue;
    Spec s;
    spec_of(owners_[i], s);
    if (s.kind == GuardKind::timer) {
      auto* t = reinterpret_cast<TimerObject*>(s.target);
      if (t->next == 0) t->next = runtime::later(now, t->period);
      guards_[i].deadline = t->next;
    } else {
      guards_[i].deadline =
          s.kind == GuardKind::at ? s.guard->ns : runtime::later(now, s.guard->ns);
    }
  }
}

std::int64_t Choice::deadline() noexcept {
  const int t = timers_ && !held() ? select_->earliest_timer() : -1;
  return t < 0 ? prim::forever : select_->guard(t).deadline;
}

// Stops using a standing alternative. Such an alternative can receive a value while its process
// sleeps, which an asyncio task cannot handle. So a task uses a new select over the guards each
// time.
void Choice::unstand() noexcept {
  if (!standing_) return;
  standing_.reset();
  for (std::uint32_t i = 0; i < n_; ++i) {
    guards_[i].node.clear(core::NodeFlags::standing | core::NodeFlags::disabled |
                          core::NodeFlags::queued);
    guards_[i].flat = false;
  }
}

// Begins a one-shot choice.
template <class Now>
[[gnu::always_inline]] inline int Choice::begin_select(ProcessBase& p, SelectMemory* memory,
                                                       Now now, bool foreign) {
  start_ = memory && mode_ == Mode::fair && n_ > 1 ? &memory->of(key_) : nullptr;
  const std::uint32_t from = start_ ? *start_ : select_ ? select_->next_start() : 0;
  select_.emplace(guards_.get(), n_, mode_, &p, from);
  if (mode_ == Mode::random) select_->seed = next_seed();
  const int r = select_->begin(&p, now, foreign);
  if (r >= 0 && start_) *start_ = select_->next_start();
  return r;
}

int Choice::begin(ProcessBase& p, runtime::Run* run, SelectMemory* memory, bool foreign) {
  if (foreign) unstand();
  run_ = run;
  // In a task, reading the clock can run Python code, which is allowed here. Therefore the clock is
  // read before the select begins.
  const std::int64_t begun = timers_ && !run ? now_ns() : 0;
  const auto now = [run, begun]() noexcept { return run ? run->now() : begun; };
  if (timers_) set_deadlines(now());
  chosen_ = -1;
  if (far_) return begin_far(p, run, memory, foreign, timers_ ? now() : 0);
  const int r = standing_ ? standing_->begin(&p, now) : begin_select(p, memory, now, foreign);
  p.place = this;
  return parked_or(r, run);
}

int Choice::parked_or(int r, runtime::Run* run) noexcept {
  if (r >= 0) return r;
  const std::int64_t at = !timers_    ? prim::forever
                          : standing_ ? standing_->deadline()
                                      : select_->deadline();
  if (run && at != prim::forever) {
    timer_.deadline = at;
    timer_.choice = &word();
    run->arm(timer_);
    armed_ = run;
  }
  return parked;
}

int Choice::woken() noexcept {
  if (armed_) {
    armed_->disarm(timer_);
    armed_ = nullptr;
  }
  const auto now = [this]() noexcept { return run_->now(); };
  const auto asked = [](core::Waker* w) noexcept {
    return static_cast<ProcessBase&>(*w).cancel().load(std::memory_order_relaxed) != 0;
  };
  const int r = standing_ ? standing_->woken(now, asked(standing_->choice.waker))
                          : select_->woken(now, false);
  if (r == core::Standing::parked) return parked_or(r, run_);
  if (abroad_) return heard(r);
  if (r < 0) return cancelled;
  if (start_)
    *start_ = static_cast<std::uint32_t>(r) + 1 == n_ ? 0 : static_cast<std::uint32_t>(r) + 1;
  else if (far_)
    remember(r);
  return r;
}

bool Choice::withdraw() noexcept {
  if (abroad_) {
    if (!abroad_->is_over()) abroad_->withdraw();
    return false;  // the homes' answer will wake the process
  }
  return standing_ ? standing_->withdraw() : select_->withdraw();
}

// Visits the choice while it waits. If the choice has committed and an extended reader holds it,
// only the chosen guard is visited.
void Choice::visit(runtime::WaitVisitor& v) {
  const int chosen = abroad_ && !held() ? -1
                     : standing_        ? standing_->committed_to()
                                        : select_->committed_to();
  if (chosen >= 0)
    runtime::visit_guard(guards_[static_cast<std::size_t>(chosen)], v);
  else
    runtime::visit_guards(guards_.get(), n_, v);
}

// The outcome to which a choice had committed is lost with the choice: a value that was taken is
// lost, and a value that was written stays with its receiver. A standing choice can be used again.
void Choice::give_up() noexcept {
  if (abroad_) return give_up_far();
  withdraw();
  const int index = woken();
  if (index < 0) return;
  const auto i = static_cast<std::size_t>(index);
  core::Guard& g = guards_[i];
  if (g.kind > core::Kind::output || is_end(standing_ ? standing_->status() : select_->status()))
    return;
  if (g.kind == core::Kind::output && g.node.is(core::NodeFlags::compute)) {
    if (g.node.status == Status::ok) static_cast<Engine*>(g.where)->abandon(g.node);
    return;
  }
  if (g.kind == core::Kind::output && transits_) transits_[i].commit();
  const Value gone(slots_[i].take());
  checked_ = 0;  // the next select must load the values that it offers
}

PyObject* Choice::describe() const {
  static const char* const kinds[] = {"input",   "output", "after", "at",       "skip",
                                      "barrier", "timer",  "end",   "readable", "writable"};
  static_assert(std::size(kinds) == kGuardKinds, "each kind of guard has a name");
  Owned all(PyTuple_New(n_));
  for (std::uint32_t i = 0; all && i < n_; ++i) {
    Spec s;
    spec_of(owners_[i], s);
    PyObject* sent = !sent_.empty() && sent_[i] ? sent_[i] : Py_None;
    core::Guard& g = guards_[i];
    const bool silent = g.enabled && !g.ends && g.kind <= core::Kind::output && g.where &&
                        g.state() == core::State::retired;
    PyObject* one =
        Py_BuildValue("sOOOO", kinds[static_cast<int>(s.kind)], s.target ? s.target : Py_None, sent,
                      g.enabled ? Py_True : Py_False, silent ? Py_True : Py_False);
    if (!one) all.reset();
    if (all) PyTuple_SET_ITEM(all.get(), i, one);
  }
  if (!all) PyErr_Clear();
  return all.release();
}

void Choice::begins_checked(ProcessBase* me, SelectMemory* memory) {
  // a check is allowed to choose any guard that is ready
  if (mode_ == Mode::random) mode_ = Mode::fair;
  const std::uint32_t from = memory && n_ > 1 ? memory->of(key_)
                             : select_        ? select_->next_start()
                                              : 0;
  const auto committed = [](const void* of) noexcept {
    const Choice& c = *static_cast<const Choice*>(of);
    return c.standing_ ? c.standing_->committed_to() : c.select_->committed_to();
  };
  const SeenSelect seen{guards_.get(),
                        n_,
                        mode_,
                        n_ > 1 && !far_ && !standing_,
                        this,
                        [](const void* of) noexcept { return static_cast<const Choice*>(of)->chosen_; },
                        committed};
  const int taken = checking->selects(me, seen, from, key_);
  if (taken < 0) return;
  if (memory)
    memory->of(key_) = static_cast<std::uint32_t>(taken);
  else
    select_.emplace(guards_.get(), n_, mode_, nullptr, static_cast<std::uint32_t>(taken));
}

bool Choice::undecided() const noexcept {
  return standing_ ? standing_->undecided() : select_->undecided();
}

bool Choice::asks_afar() const noexcept { return abroad_ && abroad_->trying(); }

bool Choice::with_partner() const noexcept {
  if (abroad_) return !abroad_->is_over();
  if (from_afar_) return false;
  if (held()) return true;
  const core::Choice& choice =
      standing_ ? static_cast<const core::Choice&>(standing_->choice) : select_->choice;
  const int i = chosen_ >= 0 ? chosen_ : choice.done() ? static_cast<int>(choice.winner()) : -1;
  if (i < 0) return false;
  const core::Guard& g = guards_[static_cast<std::size_t>(i)];
  return g.kind <= core::Kind::output && g.node.status == Status::pending;
}

// Returns the outcome of a guard that is not at a channel: a barrier, a timer, the end of a
// process, or skip().
int Choice::conclude_other(std::uint32_t i, const Spec& s, PyObject** r) {
  if (s.kind == GuardKind::timer) {
    auto* t = reinterpret_cast<TimerObject*>(s.target);
    const std::int64_t now = now_ns();
    ticks = now < t->next ? 1 : 1 + (now - t->next) / t->period;
    t->next = runtime::later(t->next + (ticks - 1) * t->period, t->period);
  }
  if (guards_[i].kind == core::Kind::barrier &&
      (standing_ ? standing_->status() : select_->status()) == Status::died) {
    raise_barrier_died("select", static_cast<int>(i));
    return -1;
  }
  *r = s.kind == GuardKind::end ? how_it_ended(proc(s.target)) : Py_NewRef(Py_None);
  return *r ? 1 : -1;
}

// Returns the outcome of an output whose value existed before the choice.
int Choice::conclude_written(std::uint32_t i, const ChannelObject* c, PyObject** r) {
  if (transits_) transits_[i].commit();
  Owned(slots_[i].take()).reset();
  if (standing_ && !transits_ && !packs(c))
    load_output(i);
  else
    checked_ = 0;  // another select must load the value again
  *r = Py_NewRef(Py_None);
  return 1;
}

// Returns the value that a guard computes, in the form in which it is sent; null with an exception.
Owned<> Choice::compute(std::uint32_t i, const Spec& s) {
  Owned<> value;
  {
    const OutsideGate beyond;
    // a node that computes has a guard: NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
    value.reset(PyObject_CallNoArgs(s.guard->make));
  }
  if (value && is_end(value.get())) {
    Transit t;
    PyObject* send = nullptr;
    if (Transit::prepare(value.get(), t, send) == 0) t.commit();  // the choice has committed
    value.reset(send);
  }
  ChannelObject* const c = channel_of(i);
  if (value && packs(c)) value.reset(pack(c, value.release()));
  return value;
}

// Computes and delivers the value after the commit, before the reader continues (rule 5.8).
int Choice::conclude_computed(std::uint32_t i, const Spec& s, ProcessBase& p, PyObject** r) {
  ChannelObject* const c = channel_of(i);
  core::Guard& g = guards_[i];
  Owned value = compute(i, s);
  if (!value) {
    PyObject* const e = take_exception();
    if (abroad_)
      abroad_->failed(), abroad_.reset();
    else
      c->core.abandon(g.node);
    run_deferred();
    restore_exception(e);
    return -1;
  }
  if (abroad_) return deliver_far(value.release(), p, r);
  slots_[i].o = value.release();
  g.node.slot = &slots_[i];
  if (c->core.deliver(g.node) == Status::pending) return 0;
  Owned(slots_[i].take()).reset();
  *r = Py_NewRef(Py_None);
  return 1;
}

int Choice::conclude_guard(int index, ProcessBase& p, PyObject** r) {
  const auto i = static_cast<std::uint32_t>(index);
  core::Guard& g = guards_[i];
  Spec s;
  spec_of(owners_[i], s);
  chosen_ = index;
  *r = nullptr;
  if (g.kind >= core::Kind::barrier) return conclude_other(i, s, r);
  ChannelObject* c = end_of(s.target)->channel;
  const Status status = from_afar_  ? far_status_
                        : standing_ ? standing_->status()
                                    : select_->status();
  if (status == Status::pending) {
    bad_use("select on channel %s: %s", channel_name(c).c_str(), refused_);
    return -1;
  }
  if (is_end(status)) {
    PyObject* unsent = !sent_.empty() ? sent_[i] : nullptr;
    raise_end(status, c, "select", index, unsent);
    return -1;
  }
  if (g.kind == core::Kind::input) {
    c->core.last_reader = p.id;
    *r = taken_from(c, slots_[i].take());
    return *r ? 1 : -1;
  }
  c->core.last_writer = p.id;
  return g.node.is(core::NodeFlags::compute) ? conclude_computed(i, s, p, r)
                                             : conclude_written(i, c, r);
}

bool Choice::raise_refused() {
  for (std::uint32_t i = 0; i < n_ && !sent_.empty(); ++i) {
    PyObject* const why = why_refused(slots_[i].o);
    if (!why) continue;
    Owned value(unsent(slots_[i].take()));
    if (transits_) transits_[i].abandon(value.release());
    checked_ = 0;  // the next select must check the ends again
    restore_exception(why);
    return true;
  }
  return false;
}

PyObject* Choice::finish_held(ProcessBase&) {
  if (abroad_) return finish_far();
  Owned(slots_[static_cast<std::size_t>(chosen_)].take()).reset();
  return Py_NewRef(Py_None);
}

}  // namespace weft::py
