// Channel, Reader and Writer as Python sees them (rules 1 to 4).
//
//   Channel ──reader()/writer()──► open ──retire│last holder finished│sent│die──► closed (says how)
//                                   └──collected: its retirement is queued (pending.cpp)
//
// A Channel holds its core; an end holds its Channel (rule 2.6). Only an end that is open owns a
// count of the core.
#include "channels/channel.hpp"
#include "channels/arrays.hpp"
#include "channels/ends.hpp"
#include "channels/held.hpp"
#include "channels/marks.hpp"
#include "channels/operations.hpp"
#include "channels/transit.hpp"
#include "checking/points.hpp"
#include "choice/choices.hpp"
#include "declare.hpp"
#include "interpreter/end_errors.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/foreign_threads.hpp"
#include "interpreter/leaf.hpp"
#include "interpreter/misuse.hpp"
#include "interpreter/pending.hpp"
#include "interpreter/sites.hpp"
#include "keywords.hpp"
#include "processes/loops.hpp"
#include "processes/process.hpp"
#include "values/cells.hpp"
#include "watching/stopped_early.hpp"
#include "wire/giving.hpp"
#include "wire/values.hpp"

namespace weft::py {

void defer_retirement(ChannelObject* owned, bool writer) noexcept;

std::uint32_t generation = 0;

namespace {

ChannelObject* channel(PyObject* o) noexcept { return reinterpret_cast<ChannelObject*>(o); }

// --- Channel -------------------------------------------------------------------------------------

// Records the caller's place, `file:line`, which becomes the name of a channel without a name (rule
// 1.7).
int birthplace(ChannelObject* c) {
  const std::uint32_t number = site_here();
  if (number == 0) {
    c->name = PyUnicode_FromString("?");
  } else {
    const Site at = site_of(number);
    c->name = Py_NewRef(at.file);
    c->core.line = at.line;
  }
  if (!c->name || !(c->core.name = PyUnicode_AsUTF8(c->name))) return -1;
  return 0;
}

// The arguments of Channel(...).
struct Wanted {
  PyObject* name = Py_None;
  PyObject* type = Py_None;
  Py_ssize_t capacity = 0, immunity = 0;
  Overflow overflow = Overflow::block;
};

int look_at_name(PyObject* name) {
  if (name == Py_None) return 0;
  if (!PyUnicode_Check(name))
    PyErr_Format(PyExc_TypeError, "Channel: the name must be a str, not %.100s%s",
                 Py_TYPE(name)->tp_name, PyLong_Check(name) ? "; for a buffer: capacity=..." : "");
  else if (PyUnicode_GET_LENGTH(name) == 0)
    bad_use("Channel: the name is empty; leave it out for file:line");
  else
    return 0;
  return -1;
}
int overflow_of(PyObject* given, Wanted& to) {
  static constexpr std::pair<const char*, Overflow> known[] = {
      {"block", Overflow::block},
      {"drop_oldest", Overflow::drop_oldest},
      {"drop_newest", Overflow::drop_newest},
      {"unbounded", Overflow::unbounded}};
  const auto* const at = std::find_if(std::begin(known), std::end(known), [given](const auto& k) {
    return PyUnicode_CompareWithASCIIString(given, k.first) == 0;
  });
  if (at == std::end(known)) {
    bad_use(
        "Channel: overflow must be 'block', 'drop_oldest', 'drop_newest' or 'unbounded', not %R",
        given);
    return -1;
  }
  to.overflow = at->second;
  if (to.capacity > 0 ||
      (to.overflow != Overflow::drop_oldest && to.overflow != Overflow::drop_newest))
    return 0;
  bad_use("Channel: overflow=%R drops values from a buffer: give a capacity of at least 1", given);
  return -1;
}
int wanted(PyObject* args, PyObject* kw, Wanted& to) {
  static const char* names[] = {"name", "capacity", "overflow", "immunity", "type", nullptr};
  PyObject *overflow = nullptr, *capacity = nullptr, *immunity = nullptr;
  if (PyTuple_GET_SIZE(args) > 1) {
    PyErr_Format(PyExc_TypeError,
                 "Channel takes the name alone without a keyword: Channel(%R, capacity=...)",
                 PyTuple_GET_ITEM(args, 0));
    return -1;
  }
  if (!PyArg_ParseTupleAndKeywords(args, kw, "|O$OUOO:Channel", const_cast<char**>(names), &to.name,
                                   &capacity, &overflow, &immunity, &to.type) ||
      look_at_name(to.name) < 0 ||
      (capacity && !whole_number(capacity, "Channel: capacity", "from 0 (rendezvous) to 2**30 - 1",
                                 0, 0x3fffffff, to.capacity)) ||
      (immunity &&
       !whole_number(immunity, "Channel: immunity", "from 0 to 255", 0, 255, to.immunity)))
    return -1;
  return overflow ? overflow_of(overflow, to) : 0;
}

int name_channel(ChannelObject* c, PyObject* name) {
  if (name == Py_None) return birthplace(c);
  c->name = Py_NewRef(name);
  return (c->core.name = PyUnicode_AsUTF8(name)) ? 0 : -1;
}

PyObject* channel_new(PyTypeObject* type, PyObject* args, PyObject* kw) {
  Wanted w;
  if ((PyTuple_GET_SIZE(args) != 0 || kw) && wanted(args, kw, w) < 0) return nullptr;
  Owned c(allocate<ChannelObject>(type, w.capacity > 0 || w.overflow == Overflow::unbounded));
  if (!c) return nullptr;
  new (&c->core) Engine;
  c->name = nullptr;
  c->generation = generation;
  c->immunity = static_cast<std::uint8_t>(w.immunity);
  c->readers_returned = 0;
  if (name_channel(c.get(), w.name) < 0) return nullptr;
  c->core.set_immunity(static_cast<std::uint8_t>(w.immunity));
  if (c->traced) {
    try {
      c->core.set_ring(new weft::detail::HeapRing<Value>(
          w.capacity > 0 ? static_cast<std::uint32_t>(w.capacity) : 8, w.overflow));
    } catch (const std::bad_alloc&) {
      return PyErr_NoMemory();
    }
  }
  track(c.get());
  if (checking) [[unlikely]]
    checking->made(place_at(c->core), c->core.ring ? c->core.ring->capacity : 0,
                   w.overflow != Overflow::block);
  if (w.type != Py_None && type_channel(c.get(), w.type) < 0) return nullptr;
  return reinterpret_cast<PyObject*>(c.release());
}

int channel_traverse(PyObject* o, visitproc visit, void* arg) {
  if (is_native(channel(o)))
    return 0;  // cells refer to no object, and a thread without the GIL might be using the buffer
  if (core::Ring<Value>* r = channel(o)->core.ring)
    for (std::uint32_t i = 0; i < r->size; ++i) Py_VISIT(r->data[(r->head + i) % r->capacity].o);
  return 0;
}
// Called by CPython for a channel that nothing refers to. No operation waits on such a channel: a
// waiting operation refers to its end, and the end to the channel.
int channel_clear(PyObject* o) {
  if (core::Ring<Value>* r = channel(o)->core.ring)
    while (r->size > 0) {
      const Owned v(r->data[r->head].take());
      if (++r->head == r->capacity) r->head = 0;
      --r->size;
    }
  return 0;
}
void channel_dealloc(PyObject* o) {
  ChannelObject* c = channel(o);
  untrack(c);
  if (checking) [[unlikely]]
    checking->gone(place_at(c->core),
                   c->core.ring && c->core.poison_strength() == 0 ? c->core.ring->dropped : 0);
  channel_clear(o);
  if (is_native(c)) forget_native(c);
  delete static_cast<weft::detail::HeapRing<Value>*>(c->core.ring);
  c->core.~Engine();
  Py_XDECREF(c->name);
  release(c);
}

// Makes an end, which takes ownership of one count of the core. The function is inline because
// making an end must take few instructions.
[[gnu::always_inline]] inline PyObject* end_at(std::uint32_t site, PyTypeObject* type,
                                               ChannelObject* c) noexcept {
  auto* e = allocate<EndObject>(type, every_end_is_known || c->traced);
  if (!e) {
    if (type == &ReaderType)
      c->core.drop_reader();
    else
      c->core.drop_writer();
    return nullptr;
  }
  e->channel = reinterpret_cast<ChannelObject*>(Py_NewRef(reinterpret_cast<PyObject*>(c)));
  e->holders = 0;
  e->state = EndState::open;
  e->received = false;
  e->site = site;
  count_alike(reinterpret_cast<PyObject*>(e));
  track(e);
  return reinterpret_cast<PyObject*>(e);
}

template <Side S>
PyObject* make_end(PyObject* o, PyObject*) {
  run_deferred();
  ChannelObject* c = channel(o);
  const char* verb = S == Side::in ? "reader()" : "writer()";
  if (!of_this_fork(c))
    return bad_use(
        "%s on channel %s: the channel was made before a fork, and this is the child: make "
        "channels in the process that uses them",
        verb, channel_name(c).c_str());
  if (is_far(c))
    return bad_use(
        "%s on channel %s: another OS process made the channel, and only that OS process makes "
        "ends of it: let it send you one",
        verb, channel_name(c).c_str());
  if (checking) [[unlikely]]
    checking->touches(place_at(c->core), Access::make);
  if (!(S == Side::in ? c->core.first_reader() : c->core.first_writer())) {
    // The status with which an operation on this end would fail (rule 2.5). If no operation would
    // fail, all ends of this side have been closed.
    constexpr Side other = S == Side::in ? Side::out : Side::in;
    Status s = c->core.how_ended<S>();
    if (!is_end(s)) s = c->core.how_ended<other>();
    return raise_end(is_end(s) ? s : Status::retired, c, verb, -1, nullptr, false);
  }
  return end_at(site_here(), S == Side::in ? &ReaderType : &WriterType, c);
}

int strength_of(PyObject* const* args, Py_ssize_t n, PyObject* names, const char* verb) {
  const Py_ssize_t k = names ? PyTuple_GET_SIZE(names) : 0;
  if (n + k > 1 ||
      (k == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "strength") != 0)) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most one argument, strength", verb);
    return -1;
  }
  if (n + k == 0) return 1;
  Py_ssize_t s = 0;
  const std::string what = std::string(verb) + ": the strength";
  return whole_number(args[0], what.c_str(), "from 1 to 255", 1, 255, s) ? static_cast<int>(s) : -1;
}

