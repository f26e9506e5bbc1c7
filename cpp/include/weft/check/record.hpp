// A Record keeps what one run did: its processes, its places, and its steps. Each step is an event,
// with the events that must precede it and the places that it touches.
//
//   begin() ──process(), place()──► step(p) ──arrives(), touch(), woke(), passes()──► step(q) …
//
// Invariants
//  1 A step lasts from step() to the next step(), and touch() records what it touches. Its touches,
//    and the events that it follows, are at the end of the two pools.
//  2 A uid is derived from the uid of its maker and from the number of things that the maker has
//    made before. So a thing has the same uid in every order.
//  3 A process that is woken follows the step that woke it. It also follows the events of the
//    parties that its operation met: the other party of a rendezvous, the write of the value that
//    was read, the read that made room in a buffer, all arrivals at a barrier.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "access.hpp"
#include "numbers.hpp"

namespace weft::checking {

using Uid = std::uint64_t;
inline constexpr Uid kMain = 1, kClock = 2;

Uid mixed(Uid a, Uid b) noexcept;

struct Touch {
  Uid uid;
  int place;
  Access how;
};

struct Event {
  int process;
  int number;  // the event's number among those of its process, from 1
  std::uint32_t touches = 0, touches_end = 0;
  std::uint32_t follows = 0, follows_end = 0;
  int previous = kNone;  // the event of the same process before this one
};

// A select that waits. Its arrival has touched all its places as if it could take any party. Once
// the select is decided its partner is known, and decided() weakens what the arrival touched
// (Record::weaken()).
class Waiting {
 public:
  virtual void decided() = 0;

 protected:
  ~Waiting() = default;
};

// The facts about a process that each run sets anew.
struct ProcessFacts {
  Uid uid = 0;
  int parent = kNone;
  unsigned children = 0, places = 0, selects = 0, steps = 0;
  int last = kNone;  // the latest event of the process
  int events = 0;
  bool ready = false;          // whether the process is known to be ready
  Uid select = 0;              // the select in which the process is, or 0
  bool timed = false;          // whether that select has a timer
  bool limited = false;        // whether a time limit can end the process's operations
  Waiting* waiting = nullptr;  // called when that select is decided
  int arrival = kNone;         // the event in which that select began to wait
};
struct Process : ProcessFacts {
  std::string name;
  std::vector<int> follows;  // the events that the process's next event follows

  // Resets the facts for a new run; keeps the name and the memory of the process with this number.
  void begin_anew() noexcept {
    static_cast<ProcessFacts&>(*this) = {};
    follows.clear();
  }
};

struct Place {
  Uid uid = 0;
  int capacity = 0;
  bool loses = false;  // whether a full buffer drops values
  // queues of events: `values` holds those that left a value, `free` those that made room
  std::vector<int> values, free;
  std::size_t next_value = 0, next_free = 0;
  // `closers` holds the events that closed an end, `joined` those that arrived at a barrier
  std::vector<int> closers, joined;
  std::vector<int> joiners;  // the processes that have ever arrived at the barrier
  // the lowest number of parties in a phase of the barrier; 0 if no phase has ended
  std::size_t parties = 0;
  struct Select {
    int process;
    Uid uid;
    bool ends;  // whether the retirement of the channel decides the select
  };
  // Selects that wait, or have waited: [0] on the readers' side, [1] on the writers' side.
  std::vector<Select> selects[2];
  // The accesses to this place, for races.cpp. Those of one process are linked, the latest first:
  // `number` is the event's number in the process, `earlier` the index of the access before it.
  struct Touched {
    int event, number, earlier;
    Access how;
  };
  std::vector<Touched> touched;
  std::vector<std::pair<int, int>> touchers;  // processes, and the indices of their latest accesses
};

class Record {
 public:
  bool kept = false;      // whether events are kept; if not, steps are only counted
  bool any_time = false;  // whether a time can be reached while a process can run
  bool cancels = false;   // whether a cancellation conflicts with every step
  bool crowds = false;    // whether two arrivals at a barrier conflict

  void begin();

  // --- processes and places; `by` is the process that makes one ---
  int process(int by, std::string_view name);
  int place(const void* key, int by, int capacity, bool loses);
  // Returns the place of this key. A place that existed before the run is recorded at its first
  // use.
  int place_of(const void* key, int by) {
    return key == last_key_ ? last_place_ : looked_up(key, by);
  }
  // Called when the object with this key no longer exists, so that another object can receive the
  // key. Returns the place, or kNone.
  int gone(const void* key);
  std::string path(int process) const;
  // Returns whether `path` is the path of the process. A path without an index names the first
  // process of that name.
  bool is(int process, std::string_view path) const;

