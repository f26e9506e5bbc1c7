// Tests programs that are started with a session, and how they end (WIRE-LINKS.md 12.2). If a
// program cannot be started, or fails, the error contains the reason and the path.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "weft/weft.hpp"
#include "weft/wire/program.hpp"
#include "weft/wire/shm.hpp"
#include "wire_pair.hpp"

namespace wire_program {
namespace {
using namespace weft;
namespace w = weft::wire;
namespace fs = std::filesystem;

void has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
}

using Command = std::vector<std::string>;
Command shell(const std::string& line) { return {"/bin/sh", "-c", line}; }

// An executable file that exists while this object exists.
struct Script {
  std::string path;
  explicit Script(const std::string& text) {
    char name[] = "/tmp/weft-program-XXXXXX";
    const int fd = ::mkstemp(name);
    REQUIRE(fd >= 0);
    path = name;
    REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    REQUIRE(::fchmod(fd, 0700) == 0);
    ::close(fd);
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;
  ~Script() { ::unlink(path.c_str()); }
};

// Collects the text that is written to stderr while this object exists.
class Stderr {
 public:
  Stderr() {
    REQUIRE(::pipe(ends_) == 0);
    kept_ = ::dup(2);
    ::dup2(ends_[1], 2);
    ::close(ends_[1]);
  }
  Stderr(const Stderr&) = delete;
  Stderr& operator=(const Stderr&) = delete;
  ~Stderr() {
    if (kept_ >= 0) ::dup2(kept_, 2), ::close(kept_);
    ::close(ends_[0]);
  }
  // Waits for the next line and returns it.
  std::string line() {
    std::string s;
    for (char c; ::read(ends_[0], &c, 1) == 1 && c != '\n';) s += c;
    return s;
  }

