// A choice over Python guards, one-shot or standing: what SelectOp, Alternative, sleep and
// Timer.tick share.
//
//   begin() ─► chosen │ parked ──woken──► woken() ─► chosen │ cancelled
//   chosen: conclude_guard() ─► done │ held (an extended reader keeps the writer) ──woken──► done │ raised
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "channels/channel.hpp"
#include "channels/transit.hpp"
#include "choice/guard.hpp"
#include "weft/core/standing.hpp"

namespace weft::py {

struct ProcessObject;
struct SelectMemory;
class Abroad;
struct LetGo {
  void operator()(Abroad* a) const noexcept;
};

struct Spec;  // a guard, as it was given (choice.cpp)
class Choice {
  friend class CheckedChoice;  // checking/choices.cpp

 public:
  static constexpr int parked = core::Select::parked;
  static constexpr int cancelled = -3;

  Choice() = default;
  Choice(const Choice&) = delete;
  Choice& operator=(const Choice&) = delete;
  ~Choice();

  // Fill from Python guards; -1: bad use, the error is set. `loud`: all of them have ended="raise".
  int fill(PyObject* const* guards, Py_ssize_t n, Mode mode, const char* verb, bool loud = false);
  int fill_timer(GuardKind kind, std::int64_t ns, TimerObject* timer);
  void stand();  // keep the guards enrolled from now on (fair)

  // Before each select: closed ends, preconditions. -1: bad use.
  int check(const char* verb);
  int check_open(const char* verb);  // the ends alone
  int enable(Py_ssize_t i, bool on);
  bool has_timers() const noexcept { return armed_ != nullptr; }
  bool held() const noexcept { return standing_ ? standing_->held() : select_ && select_->held(); }
  // It is decided, and the partner has the chosen guard's node yet: an extended reader whose block
  // is open, or a writer that makes its value. The wake-up comes when that is over; the choice is
  // to live until then.
  bool with_partner() const noexcept;

  bool any_far() const noexcept { return far_; }
  // Index or parked. `foreign`: p is an asyncio task's (rule 6.6); its timer is the caller's.
  int begin(ProcessBase& p, runtime::Run* run, SelectMemory* memory, bool foreign = false);
  int look_again() noexcept { return select_->look_again(); }  // a foreign one was told
  // of a foreign one that is parked; forever: none
  std::int64_t deadline() noexcept;
  bool expire() noexcept { return word().finish_as(core::TIMED_OUT); }
  int woken() noexcept;  // index, cancelled, or parked: a standing one goes on waiting
  bool withdraw() noexcept;
  void visit(runtime::WaitVisitor& v);
  void give_up() noexcept;  // the owner is torn down while parked

  // The guard `i` was chosen: 1: done, *r is its value; 0: held, await the wake-up and call
  // finish_held(); -1: raised.
  int conclude_guard(int i, ProcessBase& p, PyObject** r);
  PyObject* finish_held(ProcessBase& p);
  // The select was withdrawn. Was it because a value of an output could not be packed? Then this
  // raises why.
  bool raise_refused();
  int chosen() const noexcept { return chosen_; }
  // For observers: a tuple of (kind, end │ Barrier │ Timer │ None, value sent │ None, enabled, silent: its channel has retired).
  PyObject* describe() const;
  // While the program is checked: the select begins next, in `me`. `memory`: of one that is made
  // for this once.
  void begins_checked(ProcessObject* me, SelectMemory* memory);
  bool undecided() const noexcept;  // while parked: nobody has committed or withdrawn it yet
  bool asks_afar() const noexcept;  // another OS process is asked, and has not answered yet
  std::int64_t ticks = 0;           // periods counted by a Timer guard that was chosen

  template <class Visit>
  int traverse(Visit&& visit) const {
    for (PyObject* o : owners_)
      if (const int r = visit(o)) return r;
    for (PyObject* o : sent_)
      if (o)
        if (const int r = visit(o)) return r;
    return 0;
  }
  std::uint32_t size() const noexcept { return n_; }