PyObject* channel_poison(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  run_deferred();
  note_foreign_thread();
  const int s = strength_of(args, n, names, "poison");
  if (s < 0) return nullptr;
  if (checking) [[unlikely]]
    checking->touches(place_at(channel(o)->core), Access::all);
  channel(o)->core.poison(static_cast<std::uint8_t>(s));
  run_deferred();
  Py_RETURN_NONE;
}

PyObject* stats_type = nullptr;
PyMethodDef module_functions[] = {
    {"_set_stats", gated<keep_given<&stats_type>>, METH_VARARGS, nullptr}, {}};

PyObject* channel_stats(PyObject* o, PyObject*) {
  run_deferred();
  Engine& c = channel(o)->core;
  long r = 0, w = 0;
  unsigned long long transfers = 0, dropped = 0;
  unsigned long buffered = 0;
  // A lender is not counted, since it waits for nothing (core/lending.hpp). A watch of a choice
  // over several homes is counted.
  const auto waits = [](core::Link* l) {
    const auto* const n = static_cast<core::Node*>(l);
    return !n->is(core::NodeFlags::watch) || n->index == 0;
  };
  // the lock is needed because components use the channel without the GIL
  c.with_lock([&](core::Queue& rq, core::Queue& wq) {
    for (core::Link* l = rq.front(); l; l = l->next) r += waits(l);
    for (core::Link* l = wq.front(); l; l = l->next) w += waits(l);
    transfers = c.transfers();
    dropped = c.ring ? c.ring->dropped : 0;
    buffered = c.ring ? c.ring->size : 0;
  });
  return PyObject_CallFunction(stats_type ? stats_type : reinterpret_cast<PyObject*>(&PyTuple_Type),
                               "KKIIllk", transfers, dropped, c.reader_ends(), c.writer_ends(), r,
                               w, buffered);
}

