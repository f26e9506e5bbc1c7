// The calls of a barrier whose home is another OS process: far_barrier.hpp describes them.
#include "wire/far_barrier.hpp"

#include <chrono>
#include <memory>
#include <semaphore>

#include "channels/marks.hpp"
#include "choice/barrier.hpp"
#include "interpreter/end_errors.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/lock.hpp"
#include "processes/greenlet.hpp"
#include "processes/loops.hpp"
#include "wire/carries.hpp"
#include "wire/far.hpp"
#include "wire/wire.hpp"

namespace weft::py {

namespace {

FarSide& side_of(const BarrierObject* b) noexcept {
  return side_of(reinterpret_cast<EndObject*>(b->far)->channel);
}

// How long a scheduler's thread waits for a home. No other process of that thread can run
// meanwhile.
constexpr std::chrono::seconds kBound{10};
// An answer takes some µs. A longer wait is divided into pieces, between which signals are handled.
constexpr std::chrono::milliseconds kPiece{50};

// A message about the barrier's parties that is under way. The message keeps itself alive until it
// is answered, since its sender might stop waiting before that.
class Word final : public wire::FarOp {
 public:
  Word(std::uint32_t end, Parties what) {
    guard_ = {end, false, &room};
    guard_.parties = what;
    guards = std::span(&guard_, 1);
  }
  bool answered_within(std::chrono::milliseconds time) noexcept {
    return answered_.try_acquire_for(time);
  }
  wire::PartiesRoom room;
  // Not null while the message is under way. Protected by the space's lock.
  std::shared_ptr<Word> itself;

 private:
  void over() noexcept override {
    const std::shared_ptr<Word> until_then = std::move(itself);
    answered_.release();
  }
  wire::FarGuard guard_;
  std::binary_semaphore answered_{0};
};

// Returns whether another process or task needs this thread.
bool has_others() noexcept {
  ProcessBase* const p = this_process();
  return coroutine_of(p) || greenlet_of(p) || in_asyncio();
}

// Waits until the message is answered. Returns false if an exception is set. The answer arrives in
// a step with the GIL, so it is complete when this thread has the GIL again.
bool wait_for(Word& word, const BarrierObject* b, const char* verb) {
  const auto until = std::chrono::steady_clock::now() + kBound;
  const bool bound = has_others();
  for (;;) {
    PyThreadState* const state = give_up_lock();
    const bool answered = word.answered_within(kPiece);
    take_lock(state);
    if (answered) return true;
    if (PyErr_CheckSignals() < 0) return false;
    if (bound && std::chrono::steady_clock::now() >= until) {
      PyErr_Format(
          PyExc_TimeoutError,
          "%s on barrier %U: the OS process that made it has not answered for %d s, in which no "
          "other process of this scheduler could run. Is it stopped? What was asked is done if it "
          "goes on; in a thread process it would be waited for",
          verb, b->name, static_cast<int>(kBound.count()));
      return false;
    }
  }
}

}  // namespace

bool is_far_barrier(const ChannelObject* c) noexcept {
  return is_far(c) && side_of(c).is_barrier();
}

PyObject* far_barrier(std::shared_ptr<wire::FarEnd> e, const std::string& called) {
  Owned reader(far_end(std::move(e), false, called, Carries::nothing));
  if (!reader) return nullptr;
  Owned b(reinterpret_cast<BarrierObject*>(BarrierType.tp_alloc(&BarrierType, 0)));
  if (!b) return nullptr;
  new (&b->core) BarrierEngine();
  b->far = reader.release();
  b->generation = generation;
  b->name = to_str(called);
  if (!b->name || !(b->core.name = PyUnicode_AsUTF8(b->name))) return nullptr;
  return reinterpret_cast<PyObject*>(b.release());
}

std::shared_ptr<wire::FarEnd> far_share(const BarrierObject* b) {
  const std::shared_ptr<wire::FarEnd> share = side_of(b).end;
  if (!share) bad_use("barrier %U has died and cannot be sent: make another", b->name);
  return share;
}

// Gives this program's share back as if this program had died, so that the barrier dies (WIRE.md
// 4.9).
void far_dies(BarrierObject* b) {
  FarSide& far = side_of(b);
  const Space::Step step(*far.peer->space);
  far.has_ended(Status::died, 0);
  far.give_back(true);
}

PyObject* far_parties(BarrierObject* b, Parties what) {
  static constexpr const char* kVerbs[] = {"", "parties", "enrol", "resign"};
  const char* const verb = kVerbs[static_cast<int>(what)];
  FarSide& far = side_of(b);
  if (!far.end) return raise_barrier_died(verb);
  const std::shared_ptr<Peer> peer = far.peer;
  const auto word = std::make_shared<Word>(far.number, what);
  bool over;
  {
    const Space::Step step(*peer->space);
    word->itself = word;
    over = peer->far.begin(*word);
    if (over) word->itself.reset();
  }
  if (!over && !wait_for(*word, b, verb)) return nullptr;
  const wire::Outcome& o = word->outcome;
  if (o.status == Status::pending) return bad_use("%s: %s", verb, word->refused);
  if (o.status != Status::ok) return raise_barrier_died(verb);
  if (what == Parties::ask) return PyLong_FromUnsignedLong(word->room.parties);
  Py_RETURN_NONE;
}

}  // namespace weft::py
