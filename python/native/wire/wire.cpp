// Links to other OS processes, over which ends are sent and received (WIRE.md). packed.cpp packs
// the values; Python code starts the OS processes.
//
//   Link(fd) ──give(end, name)──► a port of the home: the peer's operations are visitors at the channel
//         └────take(name)───────► an end of a far channel: the peer is asked for its parties
//
// Invariants
//  1 Every step of the space is taken with the GIL (a link's thread takes it first: Around). So
//    cores over Value are used only under the GIL, and of the two locks the GIL is taken first.
//  2 A far channel keeps its session alive. An operation about which the home was asked keeps the
//    far channel alive, through the end to which the operation refers.
//  3 In the child of a fork the parent's links are left unchanged: nothing is sent through them.
#include "wire/wire.hpp"

#include <unordered_map>

#ifdef __linux__
#include "weft/wire/shm.hpp"
#endif

#include "channels/ends.hpp"
#include "channels/marks.hpp"
#include "choice/barrier.hpp"
#include "choice/choices.hpp"
#include "declare.hpp"
#include "interpreter/aside.hpp"
#include "interpreter/door.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/own_threads.hpp"
#include "interpreter/pending.hpp"
#include "processes/process.hpp"
#include "rounds/rounds.hpp"
#include "weft/runtime/names.hpp"
#include "weft/wire/lookout.hpp"
#include "weft/wire/serial.hpp"
#include "weft/wire/stream.hpp"
#include "wire/carries.hpp"
#include "wire/far.hpp"
#include "wire/far_barrier.hpp"
#include "wire/feed.hpp"
#include "wire/packed.hpp"
#include "wire/places.hpp"

namespace weft::py {

namespace {

// --- links ---------------------------------------------------------------------------------------

// A link of any type.
class AnyLink {
 public:
  AnyLink(wire::LinkBase& j, Carries c) noexcept : joint(j), what(c), board(c != Carries::pickle) {}
  bool network = false;  // whether the link goes over a network (WIRE-NETWORKS.md 17)
  bool counted = false;  // whether the link is counted in `boards`
  const char* type() const noexcept { return type_of(what); }
  virtual ~AnyLink() = default;
  virtual void begin() {}  // called without the GIL, after the link is made
  virtual void leave(const char* why) = 0;
  virtual void join() = 0;  // called without the GIL
  const std::shared_ptr<Peer>& peer() const noexcept { return joint.peer(); }
  std::uint32_t news() const noexcept { return joint.news(); }
  void wait_for_news(std::uint32_t seen) const noexcept { joint.wait_for_news(seen); }
  wire::LinkBase& joint;
  const Carries what;
  const bool board;  // whether the link's values are CBOR
};
template <class L>
class LinkOf : public AnyLink {
 public:
  template <class... Options>
  LinkOf(Carries what, const std::shared_ptr<Space>& s, int fd, const Options&... o)
      : AnyLink(link_, what), link_(s, fd, o...) {}
  void leave(const char* why) override { link_.leave(why); }
  void join() override { link_.join(); }