PyObject* channel_get_name(PyObject* o, void*) {
  ChannelObject* c = channel(o);
  if (c->core.line == 0) return Py_NewRef(c->name);
  return to_str(channel_name(c));
}
PyObject* channel_repr(PyObject* o) {
  const Owned n(channel_get_name(o, nullptr));
  return n ? PyUnicode_FromFormat("<Channel %U>", n.get()) : nullptr;
}
PyObject* plus(PyObject* o) { return make_end<Side::in>(o, nullptr); }
PyObject* minus(PyObject* o) { return make_end<Side::out>(o, nullptr); }
PyObject* class_getitem(PyObject* type, PyObject*) { return Py_NewRef(type); }

// Raises the error for an operation on the channel itself, because a channel is used only through
// its ends.
template <const char* Verb>
PyObject* through_an_end(PyObject* o, PyObject*, PyObject*) {
  const std::string_view verb(Verb);
  const char* const ends = verb == "read"    ? "reader()"
                           : verb == "write" ? "writer()"
                                             : "reader() or writer()";
  return bad_use("%s on channel %s itself: take an end of it, channel.%s", Verb,
                 channel_name(channel(o)).c_str(), ends);
}
PyObject* iterate_channel(PyObject* o) {
  return bad_use(
      "iteration over channel %s itself: take an end of it, channel.reader(), and iterate over "
      "that",
      channel_name(channel(o)).c_str());
}
constexpr char kRead[] = "read", kWrite[] = "write", kRetire[] = "retire";
constexpr int kAny = METH_VARARGS | METH_KEYWORDS;

