// Tests the functions of every link, and far ends in threads and coroutines (wire 7, 8, 12):
// over sockets and over shared memory.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "weft/weft.hpp"
#include "weft/wire/program.hpp"
#include "weft/wire/serial.hpp"
#include "weft/wire/shm.hpp"
#include "wire_pair.hpp"

namespace wire_links {
namespace {
using namespace weft;
namespace w = weft::wire;

using test::Pair;

TEST_CASE_TEMPLATE(
    "wire 12: ints one way and strings the other, between two threads; then both channels retire "
    "(rules 3.1, 3.3)",
    L, w::StreamLink, w::ShmLink, w::SerialLink) {
  Pair<L> p;
  Channel<int> c;
  Channel<std::string> d;
  p.h->give(c.reader(), "numbers");
  p.h->give(d.writer(), "words");
  std::thread other([&, token = Outside()] {
    auto r = p.f->template reader<int>("numbers");
    auto words = p.f->template writer<std::string>("words");
    try {
      for (;;) words(std::string(static_cast<std::size_t>(r()), 'x'));
    } catch (const Retired&) {
    }
  });
  Writer<int> to = c.writer();
  Reader<std::string> from = d.reader();
  for (int i = 0; i < 300; ++i) {
    to(i * 20);
    CHECK(from().size() == static_cast<std::size_t>(i * 20));
  }
  to.retire();
  CHECK_THROWS_AS(from(), Retired);
  other.join();
}

TEST_CASE_TEMPLATE(
    "wire 6.1: a thousand ints through a buffer, in order, none lost or doubled (rule 1.3)", L,
    w::StreamLink, w::ShmLink, w::SerialLink) {
  Pair<L> p;
  Channel<int> c{buffer(8)};
  p.h->give(c.writer(), "in", 8);
  std::thread other([&, token = Outside()] {
    auto to = p.f->template writer<int>("in");
    for (int i = 0; i < 1000; ++i) to(i);
  });
  Reader<int> r = c.reader();
  int next = 0, sum = 0;
  for (int v : r) {
    CHECK(v == next++);
    sum += v;
  }
  CHECK((next == 1000 && sum == 499500));
  other.join();
}

Process add(w::FarReader<int> a, w::FarWriter<int> out, int times) {
  for (int i = 0; i < times; ++i) co_await out.write(co_await a.read() + 1);
}
Process count(Writer<int> to, Reader<int> from, int times, int& right) {
  for (int i = 0; i < times; ++i) {
    co_await to.write(i);
    right += co_await from.read() == i + 1;
  }
}

TEST_CASE_TEMPLATE(
    "wire 4.1: coroutines on both sides; no run takes who waits for another space for a deadlock "
    "(rule 10.3)",
    L, w::StreamLink, w::ShmLink, w::SerialLink) {
  Pair<L> p;
  Channel<int> c, d;
  p.h->give(c.reader(), "a");
  p.h->give(d.writer(), "b");
  int right = 0;
  std::thread other(
      [&] { run(add(p.f->template reader<int>("a"), p.f->template writer<int>("b"), 200)); });
  run(count(c.writer(), d.reader(), 200, right));
  other.join();
  CHECK(right == 200);
}

Process reads(w::FarReader<int> r, std::string& how) {
  try {
    co_await r.read();
    how = "value";
  } catch (const Cancelled&) {
    how = "cancelled";
    throw;
  }
}
Process fails_after(Reader<int> go) {
  co_await go.read();
  throw std::runtime_error("enough");
}

TEST_CASE_TEMPLATE(
    "wire 4.3: a cancelled read is withdrawn by a round trip, and nothing is lost (rules 6.2, 6.4)",
    L, w::StreamLink, w::ShmLink, w::SerialLink) {
  Pair<L> p;
  Channel<int> c, go;
  p.h->give(c.reader(), "r");
  std::string how;
  auto far = p.f->template reader<int>("r");
  std::thread other([w = go.writer(), token = Outside()] { w(1); });
  CHECK_THROWS_AS(run(reads(std::move(far), how), fails_after(go.reader())), std::runtime_error);
  other.join();
  CHECK(how == "cancelled");
}

Process picks(w::FarReader<int> r, w::FarWriter<std::string> to, int& ints, int& strings) {
  for (int i = 0; i < 40; ++i) {
    w::FarSelect s;
    s.in(r).out(to, "word");
    if (co_await s.go() == 0)
      ints += s.value<int>() == 7;
    else
      ++strings;
  }
}

TEST_CASE_TEMPLATE("wire 4.5: a select over far ends: each time exactly one guard (rule 5.1)", L,
                   w::StreamLink, w::ShmLink, w::SerialLink) {
  Pair<L> p;
  Channel<int> c;
  Channel<std::string> d;
  p.h->give(c.reader(), "ints");
  p.h->give(d.writer(), "words");
  int ints = 0, strings = 0;
  std::thread other([&] {
    run(picks(p.f->template reader<int>("ints"), p.f->template writer<std::string>("words"), ints,
              strings));
  });
  Writer<int> to = c.writer();
  Reader<std::string> from = d.reader();
  for (int i = 0; i < 20; ++i) {
    to(7);
    CHECK(from() == "word");
  }
  other.join();
  CHECK((ints == 20 && strings == 20));
}

TEST_CASE_TEMPLATE(
    "wire 4.5, 8.2: a far select in a thread: its end, what spans, and a session that ends", L,
    w::StreamLink, w::ShmLink, w::SerialLink) {
  Pair<L> p, q;
  Channel<int> c, d, e;
  p.h->give(c.reader(), "c");
  p.h->give(d.writer(), "d");
  q.h->give(e.reader(), "e");
  auto r = p.f->template reader<int>("c");
  auto to = p.f->template writer<int>("d");
  Writer<int> here = c.writer();
  {
    w::FarSelect s;
    CHECK_THROWS_WITH_AS(s.in(r).in(q.f->template reader<int>("e")),
                         doctest::Contains("two Spaces"), BadUse);
    CHECK_THROWS_AS((void)s.value<int>(), BadUse);
    w::FarSelect none;
    CHECK_THROWS_AS(none(), BadUse);
  }
  here.poison(2);
  {
    w::FarSelect s;
    s.in(r).out(to, 1);
    try {
      s();
      CHECK(false);
    } catch (const Poisoned& x) {
      CHECK((x.guard == 0 && x.strength == 2));
    }
  }
  Reader<int> waits = d.reader();
  bool doubt = false;
  std::thread selecting([&, token = Outside()] {
    w::FarSelect s;
    s.out(to, 1).out(to, 2);
    try {
      s();
    } catch (const PeerDied& x) {
      doubt = x.in_doubt && x.guard == -1;
    }
  });
  for (bool any = false; !any; std::this_thread::yield())
    waits.core()->with_lock([&](core::Queue&, core::Queue& writers) { any = !writers.empty(); });
  p.h.reset();
  selecting.join();
  CHECK(doubt);
}

TEST_CASE_TEMPLATE(
    "wire 7.2: an end of another type, of the other side, or taken twice, is bad use and says so",
    L, w::StreamLink, w::ShmLink, w::SerialLink) {
  Pair<L> p;
  Channel<int> c;
  p.h->give(c.reader(), "r");
  CHECK_THROWS_WITH_AS((void)p.f->template reader<double>("r"),
                       doctest::Contains("is of type i4, and f8 was asked for"), BadUse);
  CHECK_THROWS_WITH_AS((void)p.f->template writer<int>("r"), doctest::Contains("is a reader end"),
                       BadUse);
  auto r = p.f->template reader<int>("r");
  CHECK_THROWS_WITH_AS((void)p.f->template reader<int>("r"), doctest::Contains("is taken already"),
                       BadUse);
}

TEST_CASE_TEMPLATE(
    "wire 8: the end of a session: who waits learns it, and what it was; nobody hangs", L,
    w::StreamLink, w::ShmLink, w::SerialLink) {
  Pair<L> p;
  Channel<int> c, d;
  p.h->give(c.writer(), "w");
  p.h->give(d.reader(), "r");
  auto to = p.f->template writer<int>("w");
  auto from = p.f->template reader<int>("r");
  bool doubt = false, carried = false, read_died = false;
  std::thread a([&, token = Outside()] {
    try {
      to(5);
    } catch (const PeerDied& e) {
      doubt = e.in_doubt;
      carried = e.value<int>() && *e.value<int>() == 5;
    }
  });
  std::thread b([&, token = Outside()] {
    try {
      from();
    } catch (const PeerDied& e) {
      read_died = !e.in_doubt;
    }
  });
  // Waits until an offer has arrived at the channel of `ch`. After that the program leaves.
  const auto waits = [](auto& ch) {
    bool any = false;
    while (!any) {
      ch.core()->with_lock(
          [&](core::Queue& r, core::Queue& wr) { any = !r.empty() || !wr.empty(); });
      std::this_thread::yield();
    }
  };
  Reader<int> mine = c.reader();
  Writer<int> there = d.writer();
  waits(mine);
  waits(there);
  p.h.reset();
  a.join();
  b.join();
  CHECK((doubt && carried && read_died));
  CHECK_THROWS_AS(to(6), PeerDied);
  CHECK_THROWS_AS(mine(), PeerDied);  // Rule 4.5: the peer's ends died with the session.
}

TEST_CASE_TEMPLATE(
    "wire 2.4: who waits for an end that never comes learns that the session is over", L,
    w::StreamLink, w::ShmLink, w::SerialLink) {
  Pair<L> p;
  Channel<int> c;
  p.h->give(c.reader(), "some");
  // Waits until the hand-shake has ended, since a line that is not linked cannot send the reason
  // for its end.
  (void)p.f->template reader<int>("some");
  std::thread ends([&] { p.h.reset(); });
  CHECK_THROWS_AS((void)p.f->template reader<int>("none"), PeerDied);
  ends.join();
  CHECK(p.f->wait() == "the peer said: this program has closed the session");
}

TEST_CASE("wire 14.2: a peer that sends rubbish to the socket ends its session") {
  const auto space = w::Space::make("home");
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  w::StreamLink link(space, fds[0]);
  REQUIRE(::send(fds[1], "GET / HTTP/1.1\r\n\r\n and some more", 32, 0) == 32);
  CHECK(link.wait() == "a frame's size is less than its header or no multiple of 8");
  ::close(fds[1]);
}

TEST_CASE_TEMPLATE(
    "wire 9.1: a local writer's value of any length reaches a far reader, in as many frames as it "
    "needs, and the session goes on",
    L, w::StreamLink, w::ShmLink, w::SerialLink) {
  Pair<L> p;
  Channel<std::string> c;
  p.h->give(c.reader(), "r");
  auto from = p.f->template reader<std::string>("r");
  const std::size_t sizes[] = {w::kLargest - w::kHeader - 1,
                               w::kLargest - w::kHeader,
                               w::kLargest - w::kHeader + 1,
                               5'000'000,
                               3'000'000,
                               200'000,
                               3};
  std::thread writer([&, to = c.writer(), token = Outside()] {
    for (const std::size_t n : sizes) {
      std::string s(n, 'x');
      s.back() = 'y';
      to(std::move(s));
    }
  });
  for (const std::size_t n : sizes) {
    const std::string s = from();
    CHECK(s.size() == n);
    CHECK(s.back() == 'y');
    CHECK(s.find_first_not_of('x') == n - 1);
  }
  writer.join();
}

TEST_CASE("wire 7.1: ends that are given when the session is over have died") {
  const auto home = w::Space::make("home");
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  w::StreamLink link(home, fds[0]);
  ::close(fds[1]);
  link.wait();
  Channel<int> in, out, both;
  Writer<int> to = in.writer();
  Reader<int> from = out.reader();
  link.give(in.reader(), "in");
  link.give(out.writer(), "out");
  CHECK_THROWS_AS(to(1), PeerDied);
  CHECK_THROWS_AS(from(), PeerDied);
  // Operations of the home's own program continue to work.
  Writer<int> writer = both.writer();
  Reader<int> ours = both.reader();
  link.give(both.reader(), "both");
  std::thread reads([&, token = Outside()] { CHECK(ours() == 7); });
  writer(7);
  reads.join();
  // The barrier ends too: the space of one of its parties has ended (rule 8.7).
  Barrier all(1);
  link.give(all, "all");
  CHECK_THROWS_AS(all.sync()(), PeerDied);
}

// Returns the threads of this program.
std::set<std::string> threads() {
  std::set<std::string> all;
  for (const auto& t : std::filesystem::directory_iterator("/proc/self/task"))
    all.insert(t.path().string());
  return all;
}
bool sleeps(const std::string& thread) {
  std::ifstream stat(thread + "/stat");
  const std::string line((std::istreambuf_iterator<char>(stat)), {});
  return line.find(") S ") != std::string::npos;
}

TEST_CASE("wire 14.3: a peer that does not read holds up nobody but itself") {
  const auto home = w::Space::make("home");
  const std::set<std::string> before = threads();
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  w::StreamLink link(home, fds[0]);
  Channel<std::string> c{buffer(4, Overflow::unbounded)};
  link.give(c.reader(), "r");
  // The peer sends HELLO, asks for 500 values of 4,000 bytes, and reads nothing.
  w::Buffer out;
  const w::Buffer lease(8);
  std::uint32_t seq = 0;
  w::append(
      out, {w::Kind::hello, 0, w::kMagic, 0x0001'0001, 99, std::uint64_t{w::kLargest} << 32, lease},
      seq++);
  for (std::uint64_t op = 1; op <= 500; ++op)
    w::append(out, {w::Kind::offer, 0, 0, 0, op, 0, {}}, seq++);
  REQUIRE(::send(fds[1], out.data(), out.size(), 0) == static_cast<ssize_t>(out.size()));
  Writer<std::string> to = c.writer();
  for (int i = 0; i < 500; ++i) to(std::string(4000, 'x'));  // The writes never wait for the peer.
  // The link's thread must not poll whether the peer reads.
  std::set<std::string> ours = threads();
  std::erase_if(ours, [&](const std::string& t) { return before.count(t) != 0; });
  REQUIRE(ours.size() == 1);
  int in_a_row = 0;
  for (int i = 0; i < 1'000'000 && in_a_row < 100; ++i) {
    in_a_row = sleeps(*ours.begin()) ? in_a_row + 1 : 0;
    std::this_thread::yield();
  }
  CHECK(in_a_row == 100);
  ::close(fds[1]);
  CHECK(link.wait().find("its socket") == 0);
}
}  // namespace
}  // namespace wire_links
