// Pickles ends and barriers, and unpickles them (moved.hpp).
#include "wire/moved.hpp"

#include "channels/ends.hpp"
#include "channels/marks.hpp"
#include "choice/barrier.hpp"
#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/misuse.hpp"
#include "wire/carries.hpp"
#include "wire/far.hpp"
#include "wire/far_barrier.hpp"

namespace weft::py {

namespace {

thread_local AllMoved* moving = nullptr;
PyObject* found_by = nullptr;  // the function of weft._hosts.pickling that calls f_found

ChannelObject* channel_of(const Moved& m) noexcept {
  if (m.writes) return static_cast<const ChannelPort<Side::out>&>(*m.here).of();
  return static_cast<const ChannelPort<Side::in>&>(*m.here).of();
}

PyObject* described() {
  return Py_BuildValue("(O(n))", found_by, static_cast<Py_ssize_t>(moving->size() - 1));
}
// Called by pickle for an end, and for a barrier.
PyObject* f_reduce(PyObject*, PyObject* end) {
  const bool barrier = Py_IS_TYPE(end, &BarrierType);
  if (!barrier && !is_end(end)) return bad_use("_reduce_end: expected a channel end, got %R", end);
  if (!moving) return no_copy(end, nullptr);
  if (barrier) {
    auto* const b = reinterpret_cast<BarrierObject*>(end);
    if (check_barrier(b, "write of a barrier") < 0) return nullptr;
    if (b->far) {
      std::shared_ptr<wire::FarEnd> share = far_share(b);
      if (!share) return nullptr;
      moving->push_back({nullptr, std::move(share), false, b->core.name, true});
    } else {
      moving->push_back({std::make_shared<BarrierPort>(b), nullptr, false, {}, true});
    }
    return described();
  }
  EndObject* const e = end_of(end);
  if (check_end(e, "write of an end") < 0) return nullptr;
  ChannelObject* const c = e->channel;
  const bool writes = !is_reader(end);
  if (is_board(c))
    return bad_use(
        "write of an end: channel %s leads to a program on another machine, or to a board, and its "
        "ends cannot be sent on: make another channel, and a process that passes the values on",
        channel_name(c).c_str());
  if (is_far(c)) {
    moving->push_back({nullptr, side_of(c).end, writes, channel_name(c)});
  } else {
    if (wire_channel(c, Carries::pickle) < 0 || check_end(e, "write of an end") < 0) return nullptr;
    if (writes)
      c->core.another_writer();
    else
      c->core.another_reader();
    std::shared_ptr<wire::Port> port;
    if (writes)
      port = std::make_shared<ChannelPort<Side::out>>(c);
    else
      port = std::make_shared<ChannelPort<Side::in>>(c);
    moving->push_back({std::move(port), nullptr, writes, {}});
  }
  return described();
}
// _end_found(number): makes the end that f_reduce() has pickled.
PyObject* f_found(PyObject*, PyObject* args) {
  Py_ssize_t number;
  if (!PyArg_ParseTuple(args, "n", &number)) return nullptr;
  if (!moving || number < 0 || static_cast<std::size_t>(number) >= moving->size())
    return bad_use("an end of a channel came without its description");
  const Moved& m = (*moving)[static_cast<std::size_t>(number)];
  if (m.barrier && m.here)
    return Py_NewRef(reinterpret_cast<PyObject*>(static_cast<const BarrierPort&>(*m.here).of()));
  if (m.barrier) return far_barrier(m.there, m.name);
  if (m.there) return far_end(m.there, m.writes, m.name);
  ChannelObject* const c = channel_of(m);
  if (m.writes)
    c->core.another_writer();
  else
    c->core.another_reader();
  return new_end(m.writes ? &WriterType : &ReaderType, c);
}
PyMethodDef moved_functions[] = {
    {"_reduce_end", gated<f_reduce>, METH_O, nullptr},
    {"_end_found", gated<f_found>, METH_VARARGS, nullptr},
    {"_set_end_found", gated<keep_given<&found_by>>, METH_VARARGS, nullptr},
    {}};

}  // namespace

Moving::Moving(AllMoved& a) noexcept : outer_(std::exchange(moving, &a)) {}
Moving::~Moving() { moving = outer_; }

void put_moved(const AllMoved& all, wire::Buffer& out, wire::Carrier& by) {
  const std::size_t at = out.size();
  out.resize(at + 4);
  out[at] = kMovedMark;
  wire::detail::put(out, static_cast<std::uint32_t>(all.size()));
  for (const Moved& m : all) {
    if (m.here)
      by.put_local(m.here->another(),
                   m.barrier ? static_cast<const core::SyncObject&>(*m.here->barrier())
                             : channel_of(m)->core,
                   out);
    else
      by.put_far(m.there, m.writes, out, m.barrier);
  }
}
bool take_moved(wire::Bytes& in, AllMoved& all, wire::Carrier& by) {
  constexpr std::size_t kFlags = 28;  // the offset of the flags in a description (WIRE.md 7.6)
  if (in.size() < 8) return false;
  const auto n = wire::detail::get<std::uint32_t>(in.data() + 4);
  in = in.subspan(8);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (in.size() <= kFlags) return false;
    const bool writes = (in[kFlags] & std::byte{1}) != std::byte{0};
    const bool barrier = wire::Carrier::is_barrier(in);
    std::optional<wire::Carrier::Got> got =
        by.take(in, writes, barrier ? wire::kBarrierType : kPickle);
    if (!got) return false;
    if (got->here)
      all.push_back({got->here->another(), nullptr, writes, {}, barrier});
    else
      all.push_back({nullptr, got->there, writes,
                     got->there->place.name ? got->there->place.name : "", barrier});
  }
  return !in.empty();
}

int init_moved(PyObject* m) { return PyModule_AddFunctions(m, moved_functions); }

}  // namespace weft::py
