// What one run did: its processes, its places, and its steps as events, each with what it follows
// and what it touches.
//
//   begin() ──process(), place()──► step(p) ──arrives(), touch(), woke(), passes()──► step(q) …
//
// Invariants
//  1 A step is under way from step() to the next step(); touch() and follow() are about it. Its
//    touches and what it follows lie at the end of the two pools.
//  2 Uids are made of (the uid of who makes it, how many it has made): the same in every order.
//  3 A process that is woken follows the step that woke it, and what that step had met: the other
//    party of a rendezvous, the value that was read, the place that became free, all who arrived at
//    the barrier.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "access.hpp"

namespace weft::checking {

using Uid = std::uint64_t;
inline constexpr int kNone = -1;
inline constexpr Uid kMain = 1, kClock = 2;

Uid mixed(Uid a, Uid b) noexcept;

struct Touch {
  Uid uid;
  int place;
  Access how;
};

struct Event {
  int process;
  int number;  // among those of its process, from 1 on
  std::uint32_t touches = 0, touches_end = 0;
  std::uint32_t follows = 0, follows_end = 0;
};

// What decides for a select that waits how much it touched: by whom it was decided is known later.
class Waiting {
 public:
  virtual void decided() = 0;

 protected:
  ~Waiting() = default;
};

struct Process {
  Uid uid = 0;
  int parent = kNone;
  std::string name;
  unsigned children = 0, places = 0, selects = 0, steps = 0;
  int last = kNone;  // its last event
  int events = 0;
  std::vector<int> follows;  // of its next event
  bool ready = false;        // known to be
  Uid select = 0;            // in which it is
  bool timed = false;        // that has a timer
  bool limited = false;      // a limit of time may end its operations
  Waiting* waiting = nullptr;
  int arrival = kNone;  // the event in which that began to wait
};

struct Place {
  Uid uid = 0;
  int capacity = 0;
  bool loses = false;             // a full buffer drops values
  std::vector<int> values, free;  // events, as queues
  std::size_t next_value = 0, next_free = 0;
  std::vector<int> closers, joined;
  struct Select {
    int process;
    Uid uid;
    bool ends;
  };
  std::vector<Select> selects[2];  // that wait, or have waited, at the readers' side, the writers'
  std::vector<std::pair<int, Access>> touched;  // races.cpp
};

class Record {
 public:
  bool kept = false;      // are events kept? Else it counts steps alone
  bool any_time = false;  // times come although somebody could run
  bool cancels = false;   // a cancellation conflicts with every step

  void begin();

  // --- who and what there is; `by`: who makes it ---
  int process(int by, std::string_view name);
  int place(const void* key, int by, int capacity, bool loses);
  int place_of(const void* key, int by);  // made before the run: by its first use
  // Its number is free for another; returns the place, or kNone.
  int gone(const void* key);
  std::string path(int process) const;
  // Is this its path? One that has no index is of the first of its name.
  bool is(int process, std::string_view path) const;

  // --- steps ---
  void step(int process);
  void step_of_clock(bool alone);  // alone: nobody could run, so it follows everybody
  void touch(int place, Access how);
  void touch_uid(Uid uid, Access how);
  void follow(int process, int event) {
    if (event != kNone) at(process).follows.push_back(event);
  }
  // Has become ready since we last looked: the step under way has woken it.
  void woke(int process);
  void woke_waiter(int process, const void* group);  // that waits for a group's end
  void ready(int process) noexcept { at(process).ready = true; }

  // --- operations; `process`: whose step it is ---
  void arrives(const void* key, Access how);
  void passes(int process, const void* key, Begun how, Access what);
  void forget_woken() noexcept { woken_.clear(); }

  void select_begins();
  void select_at(const void* key, Access how);
  void select_parks(Waiting* waiting);
  // The select that has parked waits there. `ends`: the quiet end of the channel decides it, too.
  void waits_at(const void* key, bool writes, bool ends);
  void select_over(int process) noexcept { at(process).select = 0; }
  void weaken(const void* key, Access to);  // from Waiting::decided()
  void saw_closed(const void* key);

  // --- ends, times, ends of processes ---
  void closes(const void* key, Access how);
  void does_all(const void* key, int by);  // poison, a death: what Access::all stands for
  void arms();                             // a timer
  void disarms();                          // a timer, before its time came
  void reads_clock() { touch_uid(kTime, Access::look); }
  void cancel();
  void ended(const void* group);
  void follows_ended(int process, const void* group);

  Process& at(int n) noexcept { return processes[static_cast<std::size_t>(n)]; }
  const Process& at(int n) const noexcept { return processes[static_cast<std::size_t>(n)]; }
  std::span<Touch> touches(int event) noexcept;
  std::span<const Touch> touches(int event) const noexcept;
  std::span<const int> follows(int event) const noexcept;
  bool buffered(int place) const noexcept {
    return places[static_cast<std::size_t>(place)].capacity > 0;
  }
  std::string told(int event) const;  // for whoever looks for a fault

  std::vector<Process> processes;  // `count` of them are this run's
  std::vector<Place> places;
  std::vector<Event> events;
  std::vector<int> disarming;  // events that made a timer void
  int count = 0, places_count = 0;
  int current = kNone;  // the event under way
  int running = 0;      // its process
  bool cancelled = false;

 private:
  int before(int process) const noexcept;
  static constexpr Uid kTime = kClock + 1, kCancel = kClock + 2;

  int new_process();
  int new_place();
  int place_by_uid(Uid uid);
  void look_at_selects(int place, Access how);
  void look_at_select(Place::Select s) {
    if (s.process != running) touch_uid(s.uid, Access::look);
  }
  void follow_closers_of(Process& p);
  bool closes_now() const noexcept;
  void meets(int process, Place& x, Begun how, Access what);

  std::vector<Touch> touch_pool_;
  std::vector<int> follow_pool_;
  std::unordered_map<const void*, int> by_key_;
  std::unordered_map<Uid, int> by_uid_;
  std::unordered_map<const void*, std::vector<int>> group_ends_;
  std::vector<int> woken_;  // by the operation that has just begun
  int weakened_ = kNone;    // an event
  int clock_ = kNone;
};

}  // namespace weft::checking