PyMethodDef channel_methods[] = {
    {"reader", gated<make_end<Side::in>>, METH_NOARGS,
     "Returns a new reader end. Raises Retired, PeerDied or Poisoned if that side has ended (rule "
     "2.5)."},
    {"writer", gated<make_end<Side::out>>, METH_NOARGS,
     "Returns a new writer end. Raises Retired, PeerDied or Poisoned if that side has ended (rule "
     "2.5)."},
    {"poison", method(gated<channel_poison>), METH_FASTCALL | METH_KEYWORDS,
     "Poisons the channel: its operations raise Poisoned (rule 4). Raises BadUse if `strength` is "
     "not from 1 to 255."},
    {"read", method(gated<through_an_end<kRead>>), kAny, nullptr},
    {"write", method(gated<through_an_end<kWrite>>), kAny, nullptr},
    {"retire", method(gated<through_an_end<kRetire>>), kAny, nullptr},
    {"__reduce_ex__", gated<no_copy>, METH_O, nullptr},
    {"stats", gated<channel_stats>, METH_NOARGS,
     "Returns the figures of the channel at this moment, as a ChannelStats. Raises BadUse if "
     "another program has made the channel (rule 14.8)."},
    {"_stats", gated<channel_stats>, METH_NOARGS, nullptr},
    {"__class_getitem__", class_getitem, METH_O | METH_CLASS, nullptr},
    {}};
PyGetSetDef channel_getset[] = {
    {"name", gated<channel_get_name>, nullptr,
     "The name that the channel was given, or FILE:LINE where it was made.", nullptr},
    {}};
PyNumberMethods channel_number{};
PyAsyncMethods channel_async{};

// --- ends ----------------------------------------------------------------------------------------

int end_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<PyObject*>(end_of(o)->channel));
  return 0;
}
void end_dealloc(PyObject* o) {
  EndObject* e = end_of(o);
  untrack(e);
  if (e->received) forget_received(e);
#ifdef Py_GIL_DISABLED
  // In a free-threaded build other threads can change the count, so the count proves nothing.
  constexpr bool only_one = false;
#else
  // If nothing else refers to the channel, no party needs to be notified.
  const bool only_one = Py_REFCNT(e->channel) == 1;
#endif
  if (e->state == EndState::open && !only_one)
    defer_retirement(e->channel, is_writer(o));
  else
    Py_DECREF(e->channel);
  release(e);
}

