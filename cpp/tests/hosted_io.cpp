// Section 18: operations on descriptors, and descriptors as guards of a select. All connections are
// within the test program: over loopback, Unix sockets and pipes.
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <future>
#include <numeric>
#include <system_error>

#include <weft/io.hpp>
#include <weft/stopping.hpp>
#include "hosted.hpp"
#include "random.hpp"

using namespace test;

namespace {
namespace io_tests {

namespace io = weft::io;
using io::Stream;

const io::Address kAnywhere("127.0.0.1:0");

// Returns the system's number of the error that f throws, or 0 if f throws none.
template <class F>
int error_of(F f) {
  try {
    f();
  } catch (const std::system_error& e) {
    return e.code().value();
  }
  return 0;
}

Process echo(Stream s) {
  char b[5000];
  while (const std::size_t n = co_await s.read_some(b)) co_await s.write_all({b, n});
}
Process serve(io::Listener door, int clients) {
  weft::Group g;
  for (int i = 0; i < clients; ++i) g.start(echo(co_await door.accept()));
  co_await g.wait();
}
std::string text(std::size_t n, unsigned seed) {
  weft::test::Random r(seed);
  std::string s(n, ' ');
  for (char& c : s) c = static_cast<char>(r.next());
  return s;
}
Process sends(Stream s, const std::string& all) {
  co_await s.write_all(all);
  s.shutdown_write();
}
ProcessOf<std::string> receives(Stream s) {
  std::string all;
  char b[3000];
  while (const std::size_t n = co_await s.read_some(b)) all.append(b, n);
  co_return all;
}
Process client(io::Address to, unsigned seed, std::size_t bytes, int& good) {
  const std::string sent = text(bytes, seed);
  Stream s = co_await io::connect(to);
  auto [nothing, got] = co_await weft::par(sends(s, sent), receives(s));
  if (got == sent) ++good;
}
void thread_client(io::Address to, unsigned seed, std::size_t bytes, std::atomic<int>& good) {
  const std::string sent = text(bytes, seed);
  Stream s = io::connect(to)();
  std::string got;
  char b[3000];
  s.write_all(sent)();
  s.shutdown_write();
  while (const std::size_t n = s.read_some(b)()) got.append(b, n);
  if (got == sent) ++good;
}
// A thread that is not a process, and that writes after a given time.
struct Later {
  int fd;
  std::string what;
  std::thread thread;
  explicit Later(int f, std::string w, std::chrono::milliseconds after)
      : fd(f), what(std::move(w)) {
    thread = std::thread([this, after] {
      std::this_thread::sleep_for(after);
      CHECK(::write(fd, what.data(), what.size()) == static_cast<ssize_t>(what.size()));
    });
  }
  ~Later() { thread.join(); }
};

}  // namespace io_tests
}  // namespace

using namespace io_tests;