 private:
  core::Choice& word() noexcept {
    return standing_ ? static_cast<core::Choice&>(standing_->choice) : select_->choice;
  }
  void unstand() noexcept;
  int parked_or(int r, runtime::Run* run) noexcept;
  void set_deadlines(std::int64_t now) noexcept;
  void load_output(std::uint32_t i);
  int add(std::uint32_t i, PyObject* guard, const char* verb);
  template <class Now>
  int begin_select(ProcessBase& p, SelectMemory* memory, Now now, bool foreign);
  int raise_no_guard(std::uint32_t i, PyObject* o, const char* verb) const;
  void add_channel(std::uint32_t i, const Spec& s);
  int raise_fault(const core::Fault& f, const char* verb);
  int conclude_other(std::uint32_t i, const Spec& s, PyObject** r);
  int conclude_written(std::uint32_t i, const ChannelObject* c, PyObject** r);
  int conclude_computed(std::uint32_t i, const Spec& s, ProcessBase& p, PyObject** r);
  Owned<> compute(std::uint32_t i, const Spec& s);
  ChannelObject* channel_of(std::uint32_t i) const noexcept;  // of an input or output

  // With guards at far channels: abroad.cpp.
  int check_far(const char* verb);
  std::vector<std::uint32_t> order_of_guards(std::uint32_t from) const;
  int begin_far(ProcessBase& p, runtime::Run* run, SelectMemory* memory, bool foreign,
                std::int64_t now);
  struct Plan;
  Plan plan_far(const std::vector<std::uint32_t>& order, std::int64_t now);
  core::Kinds kinds_seen() const;
  void add_seats_off(Plan& plan);
  std::uint32_t wait_meanwhile(std::vector<std::uint32_t> lasting);
  int begin_here(ProcessBase& p, runtime::Run* run, bool foreign);
  int await_word(ProcessBase& p, std::uint32_t guards, runtime::Run* run);
  int heard(int r);
  int take_instead();
  int come_back();
  int deliver_far(PyObject* value, ProcessBase& p, PyObject** r);
  PyObject* finish_far();
  void remember(int chosen) noexcept;
  void give_up_far() noexcept;

  std::uint32_t n_ = 0;
  Mode mode_ = Mode::fair;
  runtime::FixedArray<core::Guard> guards_;
  std::unique_ptr<Value[]> slots_;
  std::unique_ptr<Transit[]> transits_;
  std::vector<PyObject*> owners_;  // the end, Guard, Barrier or Timer given, owned
  std::vector<PyObject*> sent_;    // by guard: the value of an output, owned
  std::optional<core::Select> select_;
  std::optional<core::Standing> standing_;
  runtime::TimerNode timer_;
  runtime::Run* armed_ = nullptr;
  runtime::Run* run_ = nullptr;  // of the select in progress
  std::uint64_t key_ = 0;
  std::uint32_t* start_ = nullptr;
  std::uint32_t enabled_ = 0;
  std::uint64_t checked_ = 0;  // the epoch of closed ends at which all were open
  bool timers_ = false;
  bool barriers_ = false;  // some guard is one
  int chosen_ = -1;

  bool far_ = false;                       // some guard is at a far channel
  std::unique_ptr<Abroad, LetGo> abroad_;  // while it is away
  // what the select waits for then: the homes' word, and `lasting_`
  runtime::FixedArray<core::Guard> meanwhile_;
  std::vector<std::uint32_t> lasting_;
  // the guard that is chosen if the homes say that nothing has happened; -1: none
  int instead_ = -1;
  std::uint32_t next_ = 0;
  bool from_afar_ = false;  // what was chosen is in `far_status_`
  Status far_status_ = Status::ok;
  const char* refused_ = nullptr;
};

std::uint64_t next_seed() noexcept;

}  // namespace weft::py
