// Choice of a component's process (rule 5): on a thread, which waits in the select, or as a
// coroutine on the pool.
//
//   select():       begin() ──parked──► ThreadProcess::block() ──► end()
//   start_select(): begin() ──parked──► WEFT_PENDING … finish_select() ──► end()
#include <algorithm>

#include "channels/marks.hpp"
#include "components/component.hpp"
#include "components/component_calls.hpp"
#include "interpreter/aside.hpp"
#include "processes/thread.hpp"
#include "values/cells.hpp"
#include "wire/values.hpp"

namespace weft::py::calls {

namespace {

Call::Choosing& choosing_for(Call& c, std::uint32_t n) {
  for (const auto& x : c.choosing)
    if (x->size == n) return *x;
  return *c.choosing.emplace_back(std::make_unique<Call::Choosing>(n));
}

bool withdraw_select(ProcessBase& p) noexcept {
  auto& x = *static_cast<Call::Choosing*>(p.place);
  return !x.select->held() && x.select->choice.finish_as(core::CANCELLED);
}
void visit_select(ProcessBase& p, runtime::WaitVisitor& v) {
  auto& x = *static_cast<Call::Choosing*>(p.place);
  for (std::uint32_t i = 0; i < x.size; ++i) {
    core::Guard& g = x.guards[i];
    if (g.enabled && g.kind == core::Kind::barrier)
      v.barrier(*static_cast<core::SyncObject*>(static_cast<BarrierEngine*>(g.where)));
    if (!g.enabled || g.kind > core::Kind::output) continue;
    if (g.has_ended())
      v.ended(*static_cast<core::SyncObject*>(static_cast<Engine*>(g.where)), i);
    else
      v.channel(*static_cast<core::SyncObject*>(static_cast<Engine*>(g.where)),
                g.kind == core::Kind::output);
  }
}
void undecided_select(ProcessBase& p, runtime::WaitVisitor& v) {
  auto& x = *static_cast<Call::Choosing*>(p.place);
  if (x.select->held() || x.select->choice.word() != core::WAITING) return;
  x.armed ? v.timed() : visit_select(p, v);
}
constexpr runtime::OpKind select_op{"select", &withdraw_select, &visit_select, &undecided_select};
constexpr runtime::OpKind sleep_op{"sleep", &withdraw_select, &visit_select, &undecided_select};

// Sets the place and the kind of the core's guard. Returns false for bad use.
bool set_place(Call& c, const weft_guard& from, core::Guard& g, Value& slot) {
  if (from.kind == WEFT_SKIP || from.kind == WEFT_TIMER) {
    g.kind = from.kind == WEFT_SKIP ? core::Kind::skip : core::Kind::timer;
    g.deadline = from.deadline;
    return true;
  }
  if (from.kind == WEFT_SYNC) {
    g.kind = core::Kind::barrier;
    g.ops = &core::barrier_ops<BarrierEngine>;
    g.where = barrier_at(c, from.end, "select");
    return g.where != nullptr;
  }
  const bool in = from.kind == WEFT_INPUT;
  EndObject* const e = end_at(c, from.end, in, "select");
  if (!e) return false;
  g.kind = in ? core::Kind::input : core::Kind::output;
  g.ops = in ? &core::channel_ops<Engine, Side::in> : &core::channel_ops<Engine, Side::out>;
  g.where = &e->channel->core;
  if (from.kind == WEFT_COMPUTED) g.node.set(core::NodeFlags::compute);
  if (from.kind != WEFT_OUTPUT || (slot.o = given(c, from.end, from.value))) return true;
  bad(c, "select: there is no memory left");
  return false;
}

// Makes the core's guards from the component's guards; null for bad use.
Call::Choosing* fill(Call& c, const weft_guard* guards, std::uint32_t n, std::uint64_t& key) {
  Call::Choosing& x = choosing_for(c, n);
  key = 0xCBF29CE484222325ull;
  bool any = false;
  for (std::uint32_t i = 0; i < n; ++i) {
    const weft_guard& from = guards[i];
    core::Guard& g = x.guards[i];
    g.node.flags = 0;
    g.where = nullptr;
    g.enabled = from.on != 0;
    g.ends = from.ends != 0;
    g.silent = g.enqueued = false;
    g.node.slot = &x.slots[i];
    any = any || g.enabled;
    if (from.kind > WEFT_COMPUTED) {
      bad(c, "select: guard " + std::to_string(i) +
                 " is of an unknown kind: make guards by the functions of <weft/component.hpp>");
      return nullptr;
    }
    if (!set_place(c, from, g, x.slots[i])) return nullptr;
    // The hash is FNV-1a.
    key = (key ^ reinterpret_cast<std::uintptr_t>(g.where) ^ static_cast<std::uint64_t>(g.kind)) *
          0x100000001B3ull;
  }
  if (!any) {
    bad(c, "select: no guard is on, so it would wait for ever");
    return nullptr;
  }
  if (core::find_fault(x.guards.get(), n).what == core::Fault::both_ends) {
    bad(c, "select with both ends of one channel: a process cannot talk to itself");
    return nullptr;
  }
  return &x;
}

// Gives the values of outputs back to the component, except the value that was written, whose block
// belongs to the channel.
void give_back(Call& c, Call::Choosing& x, weft_guard* guards, int written) noexcept {
  for (std::uint32_t i = 0; i < x.size; ++i) {
    if (guards[i].kind != WEFT_OUTPUT) continue;
    PyObject* const cell = x.slots[i].take();
    if (static_cast<int>(i) == written) {
      guards[i].value = {0, nullptr};
      const Value dropped(cell);  // the value that a buffer has given back
    } else if (cell) {
      not_sent(c, guards[i].end, cell, &guards[i].value);
    }
  }
}

// Gives the outcome of guard i to the component.
weft_status settle(Call& c, Call::Choosing& x, weft_guard* guards, std::uint32_t* chosen, int i) {
  if (i < 0) {
    give_back(c, x, guards, -1);
    return cancelled(c);
  }
  core::Select& s = *x.select;
  *chosen = static_cast<std::uint32_t>(i);
  *x.start = s.next_start();
  core::Guard& g = x.guards[static_cast<std::size_t>(i)];
  if (g.kind > core::Kind::output) {
    give_back(c, x, guards, -1);
    return WEFT_OK;
  }
  if (is_end(s.status())) {
    give_back(c, x, guards, -1);
    return status_of(c, s.status());
  }
  Engine& core = *static_cast<Engine*>(g.where);
  if (g.kind == core::Kind::input) {
    core.last_reader = c.process->id;
    const weft_status got =
        taken(c, guards[i].end, x.slots[static_cast<std::size_t>(i)].take(), &guards[i].value);
    give_back(c, x, guards, -1);
    return got;
  }
  core.last_writer = c.process->id;
  give_back(c, x, guards, i);
  if (guards[i].kind == WEFT_COMPUTED) {
    c.deciding = &x;
    c.decided = static_cast<std::uint32_t>(i);
  }
  return WEFT_OK;
}

const runtime::OpKind& waits_by(Call::Choosing& x) noexcept {
  return x.size == 1 && x.guards[0].enabled && x.guards[0].kind == core::Kind::timer ? sleep_op
                                                                                     : select_op;
}
void tell(Call& c, Call::Choosing& x, weft_status s, int i) noexcept {
  if (std::exchange(x.told, false)) [[unlikely]]
    tell_outcome(c, x, waits_by(x), s, i);
}
// Called when the choice has committed, now or earlier. A negative index means that the choice was
// cancelled.
weft_status end(Call& c, Call::Choosing& x, weft_guard* guards, std::uint32_t* chosen, int i) {
  const weft_status s = settle(c, x, guards, chosen, i);
  // while the value is being made, deliver() will report the outcome
  if (c.deciding != &x) tell(c, x, s, i);
  return s;
}

// Returns a channel of these guards that has ends in other OS processes; null if there is none.
ChannelObject* wired_among(Call& c, const weft_guard* guards, std::uint32_t n) noexcept {
  ChannelObject* found = nullptr;
  for (const weft_guard* g = guards; g != guards + n; ++g)
    if ((g->kind <= WEFT_OUTPUT || g->kind == WEFT_COMPUTED) && is_wired(c.ends[g->end]->channel))
      found = c.ends[g->end]->channel;
  return found;
}

// Begins a choice. Returns null if no choice was begun; `status` then says why. If `*far` is not
// null, it points to a channel with ends in other OS processes, and nothing was begun.
Call::Choosing* begin(Call& c, weft_guard* guards, std::uint32_t n, bool fair,
                      std::uint32_t* chosen, weft_place at, int& i, ChannelObject** far,
                      weft_status& status) {
  *chosen = n;
  status = WEFT_BAD_USE;
  // A select of timers alone is refused too, since a choice whose value is being made might use the
  // same storage.
  if (!idle(c, "select or sleep")) return nullptr;
  if (n == 0) {
    bad(c, "select without guards would wait for ever");
    return nullptr;
  }
  go_to(c, at);
  const bool asked = c.process->cancel().load(std::memory_order_relaxed) != 0;
  if (asked && !observing()) {
    status = cancelled(c);
    return nullptr;
  }
  std::uint64_t key;
  Call::Choosing* const x = fill(c, guards, n, key);
  if (!x) {
    give_back(c, choosing_for(c, n), guards, -1);
    if (asked) status = cancelled(c);
    return nullptr;
  }
  x->told = observing() && tell_begin(c, *x, waits_by(*x));
  if (asked) {
    give_back(c, *x, guards, -1);
    status = cancelled(c);
    tell(c, *x, status, -1);
    return nullptr;
  }
  x->start = &c.starts[key];
  if (c.checked) [[unlikely]]
    *x->start = begins_checked(c, *x, fair ? Mode::fair : Mode::priority, key, *x->start);
  x->select.emplace(x->guards.get(), n, fair ? Mode::fair : Mode::priority, c.process, *x->start);
  core::Select& s = *x->select;
  runtime::Run* const run = c.run;
  i = core::Select::none;
  *far = nullptr;
  const Operation op(c);
  if (c.abroad.load(std::memory_order_relaxed) && (*far = wired_among(c, guards, n))) return x;
  i = s.scan([run]() noexcept { return run->now(); });
  if (i == core::Select::none) i = s.enrol();
  x->at_once = i;
  return x;
}

// Prepares the choice to be parked.
void arm(Call& c, Call::Choosing& x) {
  core::Select& s = *x.select;
  c.process->place = &x;
  const int t = s.held() ? -1 : s.earliest_timer();
  x.armed = t >= 0 && s.guard(t).deadline != prim::forever;
  if (!x.armed) return;
  x.timer.deadline = s.guard(t).deadline;
  x.timer.choice = &s.choice;
  c.run->arm(x.timer);
}
// Called when the choice has been woken.
int woken(Call& c, Call::Choosing& x) {
  core::Select& s = *x.select;
  if (std::exchange(x.armed, false)) c.run->disarm(x.timer);
  const std::uint32_t word = s.held() ? core::DONE : s.choice.word();
  int i;
  {
    const Operation op(c);
    i = s.finish();
  }
  return i < 0 && word == core::TIMED_OUT ? s.earliest_timer() : i;
}

}  // namespace

weft_status select(weft_process* p, weft_guard* guards, std::uint32_t n, std::uint32_t fair,
                   std::uint32_t* chosen, weft_place at) {
  Call& c = call_of(p);
  if (!may_wait(c, "select")) return WEFT_BAD_USE;
  int i;
  ChannelObject* far;
  weft_status status;
  Call::Choosing* const x = begin(c, guards, n, fair != 0, chosen, at, i, &far, status);
  if (!x) return status;
  if (far) {
    give_back(c, *x, guards, -1);
    for (std::uint32_t k = 0; k < n; ++k)
      if (guards[k].kind == WEFT_COMPUTED)
        return bad(c,
                   "select with a computed output and channels that have ends in other OS "
                   "processes, which a native component cannot combine: make the value first, "
                   "output(w, value)");
    return select_abroad(c, guards, n, fair != 0, chosen);
  }
  if (i == core::Select::parked) {
    arm(c, *x);
    parks(c, waits_by(*x));
    c.thread->block(waits_by(*x));
    i = woken(c, *x);
  }
  return end(c, *x, guards, chosen, i);
}

weft_status start_select(weft_process* p, weft_guard* guards, std::uint32_t n, std::uint32_t fair,
                         std::uint32_t* chosen, weft_place at) {
  Call& c = call_of(p);
  if (c.thread) return select(p, guards, n, fair, chosen, at);
  *chosen = n;
  for (std::uint32_t k = 0; k < n; ++k)
    if (guards[k].kind == WEFT_COMPUTED)
      return bad(c, "select: a process on the pool has no computed outputs: put it on a thread");
  int i;
  ChannelObject* far;
  weft_status status;
  Call::Choosing* const x = begin(c, guards, n, fair != 0, chosen, at, i, &far, status);
  if (!x) return status;
  if (far) {
    give_back(c, *x, guards, -1);
    return wired_on_the_pool(c, "select", far);
  }
  if (i != core::Select::parked && !gives_way(c)) return end(c, *x, guards, chosen, i);
  c.begun.guards = guards;
  c.begun.chosen = chosen;
  c.begun.choosing = x;
  c.begun.finish = &finish_select;
  if (i != core::Select::parked) return WEFT_PENDING;
  arm(c, *x);
  c.process->waits_in(&waits_by(*x));
  parks(c, waits_by(*x));
  return WEFT_PENDING;
}
weft_status finish_select(Call& c) {
  Call::Choosing& x = *c.begun.choosing;
  const int i = x.at_once;
  return end(c, x, c.begun.guards, c.begun.chosen, i == core::Select::parked ? woken(c, x) : i);
}

namespace {

// A partner holds the node of the chosen guard, and wakes the process when it releases the node.
constexpr runtime::OpKind held_op{"select", [](ProcessBase&) noexcept { return false; }, nullptr};

// Delivers the value if the channel has been wired to other OS processes since the commit.
void deliver_as_object(ChannelObject* channel, Value& slot) {
  const With lock;
  if (!is_wired(channel)) return;
  if (PyObject* const o = unpack_native(slot.take())) slot.o = pack(channel, o);
  PyErr_Clear();
}

}  // namespace

weft_status deliver(weft_process* p, weft_value* from) {
  Call& c = call_of(p);
  Call::Choosing* const x = std::exchange(c.deciding, nullptr);
  if (!x) return bad(c, "deliver: no computed output was chosen");
  core::Guard& g = x->guards[c.decided];
  Engine& core = *static_cast<Engine*>(g.where);
  const auto end = std::find_if(c.ends.begin(), c.ends.end(), [&](EndObject* e) {
    return &e->channel->core == &core && is_writer(reinterpret_cast<PyObject*>(e));
  });
  Value& slot = x->slots[c.decided];
  slot.o = from ? given(c, static_cast<std::uint32_t>(end - c.ends.begin()), *from) : nullptr;
  const bool made = slot.o != nullptr;
  if (made && c.abroad.load(std::memory_order_relaxed)) deliver_as_object((*end)->channel, slot);
  Status s = Status::ok;
  {
    const Operation op(c);
    g.node.slot = &slot;
    if (slot.o)
      s = core.deliver(g.node);
    else
      core.abandon(g.node);
  }
  if (s == Status::pending) {
    c.thread->place = x;
    parks(c, held_op);
    c.thread->block(held_op);
  }
  const Value dropped(slot.take());  // the value that a buffer has given back
  const weft_status r = made || !from ? WEFT_OK : bad(c, "select: there is no memory left");
  tell(c, *x, from ? r : WEFT_FAILED, static_cast<int>(c.decided));
  return r;
}

}  // namespace weft::py::calls
