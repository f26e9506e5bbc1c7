// Edge cases of section 18: streams whose reads stop early, descriptors that are used wrongly.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <system_error>

#include <weft/io.hpp>
#include "hosted.hpp"

using namespace test;

namespace {
namespace io_bounds_tests {

namespace io = weft::io;
using io::Stream;

// Sends bytes together with a descriptor. A read of the peer stops after these bytes, even if more
// bytes have arrived.
void send_with_descriptor(int to, const char* bytes) {
  const int sent = STDIN_FILENO;
  iovec bytes_at{const_cast<char*>(bytes), std::strlen(bytes)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof sent)] = {};
  msghdr m{};
  m.msg_iov = &bytes_at;
  m.msg_iovlen = 1;
  m.msg_control = control;
  m.msg_controllen = sizeof control;
  cmsghdr* const c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof sent);
  std::memcpy(CMSG_DATA(c), &sent, sizeof sent);
  REQUIRE(sendmsg(to, &m, 0) == static_cast<ssize_t>(bytes_at.iov_len));
}

// Reads 6 bytes. The wait begins before any of these bytes is sent.
void reads_six(Stream s, const std::function<void()>& send) {
  const auto reads = [](Stream from) -> Process {
    std::string all;
    char b[100];
    while (all.size() < 6) all.append(b, co_await from.read_some(b));
    CHECK(all == "abcdef");
  };
  const auto sends = [](const std::function<void()>& f) -> Process {
    co_await weft::yield();
    f();
  };
  weft::run(reads(std::move(s)), sends(send));
}

std::pair<Stream, Stream> connected() {
  io::Listener door(io::Address("127.0.0.1:0"));
  Stream here, there;
  const auto accepts = [](const io::Listener& d, Stream& s) -> Process { s = co_await d.accept(); };
  const auto connects = [](io::Address to, Stream& s) -> Process { s = co_await io::connect(to); };
  weft::run(accepts(door, here), connects(door.address(), there));
  return {here, there};
}

TEST_CASE("rule 18.1: a read that stops before all that has come leaves the rest to the next") {
  auto [a, b] = Stream::pair();
  reads_six(a, [fd = b.fd()] {
    send_with_descriptor(fd, "abc");
    REQUIRE(::send(fd, "def", 3, 0) == 3);
  });
  auto [c, d] = connected();
  reads_six(c, [fd = d.fd()] {
    REQUIRE(::send(fd, "abc", 3, 0) == 3);
    REQUIRE(::send(fd, "!", 1, MSG_OOB) == 1);
    REQUIRE(::send(fd, "def", 3, 0) == 3);
  });
  int fds[2];
  REQUIRE(pipe2(fds, O_DIRECT | O_NONBLOCK) == 0);
  const Stream packets = Stream::adopt(fds[1]);
  reads_six(Stream::adopt(fds[0]), [fd = fds[1]] {
    REQUIRE(write(fd, "abc", 3) == 3);
    REQUIRE(write(fd, "def", 3) == 3);
  });
}

TEST_CASE("rule 18.5: who had a number before does not close what has the number now") {
  int fds[2];
  REQUIRE(pipe(fds) == 0);
  Stream former = Stream::adopt(fds[0]);
  Stream now = Stream::adopt(fds[0]);
  CHECK(!former);
  former = Stream();
  CHECK(fcntl(fds[0], F_GETFD) >= 0);
  now = Stream();
  CHECK(fcntl(fds[0], F_GETFD) < 0);
  close(fds[1]);
}

TEST_CASE("rule 11.1: an object that was moved away") {
  io::Listener door(io::Address("127.0.0.1:0"));
  io::Datagrams post(io::Address("127.0.0.1:0"));
  io::Child child({"true"});
  const io::Listener door_now = std::move(door);
  const io::Datagrams post_now = std::move(post);
  const io::Child child_now = std::move(child);
  // NOLINTBEGIN(bugprone-use-after-move): the test is about objects that were moved from
  char b[10];
  CHECK_THROWS_AS(static_cast<void>(door.accept()), weft::BadUse);
  CHECK_THROWS_AS(door.address(), weft::BadUse);
  CHECK_THROWS_AS(static_cast<void>(io::readable(door)), weft::BadUse);
  CHECK_THROWS_AS(static_cast<void>(post.receive(b)), weft::BadUse);
  CHECK_THROWS_AS(static_cast<void>(post.send("x", post_now.address())), weft::BadUse);
  CHECK_THROWS_AS(post.address(), weft::BadUse);
  CHECK_THROWS_AS(static_cast<void>(child.exited()), weft::BadUse);
  CHECK_THROWS_AS(child.signal(9), weft::BadUse);
  CHECK(door.fd() == -1);
  CHECK(post.fd() == -1);
  door.close();
  post.close();
  // NOLINTEND(bugprone-use-after-move)
  weft::run([](const io::Child& c) -> Process { CHECK(co_await c.exited() == 0); }(child_now));
}