  // --- steps ---
  void step(int process) {
    ++at(process).steps;
    running = process;
    if (kept) keep_step(process);
  }
  // Called when a time is reached. `alone` says that times are reached only when no process can
  // run, so that this step follows all others.
  void step_of_clock(bool alone);
  void touch(int place, Access how);
  void touch_uid(Uid uid, Access how);
  void follow(int process, int event) {
    if (event != kNone) at(process).follows.push_back(event);
  }
  // Called when a process has become ready since the last check: the current step has woken it.
  void woke(int process);
  // called if the woken process waited for a group
  void woke_waiter(int process, const void* group);
  void ready(int process) noexcept { at(process).ready = true; }

  // --- operations; `process` is the process that performs it ---
  void arrives(const void* key, Access how);
  void passes(int process, const void* key, Begun how, Access what);
  void forget_woken() noexcept { woken_.clear(); }

  void select_begins();
  void select_at(const void* key, Access how);
  void select_parks(Waiting* waiting);
  // Called when the select that has parked waits at this place. `ends` says whether the retirement
  // of the channel also decides the select.
  void waits_at(const void* key, bool writes, bool ends);
  void select_over(int process) noexcept { at(process).select = 0; }
  void weaken(const void* key, Access to);  // for Waiting::decided()
  void saw_closed(const void* key);

  // --- ends of channels, times, ends of processes ---
  void closes(const void* key, Access how);
  void does_all(const void* key, int by);  // for Access::all: poison, a death
  void arms();                             // a timer was set
  void disarms();                          // called when a timer is cancelled before its time
  void reads_clock() { touch_uid(kTime, Access::look); }
  void cancel();
  void ended(const void* group);
  void follows_ended(int process, const void* group);

  Process& at(int n) noexcept { return processes[static_cast<std::size_t>(n)]; }
  const Process& at(int n) const noexcept { return processes[static_cast<std::size_t>(n)]; }
  std::span<Touch> touches(int event) noexcept;
  std::span<const Touch> touches(int event) const noexcept;
  // Returns the events that this one follows, except the previous event of its process.
  std::span<const int> follows(int event) const noexcept;
  bool buffered(int place) const noexcept {
    return places[static_cast<std::size_t>(place)].capacity > 0;
  }
  std::string in_words(int event) const;  // returns an event in words, for debugging

  std::vector<Process> processes;  // the first `count` elements belong to this run
  std::vector<Place> places;
  std::vector<Event> events;
  std::vector<int> disarming;  // the events that cancelled a timer
  int count = 0, places_count = 0;
  int current = kNone;  // the current event
  int running = 0;      // the process of the current event
  bool cancelled = false;
  bool timed = false;  // whether a timer was set
  // True once more processes have arrived at a barrier than it has parties. Then it makes a
  // difference which of them arrive first.
  bool crowded = false;

 private:
  int before(int process) const noexcept;
  static constexpr Uid kTime = kClock + 1, kCancel = kClock + 2;

  void keep_step(int process);
  int looked_up(const void* key, int by);
  int new_process();
  int new_place();
  int place_by_uid(Uid uid);
  Access at_place(int place, Access how) const noexcept;
  void look_at_selects(int place, Access how);
  void look_at_select(Place::Select s) {
    if (s.process != running) touch_uid(s.uid, Access::look);
  }
  void follow_closers_of(Process& p);
  bool closes_now() const noexcept;
  void meets(int process, Place& x, Begun how, Access what);
  void joins(int process, Place& x, Begun how);

  std::vector<Touch> touch_pool_;
  std::vector<int> follow_pool_;
  Numbers by_key_, by_uid_;  // places
  // The key that was looked up last, and its place: an operation looks its place up several times.
  const void* last_key_ = nullptr;
  int last_place_ = kNone;
  Numbers groups_;  // indices of group_ends_
  // By group: the events in which its processes ended. The lists after the first `groups_count_`
  // are kept for the memory that they have allocated.
  std::vector<std::vector<int>> group_ends_;
  int groups_count_ = 0;
  std::vector<int> woken_;  // processes, by the operation that has just begun
  int weakened_ = kNone;    // the event of which weaken() weakens touches
  int clock_ = kNone;       // the clock's number among the processes; kNone until it is needed
};

}  // namespace weft::checking