PyObject* end_poison(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  run_deferred();
  note_foreign_thread();
  const int s = strength_of(args, n, names, "poison");
  if (s < 0 || check_end(end_of(o), "poison") < 0) return nullptr;
  if (checking) [[unlikely]]
    checking->touches(place_at(end_of(o)->channel->core), Access::all);
  end_of(o)->channel->core.poison(static_cast<std::uint8_t>(s));
  run_deferred();
  Py_RETURN_NONE;
}
template <EndState How>
PyObject* end_close(PyObject* o, PyObject*) {
  run_deferred();
  note_foreign_thread();
  close_end(end_of(o), How);
  run_deferred();
  Py_RETURN_NONE;
}
PyObject* end_channel(PyObject* o, void*) {
  return Py_NewRef(reinterpret_cast<PyObject*>(end_of(o)->channel));
}
PyObject* end_closed(PyObject* o, void*) {
  return PyBool_FromLong(end_of(o)->state != EndState::open);
}
PyObject* end_repr(PyObject* o) {
  const Owned n(channel_get_name(reinterpret_cast<PyObject*>(end_of(o)->channel), nullptr));
  return n ? PyUnicode_FromFormat("<%s of %U%s>", is_reader(o) ? "Reader" : "Writer", n.get(),
                                  end_of(o)->state == EndState::open ? "" : ", closed")
           : nullptr;
}
PyGetSetDef end_getset[] = {
    {"channel", gated<end_channel>, nullptr, "The channel of this end.", nullptr},
    {"closed", gated<end_closed>, nullptr, "Whether this end is closed.", nullptr},
    {}};

PyObject* reader_read(PyObject* o, PyObject*) { return operation_read(o, false); }
PyObject* reader_call(PyObject* o, PyObject* args, PyObject* kw) {
  if (PyTuple_GET_SIZE(args) || kw)
    return PyErr_Format(
        PyExc_TypeError,
        "a reader is called without arguments, and reads; to write, call the channel's writer()");
  return operation_read(o, false);
}
PyObject* reader_next(PyObject* o) {
  if (current_coroutine() || in_task())
    return bad_use(
        "for over a reader blocks: in a coroutine process or an asyncio task use `async for`");
  return operation_read(o, true);
}
PyObject* reader_anext(PyObject* o) { return operation_read(o, true); }
PyObject* reader_extended(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  const Py_ssize_t k = names ? PyTuple_GET_SIZE(names) : 0;
  if (n > 0 || k > 1 ||
      (k == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "redeliver") != 0))
    return PyErr_Format(PyExc_TypeError,
                        "extended() takes at most one argument, the keyword redeliver");
  const int keeps = k == 1 ? PyObject_IsTrue(args[0]) : 0;
  return keeps < 0 ? nullptr : extended_new(o, keeps != 0);
}
PyObject* writer_write(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  if (n == 1 && !names) [[likely]]
    return operation_write(o, args[0]);
  if (n != 1 || PyTuple_GET_SIZE(names) != 1 ||
      PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "move") != 0)
    return PyErr_Format(PyExc_TypeError, "write() takes one value, and move=True or False");
  const int move = PyObject_IsTrue(args[1]);
  if (move < 0 || (move && check_move(end_of(o)->channel, args[0]) < 0)) return nullptr;
  if (!move) return operation_write(o, args[0]);
  const Moves moves;
  return operation_write(o, args[0]);
}
PyObject* writer_call(PyObject* o, PyObject* args, PyObject* kw) {
  if (PyTuple_GET_SIZE(args) != 1 || kw)
    return PyErr_Format(
        PyExc_TypeError,
        "a writer is called with the one value to write; to read use the channel's reader()");
  return operation_write(o, PyTuple_GET_ITEM(args, 0));
}
PyObject* not_a_reader(PyObject* o, PyObject*) {
  return bad_use("read on a writer end of channel %s: read from channel.reader()",
                 channel_name(end_of(o)->channel).c_str());
}
PyObject* iterate_writer(PyObject* o) { return not_a_reader(o, nullptr); }
PyObject* not_a_writer(PyObject* o, PyObject*) {
  return bad_use("write on a reader end of channel %s: write to channel.writer()",
                 channel_name(end_of(o)->channel).c_str());
}

#define WEFT_END_METHODS                                                                        \
  {"poison", method(gated<end_poison>), METH_FASTCALL | METH_KEYWORDS,                          \
   "Poisons the channel: its operations raise Poisoned (rule 4). Raises BadUse if this end is " \
   "closed, or `strength` is not from 1 to 255."},                                              \
      {"retire", gated<end_close<EndState::retired>>, METH_NOARGS,                              \
       "Closes this end. With the last end of its side the channel ends quietly (rule 3)."},    \
      {"die", gated<end_close<EndState::died>>, METH_NOARGS,                                    \
       "Closes this end in the way in which the death of its holder would (rule 4.5)."},        \
      {"__reduce_ex__", gated<no_copy>, METH_O, nullptr}, {                                     \
    "__class_getitem__", class_getitem, METH_O | METH_CLASS, nullptr                            \
  }
