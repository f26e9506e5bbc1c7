// Tests rule 7.14: a thread that is ended by pthread_exit() or pthread_cancel().
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "hosted.hpp"

using namespace test;

namespace {

struct Counted {
  int* n;
  explicit Counted(int& count) : n(&count) {}
  Counted(Counted&& o) noexcept : n(std::exchange(o.n, nullptr)) {}
  ~Counted() {
    if (n) ++*n;
  }
};
void ends_by_exit() { pthread_exit(nullptr); }
void ends_by_cancel() {
  pthread_cancel(pthread_self());
  for (;;) pthread_testcancel();
}

// Returns the text that a child writes to stderr before it aborts.
std::string stderr_of_abort(void (*f)()) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::signal(SIGABRT, SIG_DFL);  // Replaces the test framework's handler.
    f();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said;
  char some[256];
  for (ssize_t n; (n = ::read(ends[0], some, sizeof some)) > 0;)
    said.append(some, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
  return said;
}

}  // namespace

TEST_CASE(
    "rule 7.14: a thread that is ended in its process is that one's failure, and its ends go") {
  for (void (*const ends)() : {&ends_by_exit, &ends_by_cancel}) {
    weft::Channel<int> c;
    int unwound = 0, retired = 0;
    auto reads_until = [](weft::Reader<int> r, int& n) -> Process {
      CHECK(co_await r.read() == 1);
      try {
        co_await r.read();
      } catch (const weft::Retired&) {
        ++n;
        throw;
      } catch (const weft::Cancelled&) {  // The other thread failed first.
        ++n;
      }
    };
    CHECK_THROWS_WITH_AS(
        weft::run(weft::thread([w = c.writer(), mine = Counted(unwound), &unwound, ends] {
                    const Counted local(unwound);
                    w(1);
                    ends();
                  }).named("worker"),
                  reads_until(c.reader(), retired)),
        doctest::Contains("main/worker: its thread was ended, by pthread_exit()"), weft::BadUse);
    CHECK(unwound == 2);
    CHECK(retired == 1);
  }
}

TEST_CASE("rule 7.14: also of one that has a result, in a group, and of a run within") {
  CHECK_THROWS_WITH_AS(weft::run(weft::thread([]() -> int { pthread_exit(nullptr); })),
                       doctest::Contains("its thread was ended"), weft::BadUse);
  auto owner = []() -> Process {
    weft::Group g;
    g.start(weft::thread(&ends_by_exit));
    CHECK_THROWS_AS(co_await g.wait(), weft::BadUse);
  };
  weft::run(owner());
  CHECK_THROWS_WITH_AS(
      weft::run(weft::thread([] { weft::run(weft::thread(&ends_by_exit).named("inner")); })),
      doctest::Contains("inner: its thread was ended"), weft::BadUse);
}

TEST_CASE(
    "rule 7.14: where others need the thread the program ends, and says which process it was") {
  const char* const needed = "here would end a thread that other processes need";
  auto said = stderr_of_abort([] {
    auto exits = []() -> Process {
      pthread_exit(nullptr);
      co_return;
    };
    weft::run(exits().named("clerk"));
  });
  CHECK(has(said, std::string("weft: main/clerk: pthread_exit() or pthread_cancel() ") + needed));
  said = stderr_of_abort([] {
    auto calls = []() -> Process { co_await weft::blocking(&ends_by_exit); };
    weft::run(calls().named("caller"));
  });
  CHECK(has(said, "weft: main/caller: "));
  CHECK(has(said, needed));
  said = stderr_of_abort([] {
    weft::Channel<int> c;
    auto sends = [](weft::Writer<int> w) -> Process {
      co_await weft::select(weft::out_with(w, []() -> int { pthread_exit(nullptr); }));
    };
    weft::run(sends(c.writer()).named("sender"), reads(c.reader()));
  });
  CHECK(has(said, "weft: main/sender: "));
}
