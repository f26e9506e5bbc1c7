// Networks that test_look_cpp.py looks at while they run: looked_at HOW [FILE]. A network prints
// "ready" when all its processes are at work.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <weft/flight.hpp>
#include <weft/io.hpp>
#include <weft/weft.hpp>

using namespace std::chrono_literals;
using weft::Process;

namespace {

void say(const char* what) {
  std::puts(what);
  std::fflush(stdout);
}
void ready_at(int n) {
  if (n == 2) say("ready");
}

Process source(weft::Writer<int> out) {
  for (int n = 0;; ++n) co_await out.write(n);
}
Process enrich(weft::Reader<int> in, weft::Writer<int> out) {
  while (auto n = co_await in.next()) {
    std::this_thread::sleep_for(10ms);
    co_await out.write(*n);
  }
}
Process store(weft::Reader<int> in) {
  while (auto n = co_await in.next()) ready_at(*n);
}

int pipe(const std::string& on) {
  weft::Channel<int> a{weft::named("orders")}, b{weft::buffer(4).called("priced")};
  if (on == "threads")
    weft::run(weft::thread([w = a.writer()] {
                for (int n = 0;; ++n) w(n);
              }).named("source"),
              weft::thread([r = a.reader(), w = b.writer()] {
                for (;;) {
                  const int n = r();
                  std::this_thread::sleep_for(10ms);
                  w(n);
                }
              }).named("enrich"),
              weft::thread([r = b.reader()] {
                for (;;) ready_at(r());
              }).named("store"));
  if (on == "core") {
    const weft::Core core;
    weft::run(source(a.writer()).on(core), enrich(a.reader(), b.writer()), store(b.reader()));
  }
  weft::RunOptions o;
  if (on == "cores") o.cores = 2;
  weft::run(o, source(a.writer()), enrich(a.reader(), b.writer()), store(b.reader()));
  return 0;
}

Process says(weft::Writer<int> out) {
  say("ready");
  co_await out.write(1);
}
Process waits(weft::Reader<int> silent) { co_await silent.read(); }
Process chooses(weft::Reader<int> a, weft::Writer<int> b) {
  co_await weft::select(a, weft::out(b, 1));
}
Process sleeps() { co_await weft::sleep(1000s); }
Process listens(weft::io::Stream s) {
  char byte[1];
  co_await s.read_some(byte);
}
Process meets(weft::Barrier b) { co_await b.sync(); }

// Each process waits in its own way. `keep` holds the other ends.
int waiting() {
  weft::Channel<int> c{weft::named("given")}, d{weft::named("silent")}, e{weft::named("other")};
  const auto keep = std::tuple(c.reader(), d.writer(), e.reader());
  const weft::Outside outside(weft::Outside::due);
  weft::Barrier b(2);
  const auto ends = weft::io::Stream::pair();
  weft::run(waits(d.reader()), chooses(d.reader(), e.writer()), sleeps(), meets(b),
            says(c.writer()), listens(ends.first));
  return 0;
}

Process calls(weft::Reader<int> silent) {
  co_await weft::blocking([] { say("ready"); });
  co_await silent.read();
}
// Threads whose names system tools show: the path of the second thread is cut within a character.
int names() {
  weft::Channel<int> c{weft::named("silent")};
  const auto keep = c.writer();
  const weft::Outside outside(weft::Outside::due);
  weft::run(weft::thread([r = c.reader()] {
              weft::RunOptions o;
              o.cores = 2;
              weft::run(o, calls(r));
            }).named("has cores"),
            weft::thread([r = c.reader()] { r(); })
                .named("caf\xc3\xa9"
                       "fourteen bytes"));
  return 0;
}

Process relay(weft::Reader<int> r, weft::Writer<int> w) {
  for (;;) co_await w.write(co_await r.read());
}
// Two processes wait for each other forever, while the other processes can go on.
int knot() {
  weft::Channel<int> c{weft::named("c")}, d{weft::named("d")}, e{weft::named("e")};
  const weft::Outside outside(weft::Outside::due);
  weft::run(relay(c.reader(), d.writer()).named("left"),
            relay(d.reader(), c.writer()).named("right"), sleeps(), says(e.writer()),
            waits(e.reader()));
  return 0;
}

Process nothing() { co_return; }

// With `waits`, keeps the program from ending: the object is destroyed after main() has returned.
struct Last {
  bool waits = false;
  ~Last() {
    if (!waits) return;
    say("ending");
    for (;;) pause();
  }
} last;
// Returns from main() when the input ends. Then `last` keeps the program from ending.
int ends() {
  weft::run(nothing());
  say("ready");
  std::getchar();
  last.waits = true;
  return 0;
}

Process computes() {
  say("ready");
  for (const volatile bool on = true; on;) {
  }
  co_return;
}

Process relays(weft::Reader<int> in, weft::Writer<int> out) {
  while (auto n = co_await in.next()) co_await out.write(*n + 1);
}
Process turns(weft::Reader<int> in, weft::Writer<int> out) {
  co_await out.write(0);
  while (auto n = co_await in.next()) {
    ready_at(*n);
    co_await out.write(*n);
  }
}
// A ring of processes that never wait for anything outside the ring.
int ring() {
  weft::Channel<int> a{weft::named("a")}, b{weft::named("b")};
  weft::run(turns(a.reader(), b.writer()), relays(b.reader(), a.writer()));
  return 0;
}

int many() {
  weft::Channel<int> c{weft::named("c")}, d{weft::named("d")};
  const auto keep = d.writer();
  const weft::Outside outside(weft::Outside::due);
  std::vector<Process> all;
  for (int i = 0; i < 5000; ++i) all.push_back(waits(d.reader()).named("worker"));
  all.push_back(says(c.writer()));
  const auto also = c.reader();
  weft::run(std::move(all));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  if (how == "waiting") return waiting();
  if (how == "names") return names();
  if (how == "ends") return ends();
  if (how == "knot") return knot();
  if (how == "ring") return ring();
  if (how == "many") return many();
  if (how == "computes") {
    weft::run(computes());
    return 0;
  }
  if (how == "flight") {
    const weft::flight recorder(argv[2]);
    return ring();
  }
  if (how == "forked") {
    weft::run(nothing());
    if (const pid_t child = fork()) {
      waitpid(child, nullptr, 0);
      return 0;
    }
    std::printf("%d\n", static_cast<int>(getpid()));
    return ring();
  }
  return pipe(how);
}