TEST_CASE("rule 18.1: bytes go both ways whole, on one core, on two, and by threads") {
  for (const unsigned cores : {1u, 2u}) {
    CAPTURE(cores);
    io::Listener door(kAnywhere);
    const io::Address at = door.address();
    std::array<int, 3> good{};
    weft::run({.cores = cores}, serve(std::move(door), 3), client(at, 1, 1, good[0]),
              client(at, 2, 300'000, good[1]), client(at, 3, 1'000'000, good[2]));
    CHECK(std::accumulate(good.begin(), good.end(), 0) == 3);
  }
  io::Listener door(kAnywhere);
  const io::Address at = door.address();
  std::atomic<int> good = 0;
  // A thread client writes everything before it reads, so it may write no more than the sockets
  // hold.
  weft::run(serve(std::move(door), 2), weft::thread([&] { thread_client(at, 1, 50'000, good); }),
            weft::thread([&] { thread_client(at, 2, 50'000, good); }));
  CHECK(good == 2);
}

TEST_CASE("rule 18.1: a limit, a cancellation and a stop end a read, and take no byte") {
  auto ends = Stream::pair();
  Stream &a = ends.first, &b = ends.second;
  const auto reads = [](Stream s, Stream other) -> Process {
    char buffer[10];
    try {
      weft::Timeout limit(1ms);
      co_await s.read_some(buffer);
      FAIL_CHECK("the read has read something");
    } catch (const weft::TimedOut&) {
    }
    weft::Group g;
    g.start([](Stream x) -> Process {
      char inner[10];
      co_await x.read_some(inner);
    }(s));
    co_await weft::yield();
    g.cancel();
    co_await g.wait();
    co_await other.write_all("hello");
    CHECK(co_await s.read_some(buffer) == 5);
    CHECK(std::string_view(buffer, 5) == "hello");
  };
  weft::run(reads(a, b));
  // A limit also ends an operation of a thread process.
  weft::run(weft::thread([&] {
    char buffer[10];
    {
      weft::Timeout limit(1ms);
      CHECK_THROWS_AS(a.read_some(buffer)(), weft::TimedOut);
    }
    b.write_all("x")();
    CHECK(a.read_some(buffer)() == 1);
  }));
}

TEST_CASE("rule 18.1: a write that is ended says how many bytes went") {
  auto ends = Stream::pair();
  Stream &a = ends.first, &b = ends.second;
  const std::string much(4'000'000, 'm');
  std::size_t sent = 0;
  const auto writes = [](Stream s, const std::string& all, std::size_t& n) -> Process {
    try {
      weft::Timeout limit(2ms);
      co_await s.write_all(all, &n);
      FAIL_CHECK("the write has written everything");
    } catch (const weft::TimedOut&) {
    }
    s.shutdown_write();
  };
  weft::run(writes(a, much, sent));
  CHECK(sent > 0);
  CHECK(sent < much.size());
  CHECK(weft::run(receives(b)).size() == sent);
}

TEST_CASE("rule 18.2: a wait for a descriptor is outside: no deadlock until it is over") {
  auto ends = Stream::pair();
  Stream &a = ends.first, &b = ends.second;
  const auto waits = [](Stream s) -> Process {
    char c[1];
    co_await s.read_some(c);
  };
  weft::Channel<int> c;
  auto keep = c.writer();
  {
    const Later later(b.fd(), "x", 5ms);
    CHECK_THROWS_AS(weft::run(waits(a), reads(c.reader())), weft::Deadlock);
  }
  // A select that has a stream as a guard is served too.
  weft::Channel<int> d;
  auto keeps = d.writer();
  const auto selects = [](Stream s, weft::Reader<int> r) -> Process {
    CHOSEN(weft::select(io::readable(s), r), 0);
  };
  const Later later(b.fd(), "x", 5ms);
  weft::run(selects(a, d.reader()));
}

TEST_CASE("rule 18.3: a select of a descriptor, a channel and a time; who loses takes nothing") {
  auto ends = Stream::pair();
  Stream &a = ends.first, &b = ends.second;
  const auto selects = [](Stream s, Stream other, weft::Reader<int> r,
                          weft::Writer<int> w) -> Process {
    char buffer[10];
    CHOSEN(weft::select(io::readable(s), r, weft::after(1ms)), 2);
    co_await other.write_all("abc");
    co_await w.write(7);
    CHOSEN(weft::select(weft::Mode::priority, r, io::readable(s)), 0);
    CHOSEN(weft::select(weft::Mode::priority, r, io::readable(s)), 1);
    CHOSEN(weft::select(weft::Mode::random, r, io::readable(s)), 1);  // No byte has moved so far.
    CHECK(co_await s.read_some(buffer) == 3);
    CHOSEN(weft::select(io::readable(s).when(false), io::writable(s)), 1);
    CHOSEN(weft::select(io::readable(s), weft::skip()), 1);
    co_await io::writable(s);
    other.shutdown_write();
    co_await io::readable(s);  // The end of the stream is ready.
    CHECK(co_await s.read_some(buffer) == 0);
    CHECK(co_await s.read_some(buffer) == 0);
    s.close();
    CHOSEN(weft::select(r, io::readable(s)), 1);  // A closed stream is ready too.
  };
  for (const unsigned cores : {1u, 2u}) {
    auto [x, y] = Stream::pair();
    weft::Channel<int> c(weft::buffer(1));
    weft::run({.cores = cores}, selects(x, y, c.reader(), c.writer()));
  }
  // An alternative and a thread process can wait for a stream too.
  weft::Channel<int> d(weft::buffer(1));
  weft::run(weft::thread([&, r = d.reader(), w = d.writer()] {
    for (int i = 0; i < 3; ++i) {
      b.write_all("z")();
      CHECK(weft::select(r, io::readable(a))().index == 1);
      char z[2];
      CHECK(a.read_some(z)() == 1);
    }
    const Later later(b.fd(), "x", 5ms);
    CHECK(weft::select(r, io::readable(a.fd()))().index == 1);
    w(1);
    CHECK(weft::select(weft::Mode::priority, r, io::readable(a))().index == 0);
  }));
}

TEST_CASE("rule 18.3: a descriptor of the program's own, by its number") {
  int fds[2];
  REQUIRE(pipe(fds) == 0);
  const auto waits = [](int fd) -> Process {
    for (int i = 0; i < 3; ++i) {
      co_await io::readable(fd);
      char c = 0;
      CHECK(::read(fd, &c, 1) == 1);
    }
    CHOSEN(weft::select(io::readable(fd), weft::after(1ms)), 1);
  };
  const Later later(fds[1], "xyz", 3ms);
  weft::run(waits(fds[0]));
  close(fds[0]);
  // A descriptor that is not open is ready immediately, as with poll().
  weft::run([](int fd) -> Process { co_await io::readable(fd); }(fds[0]));
  CHECK_THROWS_AS(static_cast<void>(io::readable(-1)), weft::BadUse);
}

TEST_CASE("rule 18.4: several wait for one stream, on several executors") {
  auto ends = Stream::pair();
  Stream &a = ends.first, &b = ends.second;
  std::atomic<int> sum = 0;
  constexpr int kEach = 400;
  const auto takes = [](Stream s, std::atomic<int>& n) -> Process {
    char c[1];
    while (co_await s.read_some(c) != 0) ++n;
  };
  const auto gives = [](Stream s) -> Process {
    for (int i = 0; i < kEach; ++i) {
      co_await s.write_all("12345");
      if (i % 20 == 0) co_await weft::sleep(10us);
    }
    s.shutdown_write();
  };
  weft::Cores two(2);
  weft::Core one;
  weft::run(gives(b), takes(a, sum), takes(a, sum), takes(a, sum).on(two), takes(a, sum).on(two),
            takes(a, sum).on(one), weft::thread([&, s = a] {
              char c[1];
              while (s.read_some(c)() != 0) ++sum;
            }));
  CHECK(sum == 5 * kEach);
}

TEST_CASE("rule 18.4: the descriptor's home moves when those who wait there have gone") {
  auto ends = Stream::pair();
  Stream &a = ends.first, &b = ends.second;
  weft::Core other;
  weft::Channel<int> first(weft::buffer(1)), second(weft::buffer(1)), gone(weft::buffer(1));
  std::promise<void> read;
  // This executor waits first, so its engine is the descriptor's home. Its process is cancelled
  // while a process of another executor waits, and then the executor polls no descriptor.
  const auto at_home = [&read](Stream s, weft::Writer<int> waits, weft::Reader<int> go_on,
                               weft::Writer<int> leaves) -> Process {
    weft::Group g;
    g.start([](Stream x) -> Process {
      char c[1];
      co_await x.read_some(c);
    }(s));
    co_await weft::yield();
    co_await waits.write(1);
    co_await go_on.read();
    g.cancel();
    co_await g.wait();
    co_await leaves.write(1);
    read.get_future().wait();
  };
  const auto away = [&read](Stream s, weft::Reader<int> may, weft::Writer<int> waits) -> Process {
    co_await may.read();
    co_await weft::par(
        [](Stream x, std::promise<void>& over) -> Process {
          char c[1];
          CHECK(co_await x.read_some(c) == 1);
          over.set_value();
        }(s, read),
        [](weft::Writer<int> w) -> Process { co_await w.write(1); }(std::move(waits)));
  };
  const auto gives = [](Stream s, weft::Reader<int> may) -> Process {
    co_await may.read();
    co_await s.write_all("x");
  };
  weft::run(at_home(a, first.writer(), second.reader(), gone.writer()).on(other),
            away(a, first.reader(), second.writer()), gives(b, gone.reader()));
}

TEST_CASE("rule 18.5: to close a stream ends the waits for it") {
  for (const unsigned cores : {1u, 2u}) {
    auto ends = Stream::pair();
    Stream &a = ends.first, &b = ends.second;
    const auto waits = [](Stream s) -> Process {
      char c[1];
      int error = 0;
      try {
        co_await s.read_some(c);
      } catch (const std::system_error& e) {
        error = e.code().value();
        CHECK(std::string(e.what()).find("which was closed") != std::string::npos);
      }
      CHECK(error == EBADF);
    };
    const auto closes = [](Stream s) -> Process {
      co_await weft::sleep(1ms);
      s.close();
      s.close();
    };
    weft::run({.cores = cores}, waits(a), waits(a), closes(a));
    char c[1];
    CHECK(error_of([&] { a.read_some(c)(); }) == EBADF);
    CHECK(error_of([&] { a.write_all("x")(); }) == EBADF);
    CHECK(weft::run(receives(b)).empty());  // The peer reads the end of the stream.
  }
  io::Listener door(kAnywhere);
  const auto accepts = [](io::Listener l) -> Process {
    int error = 0;
    try {
      co_await l.accept();
    } catch (const std::system_error& e) {
      error = e.code().value();
    }
    CHECK(error == EBADF);
  };
  weft::run(accepts(door), [](io::Listener l) -> Process {
    co_await weft::yield();
    l.close();
  }(door));
}

TEST_CASE("rule 18.5: a number that the program has closed, and a new stream has, ends the wait") {
  int fds[2];
  REQUIRE(pipe(fds) == 0);
  const auto waits = [](int fd) -> Process { co_await io::readable(fd); };
  const auto replaces = [](int fd) -> Process {
    co_await weft::yield();
    ::close(fd);
    auto ends = Stream::pair();
    Stream &a = ends.first, &b = ends.second;
    CHECK((a.fd() == fd || b.fd() == fd));
    co_await weft::yield();
  };
  weft::run(waits(fds[0]), replaces(fds[0]));
  close(fds[1]);
}

TEST_CASE("rule 18.6: no SIGPIPE, and a reset has its number") {
  {
    auto [r, w] = Stream::pipe();
    r = Stream();
    CHECK(error_of([&w = w] { w.write_all("x")(); }) == EPIPE);
  }
  auto ends = Stream::pair();
  Stream &a = ends.first, &b = ends.second;
  b = Stream();
  CHECK(error_of([&a = a] { a.write_all("x")(); }) == EPIPE);
  io::Listener door(kAnywhere);
  Stream to = io::connect(door.address())();
  Stream from = door.accept()();
  CHECK(from.peer().text() == to.local().text());
  const linger at_once{1, 0};
  setsockopt(to.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  to = Stream();
  char c[1];
  CHECK(error_of([&] { from.read_some(c)(); }) == ECONNRESET);
  // After these lines no program listens at the address `was`.
  const io::Address was = door.address();
  door = io::Listener(kAnywhere);
  CHECK(error_of([&] { io::connect(was)(); }) == ECONNREFUSED);
  CHECK_THROWS_AS(static_cast<void>(a.read_some({})), weft::BadUse);
  CHECK_THROWS_AS(static_cast<void>(Stream().read_some(c)), weft::BadUse);
}

TEST_CASE("rule 18.6: accept waits while no descriptor is left") {
  io::Listener door(kAnywhere);
  Stream first = io::connect(door.address())();
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  std::vector<int> all;
  rlimit few = before;
  const int highest = dup(0);
  few.rlim_cur = static_cast<rlim_t>(highest) + 30;
  close(highest);
  const auto accepts = [](io::Listener l, std::vector<int>& taken, rlimit limit) -> Process {
    co_await weft::par(
        [](io::Listener d) -> Process {
          Stream s = co_await d.accept();
          char c[1];
          CHECK(co_await s.read_some(c) == 0);
        }(l),
        [](std::vector<int>& fds, rlimit r) -> Process {
          co_await weft::sleep(5ms);
          setrlimit(RLIMIT_NOFILE, &r);
          for (const int fd : fds) close(fd);
        }(taken, limit));
  };
  // This run makes the engine before all descriptors are used up.
  weft::run([](Stream s) -> Process {
    weft::Timeout limit(1ms);
    char c[1];
    try {
      co_await s.read_some(c);
    } catch (const weft::TimedOut&) {
    }
  }(first));
  setrlimit(RLIMIT_NOFILE, &few);
  for (int fd = dup(0); fd >= 0; fd = dup(0)) all.push_back(fd);
  first.shutdown_write();
  weft::run(accepts(door, all, before));
}

TEST_CASE("rule 18.6: signals interrupt nothing") {
  struct sigaction counts {
  }, was{};
  counts.sa_handler = [](int) {};  // SA_RESTART is not set.
  sigaction(SIGUSR1, &counts, &was);
  std::atomic<bool> over = false;
  const pthread_t here = pthread_self();
  std::thread pesters([&] {
    while (!over) {
      pthread_kill(here, SIGUSR1);
      std::this_thread::sleep_for(50us);
    }
  });
  io::Listener door(kAnywhere);
  const io::Address at = door.address();
  int good = 0;
  weft::run(serve(std::move(door), 1), client(at, 5, 500'000, good));
  CHECK(good == 1);
  over = true;
  pesters.join();
  sigaction(SIGUSR1, &was, nullptr);
}

TEST_CASE("rule 18.6: a descriptor that another process has too") {
  auto ends = Stream::pair();
  Stream &a = ends.first, &b = ends.second;
  const pid_t child = fork();  // The child has copies of both descriptors.
  if (child == 0) {
    pause();
    _exit(0);
  }
  const auto uses = [](Stream s, Stream other) -> Process {
    char c[1];
    co_await other.write_all("x");
    CHECK(co_await s.read_some(c) == 1);
    weft::Timeout limit(1ms);
    try {
      co_await s.read_some(c);
    } catch (const weft::TimedOut&) {
    }
  };
  weft::run(uses(a, b));
  const int number = a.fd();
  a = Stream();
  b = Stream();
  // The child's copies make no events in this program for the streams that now have these numbers.
  auto [d, e] = Stream::pair();
  CHECK((d.fd() == number || e.fd() == number));
  weft::run(uses(d, e));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_CASE("rule 18.7: with virtual time no descriptor is waited for") {
  auto ends = Stream::pair();
  Stream &a = ends.first, &b = ends.second;
  const auto says = [](auto p) {
    try {
      weft::run(virtually, std::move(p));
    } catch (const weft::BadUse& e) {
      return std::string(e.what()).find("virtual time") != std::string::npos;
    }
    return false;
  };
  CHECK(says([](Stream s) -> Process {
    char c[1];
    co_await s.read_some(c);
  }(a)));
  CHECK(says([](Stream s) -> Process { co_await io::writable(s); }(a)));
  CHECK(says([](Stream s) -> Process { co_await weft::select(io::readable(s), weft::skip()); }(b)));
}

TEST_CASE("rule 18.8: a process that never waits does not hold up what a descriptor brings") {
  for (const unsigned cores : {1u, 2u}) {
    auto ends = Stream::pair();
    Stream &a = ends.first, &b = ends.second;
    bool over = false;
    const auto spins = [](bool& stop) -> Process {
      while (!stop) co_await weft::yield();
    };
    const auto waits = [](Stream s, bool& stop) -> Process {
      char c[1];
      CHECK(co_await s.read_some(c) == 1);
      stop = true;
    };
    const Later later(b.fd(), "x", 3ms);
    if (cores == 1)
      weft::run(spins(over), waits(a, over));
    else  // A process that computes keeps one core busy, but not both.
      weft::run({.cores = 2}, waits(a, over), [](const bool& there) -> Process {
        for (const auto until = weft::now() + 20'000'000; weft::now() < until;) {
        }
        static_cast<void>(there);
        co_return;
      }(over));
    CHECK(over);
  }
}

TEST_CASE("rules 18.1, 18.5: datagrams, Unix sockets, a child process") {
  io::Datagrams x(kAnywhere), y(kAnywhere);
  const auto talks = [](io::Datagrams from, io::Datagrams to) -> Process {
    co_await from.send("one", to.address());
    co_await from.send("", to.address());
    char b[10];
    io::Received r = co_await to.receive(b);
    CHECK(r.size == 3);
    CHECK(r.from.port() == from.address().port());
    r = co_await to.receive(b);
    CHECK(r.size == 0);
    weft::Timeout limit(1ms);
    try {
      co_await to.receive(b);
      FAIL_CHECK("there was a third datagram");
    } catch (const weft::TimedOut&) {
    }
  };
  weft::run(talks(x, y));

  char folder[] = "/tmp/weft_io_XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  const std::string path = std::string(folder) + "/s";
  {
    io::Listener door(io::Address("unix:" + path));
    CHECK(door.address().text() == "unix:" + path);
    int good = 0;
    weft::run(serve(door, 1), client(door.address(), 9, 100'000, good));
    CHECK(good == 1);
  }
  unlink(path.c_str());
  rmdir(folder);

  auto [in, to_child] = Stream::pipe();
  auto [from_child, out] = Stream::pipe();
  const io::Child cat({"cat"}, in, out);
  in = out = Stream();
  const auto feeds = [](Stream w, Stream r, io::Child c) -> Process {
    co_await w.write_all("through a child");
    w = Stream();  // The child reads the end of its input.
    auto [all] = co_await weft::par(receives(std::move(r)));
    CHECK(all == "through a child");
    CHOSEN(weft::select(io::readable(c), weft::after(10s)), 0);
    CHECK(co_await c.exited() == 0);
  };
  weft::run(feeds(std::move(to_child), std::move(from_child), cat));
  const io::Child sleeps({"sleep", "1000"});
  sleeps.signal(SIGTERM);
  CHECK(sleeps.exited()() == -SIGTERM);
  CHECK(error_of([] { io::Child({"/nowhere/at/all"}); }) == ENOENT);
  CHECK_THROWS_AS(io::Child({}), weft::BadUse);
}

TEST_CASE("rule 18.6: addresses that are none") {
  for (const char* bad : {"", "localhost:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
                          "1.2.3:4", "[::1:80", "[]:80", "unix:", ":80", "127.0.0.1:8o"})
    CHECK_THROWS_AS(io::Address{bad}, weft::BadUse);
  for (const char* good : {"127.0.0.1:80", "[::1]:8080", "unix:/tmp/x"})
    CHECK(io::Address(good).text() == good);
  CHECK_THROWS_AS(io::Address("unix:" + std::string(108, 'x')), weft::BadUse);
}

// A proxy passes the bytes on in pieces of random sizes, waits at a random place, and cuts the
// connection at that place.
TEST_CASE("rules 18.1, 18.5, 18.6: whatever a peer does, what arrives is how the stream begins") {
  const auto seed =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  std::printf("hosted_io: seed %llu\n", static_cast<unsigned long long>(seed));
  CAPTURE(seed);
  weft::test::Random random(seed);
  const auto piped = [](Stream from, Stream to, int cut, std::uint64_t s) -> Process {
    weft::test::Random r(s);
    char b[700];
    try {
      for (int left = cut;;) {
        const auto most = static_cast<std::size_t>(1 + r.below(700));
        const std::size_t n = co_await from.read_some(std::span(b).first(most));
        if (n == 0) break;
        if (left -= static_cast<int>(n); left < 0) {
          if (r.below(2) == 0) {
            const linger at_once{1, 0};
            setsockopt(to.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
          }
          from.close();
          to.close();
          co_return;
        }
        co_await to.write_all({b, n});
        if (r.below(8) == 0) co_await weft::yield();
        if (r.below(30) == 0) co_await weft::sleep(100us);
      }
      to.shutdown_write();
    } catch (const std::system_error&) {
      to.close();
    }
  };
  const auto proxies = [piped](io::Listener door, io::Address to, int cut,
                               std::uint64_t s) -> Process {
    Stream in = co_await door.accept();
    Stream out = co_await io::connect(to);
    co_await weft::par(piped(in, out, cut, s), piped(out, in, cut, s + 1));
  };
  const auto serves = [](io::Listener door) -> Process {
    Stream s = co_await door.accept();
    try {
      co_await echo(std::move(s));
    } catch (const std::system_error&) {
    }
  };
  const auto asks = [](io::Address at, const std::string& all, std::string& got) -> Process {
    Stream s = co_await io::connect(at);
    const auto writes = [](Stream w, const std::string& what) -> Process {
      try {
        co_await w.write_all(what);
        w.shutdown_write();
      } catch (const std::system_error&) {
      }
    };
    const auto collects = [](Stream r, std::string& into) -> Process {
      char b[900];
      try {
        while (const std::size_t n = co_await r.read_some(b)) into.append(b, n);
      } catch (const std::system_error&) {
      }
    };
    co_await weft::par(writes(s, all), collects(s, got));
  };
  int whole = 0;
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    const std::string all = text(static_cast<std::size_t>(random.below(20'000)), 1);
    const int cut = random.below(3) == 0 ? 1 << 30 : random.below(20'000);
    io::Listener door(kAnywhere), behind(kAnywhere);
    const io::Address at = door.address(), to = behind.address();
    std::string got;
    weft::run({.cores = round % 2 == 0 ? 1u : 2u}, serves(std::move(behind)),
              proxies(std::move(door), to, cut, random.next()), asks(at, all, got));
    CHECK(got == all.substr(0, got.size()));
    if (cut == 1 << 30) CHECK(got.size() == all.size());
    whole += got.size() == all.size();
  }
  CHECK(whole > 0);
}
