// See far_barrier.hpp.
#include "far_barrier.hpp"

#include <atomic>

#include "door.hpp"

namespace weft::py {

namespace {

FarSide& side_of(const BarrierObject* b) noexcept {
  return side_of(reinterpret_cast<EndObject*>(b->far)->channel);
}

// A word about its parties, under way.
class Word final : public wire::FarOp {
 public:
  Word(std::uint32_t end, Parties what) {
    guard_ = {end, false, &room};
    guard_.parties = what;
    guards = std::span(&guard_, 1);
  }
  void wait() const noexcept { over_.wait(false); }
  wire::PartiesRoom room;

 private:
  void over() noexcept override {
    over_.store(true);
    over_.notify_all();
  }
  wire::FarGuard guard_;
  std::atomic<bool> over_{false};
};

}  // namespace

bool is_far_barrier(const ChannelObject* c) noexcept {
  return is_far(c) && side_of(c).is_barrier();
}

PyObject* far_barrier(std::shared_ptr<wire::FarEnd> e, const std::string& called) {
  PyObject* const reader = far_end(std::move(e), false, called, Carries::nothing);
  if (!reader) return nullptr;
  auto* const b = reinterpret_cast<BarrierObject*>(BarrierType.tp_alloc(&BarrierType, 0));
  if (!b) {
    Py_DECREF(reader);
    return nullptr;
  }
  new (&b->core) BarrierEngine();
  b->far = reader;
  b->name = to_str(called);
  if (!b->name || !(b->core.name = PyUnicode_AsUTF8(b->name))) {
    Py_DECREF(reinterpret_cast<PyObject*>(b));
    return nullptr;
  }
  return reinterpret_cast<PyObject*>(b);
}

std::shared_ptr<wire::FarEnd> far_share(const BarrierObject* b) { return side_of(b).end; }

PyObject* far_parties(BarrierObject* b, Parties what) {
  static constexpr const char* kVerbs[] = {"", "parties", "enrol", "resign"};
  const char* const verb = kVerbs[static_cast<int>(what)];
  if (check_end(reinterpret_cast<EndObject*>(b->far), verb) < 0) return nullptr;
  FarSide& far = side_of(b);
  const std::shared_ptr<Peer> peer = far.peer;
  Word word(far.number, what);
  bool over;
  {
    const Space::Step step(*peer->space);
    over = peer->far.begin(word);
  }
  if (!over) {
    PyThreadState* const state = give_up_lock();
    word.wait();
    take_lock(state);  // whoever has told it steps with the GIL, and has done so
  }
  const wire::Outcome& o = word.outcome;
  if (o.status == Status::pending) return bad_use("%s: %s", verb, word.refused);
  if (o.status != Status::ok) return raise_barrier_died(verb);
  if (what == Parties::ask) return PyLong_FromUnsignedLong(word.room.parties);
  Py_RETURN_NONE;
}

}  // namespace weft::py