TEST_CASE("rule 18.3: a number that is not open is ready, whatever number it is") {
  weft::run([]() -> Process { co_await io::readable(INT_MAX); }());
}

TEST_CASE("rule 18.5: a program is not given a stream that was closed") {
  auto [in, out] = Stream::pipe();
  in.close();
  int error = 0;
  try {
    io::Child child({"cat"}, in);
  } catch (const std::system_error& e) {
    error = e.code().value();
  }
  CHECK(error == EBADF);
}

TEST_CASE("rule 18.4: all processes that wait for one number are woken") {
  int fds[2];
  REQUIRE(pipe(fds) == 0);
  int woken = 0;
  const auto waits = [](int fd, int& n) -> Process {
    co_await io::readable(fd);
    ++n;
  };
  const auto writes = [](int fd) -> Process {
    co_await weft::yield();
    CHECK(write(fd, "x", 1) == 1);
  };
  weft::run(waits(fds[0], woken), waits(fds[0], woken), writes(fds[1]));
  CHECK(woken == 2);
  close(fds[0]);
  close(fds[1]);
}

TEST_CASE("rule 18.5: a number that the program gives to another file is watched anew") {
  int before[2], now[2];
  REQUIRE(pipe(before) == 0);
  REQUIRE(pipe(now) == 0);
  const auto waits = [](int fd) -> Process { co_await io::readable(fd); };
  const auto replaces = [waits](int fd, int by, int other) -> Process {
    co_await weft::yield();
    REQUIRE(dup2(by, fd) == fd);
    co_await weft::par(waits(fd), [](int to) -> Process {
      co_await weft::yield();
      CHECK(write(to, "x", 1) == 1);
    }(other));
  };
  weft::run(waits(before[0]), replaces(before[0], now[0], now[1]));
  for (const int fd : {before[0], before[1], now[0], now[1]}) close(fd);
}

TEST_CASE("rule 18.5: what comes to a file is nothing for the stream that has its number now") {
  int fds[2];
  REQUIRE(pipe(fds) == 0);
  const int copy = dup(fds[0]);  // The kernel keeps watching the pipe, because `copy` is open.
  const auto waits = [](int fd) -> Process { co_await io::readable(fd); };
  const auto selects = [](Stream s) -> Process {
    CHOSEN(weft::select(io::readable(s), weft::after(1ms)), 1);
  };
  const auto replaces = [selects](int fd, int other) -> Process {
    co_await weft::yield();
    ::close(fd);
    auto ends = Stream::pair();
    Stream &a = ends.first, &b = ends.second;
    REQUIRE((a.fd() == fd || b.fd() == fd));
    co_await weft::par(selects(a.fd() == fd ? a : b), [](int to) -> Process {
      co_await weft::yield();
      CHECK(write(to, "x", 1) == 1);
    }(other));
  };
  weft::run(waits(fds[0]), replaces(fds[0], fds[1]));
  close(copy);
  close(fds[1]);
}

TEST_CASE("rule 18.6: a write that waits ends when nobody reads any more") {
  auto [r, w] = Stream::pipe();
  const auto writes = [](Stream s) -> Process {
    int error = 0;
    try {
      co_await s.write_all(std::string(1'000'000, 'w'));
    } catch (const std::system_error& e) {
      error = e.code().value();
    }
    CHECK(error == EPIPE);
  };
  const auto leaves = [](Stream s) -> Process {
    co_await weft::yield();
    s = Stream();
  };
  weft::run(writes(std::move(w)), leaves(std::move(r)));
}