PyMethodDef reader_methods[] = {
    {"read", gated<reader_read>, METH_NOARGS,
     "Reads one value, and returns it. Raises Retired, Poisoned, PeerDied, Cancelled, BadUse."},
    {"read_many", method(gated<with_keyword<"read_many", "most", reader_read_many>>), kKeywords,
     "Reads at least one value, and further values that are in the buffer, at most `most` in all. "
     "Returns them as a list. Raises what read() raises."},
    {"blocks", method(gated<with_keyword<"blocks", "most", reader_blocks>>), kKeywords,
     "Returns an iterator over the lists that read_many(most) returns, until the other side has "
     "retired."},
    {"write", gated<not_a_writer>, METH_O, nullptr},
    {"extended", method(gated<reader_extended>), METH_FASTCALL | METH_KEYWORDS,
     "Returns a context manager for an extended read: its block has the value, and the writer goes "
     "on when the block ends (rule 1.6). redeliver=True is for an end in another OS process: if an "
     "exception leaves the block, or this OS process dies in it, the value is the next to be "
     "read."},
    WEFT_END_METHODS,
    {}};
PyMethodDef writer_methods[] = {
    {"write", method(gated<writer_write>), kKeywords,
     "Writes the value; the write is over when a reader, or the buffer, has the value. Raises "
     "Retired, Poisoned, PeerDied or Cancelled, each with the value in `.value`; or BadUse. "
     "move=True: the value is an array, and this call has the only "
     "reference to it; otherwise BadUse is raised (rules 9.7, 16.6)."},
    {"write_many", method(gated<with_keyword<"write_many", "values", writer_write_many>>),
     kKeywords,
     "Writes the values one after another, in their order. Raises what write() raises; `.value` is "
     "the first value that was not written."},
    {"read", gated<not_a_reader>, METH_NOARGS, nullptr},
    WEFT_END_METHODS,
    {}};
PyAsyncMethods reader_async{}, writer_async{};

}  // namespace

