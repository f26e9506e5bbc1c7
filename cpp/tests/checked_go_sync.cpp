// Bugs in the manner of Go's packages sync, context, errgroup and time, each with its fix: a check
// finds the bug within a few schedules, and proves the fixed program (rules 17.5 and 17.7).
// checked_go.cpp has the bugs of channels alone.
//
// A mutex is a buffer of one place, a semaphore is a buffer of several, a context is a channel that
// retires, and a condition variable is a process. An end that is kept outside the processes keeps
// its channel from retiring; without that end, Retired ends the process that would wait forever in
// a Go program.
#include <array>
#include <stdexcept>

#include <doctest/doctest.h>
#include <weft/check.hpp>
#include <weft/weft.hpp>

namespace {

using namespace std::chrono_literals;
using weft::Channel, weft::Process, weft::Reader, weft::Writer;

// What a user of a mutex or of a semaphore needs.
struct Lock {
  Writer<int> take;
  Reader<int> give;
  explicit Lock(const Channel<int>& c) : take(c.writer()), give(c.reader()) {}
};

Process puts(Writer<int> out, int n) {
  for (int i = 1; i <= n; ++i) co_await out.write(i);
}
Process takes(Reader<int> in, int n) {
  for (int i = 0; i < n; ++i) co_await in.read();
}

// --- sync.WaitGroup: Done is missing on one path ---

Process job(int n, Writer<int> done, bool mended) {
  if (n != 1 || mended) co_await done.write(n);
}
void done_missing(bool mended) {
  Channel<int> done(weft::named("done"));
  const Writer<int> kept = done.writer();
  weft::run(takes(done.reader(), 3), job(0, done.writer(), mended), job(1, done.writer(), mended),
            job(2, done.writer(), mended));
}

// --- sync.Mutex: the unlock is missing on the path of an error ---

Process updates(Lock mutex, Reader<int> stops, Writer<int> out, bool mended) {
  co_await mutex.take.write(0);
  const auto did = co_await weft::select(weft::out(out, 1), stops);
  if (did.index == 0 || mended) co_await mutex.give.read();
}
Process takes_or_stops(Lock mutex, Reader<int> in, Writer<int> stops) {
  co_await weft::select(in, weft::out(stops, 0));
  co_await mutex.take.write(0);
  co_await mutex.give.read();
}
void unlock_missing(bool mended) {
  Channel<int> mutex(weft::buffer(1).called("mutex")), stops(weft::named("stops")),
      out(weft::named("out"));
  weft::run(updates(Lock(mutex), stops.reader(), out.writer(), mended),
            takes_or_stops(Lock(mutex), out.reader(), stops.writer()));
}

// --- sync.Mutex, sync.Once: taken again under itself; a semaphore: two slots one by one ---

Process takes_again(Lock lock, int times) {
  for (int i = 0; i < times; ++i) co_await lock.take.write(0);
  for (int i = 0; i < times; ++i) co_await lock.give.read();
}
void taken_again(bool mended) {
  Channel<int> mutex(weft::buffer(1).called("mutex"));
  weft::run(takes_again(Lock(mutex), mended ? 1 : 2), takes_again(Lock(mutex), mended ? 1 : 2));
}
void slots_one_by_one(bool mended) {
  Channel<int> slots(weft::buffer(2).called("slots"));
  weft::run(takes_again(Lock(slots), mended ? 1 : 2), takes_again(Lock(slots), mended ? 1 : 2));
}

// --- sync.RWMutex: two readers want to write, and neither gives its read lock back ---

Process upgrades(Lock slots, Lock gate, bool mended) {
  co_await slots.take.write(0);
  if (mended) {
    co_await slots.give.read();
    co_await gate.take.write(0);
    co_await slots.take.write(0);
  }
  co_await slots.take.write(0);
  for (int i = 0; i < 2; ++i) co_await slots.give.read();
  if (mended) co_await gate.give.read();
}
void lock_upgraded_by_two(bool mended) {
  Channel<int> slots(weft::buffer(2).called("slots")), gate(weft::buffer(1).called("gate"));
  weft::run(upgrades(Lock(slots), Lock(gate), mended), upgrades(Lock(slots), Lock(gate), mended));
}

// --- sync.Cond: Signal wakes one waiter, and two wait ---

Process condition(Reader<Writer<int>> waits, Reader<int> signals, bool every) {
  std::vector<Writer<int>> waiting;
  for (;;) {
    auto got = co_await weft::select(waits, weft::in(signals).ends());
    if (got.index == 0) {
      waiting.push_back(std::get<1>(std::move(got.value)));
      continue;
    }
    for (std::size_t n = every ? waiting.size() : std::min<std::size_t>(1, waiting.size()); n > 0;
         --n) {
      co_await waiting.back().write(0);
      waiting.pop_back();
    }
  }
}
Process waits_for_signal(Writer<Writer<int>> waits, Writer<int> ready, Writer<int> woken,
                         Reader<int> signalled) {
  co_await waits.write(std::move(woken));
  co_await ready.write(0);
  co_await signalled.read();
}
Process signals_when_ready(Reader<int> ready, Writer<int> signals) {
  for (int i = 0; i < 2; ++i) co_await ready.read();
  co_await signals.write(0);
}
void one_waiter_woken(bool mended) {
  Channel<Writer<int>> waits(weft::named("waits"));
  Channel<int> signals(weft::named("signals")), ready(weft::named("ready")),
      a(weft::named("woken 0")), b(weft::named("woken 1"));
  const Writer<int> kept = a.writer(), kept_too = b.writer();
  weft::run(condition(waits.reader(), signals.reader(), mended),
            waits_for_signal(waits.writer(), ready.writer(), a.writer(), a.reader()),
            waits_for_signal(waits.writer(), ready.writer(), b.writer(), b.reader()),
            signals_when_ready(ready.reader(), signals.writer()));
}

// --- context: a handler gives its result, but the context has ended ---

Process handles(Reader<int> context, Reader<int> work, Writer<int> out, bool mended) {
  for (;;) {
    const auto value = co_await work.next();
    if (!value) break;
    if (!mended) {
      co_await out.write(*value);
      continue;
    }
    try {
      co_await weft::select(weft::out(out, *value), weft::in(context).ends());
    } catch (const weft::Retired&) {
      break;
    }
  }
}
Process cancels_after_one(Writer<int> cancel, Writer<int> work, Reader<int> out) {
  co_await work.write(1);
  co_await out.read();
  co_await work.write(2);
  work.retire();
  cancel.retire();
}
void handler_without_context(bool mended) {
  Channel<int> context(weft::named("context")), work(weft::named("work")), out(weft::named("out"));
  const Reader<int> kept = out.reader();
  weft::run(handles(context.reader(), work.reader(), out.writer(), mended),
            cancels_after_one(context.writer(), work.writer(), out.reader()));
}

// --- time.Timer: stopped after its tick was taken, and drained once more ---

Process timer(Writer<int> ticks, Reader<int> stop, Writer<bool> stopped) {
  const auto got = co_await weft::select(stop, weft::after(1s));
  if (got.index == 1) {
    co_await ticks.write(0);
    co_await stop.read();
  }
  co_await stopped.write(got.index == 0);
}
Process uses_a_timer(Reader<int> ticks, Writer<int> stop, Reader<bool> stopped, Reader<int> work,
                     bool mended) {
  const auto got = co_await weft::select(ticks, work);
  co_await stop.write(0);
  const bool in_time = co_await stopped.read();
  if (!in_time && (got.index == 1 || !mended)) co_await ticks.read();
}
Process works(Writer<int> work) {
  co_await weft::sleep(1s);
  co_await work.write(0);
}
void timer_drained_twice(bool mended) {
  Channel<int> ticks(weft::buffer(1).called("ticks")), stop(weft::named("stop")),
      work(weft::named("work"));
  Channel<bool> stopped(weft::named("stopped"));
  const Writer<int> kept = ticks.writer();
  weft::run(timer(ticks.writer(), stop.reader(), stopped.writer()),
            uses_a_timer(ticks.reader(), stop.writer(), stopped.reader(), work.reader(), mended),
            works(work.writer()));
}

// --- a select with a default drops an answer when the buffer is full ---

Process answers(Reader<int> requests, Writer<int> replies, bool mended) {
  for (;;) {
    const auto request = co_await requests.next();
    if (!request) break;
    if (mended)
      co_await replies.write(*request);
    else
      co_await weft::select(weft::out(replies, *request), weft::skip());
  }
}
void answer_dropped(bool mended) {
  Channel<int> requests(weft::named("requests")), replies(weft::buffer(1).called("replies"));
  const Writer<int> kept = replies.writer();
  weft::run(answers(requests.reader(), replies.writer(), mended), puts(requests.writer(), 3),
            takes(replies.reader(), 3));
}

// --- publish and subscribe: a subscriber leaves while a message is on its way to it ---

Process hub(Reader<Writer<int>> subscribes, Reader<int> leaves, Reader<int> messages, bool mended) {
  const Writer<int> subscriber = co_await subscribes.read();
  for (bool there = true;;) {
    const auto got = co_await weft::select(leaves, weft::in(messages).ends());
    if (got.index == 0) {
      there = false;
    } else if (there && mended) {
      const auto did = co_await weft::select(weft::out(subscriber, *got.value), leaves);
      there = did.index == 0;
    } else if (there) {
      co_await subscriber.write(*got.value);
    }
  }
}
Process subscribes_for_one(Writer<Writer<int>> subscribes, Writer<int> leaves, Writer<int> out,
                           Reader<int> in) {
  co_await subscribes.write(std::move(out));
  co_await in.read();
  co_await leaves.write(0);
}
void leaves_while_published(bool mended) {
  Channel<Writer<int>> subscribes(weft::named("subscribes"));
  Channel<int> leaves(weft::named("leaves")), messages(weft::named("messages")),
      mine(weft::named("mine"));
  const Reader<int> kept = mine.reader();
  weft::run(hub(subscribes.reader(), leaves.reader(), messages.reader(), mended),
            subscribes_for_one(subscribes.writer(), leaves.writer(), mine.writer(), mine.reader()),
            puts(messages.writer(), 2));
}

// --- a barrier: one party leaves early ---

Process phases(weft::Barrier& barrier, int n) {
  for (int i = 0; i < n; ++i) co_await barrier.sync();
}
void party_missing(bool mended) {
  weft::Barrier barrier(3);
  weft::run(phases(barrier, 2), phases(barrier, 2), phases(barrier, mended ? 2 : 1));
}

struct Bug {
  const char* name;
  void (*network)(bool mended);
};
constexpr std::array bugs{Bug{"Done is missing", done_missing},
                          Bug{"unlock is missing", unlock_missing},
                          Bug{"a mutex is taken again", taken_again},
                          Bug{"slots one by one", slots_one_by_one},
                          Bug{"a lock is upgraded by two", lock_upgraded_by_two},
                          Bug{"one waiter is woken", one_waiter_woken},
                          Bug{"a handler without a context", handler_without_context},
                          Bug{"a timer is drained twice", timer_drained_twice},
                          Bug{"an answer is dropped", answer_dropped},
                          Bug{"leaves while a message is published", leaves_while_published},
                          Bug{"a party is missing", party_missing}};

}  // namespace

TEST_CASE("rules 17.5, 17.7: bugs in the manner of Go's sync, context and time") {
  for (const Bug& bug : bugs) {
    CAPTURE(bug.name);
    const auto r = weft::check([&] { bug.network(false); }, {.seconds = 250, .name = bug.name});
    REQUIRE_MESSAGE(r.failures.size() == 1, r.text);
    CHECK_MESSAGE(r.failures[0].kind == "deadlock", r.text);
    CHECK_MESSAGE(r.schedules <= 50, r.text);
    const auto mended = weft::check([&] { bug.network(true); }, {.seconds = 250, .name = bug.name});
    CHECK_MESSAGE(mended.passed(), mended.text);
    CHECK_MESSAGE(mended.complete, mended.text);
  }
}
