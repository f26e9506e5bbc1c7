// A party without a thread: it counts its wake-ups, and the test decides when the party continues.
// So a test can state every order of events.
#pragma once
#include <doctest/doctest.h>

#include "parties.hpp"

namespace weft::test {

// Parties of a local channel are put on the run queue of the current scheduler. In these tests that
// queue is defined below, and a party counts as woken when it has been taken off the queue.
struct Task : core::Waiter {
  class Count {
   public:
    operator int() const {  // NOLINT: a task is compared like a number
      drain();
      return n_;
    }
    void up() { ++n_; }

   private:
    int n_ = 0;
  };
  Count wakes;
  int tells = 0;
  Room room;
  std::optional<Item> item;

  Task() {
    core::current_run_queue = &queue;
    ops = &kOps;
  }
  ~Task() { drain(); }

  template <class C>
  Status read(C& c, std::uint16_t more = 0) {
    fresh(more);
    slot = room.raw;
    return c.template begin<Side::in>(*this);
  }
  template <class C>
  Status write(C& c, std::uint32_t v, std::uint16_t more = 0) {
    fresh(more);
    item.emplace(v);
    slot = &*item;
    return c.template begin<Side::out>(*this);
  }
  template <class C>
  Status foreign(C& c, std::uint16_t more = 0) {
    fresh(more);
    slot = room.raw;
    return c.begin_foreign(*this);
  }
  std::uint32_t value() { return room.take(); }

 private:
  void fresh(std::uint16_t more) {
    drain();
    flags = more;
    status = Status::pending;
    told = 0;
  }
  static inline core::RunQueue queue;
  static void drain() {
    while (!queue.empty()) of(queue.pop()).wakes.up();
  }
  static Task& of(core::Waker* w) { return *static_cast<Task*>(w); }
  static void count_wake(core::Waker* w) noexcept { of(w).wakes.up(); }
  static void count_tell(core::Waker* w) noexcept { ++of(w).tells; }
  static const core::WakerOps kOps;
};
inline constexpr core::WakerOps Task::kOps{
    .wake = &Task::count_wake, .run = nullptr, .tell = &Task::count_tell};

// A select, with its guards, whose phases a test runs one by one.
struct Selecting {
  Task task;
  Guard g[4];
  std::uint32_t n = 0;
  std::optional<Select> select;
  std::int64_t clock = 0;
  Room rooms[4];
  std::optional<Item> items[4];

  template <class C>
  Selecting& in(C& c) {
    Guard& x = add(Kind::input, &c, &core::channel_ops<C, Side::in>);
    x.node.slot = rooms[n - 1].raw;
    return *this;
  }
  template <class C>
  Selecting& out(C& c, std::uint32_t v) {
    Guard& x = add(Kind::output, &c, &core::channel_ops<C, Side::out>);
    items[n - 1].emplace(v);
    x.node.slot = &*items[n - 1];
    return *this;
  }
  template <class B>
  Selecting& barrier(B& b) {
    add(Kind::barrier, &b, &core::barrier_ops<B>);
    return *this;
  }
  Selecting& timer(std::int64_t at) {
    add(Kind::timer, nullptr, nullptr).deadline = at;
    return *this;
  }
  Selecting& skip() {
    add(Kind::skip, nullptr, nullptr);
    return *this;
  }

  // Returns the index that is chosen immediately, or Select::parked.
  int go(Mode m = Mode::fair, std::uint32_t start = 0, std::uint64_t seed = 0,
         bool foreign = false) {
    select.emplace(g, n, m, &task, start);
    if (seed) select->seed = seed;
    const int r = select->scan([&] { return clock; });
    return r == Select::none ? select->enrol(foreign) : r;
  }
  int finish() { return select->finish(); }
  Status status() { return select->status(); }
  std::uint32_t value(int i) { return rooms[i].take(); }

 private:
  Guard& add(Kind k, core::SyncObject* where, const core::GuardOps* ops) {
    Guard& x = g[n++];
    x.kind = k, x.where = where, x.ops = ops;
    return x;
  }
};

#define POLICIES Local, Shared

}  // namespace weft::test