PyTypeObject ChannelType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject ReaderType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject WriterType{PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* new_end(PyTypeObject* type, ChannelObject* c) noexcept { return end_at(0, type, c); }

void close_end(EndObject* e, EndState how) noexcept {
  if (e->state != EndState::open) return;
  e->state = how;
  ++ends_closed;
  if (!of_this_fork(e->channel)) return;
  if (checking) [[unlikely]] {
    Engine& c = e->channel->core;
    const bool reader = is_reader(reinterpret_cast<PyObject*>(e));
    checking->closes(place_at(c), (reader ? c.reader_ends() : c.writer_ends()) == 1,
                     how == EndState::died);
  }
  if (!is_reader(reinterpret_cast<PyObject*>(e)))
    return e->channel->core.drop_writer(how == EndState::died);
  e->channel->readers_returned = kOtherwise;
  e->channel->core.drop_reader(how == EndState::died);
}

[[gnu::noinline, gnu::cold]] static int check_closely(EndObject* e, const char* verb) {
  if (e->state == EndState::open && of_this_fork(e->channel)) return 1;
  raise_closed(e, verb);
  return -1;
}
int check_end(EndObject* e, const char* verb) {
  if (e->state == EndState::open && e->channel->generation == generation) [[likely]]
    return 0;
  return check_closely(e, verb);
}

PyObject* make_transit(PyObject* end) noexcept {
  ChannelObject* c = end_of(end)->channel;
  if (is_reader(end))
    c->core.another_reader();
  else
    c->core.another_writer();
  PyObject* const moved = new_end(Py_TYPE(end), c);
  if (moved) end_of(moved)->site = end_of(end)->site;
  return moved;
}

int Transit::prepare(PyObject* value, Transit& t, PyObject*& to_send) noexcept {
  if (!is_end(value)) [[likely]] {
    to_send = Py_NewRef(value);
    return 0;
  }
  if (check_end(end_of(value), "write of an end") < 0) return -1;
  to_send = make_transit(value);
  if (!to_send) return -1;
  t.original = Py_NewRef(value);
  return 0;
}
void Transit::commit() noexcept {
  if (!original) return;
  close_end(end_of(original), EndState::sent);
  Py_CLEAR(original);
}
void Transit::abandon(PyObject* sent) noexcept {
  const Owned end(unsent(sent));  // an end that goes to another OS process is sent in packed form
  if (original && end) close_end(end_of(end.get()), EndState::retired);
  Py_CLEAR(original);
}

int init_channel(PyObject* m) {
  channel_number.nb_positive = gated<plus>;
  channel_number.nb_negative = gated<minus>;
  channel_number.nb_multiply = gated<channel_times>;
  ChannelType.tp_name = "weft.Channel";
  ChannelType.tp_doc =
      "Channel(name=None, *, capacity=0, overflow='block', immunity=0, type=None): a rendezvous, "
      "or a buffer of `capacity` values.\n\n"
      "Args:\n"
      "    name: the name in reports; None: FILE:LINE where the channel is made.\n"
      "    capacity: 0 for a rendezvous, or how many values the buffer holds, up to 2**30 - 1.\n"
      "    overflow: what happens to a value that finds the buffer full (rule 1.4): 'block', "
      "'drop_oldest', 'drop_newest' or 'unbounded'.\n"
      "    immunity: the channel ignores poison of a lower strength (rule 4.4); from 0 to 255.\n"
      "    type: the type of all values, which are then converted as for native components (rule "
      "16.2); None: values of any type.\n"
      "Raises:\n"
      "    BadUse: one of these is out of range.";
  ChannelType.tp_basicsize = sizeof(ChannelObject);
  ChannelType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  ChannelType.tp_new = gated<channel_new>;
  ChannelType.tp_dealloc = gated<channel_dealloc>;
  ChannelType.tp_traverse = channel_traverse;
  ChannelType.tp_clear = gated<channel_clear>;
  ChannelType.tp_is_gc = has_header<ChannelObject>;
  ChannelType.tp_repr = gated<channel_repr>;
  ChannelType.tp_methods = channel_methods;
  ChannelType.tp_getset = channel_getset;
  ChannelType.tp_as_number = &channel_number;
  channel_async.am_aiter = gated<iterate_channel>;
  ChannelType.tp_as_async = &channel_async;
  ChannelType.tp_iter = gated<iterate_channel>;

  reader_async.am_aiter = reader_iter;
  reader_async.am_anext = gated<reader_anext>;
  ReaderType.tp_name = "weft.Reader";
  ReaderType.tp_doc = "A reader end of a channel. channel.reader() or +channel makes one.";
  ReaderType.tp_call = gated<reader_call>;
  ReaderType.tp_iter = reader_iter;
  ReaderType.tp_iternext = gated<reader_next>;
  ReaderType.tp_as_async = &reader_async;
  ReaderType.tp_methods = reader_methods;
  WriterType.tp_name = "weft.Writer";
  WriterType.tp_doc = "A writer end of a channel. channel.writer() or -channel makes one.";
  WriterType.tp_call = gated<writer_call>;
  WriterType.tp_methods = writer_methods;
  writer_async.am_aiter = gated<iterate_writer>;
  WriterType.tp_as_async = &writer_async;
  WriterType.tp_iter = gated<iterate_writer>;
  for (PyTypeObject* t : {&ReaderType, &WriterType}) {
    t->tp_basicsize = sizeof(EndObject);
    t->tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    t->tp_dealloc = gated<end_dealloc>;
    t->tp_traverse = end_traverse;
    t->tp_is_gc = has_header<EndObject>;
    t->tp_repr = gated<end_repr>;
    t->tp_getset = end_getset;
  }
  for (PyTypeObject* t : {&ChannelType, &ReaderType, &WriterType})
    if (PyType_Ready(t) < 0) return -1;
  if (PyModule_AddFunctions(m, module_functions) < 0) return -1;
  return add_type(m, "Channel", &ChannelType) | add_type(m, "Reader", &ReaderType) |
         add_type(m, "Writer", &WriterType);
}

}  // namespace weft::py
