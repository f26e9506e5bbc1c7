// Wires a channel: from now on its values are packed, because it has ends in other OS processes, or
// soon will.
//
//   wire_channel() ──each value that waits there unpacked ("bare")──► packed, in its place
//                            └─it cannot be─► a writer waits with it: its write or select raises why, and the channel is wired
//                                        └──► it is in the buffer, its writer has left: BadUse where the end is given; nothing is changed
//
// Invariants
//  1 Packing runs user code, so afterwards the value's place is searched again.
//  2 While values are packed, readers may take packed values from a channel that is not wired yet.
//    These values are unpacked too (received(), held.cpp).
#include "wire/wiring.hpp"

#include "channels/held.hpp"
#include "channels/marks.hpp"
#include "choice/choices.hpp"
#include "components/components.hpp"
#include "interpreter/error_types.hpp"
#include "interpreter/errors.hpp"
#include "values/cells.hpp"
#include "watching/observe.hpp"
#include "wire/carries.hpp"
#include "wire/far.hpp"
#include "wire/values.hpp"

namespace weft::py {

namespace {

struct Bare {
  Value* value = nullptr;  // null if there is no such value
  core::Node* writer =
      // The node that waits with the value. If it is null, the value is in the buffer, or belongs
      // to a choice over several homes.
      nullptr;
};

// Returns whether no party can take the value that this node offers, because its choice does not
// wait, or has committed. (An alternative does not wait between two selects.)
bool is_idle(const core::Node& n) noexcept {
  const core::Choice* const c = n.choice();
  return c && c->word() != core::WAITING;
}

// Returns a waiting value that is not packed. Values in the buffer come first.
Bare first_bare(Engine& c) {
  Bare found;
  c.with_lock([&](core::Queue&, core::Queue& writers) {
    if (core::Ring<Value>* r = c.ring)
      for (std::uint32_t i = 0; i < r->size && !found.value; ++i) {
        Value& v = r->data[(r->head + i) % r->capacity];
        if (!is_packed(v.o)) found.value = &v;
      }
    for (core::Link* l = writers.front(); l && !found.value; l = l->next) {
      auto* const n = static_cast<core::Node*>(l);
      auto* const v = static_cast<Value*>(n->slot);
      if (v && v->o && !is_packed(v->o) && !is_idle(*n)) found = {v, n};
    }
  });
  if (!found.value) found.value = bare_in_choices(c);
  return found;
}

// Ends the writer's waiting operation, which then raises the exception that is set here. Returns 0
// if the operation has another outcome by now, -1 if memory has run out.
int refuse(Engine& c, const Bare& b) {
  core::Node& n = *b.writer;
  core::Choice* const choice = n.choice();
  Owned why(refusal(Py_NewRef(b.value->o), take_exception()));
  if (!why) return -1;
  if (choice ? !choice->finish_as(core::CANCELLED) : !c.withdraw<Side::out>(n)) return 0;
  Py_SETREF(b.value->o, why.release());  // the refusal owns the value too
  core::Wakes wakes;
  wakes.finish(&n, Status::cancelled);
  wakes.run();
  return 1;
}

// Replaces the current exception by an exception for the code that gives the end away.
int in_the_buffer(ChannelObject* c) {
  if (!PyErr_ExceptionMatches(errors.BadUse)) return -1;
  const Owned cause(take_exception());
  const Owned why(PyObject_Str(cause.get()));
  if (why)
    bad_use(
        "an end of channel %s cannot go to another program, because a value in the channel cannot "
        "(%U): let the value be read first, or give the end before the value is written",
        channel_name(c).c_str(), why.get());
  return -1;
}

// Unpacks the values in the buffer again.
void unpack_all(Engine& c) {
  std::vector<Owned<>> packed;  // destroyed after the lock is released
  c.with_lock([&](core::Queue&, core::Queue&) {
    core::Ring<Value>* const r = c.ring;
    for (std::uint32_t i = 0; r && i < r->size; ++i)
      if (Value& v = r->data[(r->head + i) % r->capacity]; is_packed(v.o)) {
        packed.emplace_back(v.o);
        v.o = unsent(Py_NewRef(v.o));
      }
  });
}

// Packs all values. Returns -1, with an exception, if a value in the buffer cannot be packed.
int pack_all(ChannelObject* c) {
  for (Bare b; (b = first_bare(c->core)).value;) {
    PyObject* const value = b.value->o;
    Owned packed(pack(c, Py_NewRef(value)));
    // Other code might have run meanwhile, so the value is searched for again.
    const Bare now = first_bare(c->core);
    const bool there = now.value == b.value && now.writer == b.writer && b.value->o == value;
    if (packed && there) {
      Py_SETREF(b.value->o, packed.release());
    } else if (packed) {
      continue;
    } else if (!there) {
      PyErr_Clear();
    } else if (!b.writer || is_native(c) || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
      return in_the_buffer(c);
    } else if (refuse(c->core, b) < 0) {
      return -1;
    }
  }
  return 0;
}

}  // namespace

int wire_channel(ChannelObject* c, Carries what) {
  if (observing()) observe("lent", nullptr, reinterpret_cast<PyObject*>(c), nullptr);
  const bool board = what != Carries::pickle;
  if (is_wired(c) && carries(c) != what) {
    bad_use(
        "give: channel %s has ends %s, where its values are packed differently: make another "
        "channel, and a process between the two",
        channel_name(c).c_str(),
        !is_board(c)                   ? "in other OS processes"
        : carries(c) == Carries::typed ? "on another machine"
                                       : "on a board");
    return -1;
  }
  if (is_wired(c)) return 0;
  if (is_native(c) && board) {
    bad_use(
        "channel %s has an end of a native component, and cannot have ends on a board or another "
        "machine yet: put a Python process between them",
        channel_name(c).c_str());
    return -1;
  }
  if (is_native(c)) {
    go_abroad(c);
    if (is_wired(c)) return 0;  // another thread has wired the channel in the meantime
    c->generation |= kWired;
    if (cells_to_objects(c) < 0) return -1;
  }
  carry_ends(c);
  c->generation |= marks_of(what);
  if (pack_all(c) < 0) {
    c->generation &= ~(kBoard | kObjects);
    if (!is_wired(c)) unpack_all(c->core);
    return -1;
  }
  // Makes alternatives that hold values to be written to this channel check them again.
  ++ends_closed;
  c->generation |= kWired;
  return 0;
}

bool runs_away(PyObject* function) noexcept {
  return PyObject_HasAttrString(function, "_weft_away") != 0;
}

int wire_away(const Ends& ends) {
  for (const auto& e : ends)
    if (ChannelObject* const c = e->channel; !is_far(c) && !is_native(c) && !is_board(c))
      if (wire_channel(c, Carries::pickle) < 0) return -1;
  return 0;
}

}  // namespace weft::py
