// Bugs in the manner of Go programs, each with its fix: a check finds the bug, and finds nothing in
// the fixed program (rules 17.5 and 17.7). The bugs are those of programs with channels alone: a
// channel that is closed twice, a signal for which no process waits yet, locks taken in two orders,
// a select with a default, a group that is counted too late, a cancellation that no process
// receives, a first answer after which the other senders block for ever, an answer after the time
// limit, one stop signal for two workers.
#include <array>
#include <stdexcept>

#include <doctest/doctest.h>
#include <weft/check.hpp>
#include <weft/weft.hpp>

namespace {

using namespace std::chrono_literals;
using weft::Channel, weft::Process, weft::Reader, weft::Writer;

void expects(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

// --- a channel that each of its two writers closes ---

Process fills(int n, Writer<int> out, Writer<int> done, bool mended) {
  for (int i = 0; i < 2; ++i) co_await out.write(10 * n + i);
  if (mended)
    co_await done.write(n);
  else
    out.poison();
}
Process closes(Reader<int> done, Writer<int> out) {
  for (int i = 0; i < 2; ++i) co_await done.read();
  out.poison();
}
Process counts(Reader<int> in) {
  int n = 0;
  try {
    for (;;) {
      co_await in.read();
      ++n;
    }
  } catch (const weft::Poisoned&) {
  }
  expects(n == 4, "values are missing");
}
void closed_twice(bool mended) {
  Channel<int> out(weft::named("out")), done(weft::named("done"));
  if (mended)
    weft::run(counts(out.reader()), fills(1, out.writer(), done.writer(), true),
              fills(2, out.writer(), done.writer(), true), closes(done.reader(), out.writer()));
  else
    weft::run(counts(out.reader()), fills(1, out.writer(), done.writer(), false),
              fills(2, out.writer(), done.writer(), false));
}

// --- a signal is given only if a process waits for it ---

Process waits(Writer<int> asks, Reader<int> signal) {
  co_await asks.write(1);
  co_await signal.read();
}
Process signals(Reader<int> asks, Writer<int> signal, bool mended) {
  co_await asks.read();
  if (mended)
    co_await signal.write(1);
  else
    co_await weft::select(weft::out(signal, 1), weft::skip());
}
void signal_missed(bool mended) {
  Channel<int> asks(weft::named("asks")), signal(weft::named("signal"));
  const Writer<int> kept = signal.writer();
  weft::run(waits(asks.writer(), signal.reader()), signals(asks.reader(), signal.writer(), mended));
}

// --- locks that are taken in two orders; a lock is a buffer of one place ---

struct Lock {
  Writer<int> take;
  Reader<int> give;
  explicit Lock(const Channel<int>& c) : take(c.writer()), give(c.reader()) {}
};
Process moves(Lock a, Lock b) {
  co_await a.take.write(0);
  co_await b.take.write(0);
  co_await b.give.read();
  co_await a.give.read();
}
void lock_order(bool mended) {
  Channel<int> a(weft::buffer(1).called("a")), b(weft::buffer(1).called("b"));
  weft::run(moves(Lock(a), Lock(b)), mended ? moves(Lock(a), Lock(b)) : moves(Lock(b), Lock(a)));
}

// --- a result that is given by a select with a default is lost if no process waits yet ---

Process works(Reader<int> jobs, Writer<int> results, bool mended) {
  const int job = co_await jobs.read();
  if (mended)
    co_await results.write(job);
  else
    co_await weft::select(weft::out(results, job), weft::skip());
}
Process asks_for(Writer<int> jobs, Reader<int> results) {
  co_await jobs.write(42);
  expects((co_await results.next()).has_value(), "the result is lost");
}
void result_by_default(bool mended) {
  Channel<int> jobs(weft::named("jobs")), results(weft::named("results"));
  weft::run(works(jobs.reader(), results.writer(), mended),
            asks_for(jobs.writer(), results.reader()));
}

// --- the first answer is taken; the processes with the others wait forever: an end is kept ---

Process answers(int n, Writer<int> out) { co_await out.write(n); }
Process takes_the_first(Reader<int> in, int more) {
  co_await in.read();
  for (int i = 0; i < more; ++i) co_await in.read();
}
void first_answer(bool mended) {
  Channel<int> c(weft::named("answers"));
  const Reader<int> kept = c.reader();
  weft::run(answers(0, c.writer()), answers(1, c.writer()),
            takes_the_first(c.reader(), mended ? 1 : 0));
}

// --- the answer comes after the time limit, and nobody takes the answer ---

Process serves(Reader<int> requests, Writer<int> replies) {
  const int v = co_await requests.read();
  co_await weft::sleep(1s);
  co_await replies.write(v);
}
Process requests_once(Writer<int> requests, Reader<int> replies, bool mended) {
  co_await requests.write(1);
  const auto got = co_await weft::select(replies, weft::after(1s));
  if (got.index == 1 && mended) co_await replies.read();
}
void late_answer(bool mended) {
  Channel<int> requests(weft::named("requests")), replies(weft::named("replies"));
  const Reader<int> kept = replies.reader();
  weft::run(serves(requests.reader(), replies.writer()),
            requests_once(requests.writer(), replies.reader(), mended));
}

// --- one stop for two workers ---

Process worker(Reader<int> jobs, Reader<int> stop) {
  for (;;) {
    const auto got = co_await weft::select(jobs, stop);
    if (got.index == 1) co_return;
  }
}
Process boss(Writer<int> jobs, Writer<int> stop, int stops) {
  co_await jobs.write(1);
  for (int i = 0; i < stops; ++i) co_await stop.write(0);
}
void one_stop(bool mended) {
  Channel<int> jobs(weft::named("jobs")), stop(weft::named("stop"));
  const Writer<int> kept = jobs.writer(), kept_too = stop.writer();
  weft::run(worker(jobs.reader(), stop.reader()), worker(jobs.reader(), stop.reader()),
            boss(jobs.writer(), stop.writer(), mended ? 2 : 1));
}

// --- a queue whose reader stops while there are values in it ---

Process puts(Writer<int> queue) {
  for (int i = 0; i < 2; ++i) co_await queue.write(i);
}
Process drains(Reader<int> queue, Reader<int> stop, bool mended) {
  for (;;) {
    const auto got = co_await weft::select(queue, stop);
    if (got.index == 1) break;
  }
  while (mended) {
    const auto value = co_await queue.next();
    if (!value) break;
  }
}
void stopped_early(bool mended) {
  Channel<int> queue(weft::buffer(2).called("queue")), stop(weft::named("stop"));
  weft::run(puts(queue.writer()), drains(queue.reader(), stop.reader(), mended),
            [](Writer<int> out) -> Process { co_await out.write(0); }(stop.writer()));
}

struct Bug {
  const char* name;
  void (*network)(bool mended);
  const char* kind;
};
constexpr std::array bugs{Bug{"closed twice", closed_twice, "exception"},
                          Bug{"signal missed", signal_missed, "deadlock"},
                          Bug{"lock order", lock_order, "deadlock"},
                          Bug{"result by default", result_by_default, "exception"},
                          Bug{"first answer", first_answer, "deadlock"},
                          Bug{"late answer", late_answer, "deadlock"},
                          Bug{"one stop", one_stop, "deadlock"},
                          Bug{"stopped early", stopped_early, "lost values"}};

}  // namespace

TEST_CASE("rule 17.5: bugs in the manner of Go programs are found, and short") {
  for (const Bug& bug : bugs) {
    CAPTURE(bug.name);
    const auto r = weft::check([&] { bug.network(false); }, {.seconds = 250, .name = bug.name});
    REQUIRE_MESSAGE(r.failures.size() == 1, r.text);
    CHECK_MESSAGE(r.failures[0].kind == bug.kind, r.text);
    CHECK_MESSAGE(r.failures[0].deviations <= 2, r.text);
    CHECK_MESSAGE(r.schedules < 500, r.text);
    // No thread outside can use a network that is checked, so the report does not advise `Outside`.
    CHECK_MESSAGE(r.text.find("Outside") == std::string::npos, r.text);
  }
}
TEST_CASE("rule 17.7: every schedule of the fixed ones passes") {
  for (const Bug& bug : bugs) {
    CAPTURE(bug.name);
    const auto r = weft::check([&] { bug.network(true); }, {.seconds = 250, .name = bug.name});
    CHECK_MESSAGE(r.passed(), r.text);
    CHECK_MESSAGE(r.complete, r.text);
  }
}
TEST_CASE("rule 17.8: a token tells the selects of one step apart") {
  // With the grain `park`, a step continues until its process parks. In this test a step has two
  // selects.
  std::string taken;
  const auto network = [&] {
    taken.clear();
    Channel<int> a(weft::buffer(2)), b(weft::buffer(2)), c(weft::buffer(2));
    weft::run([](std::array<Writer<int>, 3> outs, std::array<Reader<int>, 3> ins,
                 std::string& seen) -> Process {
      for (const auto& out : outs)
        for (int i = 0; i < 2; ++i) co_await out.write(i);
      for (int i = 0; i < 2; ++i)
        seen += std::to_string((co_await weft::select(ins[0], ins[1], ins[2])).index);
      for (const auto& out : outs) out.poison();
    }({a.writer(), b.writer(), c.writer()}, {a.reader(), b.reader(), c.reader()}, taken));
    if (taken == "02") throw std::runtime_error("first 0, then 2");
  };
  weft::CheckOptions o{.seconds = 250, .only_where_parked = true};
  const auto r = weft::check(network, o);
  REQUIRE_MESSAGE(r.failures.size() == 1, r.text);
  CHECK_MESSAGE(r.failures[0].token.ends_with("@1.2+2"), r.failures[0].token);
  o.replay = {r.failures[0].token};
  o.seconds = 0;
  CHECK(weft::check(network, o).failures.size() == 1);
}
