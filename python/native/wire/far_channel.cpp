// Channels whose home is another program: their objects, whose core is a FarEngine, and the list of
// far channels of each session. far.hpp contains the party's side, through which operations ask the
// home; wire.cpp states the invariants.
#include <unordered_map>

#include "channels/ends.hpp"
#include "channels/marks.hpp"
#include "gate.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/leaf.hpp"
#include "values/cells.hpp"
#include "watching/stopped_early.hpp"
#include "wire/carries.hpp"
#include "wire/far.hpp"

namespace weft::py {

std::unordered_map<Peer*, std::vector<FarSide*>> far_sides;

namespace {

void session_ended(Peer& p) noexcept {
  const auto at = far_sides.find(&p);
  if (at == far_sides.end()) return;
  for (FarSide* f : at->second) f->has_ended(Status::died, 0);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(offsetof(FarChannelObject, core) == offsetof(ChannelObject, core));
static_assert(offsetof(FarChannelObject, traced) == offsetof(ChannelObject, traced));
#pragma GCC diagnostic pop
PyTypeObject FarChannelType{PyVarObject_HEAD_INIT(nullptr, 0)};

void far_dealloc(PyObject* o) {
  auto* const c = reinterpret_cast<FarChannelObject*>(o);
  auto* const head = reinterpret_cast<ChannelObject*>(o);
  untrack(head);
  if (is_native(head)) forget_native(head);
  if (c->side && of_this_fork(head)) {
    const std::shared_ptr<Peer> peer = c->side->peer;
    {
      const Space::Step step(*peer->space);
      c->side->give_back(false);
    }
    std::vector<FarSide*>& of_peer = far_sides[peer.get()];
    std::erase(of_peer, c->side);
    if (of_peer.empty()) far_sides.erase(peer.get());
    delete c->side;
  }
  c->core.~FarEngine();
  Py_XDECREF(c->name);
  release(head);
}

}  // namespace

// Makes a new end from what the peer has handed to this program. Returns null with an exception on
// failure.
PyObject* far_end(std::shared_ptr<wire::FarEnd> e, bool writes, const std::string& called,
                  Carries what) {
  const std::shared_ptr<Peer> peer = e->peer;
  Owned name(to_str(called));
  if (!name) return nullptr;
  const Owned c(allocate<FarChannelObject>(&FarChannelType, false));
  if (!c) return nullptr;
  auto* const head = reinterpret_cast<ChannelObject*>(c.get());
  c->name = name.release();
  c->generation = generation | kCarries | kWired | kFar | marks_of(what);
  c->immunity = 0;
  c->readers_returned = kOtherwise;
  c->side = new FarSide(std::move(e), !writes, what);
  new (&c->core) core::FarEngine<Value, Shared>(c->side);
  c->side->core = &c->core;
  c->core.name = PyUnicode_AsUTF8(c->name);
  far_sides[peer.get()].push_back(c->side);
  peer->ended = &session_ended;
  if (peer->session.is_over()) c->side->has_ended(Status::died, 0);
  if (writes)
    c->core.another_writer();
  else
    c->core.another_reader();
  return new_end(writes ? &WriterType : &ReaderType, head);
}

namespace {

// The statistics are at the channel's home (rule 14.8).
PyObject* far_stats(PyObject* o, PyObject*) {
  auto* const c = reinterpret_cast<ChannelObject*>(o);
  const std::string& home = side_of(c).peer->session.theirs().name;
  return bad_use(
      "statistics of channel %s: it was made by another program (%s), which alone knows its "
      "values: ask there, or count by weft.observe.measuring(), which sees all OS processes",
      channel_name(c).c_str(), home.empty() ? "which has not said its name" : home.c_str());
}
PyMethodDef far_methods[] = {{"stats", gated<far_stats>, METH_NOARGS, nullptr}, {}};

}  // namespace

int init_far_channel(PyObject*) {
  FarChannelType.tp_name = "weft.FarChannel";
  FarChannelType.tp_base = &ChannelType;
  FarChannelType.tp_basicsize = sizeof(FarChannelObject);
  FarChannelType.tp_flags =
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  FarChannelType.tp_methods = far_methods;
  FarChannelType.tp_dealloc = gated<far_dealloc>;
  FarChannelType.tp_traverse = ChannelType.tp_traverse;
  FarChannelType.tp_clear = ChannelType.tp_clear;
  FarChannelType.tp_is_gc = ChannelType.tp_is_gc;
  return PyType_Ready(&FarChannelType);
}

}  // namespace weft::py
