// A choice over Python guards, one-shot or standing. SelectOp, Alternative, sleep and Timer.tick
// share it.
//
//   begin() ─► chosen │ parked ──woken──► woken() ─► chosen │ cancelled
//   chosen: conclude_guard() ─► done │ held (an extended reader keeps the writer) ──woken──► done │ raised
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "channels/channel.hpp"
#include "channels/transit.hpp"
#include "choice/descriptors.hpp"
#include "choice/guard.hpp"
#include "weft/core/standing.hpp"

namespace weft::py {

struct ProcessObject;
struct SelectMemory;
class Abroad;
struct LetGo {
  void operator()(Abroad* a) const noexcept;
};

struct Spec;  // a guard in the form in which the program gave it (choice.cpp)
class Choice {
 public:
  static constexpr int parked = core::Select::parked;
  static constexpr int cancelled = -3;

  Choice() = default;
  Choice(const Choice&) = delete;
  Choice& operator=(const Choice&) = delete;
  ~Choice();

  // Reads the guards from Python objects. Returns -1, with the error set, for bad use. `loud` sets
  // ended="raise" for all guards.
  int fill(PyObject* const* guards, Py_ssize_t n, Mode mode, const char* verb, bool loud = false);
  int fill_timer(GuardKind kind, std::int64_t ns, TimerObject* timer);
  void stand();  // keeps the guards enrolled from now on, as a fair choice

  // Checks before each select that ends are open and preconditions hold. Returns -1 for bad use.
  int check(const char* verb);
  int check_open(const char* verb);  // checks the ends only
  int enable(Py_ssize_t i, bool on);
  bool has_timers() const noexcept { return armed_ != nullptr; }
  bool watches() const noexcept { return descriptors_.any(); }
  bool held() const noexcept { return standing_ ? standing_->held() : select_ && select_->held(); }
  // Returns true if the choice has committed, but the partner still has the node of the chosen
  // guard: the partner is an extended reader whose block is open, or a writer that is making its
  // value. The choice is woken when the block is left or the value is made, and must exist until
  // then.
  bool with_partner() const noexcept;

  bool any_far() const noexcept { return far_; }
  // Begins the choice. Returns the index of the chosen guard, or parked. `foreign` means that p
  // belongs to an asyncio task (rule 6.6), and that the caller sets the timer.
  int begin(ProcessBase& p, runtime::Run* run, SelectMemory* memory, bool foreign = false);
  // Called when a choice in an asyncio task has been woken, to check its guards again.
  int look_again() noexcept { return select_->look_again(); }
  // Returns the deadline of a parked choice in an asyncio task, or `forever` if there is none.
  std::int64_t deadline() noexcept;
  bool expire() noexcept { return word().finish_as(core::TIMED_OUT); }
  // Called when the choice has been woken. Returns an index, cancelled, or parked if a standing
  // choice must wait again.
  int woken() noexcept;
  bool withdraw() noexcept;
  void visit(runtime::WaitVisitor& v);
  void give_up() noexcept;  // called when the owner is destroyed while the choice is parked

  // Called when guard `i` has been chosen. Returns 1 if the choice is done (*r is its value), 0 if
  // it is held (the caller must await the wake-up and call finish_held()), -1 with an exception
  // set.
  int conclude_guard(int i, ProcessBase& p, PyObject** r);
  PyObject* finish_held(ProcessBase& p);
  // Called after a withdrawal. If a value of an output could not be packed, raises the exception of
  // that failure and returns true.
  bool raise_refused();
  int chosen() const noexcept { return chosen_; }
  // Describes the choice for observers. The result has a tuple for each guard: its kind; its end,
  // Barrier, Timer or None; the value sent or None; whether it is enabled; whether its channel has
  // retired.
  PyObject* describe() const;
  // Called while the program is checked, when the select in process `me` is about to begin.
  // `memory` is null unless a later select can use the same guards.
  void begins_checked(ProcessBase* me, SelectMemory* memory);
  // While the choice is parked: returns whether it is neither committed nor withdrawn yet.
  bool undecided() const noexcept;
  // Returns whether another OS process has been asked and has not answered yet.
  bool asks_afar() const noexcept;
  std::int64_t ticks = 0;  // periods counted by a Timer guard that was chosen

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
  ChannelObject* channel_of(std::uint32_t i) const noexcept;  // for an input or output

  // Functions for guards at far channels (abroad.cpp).
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
  std::vector<PyObject*> owners_;  // the ends, Guards, Barriers or Timers that were given; owned
  std::vector<PyObject*> sent_;    // for each guard: the value of an output, owned
  std::optional<core::Select> select_;
  std::optional<core::Standing> standing_;
  runtime::TimerNode timer_;
  runtime::Run* armed_ = nullptr;
  runtime::Run* run_ = nullptr;  // the run of the select in progress
  std::uint64_t key_ = 0;
  std::uint32_t* start_ = nullptr;
  std::uint32_t enabled_ = 0;
  std::uint64_t checked_ = 0;  // the value of ends_closed at which all ends were found open
  Descriptors descriptors_;
  bool timers_ = false;
  bool barriers_ = false;  // whether at least one guard is a barrier
  int chosen_ = -1;

  bool far_ = false;                       // whether at least one guard is at a far channel
  std::unique_ptr<Abroad, LetGo> abroad_;  // not null while other homes decide
  // The guards that the select waits for while the homes decide: the homes' answer, and `lasting_`.
  runtime::FixedArray<core::Guard> meanwhile_;
  std::vector<std::uint32_t> lasting_;
  // The guard that is chosen if the homes answer that nothing has happened; -1 if there is none.
  int instead_ = -1;
  std::uint32_t next_ = 0;
  bool from_afar_ = false;  // whether the outcome of the chosen guard is in `far_status_`
  Status far_status_ = Status::ok;
  const char* refused_ = nullptr;
};

std::uint64_t next_seed() noexcept;

}  // namespace weft::py
