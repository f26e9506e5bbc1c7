// Five bugs of Go programs from GoBench's GoKer, each with its fix: a check finds the bug, and
// finds nothing in the fixed program (rules 17.5 and 17.7). A goroutine is a process, a mutex is a
// buffer of one place, and `close(c)` is the retirement of the writer's end. A process that a bug
// leaves behind ends quietly in Weft when its partner's ends are closed; complete() finds that
// process.
#include <optional>
#include <stdexcept>

#include <doctest/doctest.h>
#include <weft/check.hpp>
#include <weft/weft.hpp>

namespace {

using namespace std::chrono_literals;
using weft::Channel, weft::Process, weft::Reader, weft::Writer;

// Runs processes, each of which must end normally.
template <class... Ps>
void complete(Ps... ps) {
  const auto ends = weft::run(std::move(ps)...);
  std::apply(
      [](const auto&... end) {
        if (!(end.has_value() && ...)) throw std::runtime_error("a process was left behind");
      },
      ends);
}
using Ends = weft::ProcessOf<bool>;

struct Mutex {
  Writer<int> take;
  Reader<int> put;
  explicit Mutex(const Channel<int>& place) : take(place.writer()), put(place.reader()) {}
};

// --- etcd/6857: a client asks a node for its status while the node is stopped --------------------

Ends node(Reader<Writer<int>> requests, Reader<int> stops, Writer<int> stopped) {
  for (;;) {
    auto asked = co_await weft::select(requests, stops);
    if (asked.index == 1) {
      stopped.retire();
      co_return true;
    }
    co_await std::get<1>(asked.value).write(1);
  }
}
Ends client(Writer<Writer<int>> requests, Reader<int> stopped, bool mended) {
  Channel<int> answers;
  const Reader<int> answer = answers.reader();
  if (!mended) {
    co_await requests.write(answers.writer());
  } else {
    try {
      co_await weft::select(weft::out(requests, answers.writer()), weft::in(stopped).ends());
    } catch (const weft::Retired&) {
      co_return true;
    }
  }
  co_await answer.read();
  co_return true;
}
Ends stopper(Writer<int> stops, Reader<int> stopped) {
  try {
    co_await weft::select(weft::out(stops, 0), weft::in(stopped).ends());
  } catch (const weft::Retired&) {
    co_return true;
  }
  while (const auto v = co_await stopped.next()) {
  }
  co_return true;
}
void etcd_6857(bool mended) {
  Channel<Writer<int>> requests(weft::named("requests"));
  Channel<int> stops(weft::named("stops")), stopped(weft::named("stopped"));
  complete(node(requests.reader(), stops.reader(), stopped.writer()),
           client(requests.writer(), stopped.reader(), mended),
           stopper(stops.writer(), stopped.reader()));
}

// --- cockroach/2448: two loops, each of which waits until the other takes its value --------------

Ends store(Reader<int> events, Writer<int> callbacks) {
  try {
    for (;;) {
      co_await events.read();
      co_await callbacks.write(0);
    }
  } catch (const weft::Retired&) {
  }
  co_return true;
}
Ends raft(Writer<int> events, Reader<int> callbacks, bool mended) {
  int sent = 0, taken = 0;
  while (taken < 2) {
    if (mended) {
      const auto did = co_await weft::select(callbacks, weft::out(events, 0).when(sent < 2));
      sent += did.index == 1;
      taken += did.index == 0;
      continue;
    }
    if (sent == 2) {
      co_await callbacks.read();
      ++taken;
      continue;
    }
    const auto did = co_await weft::select(callbacks, weft::skip());
    taken += did.index == 0;
    if (did.index == 1) {
      co_await weft::yield();
      co_await events.write(0);
      ++sent;
    }
  }
  co_return true;
}
void cockroach_2448(bool mended) {
  Channel<int> events(weft::named("events")), callbacks(weft::named("callbacks"));
  complete(store(events.reader(), callbacks.writer()),
           raft(events.writer(), callbacks.reader(), mended));
}

// --- cockroach/35073: a consumer ends, and its buffer is full ------------------------------------

Ends pushes(Writer<int> rows, Reader<int> gone, int n) {
  for (int i = 0; i < n; ++i) {
    if (!gone) {
      co_await rows.write(i);
      continue;
    }
    try {
      co_await weft::select(weft::out(rows, i), weft::in(gone).ends());
    } catch (const weft::Retired&) {
      break;
    }
  }
  co_return true;
}
Ends consumes(Reader<int>, Writer<int> gone) {
  gone.retire();
  co_return true;
}
void cockroach_35073(bool mended) {
  Channel<int> rows(weft::buffer(2).called("rows")), gone(weft::named("gone"));
  const Reader<int> kept = rows.reader();  // The channel outlives its consumer.
  const auto end = [&] { return mended ? gone.reader() : Reader<int>(); };
  complete(pushes(rows.writer(), end(), 3), pushes(rows.writer(), end(), 1),
           consumes(rows.reader(), gone.writer()));
  rows.poison();  // No process wants the values that are left in the channel.
}

// --- moby/33781: a health check is stopped during its probe, whose result nobody takes -----------

Ends probe(Writer<int> results) {
  co_await results.write(1);
  co_return true;
}
Ends health(Reader<int> stop, bool mended) {
  for (int i = 0; i < 2; ++i) {
    if ((co_await weft::select(stop, weft::after(1s))).index == 0) break;
    Channel<int> results(weft::named("results"));
    const Reader<int> result = results.reader();
    weft::Group probes;
    probes.start(probe(results.writer()));
    const int which = (co_await weft::select(stop, result, weft::after(1s))).index;
    if (which == 2 || (which == 0 && mended)) co_await result.read();
    co_await probes.wait();
    if (which == 0) break;
  }
  co_return true;
}
Ends stops_health(Writer<int> stop) {
  co_await weft::sleep(1s);
  try {
    co_await stop.write(0);
  } catch (const weft::Retired&) {
  }
  co_return true;
}
void moby_33781(bool mended) {
  Channel<int> stop(weft::named("stop"));
  complete(health(stop.reader(), mended), stops_health(stop.writer()));
}

// --- kubernetes/1321: a watcher leaves while an event is sent to it, under two locks -------------

using Watchers = std::optional<std::pair<Writer<int>, Reader<int>>>;

Ends sends_events(Watchers& watcher, Mutex outer, Mutex inner, bool mended) {
  for (int i = 0; i < 2; ++i) {
    co_await outer.take.write(0);
    co_await inner.take.write(0);
    if (watcher) {
      const Writer<int> events = watcher->first;
      const Reader<int> gone = watcher->second;
      try {
        if (mended)
          co_await weft::select(weft::out(events, i), weft::in(gone).ends());
        else
          co_await events.write(i);
      } catch (const weft::Retired&) {
      }
    }
    co_await inner.put.read();
    co_await outer.put.read();
  }
  co_return true;
}
Ends watches(Watchers& watcher, Mutex outer, Mutex inner, bool mended) {
  Channel<int> events(weft::named("events")), gone(weft::named("gone"));
  const Reader<int> unread = events.reader();
  Writer<int> leaves = gone.writer();
  co_await inner.take.write(0);
  watcher.emplace(events.writer(), gone.reader());
  co_await inner.put.read();
  if (mended) leaves.retire();
  co_await outer.take.write(0);
  watcher.reset();
  co_await outer.put.read();
  co_return true;
}
void kubernetes_1321(bool mended) {
  Watchers watcher;
  Channel<int> outer(weft::buffer(1).called("outer")), inner(weft::buffer(1).called("inner"));
  complete(sends_events(watcher, Mutex(outer), Mutex(inner), mended),
           watches(watcher, Mutex(outer), Mutex(inner), mended));
}

// -------------------------------------------------------------------------------------------------

struct Kernel {
  const char* name;
  void (*f)(bool mended);
  bool any_time = false;
};
constexpr Kernel kernels[] = {{"etcd/6857", etcd_6857},
                              {"cockroach/2448", cockroach_2448},
                              {"cockroach/35073", cockroach_35073},
                              {"moby/33781", moby_33781, true},
                              {"kubernetes/1321", kubernetes_1321}};

}  // namespace