 protected:
  L link_;
};
// A link whose bytes a Python event loop carries (feed.hpp).
class FedLink final : public AnyLink {
 public:
  FedLink(Carries what, const std::shared_ptr<Space>& s) : AnyLink(link, what), link(s) {}
  void leave(const char* why) override { link.bye(why); }
  void join() override {}
  Feed link;
};
// A link in shared memory (WIRE-LINKS.md 12.4). Such links have not been tested without a GIL.
#if defined(__linux__) && !defined(Py_GIL_DISABLED)
unsigned shared_links = 0;
// The largest number of links in shared memory that a program itself makes. Further links are made
// by introductions; there can be 60 links in all.
constexpr unsigned kSharedLinks = 24;
// The attendant lives as long as the program, because it must not be destroyed under the GIL.
std::shared_ptr<wire::Attendant>* attendant = nullptr;
class SharedLink final : public LinkOf<wire::ShmLink> {
 public:
  SharedLink(const std::shared_ptr<Space>& s, int fd)
      : LinkOf(Carries::pickle, s, fd, wire::ShmLink::kLater) {
    if (!attendant) attendant = new auto(wire::Attendant::get());
    ++shared_links;
  }
  ~SharedLink() override { --shared_links; }
  void begin() override { link_.enlist(); }
};
#endif

struct WireObject {
  // Null if the link is closed. The link is shared with threads that wait for its news.
  PyObject_HEAD std::shared_ptr<AnyLink>* link;
  std::uint32_t generation;
};
WireObject* wire_of(PyObject* o) noexcept { return reinterpret_cast<WireObject*>(o); }
std::shared_ptr<Space> space;

// The next two functions are called before and after each step of a link's thread, or of a Python
// thread that serves links in shared memory while it waits.
thread_local PyThreadState* served = nullptr;  // the state of one of the wire's own threads
thread_local PyThreadState* was_aside = nullptr;
#ifdef Py_GIL_DISABLED
thread_local std::optional<Gate> gate;
#endif
void enter() {
  if (PyThreadState* const mine = served ? served : PyGILState_GetThisThreadState()) {
    was_aside = std::exchange(aside_state, nullptr);
    take_lock(mine);
  } else {
    enter_interpreter();
    served = PyThreadState_Get();
    own_thread(served, nullptr);
  }
#ifdef Py_GIL_DISABLED
  gate.emplace();
#endif
}
void leave() {
#ifdef Py_GIL_DISABLED
  gate.reset();
#endif
  give_up_lock();
  aside_state = std::exchange(was_aside, nullptr);
}
void end() {
  if (!served) return;
  take_lock(served);
  disown_thread(served);
  PyGILState_Release(PyGILState_UNLOCKED);
  served = nullptr;
}
constexpr wire::Around around{&enter, &leave, &end};

unsigned boards = 0;  // how many links to boards, and over networks, are open
void count(AnyLink& link, bool so) noexcept {
  if (link.counted == so) return;
  link.counted = so;
  if (so)
    ++boards;
  else
    --boards;
}

std::shared_ptr<AnyLink> open_link(PyObject* o) {
  WireObject* const w = wire_of(o);
  if (w->link && w->generation == generation) return *w->link;
  bad_use(w->link
              ? "this link was made before a fork, and this is the child: make a link of its own"
              : "this link is closed");
  return nullptr;
}

// Makes a link, which takes ownership of the socket. Throws BadUse.
std::shared_ptr<AnyLink> make_link(int fd, bool shared) {
  if (!shared) return std::make_shared<LinkOf<wire::StreamLink>>(Carries::pickle, space, fd);
#if defined(__linux__) && !defined(Py_GIL_DISABLED)
  if (shared_links < kSharedLinks) return std::make_shared<SharedLink>(space, fd);
  ::close(fd);
  weft::detail::bad_use("no more links in shared memory");
#else
  ::close(fd);
  weft::detail::bad_use("links in shared memory are for Linux, and for interpreters with a GIL");
#endif
}

std::shared_ptr<AnyLink> board_link(int fd, unsigned baud, const wire::LineOptions& line) {
  wire::make_line(fd, baud);
  std::shared_ptr<AnyLink> link =
      std::make_shared<LinkOf<wire::SerialLink>>(Carries::cbor, space, fd, line);
  count(*link, true);
  return link;
}
// If `trust` is 1, values are typed. If it is 2, each side trusts the pickles of the other.
std::shared_ptr<AnyLink> network_link(int fd, int trust) {
  const Carries what = trust == 1 ? Carries::typed : Carries::pickle;
  std::shared_ptr<AnyLink> link;
  if (fd < 0)
    link = std::make_shared<FedLink>(what, space);
  else
    link = std::make_shared<LinkOf<wire::StreamLink>>(what, space, fd, false);
  link->network = true;
  count(*link, true);
  return link;
}

PyObject* wire_new(PyTypeObject* type, PyObject* args, PyObject*) {
  int fd, shared = 0;
  const char* name;
  int board = 0;
  int network = 0;  // the `trust` of network_link()
  unsigned baud = 0;
  wire::LineOptions line;
  if (!PyArg_ParseTuple(args, "is|ppIIIi", &fd, &name, &shared, &board, &baud, &line.lease_ms,
                        &line.again_ms, &network))
    return nullptr;
  // When this module is imported, it passes its functions to packed.cpp.
  const Owned pickling(PyImport_ImportModule("weft._hosts.pickling"));
  Owned w(pickling ? reinterpret_cast<WireObject*>(type->tp_alloc(type, 0)) : nullptr);
  if (!w) return nullptr;
  w->generation = generation;
  wire::around_steps = &around;
  std::string wrong;
  bool no_room = false;
  try {
    space_named(name);
    const std::shared_ptr<AnyLink> link = board     ? board_link(fd, baud, line)
                                          : network ? network_link(fd, network)
                                                    : make_link(fd, shared != 0);
    w->link = new auto(link);
    PyThreadState* const state = give_up_lock();
    try {
      link->begin();
    } catch (const std::exception& e) {
      wrong = e.what();
    }
    take_lock(state);
  } catch (const std::system_error& e) {  // std::thread throws this
    wrong = e.what();
    no_room = true;
  } catch (const std::exception& e) {
    wrong = e.what();
  }
  if (no_room)
    return PyErr_Format(PyExc_RuntimeError,
                        "the system has no room for the threads of a link to another program (%s): "
                        "raise the limit (`ulimit -u`, a container's pids.max)",
                        wrong.c_str());
  if (!wrong.empty()) return bad_use("%s", wrong.c_str());
  return reinterpret_cast<PyObject*>(w.release());
}

// A GIVE carries the name under which the peer asks for the end, which contains no space, then a
// space and the name of the channel.
std::string name_given(const char* key, ChannelObject* c) {
  const std::string plain = c->core.line == 0 ? std::string(c->core.name) : channel_name(c);
  return (std::string(key) + " " + plain).substr(0, 150);
}
bool is_named(const std::string& given, std::string_view key) noexcept {
  return given.size() > key.size() && given[key.size()] == ' ' &&
         given.compare(0, key.size(), key) == 0;
}

template <Side S>
std::shared_ptr<wire::Port> port_of(ChannelObject* c, Carries what, bool supervised, bool last,
                                    PyObject* in_hand, PyObject* lost) {
  const auto made = [&]<class Port>(std::type_identity<Port>) -> std::shared_ptr<wire::Port> {
    if (supervised) return std::make_shared<SupervisedPort<S, Port>>(c, last, in_hand, lost);
    return std::make_shared<Port>(c);
  };
  switch (what) {
    case Carries::typed: return made(std::type_identity<CborPort<S, Carries::typed>>{});
    case Carries::cbor: return made(std::type_identity<CborPort<S, Carries::cbor>>{});
    default: return made(std::type_identity<ChannelPort<S>>{});
  }
}

// give(), for a barrier: from now on it has parties at the peer.
PyObject* give_barrier(const AnyLink& link, BarrierObject* b, const char* name, bool dies) {
  if (check_barrier(b, "give") < 0) return nullptr;
  if (link.board || link.network)
    return bad_use(
        "give: a barrier works only within one machine, and not with boards: meet by a channel");
  const std::string given =
      (std::string(name) + " " + (b->far ? b->core.name : runtime::name_of(b->core)))
          .substr(0, 150);
  const std::shared_ptr<wire::FarEnd> share = b->far ? far_share(b) : nullptr;
  if (b->far && !share) return nullptr;
  const Space::Step step(*space);
  if (!b->far) {
    link.peer()->home.give(std::make_shared<BarrierPort>(b, dies), wire::kBarrierType, given, 0);
  } else if (const char* wrong = link.peer()->pass(share, false, wire::kBarrierType, given)) {
    return bad_use("give: a barrier: %s", wrong);
  }
  Py_RETURN_NONE;
}

// give(), for an end of a channel that another OS process has made.
PyObject* give_far(AnyLink& link, EndObject* e, const char* name, bool supervised) {
  const std::string channel = channel_name(e->channel);
  if (link.board || link.network || is_board(e->channel))
    return bad_use(
        "give: the home of channel %s is another OS process, and %s only this one: "
        "make a channel here, and a process between "
        "the two",
        channel.c_str(),
        link.network || link.board ? "the other side reaches" : "others reach it through");
  if (supervised)
    return bad_use(
        "channel %s was made by another OS process, and a supervisor keeps only ends of channels "
        "that its own program made: supervise where the channel is made",
        channel.c_str());
  const FarSide* const f = reinterpret_cast<FarChannelObject*>(e->channel)->side;
  {
    const Space::Step step(*space);
    if (const char* wrong =
            link.peer()->pass(f->end, !f->reads, kPickle, name_given(name, e->channel)))
      return bad_use("give: channel %s: %s", channel.c_str(), wrong);
  }
  if (e->holders <= 1) close_end(e, EndState::sent);
  Py_RETURN_NONE;
}

// give(), for an end of a channel of this program. Returns the end's number.
PyObject* give_ours(AnyLink& link, EndObject* e, const char* name, int last, PyObject* in_hand,
                    PyObject* lost) {
  ChannelObject* const c = e->channel;
  std::shared_ptr<wire::Port> port;
  if (is_reader(reinterpret_cast<PyObject*>(e))) {
    c->core.another_reader();
    port = port_of<Side::in>(c, link.what, last >= 0, last, in_hand, lost);
  } else {
    c->core.another_writer();
    port = port_of<Side::out>(c, link.what, last >= 0, last, in_hand, lost);
  }
  std::uint32_t number;
  {
    const Space::Step step(*space);
    number = link.peer()->home.give(std::move(port), link.type(), name_given(name, c),
                                    c->core.ring ? c->core.ring->capacity : 0);
  }
  // If the end is not closed here, another process holds it too.
  if (last != 0 && e->holders <= 1) close_end(e, EndState::sent);
  return PyLong_FromUnsignedLong(number);
}

// give(end, name): moves the end to the peer. `last` is given for a supervised process: the end
// moves if no other process will be started in its place; otherwise the peer holds the end as well.
// `in_hand` is a list for the values of extended reads in which the process dies; if it is None,
// those values return to the channel. `lost` is a list for the last value that a plain read has
// given to the process; that value is added if the process dies before it asks for another value.
PyObject* wire_give(PyObject* o, PyObject* args) {
  PyObject *end, *in_hand = nullptr, *lost = nullptr;
  const char* name;
  int last = -1;
  if (!PyArg_ParseTuple(args, "Os|pOO", &end, &name, &last, &in_hand, &lost)) return nullptr;
  if (in_hand && !PyList_Check(in_hand)) in_hand = nullptr;
  if (lost && !PyList_Check(lost)) lost = nullptr;
  std::shared_ptr<AnyLink> link = open_link(o);
  if (!link) return nullptr;
  if (Py_IS_TYPE(end, &BarrierType))
    return give_barrier(*link, reinterpret_cast<BarrierObject*>(end), name, last != 0);
  if (!is_end(end)) return bad_use("give: expected a channel end, got %R", end);
  EndObject* const e = end_of(end);
  if (check_end(e, "give") < 0) return nullptr;
  if (is_far(e->channel)) return give_far(*link, e, name, last >= 0);
  if (wire_channel(e->channel, link->what) < 0 || !(link = open_link(o)) ||
      check_end(e, "give") < 0)
    return nullptr;
  return give_ours(*link, e, name, last, in_hand, lost);
}

// Returns the Python object for an end or a barrier that a peer has handed to this program under
// the name `name`.
PyObject* object_of(AnyLink& link, const Peer::Offered& got, PyObject* name, bool barrier,
                    bool keeps, int loops) {
  if (barrier && got.got.here)
    return Py_NewRef(
        reinterpret_cast<PyObject*>(static_cast<const BarrierPort&>(*got.got.here).of()));
  if (got.got.here)
    return bad_use(
        "the end %R that the peer has handed out is of a channel of this program: use the channel "
        "itself",
        name);
  auto there = got.got.there
                   ? got.got.there
                   : std::make_shared<wire::FarEnd>(link.peer(), got.end, got.key, got.name);
  const std::string called = got.name.substr(std::string_view(PyUnicode_AsUTF8(name)).size() + 1);
  if (barrier) return far_barrier(std::move(there), called);
  PyObject* const mine = far_end(std::move(there), got.writes, called, link.what);
  if (mine) {
    side_of(end_of(mine)->channel).keeps = keeps;
    side_of(end_of(mine)->channel).loops = loops;
  }
  return mine;
}

// take(name): returns the end that the peer hands to this program under the name `name`; the call
// waits until the peer has done so. Returns None if the session ended first. With `keeps` the value
// of an extended read is not lost if this program dies during the read (WIRE.md 4.7). For `loops`
// see FarSide.
PyObject* wire_take(PyObject* o, PyObject* args) {
  PyObject* name;
  int keeps = 0, loops = 0;
  if (!PyArg_ParseTuple(args, "U|pi", &name, &keeps, &loops)) return nullptr;
  const char* const wanted = PyUnicode_AsUTF8(name);
  if (!wanted) return nullptr;
  for (;;) {
    const std::shared_ptr<AnyLink> link = open_link(o);
    if (!link) return nullptr;
    const std::uint32_t seen = link->news();
    {
      const Space::Step step(*space);
      for (Peer::Offered& at : link->peer()->offered) {
        if (!is_named(at.name, wanted)) continue;
        const bool barrier = at.type == wire::kBarrierType && !link->board && !link->network;
        if (!barrier && at.type != link->type())
          return bad_use(
              "the end %R that the peer has handed out is of type %s, and this link carries %s%s",
              name, at.type.c_str(), link->type(),
              at.type == kOldValues && link->network
                  ? ": the peer has an older Weft, whose tuples arrive as lists; install the same "
                    "version on both machines"
                  : "");
        // The entry is removed, because a space limits the number of offered ends, and a session
        // can last long.
        const Peer::Offered got = std::move(at);
        link->peer()->offered.erase(link->peer()->offered.begin() +
                                    (&at - link->peer()->offered.data()));
        return object_of(*link, got, name, barrier, keeps != 0, loops);
      }
      if (link->peer()->session.is_over()) Py_RETURN_NONE;
    }
    PyThreadState* const state = give_up_lock();
    link->wait_for_news(seen);
    take_lock(state);
    if (PyErr_CheckSignals() < 0) return nullptr;
  }
}

// wait(): waits until the session has ended, and returns why it ended.
PyObject* wire_wait(PyObject* o, PyObject*) {
  const std::shared_ptr<AnyLink> link = open_link(o);
  if (!link) return nullptr;
  const std::shared_ptr<Peer> peer = link->peer();
  for (;;) {
    const std::uint32_t seen = link->news();
    {
      const Space::Step step(*space);
      if (peer->session.is_over()) return to_str(peer->session.why());
    }
    PyThreadState* const state = give_up_lock();
    link->wait_for_news(seen);
    take_lock(state);
    if (PyErr_CheckSignals() < 0) return nullptr;
  }
}

// refused(): returns why this side has ended the session; None if it has not.
PyObject* wire_refused(PyObject* o, PyObject*) {
  const std::shared_ptr<AnyLink> link = open_link(o);
  if (!link) return nullptr;
  const Space::Step step(*space);
  if (!link->peer()->session.is_ours()) Py_RETURN_NONE;
  return to_str(link->peer()->session.why());
}

void close_link(WireObject* w, const char* why) noexcept {
  auto* const link = std::exchange(w->link, nullptr);
  if (!link || w->generation != generation) return;
  // The threads that serve the link might have been stopped while they hold its locks. The system
  // reports to the peer that this program has ended.
  if (door_is_closed()) return;
  count(**link, false);
  {  // in an orderly end, the barriers that this program shares do not die (rule 8.7)
    const Space::Step step(*space);
    if (const auto at = far_sides.find((*link)->peer().get()); at != far_sides.end())
      for (FarSide* f : at->second)
        if (f->is_barrier()) f->give_back(false);
  }
  (*link)->leave(why);
  PyThreadState* const state = give_up_lock();
  (*link)->join();
  take_lock(state);
  delete link;
}
// close(why): ends the session, and waits until the link's thread has ended.
PyObject* wire_close(PyObject* o, PyObject* args) {
  const char* why = "the link was closed";
  if (!PyArg_ParseTuple(args, "|s", &why)) return nullptr;
  run_deferred();
  close_link(wire_of(o), why);
  run_deferred();
  Py_RETURN_NONE;
}
void wire_dealloc(PyObject* o) {
  close_link(wire_of(o), "the link was let go of");
  Py_TYPE(o)->tp_free(o);
}
// of_calls(): records that a link over a network carries a series of calls (WIRE-NETWORKS.md
// 17.14). A call counts as outside while it lasts. So the link itself does not count, unless a
// value has carried ends other than the two ends over which the calls go.
PyObject* wire_of_calls(PyObject* o, PyObject*) {
  const std::shared_ptr<AnyLink> link = open_link(o);
  if (!link) return nullptr;
  std::size_t ends = 0;
  {
    const Space::Step step(*space);
    Peer& peer = *link->peer();
    peer.home.each_end([&](std::uint64_t, const wire::Port&) { ++ends; });
    if (far_sides.count(&peer) != 0) ends = 3;
  }
  count(*link, ends > 2);
  link->joint.be_outside(ends > 2);
  Py_RETURN_NONE;
}
// feed(): returns the Feed of a link over a network that was made without a socket.
PyObject* wire_feed(PyObject* o, PyObject*) {
  const std::shared_ptr<AnyLink> link = open_link(o);
  if (!link) return nullptr;
  auto* const fed = dynamic_cast<FedLink*>(link.get());
  if (!fed) return bad_use("feed: this link has a socket of its own");
  return new_feed(std::shared_ptr<Feed>(link, &fed->link));
}
// ends(): returns [(number, the channel's place, writes, whether an operation of the peer waits
// there, the channel's name, values passed, values dropped, values in the buffer, capacity)] for
// the ends of this program's channels that the peer holds.
PyObject* wire_ends(PyObject* o, PyObject*) {
  const std::shared_ptr<AnyLink> link = open_link(o);
  if (!link) return nullptr;
  Owned list(PyList_New(0));
  const Space::Step step(*space);
  if (link->peer()->session.is_over()) return bad_use("ends: the session is over");
  link->peer()->home.each_wait([&](std::uint32_t number, const wire::Port& port, bool waits) {
    if (!list || port.barrier()) return;
    const Engine& core = *static_cast<const Engine*>(port.channel());
    const core::SyncObject* const place = &core;
    append(list, Py_BuildValue("INOONKKKK", number,
                               PyLong_FromVoidPtr(const_cast<core::SyncObject*>(place)),
                               port.writes() ? Py_True : Py_False, waits ? Py_True : Py_False,
                               to_str(runtime::name_of(core)),
                               static_cast<unsigned long long>(core.transfers()),
                               static_cast<unsigned long long>(core.dropped()),
                               static_cast<unsigned long long>(core.depth()),
                               static_cast<unsigned long long>(core.capacity())));
  });
  return list.release();
}
// queued(): returns the number of bytes that the session has queued and the link has not accepted
// yet.
PyObject* wire_queued(PyObject* o, PyObject*) {
  const std::shared_ptr<AnyLink> link = open_link(o);
  if (!link) return nullptr;
  const Space::Step step(*space);
  return PyLong_FromSize_t(link->peer()->session.queued());
}
PyMethodDef wire_methods[] = {{"give", gated<wire_give>, METH_VARARGS, nullptr},
                              {"take", gated<wire_take>, METH_VARARGS, nullptr},
                              {"wait", gated<wire_wait>, METH_NOARGS, nullptr},
                              {"refused", gated<wire_refused>, METH_NOARGS, nullptr},
                              {"close", gated<wire_close>, METH_VARARGS, nullptr},
                              {"feed", gated<wire_feed>, METH_NOARGS, nullptr},
                              {"of_calls", gated<wire_of_calls>, METH_NOARGS, nullptr},
                              {"ends", gated<wire_ends>, METH_NOARGS, nullptr},
                              {"queued", gated<wire_queued>, METH_NOARGS, nullptr},
                              {}};
PyTypeObject WireType{PyVarObject_HEAD_INIT(nullptr, 0)};

// Tokens for programs that might connect to this one over a network, or for which this program
// waits (WIRE-NETWORKS.md 17): while there is a token, something outside might wake a run (rule
// 10.3).
std::vector<weft::Outside> outsiders;
PyObject* f_outside(PyObject*, PyObject* more) {
  if (PyObject_IsTrue(more) > 0) {
    outsiders.emplace_back(weft::Outside::due);
    ++boards;
  } else if (!outsiders.empty()) {
    --boards;
    outsiders.pop_back();
  }
  Py_RETURN_NONE;
}
// _by_copy(channel): returns whether the channel's values are sent as bytes, which are made when
// the write begins.
PyObject* f_by_copy(PyObject*, PyObject* o) {
  if (!PyObject_TypeCheck(o, &ChannelType))
    return bad_use("_by_copy: expected a channel, got %R", o);
  return PyBool_FromLong(packs(reinterpret_cast<const ChannelObject*>(o)));
}
// _be_prompt(): gives this thread a short time slice (wire/prompt.hpp).
PyObject* f_be_prompt(PyObject*, PyObject*) {
  wire::detail::be_prompt();
  Py_RETURN_NONE;
}
// _wait_for(fd, ms): waits until the descriptor is readable, without limit if ms is -1
// (wire/lookout.hpp). Returns whether the descriptor is readable.
PyObject* f_wait_for(PyObject*, PyObject* args) {
  static thread_local wire::detail::Lookout here;
  pollfd p{-1, POLLIN, 0};
  int ms = 0, found = 0;
  if (!PyArg_ParseTuple(args, "ii", &p.fd, &ms)) return nullptr;
  {
    const OutsideGate beyond;
    PyThreadState* const state = give_up_lock();
    found = here.poll(&p, 1, ms);
    take_lock(state);
  }
  return PyBool_FromLong(found > 0);
}
PyMethodDef wire_functions[] = {{"_outside", gated<f_outside>, METH_O, nullptr},
                                {"_be_prompt", gated<f_be_prompt>, METH_NOARGS, nullptr},
                                {"_wait_for", gated<f_wait_for>, METH_VARARGS, nullptr},
                                {"_by_copy", gated<f_by_copy>, METH_O, nullptr},
                                {}};

}  // namespace

bool any_board() noexcept { return boards > 0; }

std::shared_ptr<Space> this_space() noexcept { return space; }

std::shared_ptr<Space> space_named(const char* name) {
  if (!space) space = Space::make(name);
  return space;
}

void forget_links() noexcept {
  boards = 0;
  forget_rounds();
#if defined(__linux__) && !defined(Py_GIL_DISABLED)
  wire::Attendant::forget();
  attendant = nullptr;
  shared_links = 0;
#endif
  // The space is never destroyed, because its sessions belong to the parent.
  new std::shared_ptr<Space>(std::move(space));
  new auto(std::move(far_sides));
  far_sides.clear();
  new auto(std::move(outsiders));
  outsiders.clear();
  runtime::Outsiders::all().forget();
  runtime::links_are_asked = false;
  forget_far_choices();
  wire::Slot::forget();
  forget_places();
}

int init_wire(PyObject* m) {
  WireType.tp_name = "weft._Link";
  WireType.tp_basicsize = sizeof(WireObject);
  WireType.tp_flags = Py_TPFLAGS_DEFAULT;
  WireType.tp_new = gated<wire_new>;
  WireType.tp_dealloc = gated<wire_dealloc>;
  WireType.tp_methods = wire_methods;
  if (PyType_Ready(&WireType) < 0 || PyModule_AddFunctions(m, wire_functions) < 0) return -1;
  return add_type(m, "_Link", &WireType);
}

}  // namespace weft::py