TEST_CASE("rule 18.6: the read after one that has failed finds the end of the stream") {
  auto [a, b] = connected();
  const auto reads = [](Stream s) -> Process {
    char c[1];
    int error = 0;
    try {
      co_await s.read_some(c);
    } catch (const std::system_error& e) {
      error = e.code().value();
    }
    CHECK(error == ECONNRESET);
    CHECK(co_await s.read_some(c) == 0);
  };
  const auto resets = [](Stream s) -> Process {
    co_await weft::yield();
    const linger at_once{1, 0};
    setsockopt(s.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    s = Stream();
  };
  weft::run(reads(std::move(a)), resets(std::move(b)));
}

TEST_CASE("rule 18.1: a read that waits ends when nobody writes any more") {
  auto [r, w] = Stream::pipe();
  const auto reads = [](Stream s) -> Process {
    char c[1];
    CHECK(co_await s.read_some(c) == 0);
  };
  const auto leaves = [](Stream s) -> Process {
    co_await weft::yield();
    s = Stream();
  };
  weft::run(reads(std::move(r)), leaves(std::move(w)));
}

// The operation tries again after pauses, because nothing reports when the socket has room.
TEST_CASE("rules 7.12, 18.1: connecting to a Unix socket that has no room waits, within a limit") {
  std::string folder = std::filesystem::temp_directory_path() / "weft_io_XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const io::Listener door(io::Address("unix:" + folder + "/s"), 0);
  std::vector<Stream> all;
  const auto connects = [](io::Address to, std::vector<Stream>& into,
                           weft::Writer<std::size_t> full) -> Process {
    for (bool room = true; room;) {
      try {
        weft::Timeout limit(1ms);
        into.push_back(co_await io::connect(to));
      } catch (const weft::TimedOut&) {
        room = false;
      }
    }
    co_await full.write(into.size());
    into.push_back(co_await io::connect(to));
  };
  const auto accepts = [](const io::Listener& d, weft::Reader<std::size_t> full) -> Process {
    for (std::size_t left = co_await full.read() + 1; left > 0; --left) co_await d.accept();
  };
  weft::Channel<std::size_t> full;
  weft::run(connects(door.address(), all, full.writer()), accepts(door, full.reader()));
  std::filesystem::remove_all(folder);
}

TEST_CASE("rule 18.1: a descriptor that blocks is adopted, and blocks no more") {
  int fds[2];
  REQUIRE(pipe(fds) == 0);
  const auto reads = [](Stream s) -> Process {
    char c[1];
    try {
      weft::Timeout limit(1ms);
      co_await s.read_some(c);
      FAIL_CHECK("the read has read something");
    } catch (const weft::TimedOut&) {
    }
  };
  weft::run(reads(Stream::adopt(fds[0])));
  close(fds[1]);
}

TEST_CASE("rules 6, 18.1: a process that was woken, and finds nothing, is cancelled") {
  auto ends = Stream::pair();
  Stream &a = ends.first, &b = ends.second;
  bool cancelled = false;
  const auto reads = [](Stream s, bool& told) -> Process {
    char c[1];
    try {
      co_await s.read_some(c);
    } catch (const weft::Cancelled&) {
      told = true;
      throw;
    }
  };
  const auto first = [reads](Stream s, bool& told) -> Process {
    weft::Group g;
    char c[1];
    const auto starts = [](weft::Group& into, Process p) -> Process {
      into.start(std::move(p));
      co_return;
    };
    co_await weft::par(
        [](Stream from, char* at, weft::Group& other) -> Process {
          CHECK(co_await from.read_some({at, 1}) == 1);
          other.cancel();
        }(s, c, g),
        starts(g, reads(s, told)));
    co_await g.wait();
  };
  const auto writes = [](Stream s) -> Process {
    for (int i = 0; i < 5; ++i) co_await weft::yield();
    co_await s.write_all("x");
  };
  weft::run(first(a, cancelled), writes(b));
  CHECK(cancelled);
}

TEST_CASE("rule 18.2: a select that is over is outside no more") {
  auto ends = Stream::pair();
  const auto selects = [](Stream s, weft::Reader<int> r) -> Process {
    CHOSEN(weft::select(io::readable(s), weft::after(1ms)), 1);
    co_await r.read();
  };
  weft::Channel<int> c;
  const auto keeps = c.writer();
  CHECK_THROWS_AS(weft::run(selects(ends.first, c.reader())), weft::Deadlock);
}

// Returns the sum of the counts of this program's eventfds.
std::uint64_t eventfd_sum() {
  std::uint64_t n = 0;
  for (const auto& e : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream in(e.path());
    for (std::string word; in >> word;)
      if (std::uint64_t count = 0; word == "eventfd-count:" && in >> std::hex >> count) n += count;
  }
  return n;
}

TEST_CASE("rule 18.8: an executor that was woken by another thread sleeps again") {
  auto ends = Stream::pair();
  weft::Channel<int> c;
  constexpr int kRounds = 100;
  int silent = 0;
  const auto waits = [](Stream s) -> Process {
    char b[1];
    co_await s.read_some(b);
  };
  // If an eventfd is written a moment too late, only the executor's next sleep resets it. So a
  // single reading may still find a count that is not zero.
  const auto looks = [](weft::Reader<int> r, Stream s, int& n) -> Process {
    const std::uint64_t before = eventfd_sum();
    for (int i = 0; i < kRounds; ++i) {
      co_await r.read();
      if (i >= kRounds / 2 && eventfd_sum() <= before) ++n;
    }
    co_await s.write_all("x");
  };
  weft::run(waits(ends.first), looks(c.reader(), ends.second, silent),
            weft::thread([w = c.writer()]() mutable {
              for (int i = 0; i < kRounds; ++i) w(i);
            }));
  CHECK(silent > 0);
}

}  // namespace io_bounds_tests
}  // namespace