 private:
  int ends_[2], kept_ = -1;
};

std::set<int> descriptors() {
  std::set<int> all;
  for (const auto& e : fs::directory_iterator("/proc/self/fd"))
    all.insert(std::stoi(e.path().filename()));
  return all;
}

// While this object exists, a standstill is reported after a millisecond.
struct Impatient {
  Impatient() { on_standstill({}, std::chrono::milliseconds(1)); }
  ~Impatient() { on_standstill({}, std::chrono::seconds(2)); }
};

std::string why_not(const Command& command) {
  const auto space = w::Space::make("main");
  try {
    const w::Program p(space, command);
  } catch (const BadUse& e) {
    return e.what();
  }
  return "";
}

TEST_CASE(
    "wire 12.2: a program that cannot be started is bad use, which has the path and the reason "
    "(rule 11)") {
  const Script no_head("echo hello\n"), no_interpreter("#!/nowhere/at-all\n");
  const std::set<int> before = descriptors();
  struct {
    Command command;
    const char* says;
  } const cases[] = {
      {{"/nowhere/filter"}, "'/nowhere/filter' cannot be started: No such file or directory"},
      {{"weft-no-such-filter"}, "PATH is not searched"},
      {{""}, "No such file"},
      {{}, "the command is empty"},
      {{"/tmp"}, "'/tmp' cannot be started: Permission denied (it is a directory)"},
      {{"/etc/passwd"}, "'/etc/passwd' cannot be started: Permission denied"},
      {{no_head.path}, "a script begins with #!"},
      {{no_interpreter.path}, "its interpreter, after the #!, is not there"},
      {{std::string("/bin/true\0x", 11)}, "the command has a zero byte in it"},
      {{"/bin/echo", std::string("a\0b", 3)}, "the command has a zero byte in it"},
  };
  for (const auto& c : cases) has(why_not(c.command), c.says);
  CHECK(descriptors() == before);
}

// Waits until the exit status is available, since the closed socket alone would be too early.
template <class P>
void until_ended(const P& p) {
  siginfo_t s;
  while (::waitid(P_PID, static_cast<id_t>(p.pid()), &s, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
}

TEST_CASE_TEMPLATE(
    "wire 12.2: of a program that has ended PeerDied says how, where an end is waited for", L,
    w::StreamLink, w::ShmLink) {
  const auto space = w::Space::make("main");
  for (const auto& [line, says] :
       {std::pair("exit 3", "'/bin/sh' has ended with status 3"),
        std::pair("echo early >/dev/null; exit 0", "'/bin/sh' has ended with status 0"),
        std::pair("kill -TERM $$", "'/bin/sh' was ended by signal 15, Terminated")}) {
    w::ProgramOver<L> p(space, shell(line));
    until_ended(p);
    CHECK_THROWS_WITH_AS(p.link().template reader<int>("x"), doctest::Contains(says), PeerDied);
    has(p.link().wait(), says);
    has(p.link().greeted(), says);
    const int status = p.wait();
    CHECK(p.wait() == status);
    CHECK(p.pid() == -1);
    p.kill();  // p has no process any more.
  }
}

TEST_CASE("wire 12.2: a program gets its socket open, and what else starts meanwhile does not") {
  const std::set<int> before = descriptors();
  const auto space = w::Space::make("main");
  w::Program p(space, shell("test -e /proc/self/fd/$WEFT_WIRE && exit 7"));
  int checked = 0;
  for (const int fd : descriptors()) {
    // The list also contains the descriptor by which it was read, which is closed by now.
    if (before.contains(fd) || ::fcntl(fd, F_GETFD) < 0) continue;
    CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    ++checked;
  }
  CHECK(checked >= 2);
  CHECK(WEXITSTATUS(p.wait()) == 7);
}

TEST_CASE("wire 12.2: where the system keeps no status it is not known, and not a good one") {
  const auto space = w::Space::make("main");
  const auto kept = std::signal(SIGCHLD, SIG_IGN);
  {
    w::Program p(space, shell("exit 3"));
    CHECK(p.wait() == -1);
    has(p.link().wait(), "'/bin/sh' has ended");
  }
  std::signal(SIGCHLD, kept);
}

TEST_CASE(
    "wire 12.2: whoever waits for a program that goes on after its session says so (rule 10.6)") {
  Stderr said;
  const Impatient soon;
  const auto space = w::Space::make("main");
  std::optional<w::Program> p(std::in_place, space, shell("kill -STOP $$; exit 0"));
  const pid_t pid = p->pid();
  siginfo_t s;
  REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &s, WSTOPPED | WNOWAIT) == 0);
  std::thread goes([&] { p.reset(); });
  const std::string line = said.line();
  ::kill(pid, SIGCONT);
  goes.join();
  has(line, "~Program waits for '/bin/sh'");
  has(line, "it is stopped");
}

TEST_CASE("wire 7.1: whoever waits for an end that does not come is told what has (rule 10.6)") {
  const Impatient soon;
  Stderr said;
  test::Pair p(false);
  Channel<int> c;
  const auto kept = c.reader();
  std::thread waits([&] { static_cast<void>(p.f->reader<int>("wanted")); });
  has(said.line(), "the peer that has not said who it is has not handed out 'wanted'; nothing has");
  p.greet();
  p.h->give(c.reader(), "wanted");
  waits.join();
  p.h->give(c.reader(), "other");
  std::thread waits_again([&] {
    static_cast<void>(p.f->reader<int>("other"));
    static_cast<void>(p.f->reader<int>("typo"));
  });
  has(said.line(),
      "the peer 'home' has not handed out 'typo'; what has come: 'wanted' (taken), 'other'");
  p.h->give(c.reader(), "typo");
  waits_again.join();
}

TEST_CASE("wire 12.2: a variable that is no socket of ours is bad use where it is taken") {
  CHECK(w::inherited() == -1);
  for (const char* wrong : {"", "x", "3x", "-1", "99999999999", "1000000"}) {
    ::setenv("WEFT_WIRE", wrong, 1);
    CHECK_THROWS_WITH_AS(w::inherited(), doctest::Contains("inherited: WEFT_WIRE is '"), BadUse);
    CHECK(w::inherited() == -1);
  }
}

}  // namespace
}  // namespace wire_program