TEST_CASE("rule 17.5: the bugs of five Go programs are found, by every way of searching") {
  for (const Kernel& k : kernels)
    for (const weft::Search way :
         {weft::Search::reduced, weft::Search::walk, weft::Search::priorities, weft::Search::few}) {
      const std::string name = k.name;
      CAPTURE(name);
      CAPTURE(static_cast<int>(way));
      const auto r = weft::check([&] { k.f(false); }, {.search = way,
                                                       .seconds = 250,
                                                       .schedules = 5000,
                                                       .any_time = k.any_time,
                                                       .name = k.name});
      CHECK_FALSE(r.passed());
    }
}
TEST_CASE("rule 17.7: nothing is found once the bugs are mended") {
  for (const Kernel& k : kernels) {
    const std::string name = k.name;
    CAPTURE(name);
    weft::CheckOptions o{.search = weft::Search::reduced,
                         .seconds = 250,
                         .schedules = 3000,
                         .any_time = k.any_time,
                         .name = k.name};
    const auto r = weft::check([&] { k.f(true); }, o);
    CHECK_MESSAGE(r.passed(), r.text);
    if (!k.any_time) CHECK(r.complete);
    for (const weft::Search way : {weft::Search::walk, weft::Search::priorities}) {
      o.search = way;
      o.schedules = 300;
      const auto random = weft::check([&] { k.f(true); }, o);
      CHECK_MESSAGE(random.passed(), random.text);
      CHECK(random.schedules == 300);
    }
  }
}
