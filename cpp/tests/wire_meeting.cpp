// Tests named meeting points, and the faults that a meeting point can have (wire 12.3, 14.4).
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "weft/weft.hpp"
#include "weft/wire/meeting.hpp"
#include "weft/wire/program.hpp"

namespace wire_meeting {
namespace {
using namespace weft;
namespace w = weft::wire;

// A directory for one test, removed at the end.
struct Directory {
  std::string path;
  Directory() {
    char name[] = "/tmp/weft-test-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~Directory() { std::filesystem::remove_all(path); }
  w::MeetingOptions options() const { return {path, false}; }
};

TEST_CASE(
    "wire 12.3: two programs that nobody started together meet by a name, each hands the other an "
    "end; then the name is free again") {
  const Outside outside;
  Directory d;
  const auto a = w::Space::make("a"), b = w::Space::make("b");
  Channel<int> c;
  {
    w::Meeting point(a, "orders", d.options());
    std::thread comes([&, token = Outside()] {
      auto link = w::meet(b, "orders", d.options());
      auto to = link->writer<int>("in");
      for (int i = 0; i < 10; ++i) to(i);
      to.retire();
      link->wait();
    });
    auto link = point.next();
    REQUIRE(link);
    CHECK(link->greeted().empty());
    link->give(c.writer(), "in");
    int sum = 0;
    for (const int v : c.reader()) sum += v;
    CHECK(sum == 45);
    link.reset();
    comes.join();
  }
  const w::Meeting again(a, "orders", d.options());
  CHECK(again.path() == d.path + "/orders");
}

TEST_CASE(
    "wire 12.3: many who want one name at once: one has it at a time, and when all have gone "
    "nothing is left in the directory") {
  const Outside outside;
  Directory d;
  std::atomic<int> inside{0}, opened{0}, worst{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([&, token = Outside()] {
      const auto space = w::Space::make("a");
      for (int i = 0; i < 200; ++i) try {
          const w::Meeting point(space, "orders", d.options());
          worst = std::max<int>(worst, ++inside);
          ++opened;
          CHECK(std::filesystem::is_socket(point.path()));
          --inside;
        } catch (const BadUse& e) {
          CHECK(std::string(e.what()).find("is taken") != std::string::npos);
        }
    });
  for (std::thread& t : all) t.join();
  CHECK((opened > 0 && worst == 1));
  CHECK(std::filesystem::is_empty(d.path));
  std::ofstream(d.path + "/orders") << "no socket";
  CHECK_THROWS_AS(w::Meeting(w::Space::make("a"), "orders", d.options()), BadUse);
  std::filesystem::remove(d.path + "/orders");
  CHECK(std::filesystem::is_empty(d.path));
}

TEST_CASE("wire 12.3: several come at once, and one that says nothing holds up nobody") {
  const Outside outside;
  Directory d;
  const auto a = w::Space::make("a");
  w::Meeting point(a, "p", d.options());
  const int silent = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = w::detail::address_of(point.path());
  REQUIRE(::connect(silent, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  std::vector<std::thread> come;
  std::atomic<int> met{0};
  for (int i = 0; i < 5; ++i)
    come.emplace_back([&] {
      auto link = w::meet(w::Space::make("x"), "p", d.options());
      ++met;
      link->wait();
    });
  std::vector<std::unique_ptr<w::StreamLink>> links;
  for (int i = 0; i < 6; ++i) links.push_back(point.next());
  while (met < 5) std::this_thread::yield();
  for (auto& l : links) l->bye("enough");
  for (std::thread& t : come) t.join();
  ::close(silent);
}

TEST_CASE(
    "wire 12.3: a name that is taken, that nobody has opened, that will not do: bad use that says "
    "what to do") {
  Directory d;
  const auto a = w::Space::make("a");
  const w::Meeting point(a, "taken", d.options());
  CHECK_THROWS_WITH_AS(w::Meeting(a, "taken", d.options()),
                       doctest::Contains("the name is taken by a program that runs"), BadUse);
  CHECK_THROWS_WITH_AS((void)w::meet(a, "nobody", d.options()),
                       doctest::Contains("no program has opened it"), BadUse);
  for (const std::string& bad :
       std::vector<std::string>{"", "a/b", "..", ".hidden", std::string(61, 'x')})
    CHECK_THROWS_WITH_AS(w::Meeting(a, bad, d.options()),
                         doctest::Contains("a name has 1 to 60 bytes"), BadUse);
  CHECK_THROWS_WITH_AS(w::Meeting(a, "x", {d.path + "/none", false}),
                       doctest::Contains("is not a directory"), BadUse);
  const std::string deep = d.path + "/" + std::string(100, 'd');
  std::filesystem::create_directory(deep);
  std::filesystem::permissions(deep, std::filesystem::perms::owner_all);
  CHECK_THROWS_WITH_AS(w::Meeting(a, "x", {deep, false}),
                       doctest::Contains("too long for a Unix socket"), BadUse);
  {
    const std::unique_ptr<FILE, int (*)(FILE*)> f(std::fopen((d.path + "/file").c_str(), "w"),
                                                  &std::fclose);
  }
  CHECK_THROWS_WITH_AS(w::Meeting(a, "file", d.options()),
                       doctest::Contains("is there and is not a socket"), BadUse);
}

TEST_CASE(
    "wire 14.4: a directory that others may enter is refused, unless told otherwise; the socket is "
    "the user's own") {
  Directory d;
  const auto a = w::Space::make("a");
  REQUIRE(::chmod(d.path.c_str(), 0755) == 0);
  CHECK_THROWS_WITH_AS(w::Meeting(a, "x", d.options()),
                       doctest::Contains("other users may enter its directory"), BadUse);
  CHECK_THROWS_AS((void)w::meet(a, "x", d.options()), BadUse);
  const w::Meeting open(a, "x", {d.path, true});
  struct stat s;
  REQUIRE(::stat(open.path().c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0666);
  REQUIRE(::chmod(d.path.c_str(), 0700) == 0);
  const w::Meeting own(a, "y", d.options());
  REQUIRE(::stat(own.path().c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0600);
  // A link to another user's directory does not count as a directory.
  const std::string link = d.path + "/link";
  REQUIRE(::symlink("/tmp", link.c_str()) == 0);
  CHECK_THROWS_WITH_AS(w::Meeting(a, "x", {link, false}), doctest::Contains("is not a directory"),
                       BadUse);
}

TEST_CASE("wire 14.4: the user's own directory is made, and is nobody else's") {
  Directory d;
  const char* const before = std::getenv("XDG_RUNTIME_DIR");
  const std::string kept = before ? before : "";
  ::setenv("XDG_RUNTIME_DIR", d.path.c_str(), 1);
  {
    const w::Meeting point(w::Space::make("a"), "x");
    struct stat s;
    REQUIRE(::stat((d.path + "/weft").c_str(), &s) == 0);
    CHECK((s.st_mode & 0777) == 0700);
  }
  if (before)
    ::setenv("XDG_RUNTIME_DIR", kept.c_str(), 1);
  else
    ::unsetenv("XDG_RUNTIME_DIR");
}

TEST_CASE(
    "wire 14.4: another user's program is sent away, whatever the directory allows (only root can "
    "try)") {
  if (::getuid() != 0) return;
  const Outside outside;
  Directory d;
  REQUIRE(::chmod(d.path.c_str(), 0700) == 0);
  static std::atomic<int> sent_away;
  sent_away = 0;
  w::Meeting point(w::Space::make("a"), "x", d.options());
  point.on_refused = [](const std::string& why) {
    sent_away += why == "a program of another user tried to connect";
  };
  // From now on other users may reach the socket.
  REQUIRE(::chmod(d.path.c_str(), 0755) == 0);
  REQUIRE(::chmod(point.path().c_str(), 0666) == 0);
  std::thread waits([&, token = Outside()] { CHECK(point.next() == nullptr); });
  const sockaddr_un address = w::detail::address_of(point.path());
  const pid_t child = ::fork();
  if (child == 0) {
    char c;
    const int s = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const bool came =
        ::setuid(65534) == 0 &&
        ::connect(s, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    ::_exit(came && ::recv(s, &c, 1, 0) == 0 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  while (sent_away == 0) std::this_thread::yield();
  point.close();
  waits.join();
}

TEST_CASE("wire 12.3: a name whose program was killed is taken over") {
  Directory d;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const w::Meeting point(w::Space::make("child"), "x", d.options());
    if (::write(ready[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char c;
  REQUIRE(::read(ready[0], &c, 1) == 1);
  const auto a = w::Space::make("a");
  CHECK_THROWS_WITH_AS(w::Meeting(a, "x", d.options()), doctest::Contains("taken"), BadUse);
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK_THROWS_WITH_AS((void)w::meet(a, "x", d.options()), doctest::Contains("start that first"),
                       BadUse);
  const w::Meeting mine(a, "x", d.options());
  for (const int fd : ready) ::close(fd);
}

TEST_CASE(
    "wire 2.3: a peer of another version is refused at the hand-shake, and both sides name both "
    "versions") {
  const Outside outside;
  Directory d;
  const auto a = w::Space::make("a");
  w::Meeting point(a, "x", d.options());
  // The HELLO of a peer that speaks the versions 2 to 4.
  w::Buffer hello;
  const w::Buffer lease(8);
  w::append(hello,
            {w::Kind::hello, 0, w::kMagic, 0x0004'0002, 5, std::uint64_t{w::kLargest} << 32, lease},
            0);
  {
    const int s = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const sockaddr_un address = w::detail::address_of(point.path());
    REQUIRE(::connect(s, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(::send(s, hello.data(), hello.size(), 0) == static_cast<ssize_t>(hello.size()));
    const auto link = point.next();
    CHECK(link->greeted() == "no common version: this space speaks 1 to 1, the peer 2 to 4");
    // A BYE reports the reason to the peer; afterwards nothing more is sent to the peer.
    std::string said;
    char buffer[512];
    for (ssize_t n; (n = ::recv(s, buffer, sizeof(buffer), 0)) > 0;)
      said.append(buffer, static_cast<std::size_t>(n));
    CHECK(said.find("no common version: this space speaks 1 to 1, the peer 2 to 4") !=
          std::string::npos);
    ::close(s);
  }
  // In the opposite direction, a program connects to a peer with the versions 2 to 4.
  std::thread other([&] {
    const int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const sockaddr_un address = w::detail::address_of(d.path + "/new");
    CHECK(::bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    CHECK(::listen(listening, 1) == 0);
    const int s = ::accept(listening, nullptr, nullptr);
    CHECK(::send(s, hello.data(), hello.size(), 0) == static_cast<ssize_t>(hello.size()));
    char c;
    while (::recv(s, &c, 1, 0) > 0) {
    }
    ::close(s);
    ::close(listening);
  });
  for (bool there = false; !there; std::this_thread::yield()) {
    try {
      (void)w::meet(a, "new", d.options());
    } catch (const BadUse& e) {
      there = std::string(e.what()).find("this space speaks 1 to 1, the peer 2 to 4") !=
              std::string::npos;
    }
  }
  other.join();
}

TEST_CASE("wire 7.2, 12.3: what is met by name is checked by type, and both are named") {
  const Outside outside;
  Directory d;
  const auto a = w::Space::make("a"), b = w::Space::make("b");
  w::Meeting point(a, "x", d.options());
  Channel<int> c;
  std::thread comes([&, token = Outside()] {
    auto link = w::meet(b, "x", d.options());
    CHECK_THROWS_WITH_AS((void)link->reader<double>("c"),
                         doctest::Contains("is of type i4, and f8 was asked for"), BadUse);
  });
  auto link = point.next();
  link->give(c.reader(), "c");
  comes.join();
}
}  // namespace
}  // namespace wire_meeting
