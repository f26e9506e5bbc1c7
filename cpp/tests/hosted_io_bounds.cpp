// Section 18 at its bounds: streams whose reads stop early, descriptors that are used wrongly.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <functional>
#include <system_error>

#include <weft/io.hpp>
#include "hosted.hpp"

using namespace test;

namespace {
namespace io_bounds_tests {

namespace io = weft::io;
using io::Stream;

// Sends bytes, and with them a descriptor. A read of the peer ends after these bytes.
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

// Reads 6 bytes, having waited before any of them was sent.
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
    REQUIRE(send(fd, "def", 3, 0) == 3);
  });
  auto [c, d] = connected();
  reads_six(c, [fd = d.fd()] {
    REQUIRE(send(fd, "abc", 3, 0) == 3);
    REQUIRE(send(fd, "!", 1, MSG_OOB) == 1);
    REQUIRE(send(fd, "def", 3, 0) == 3);
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
  // NOLINTBEGIN(bugprone-use-after-move): this is what the test is about
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

}  // namespace io_bounds_tests
}  // namespace
