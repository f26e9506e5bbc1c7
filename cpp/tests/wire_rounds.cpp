// Deadlock over several programs, by rounds (WIRE.md 10.6, rule 10.1). The program starts itself
// again, so this test is a program of its own. Last line: N passed, N failed.
//
// The started program has one of several parts, which is a run of one process; its exit status
// shows how the run ended.
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <thread>

#include "weft/weft.hpp"
#include "weft/wire/meeting.hpp"
#include "weft/wire/program.hpp"
#include "weft/wire/rounds.hpp"
#include "weft/wire/shm.hpp"

namespace {
using namespace weft;
namespace w = weft::wire;

enum Status : int { well = 0, deadlock = 42, peer_died = 43, otherwise = 44 };

// Takes one value, then passes it on.
Process passes(w::FarReader<int> in, w::FarWriter<int> out) {
  co_await out.write(co_await in.read());
}
Process meets(w::FarBarrier b) { co_await b.sync(); }
// Takes one value from a channel of its own program, then passes it on.
Process passes_on(Reader<int> in, w::FarWriter<int> out) { co_await out.write(co_await in.read()); }
// There are so many processes that the answer of a program needs several frames.
constexpr int kMany = 1200;
Process many(w::FarReader<int> in, w::FarWriter<int> out) {
  std::vector<Process> all;
  for (int i = 0; i < kMany; ++i) all.push_back(passes(in, out).named("passes"));
  co_await par(std::move(all));
}
// Answers once, and then waits for a second value, until this program or another program has
// declared the deadlock. `tell` leads to follows().
Process answers(w::FarReader<int> in, w::FarWriter<int> out, Writer<int> tell) {
  const int v = co_await in.read();
  co_await tell.write(v);
  co_await out.write(v);
  co_await in.read();
}
Process follows(Reader<int> told, w::FarReader<int> in, w::FarWriter<int> out) {
  co_await told.read();
  co_await out.write(co_await in.read());
  co_await told.read();
}
// Waits first for an event from outside that no program knows of.
Process asks_a_person(int fd, w::FarWriter<int> out) {
  const int answer = co_await blocking([fd] {
    char c = 0;
    return ::read(fd, &c, 1) == 1 ? int{c} : -1;
  });
  co_await out.write(answer);
}

template <class L>
int part(const std::string& which, int socket, int fd) {
  const auto space = w::Space::make(which);
  std::optional<w::Rounds> rounds;
  if (which != "silent") rounds.emplace(space);
  L link(space, socket);
  try {
    if (which == "home") {
      Channel<int> own{named("own")};
      const Reader<int> in = own.reader();
      link.give(own.writer(), "own");
      run(passes_on(in, link.template writer<int>("out")).named("passes"));
    } else if (which == "many") {
      const auto in = link.template reader<int>("in");
      const auto out = link.template writer<int>("out");
      run(many(in, out).named("many"));
    } else if (which == "barrier")
      run(meets(link.barrier("b")).named("meets"));
    else if (which == "sessions") {
      L other(space, fd);
      Channel<int> own{named("own")};
      run(par(
          answers(link.template reader<int>("in"), link.template writer<int>("out"), own.writer())
              .named("answers"),
          follows(own.reader(), other.template reader<int>("in"), other.template writer<int>("out"))
              .named("follows")));
    } else if (which == "person")
      run(asks_a_person(fd, link.template writer<int>("out")).named("asks"));
    else
      run(passes(link.template reader<int>("in"), link.template writer<int>("out"))
              .named("passes"));
    return well;
  } catch (const Deadlock& e) {
    const std::string text = e.what();
    return text.find("main/passes: read 'in'") != std::string::npos ||
                   text.find("main/passes: read 'own'") != std::string::npos ||
                   text.find("main/many/passes[") != std::string::npos ||
                   text.find("main/follows: read 'own'") != std::string::npos ||
                   text.find("main/meets: sync 'b'") != std::string::npos
               ? deadlock
               : otherwise;
  } catch (const PeerDied&) {
    return peer_died;
  } catch (const std::exception& e) {
    std::printf("in %s: %s\n", which.c_str(), e.what());
    return otherwise;
  }
}

// --- the tests -----------------------------------------------------------------------------------

long passed = 0, failed = 0;
void check(bool good, const char* what, const std::string& detail = {}) {
  ++(good ? passed : failed);
  if (!good) std::printf("FAIL %s\n%s\n", what, detail.c_str());
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }
int status_of(int raw) { return WIFEXITED(raw) ? WEXITSTATUS(raw) : -1; }

template <class L>
struct Starter {
  static constexpr const char* kLink = std::is_same_v<L, w::ShmLink> ? "shm" : "stream";
  std::shared_ptr<w::Space> space = w::Space::make("first");
  w::Rounds rounds{space};
  std::deque<w::ProgramOver<L>> others;
  w::ProgramOver<L>& start(const char* which, int fd = -1) {
    return others.emplace_back(
        space, std::vector<std::string>{"/proc/self/exe", which, kLink, std::to_string(fd)});
  }
};
Process reads(Reader<int> in, int& got) { got = co_await in.read(); }
Process reads_then_writes(Reader<int> in, Writer<int> out, int& got) {
  got = co_await in.read();
  co_await out.write(1);
}
Process syncs(Barrier b) { co_await b.sync(); }

// Runs p, and returns the report of the deadlock, or, without a deadlock, how the run ended.
template <class P>
std::string report_of(P p, std::vector<std::string>* knot = nullptr) {
  try {
    run(std::move(p));
    return "it ended well";
  } catch (const Deadlock& e) {
    if (knot) *knot = e.knot;
    return e.what();
  } catch (const PeerDied&) {
    return "PeerDied";
  }
}

template <class L>
void two_programs() {
  Starter<L> s;
  Channel<int> to{named("to")}, back{named("back")};
  auto& p = s.start("second");
  p.link().give(to.reader(), "in");
  p.link().give(back.writer(), "out");
  const pid_t pid = p.pid();
  int got = 0;
  std::vector<std::string> knot;
  const std::string text =
      report_of(reads_then_writes(back.reader(), to.writer(), got).named("waits"), &knot);
  check(has(text, "deadlock: 2 processes are blocked"), "two programs: a deadlock", text);
  check(has(text, "they are in 2 programs"), "two programs: how many", text);
  check(has(text, "main/waits: read 'back'"), "two programs: ours and its place", text);
  check(has(text, "main/passes: read 'in'"), "two programs: theirs and its place", text);
  check(has(text, ("in second (" + std::to_string(pid) + ")").c_str()),
        "two programs: which program", text);
  check(has(text, "main/waits in first waits for main/passes in second"), "two programs: the knot",
        text);
  check(has(text, "main/passes in second waits for main/waits in first"),
        "two programs: the knot, the other way", text);
  check(knot == std::vector<std::string>{"main/passes in second", "main/waits in first"},
        "two programs: the knot's paths", text);
  check(status_of(p.wait()) == deadlock, "two programs: the other has its Deadlock too");
}

template <class L>
void three_programs() {
  Starter<L> s;
  Channel<int> a{named("a")}, b{named("b")}, c{named("c")};
  auto &second = s.start("second"), &third = s.start("third");
  second.link().give(a.reader(), "in");
  second.link().give(b.writer(), "out");
  third.link().give(b.reader(), "in");
  third.link().give(c.writer(), "out");
  int got = 0;
  std::vector<std::string> knot;
  const std::string text =
      report_of(reads_then_writes(c.reader(), a.writer(), got).named("waits"), &knot);
  check(has(text, "they are in 3 programs") && knot.size() == 3, "three programs: the knot", text);
  check(has(text, "main/passes in third waits for main/passes in second"),
        "three programs: two that do not know each other", text);
  check(status_of(second.wait()) == deadlock, "three programs: the second");
  check(status_of(third.wait()) == deadlock, "three programs: the third");
}

// All three programs have sessions with each other: the third has sent an end to the second.
template <class L>
void a_circle() {
  Starter<L> s;
  Channel<int> to{named("to")}, back{named("back")};
  auto &second = s.start("second"), &third = s.start("home");
  third.link().give(back.writer(), "out");
  second.link().give(to.reader(), "in");
  second.link().give(third.link().template writer_end<int>("own"), "out");
  int got = 0;
  std::vector<std::string> knot;
  const std::string text =
      report_of(reads_then_writes(back.reader(), to.writer(), got).named("waits"), &knot);
  check(has(text, "deadlock: 3 processes are") && knot.size() == 3, "a circle: the knot", text);
  check(has(text, "main/passes in home waits for main/passes in second"),
        "a circle: an end that has moved", text);
  check(status_of(second.wait()) == deadlock, "a circle: the second");
  check(status_of(third.wait()) == deadlock, "a circle: the third");
}

// Two programs with two sessions, as the programs of a network have a session for each name: one
// end of each session has the same number. The peer's process that answers over one session waits
// for the asking process of this program; all other processes wait for these two.
Process asks(Writer<int> to, Reader<int> back) {
  co_await to.write(1);
  for (;;) co_await back.read();
}
template <class L>
void two_sessions() {
  Starter<L> s;
  Channel<int> a{named("a")}, back_a{named("back of a")}, b{named("b")}, back_b{named("back of b")};
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) return check(false, "no socket");
  ::fcntl(fds[0], F_SETFD, FD_CLOEXEC);
  auto& p = s.start("sessions", fds[1]);
  ::close(fds[1]);
  L other(s.space, fds[0]);
  p.link().give(a.reader(), "in");
  p.link().give(back_a.writer(), "out");
  other.give(b.reader(), "in");
  other.give(back_b.writer(), "out");
  std::vector<std::string> knot;
  const std::string text = report_of(par(asks(a.writer(), back_a.reader()).named("first"),
                                         asks(b.writer(), back_b.reader()).named("second")),
                                     &knot);
  check(has(text, "deadlock: 4 processes are"), "two sessions: a deadlock", text);
  check(knot == std::vector<std::string>{"main/answers in sessions", "main/first in first"},
        "two sessions: each end is taken for the one that it is", text);
  check(status_of(p.wait()) == deadlock, "two sessions: the other program");
}

template <class L>
void many_processes() {
  Starter<L> s;
  Channel<int> to{named("to")}, back{named("back")};
  auto& p = s.start("many");
  p.link().give(to.reader(), "in");
  p.link().give(back.writer(), "out");
  int got = 0;
  const std::string text =
      report_of(reads_then_writes(back.reader(), to.writer(), got).named("waits"));
  check(has(text, ("deadlock: " + std::to_string(kMany + 1) + " processes are").c_str()),
        "many processes: all are counted", text);
  check(has(text, "  … and "), "many processes: not all are told", text);
  check(status_of(p.wait()) == deadlock, "many processes: the other");
}

// Two runs of one program wake each other, and the other program waits. There is no moment at which
// all three wait, although each of the three is often found waiting.
Process plays(Reader<int> in, Writer<int> out, bool begins, std::atomic<int>& times) {
  try {
    if (begins) co_await out.write(0);
    for (;; ++times) co_await out.write(co_await in.read());
  } catch (const Poisoned&) {
  }
}
template <class L>
void two_runs() {
  Starter<L> s;
  Channel<int> to{named("to")}, back{named("back")}, ping, pong;
  auto& p = s.start("second");
  p.link().give(to.reader(), "in");
  p.link().give(back.writer(), "out");
  std::atomic<int> times{0};
  std::thread one([&, in = ping.reader(), out = pong.writer(), token = Outside(Outside::link)] {
    run(plays(in, out, true, times));
  });
  std::thread two([&, in = pong.reader(), out = ping.writer(), token = Outside(Outside::link)] {
    run(plays(in, out, false, times));
  });
  while (times == 0) std::this_thread::yield();  // One run may first wait until the other begins.
  bool waits = false;
  for (int i = 0; i < 600 || times < 1000; ++i)
    for (const w::InProgram& x : s.rounds.everywhere(std::chrono::seconds(60)).programs)
      waits = waits || (x.name == "first" && x.waits);
  check(!waits, "two runs that wake each other are never both at rest");
  ping.poison();
  pong.poison();
  one.join();
  two.join();
  p.kill();
}

template <class L>
void a_meeting_point() {
  char path[] = "/tmp/weft-test-XXXXXX";
  if (!::mkdtemp(path)) return check(false, "not a directory");
  {
    Starter<L> s;
    Channel<int> to{named("to")}, back{named("back")};
    auto& p = s.start("second");
    p.link().give(to.reader(), "in");
    p.link().give(back.writer(), "out");
    std::optional<w::Meeting> point(std::in_place, s.space, "rounds",
                                    w::MeetingOptions{path, false});
    bool early = false;
    std::thread closes([&, token = Outside(Outside::link)] {
      for (;;) {  // until the other program waits
        const w::Everywhere e = s.rounds.everywhere(std::chrono::seconds(60));
        early = early || e.stands_still();
        bool waits = false;
        for (const w::InProgram& x : e.programs) waits = waits || (x.name == "second" && x.waits);
        if (waits && e.programs.size() == 2) break;
      }
      point.reset();
    });
    int got = 0;
    const std::string text =
        report_of(reads_then_writes(back.reader(), to.writer(), got).named("waits"));
    closes.join();
    check(!early, "a meeting point that is open: somebody may come");
    check(has(text, "they are in 2 programs"), "once it is closed: a deadlock", text);
    check(status_of(p.wait()) == deadlock, "once it is closed: the other");
  }
  check(::rmdir(path) == 0, "the directory is empty");
}

// A link of another space of this program: a peer of that space can wake this program's runs, but
// no round asks that peer.
template <class L>
void another_space() {
  Starter<L> s;
  Channel<int> to{named("to")}, back{named("back")};
  auto& p = s.start("second");
  p.link().give(to.reader(), "in");
  p.link().give(back.writer(), "out");
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) return check(false, "no socket");
  std::optional<w::StreamLink> link(std::in_place, w::Space::make("beside"), fds[0]);
  bool early = false;
  std::thread closes([&, token = Outside(Outside::link)] {
    for (;;) {  // until the other program waits
      const w::Everywhere e = s.rounds.everywhere(std::chrono::seconds(60));
      bool waits = false;
      for (const w::InProgram& x : e.programs) {
        early = early || (x.name == "first" && x.waits);
        waits = waits || (x.name == "second" && x.waits);
      }
      if (waits) break;
    }
    link.reset();
  });
  int got = 0;
  const std::string text =
      report_of(reads_then_writes(back.reader(), to.writer(), got).named("waits"));
  closes.join();
  ::close(fds[1]);
  check(!early, "a link of another space: nothing is concluded");
  check(has(text, "they are in 2 programs"), "once it is gone: a deadlock", text);
  check(status_of(p.wait()) == deadlock, "once it is gone: the other");
}

template <class L>
void barrier() {
  Starter<L> s;
  Barrier b(3);
  auto& p = s.start("barrier");
  p.link().give(b, "b");
  const std::string text = report_of(syncs(b).named("syncs"));
  check(has(text, "main/syncs: sync ") && has(text, "main/meets: sync 'b'"),
        "a barrier that lacks a party", text);
  check(status_of(p.wait()) == deadlock, "a barrier: the other program");
}

// While one process waits for input from outside, no deadlock is declared; everywhere() returns the
// processes that wait.
template <class L>
void a_person() {
  int fds[2];
  if (::pipe(fds) != 0) return check(false, "no pipe");
  Starter<L> s;
  Channel<int> back{named("back")};
  auto& p = s.start("person", fds[0]);
  p.link().give(back.writer(), "out");
  int got = 0;
  std::thread answers([&, token = Outside(Outside::link)] {
    for (;;) {  // until this program's own process waits
      const w::Everywhere e = s.rounds.everywhere(std::chrono::seconds(60));
      bool ours = false;
      for (const w::InProgram& x : e.programs)
        ours = ours || (x.name == "first" && !x.processes.empty());
      if (!e.whole || e.stands_still())
        return check(false, "a person: nothing stands still", e.text()), std::abort();
      if (!ours || e.programs.size() != 2) continue;
      check(has(e.text(), "person (") && has(e.text(), "): runs; links: 1"),
            "a person: the other program runs", e.text());
      check(has(e.text(), "main/waits: read 'back' at "), "a person: ours waits", e.text());
      break;
    }
    if (::write(fds[1], "*", 1) != 1) std::abort();
  });
  const std::string text = report_of(reads(back.reader(), got).named("waits"));
  answers.join();
  check(text == "it ended well" && got == '*', "a person: it goes on", text);
  check(status_of(p.wait()) == well, "a person: and so does the other");
  ::close(fds[0]), ::close(fds[1]);
}

// No deadlock is declared beside a program without Rounds, or while this program has a thread that
// is not a process.
template <class L>
void somebody_unknown(const char* which) {
  const bool silent = std::strcmp(which, "silent") == 0;
  Starter<L> s;
  Channel<int> to{named("to")}, back{named("back")};
  auto& p = s.start(which);
  p.link().give(to.reader(), "in");
  p.link().give(back.writer(), "out");
  int got = 0;
  std::optional<Outside> outside;
  if (!silent) outside.emplace();
  // The token stands for a link that does not exist, so the thread does not keep a program from
  // concluding that there is a deadlock.
  std::thread gives([&, token = Outside(Outside::link)] {
    for (bool waits = false; !waits;) {
      const w::Everywhere e = s.rounds.everywhere(std::chrono::seconds(60));
      if (e.stands_still())
        return check(false, "somebody unknown: nothing stands still", e.text()), std::abort();
      waits = silent ? e.programs.size() == 1 && e.programs[0].waits
                     : e.programs.size() == 2 && e.programs[0].sessions.size() == 1;
    }
    const Outside mine;  // From now on this thread counts as outside.
    to.writer()(7);
  });
  const std::string text = report_of(reads(back.reader(), got).named("waits"));
  gives.join();
  check(text == "it ended well" && got == 7, "somebody unknown: it goes on", text);
  check(status_of(p.wait()) == well, "somebody unknown: the other too");
}

Process waits_for_a_signal(Reader<int> stop, Reader<int> in) {
  co_await stop.read();
  stop.retire();
  co_await in.read();
}
// While a process of one program waits for a signal no deadlock is declared (rule 10.3).
template <class L>
void a_signal() {
  Starter<L> s;
  signals stop{SIGUSR1};
  Channel<int> to{named("to")}, back{named("back")};
  const auto kept = to.writer();
  auto& p = s.start("second");
  p.link().give(to.reader(), "in");
  p.link().give(back.writer(), "out");
  bool early = false;
  std::thread raises([&, token = Outside(Outside::link)] {
    for (;;) {  // until the other program waits, and no process of this run can run
      const w::Everywhere e = s.rounds.everywhere(std::chrono::seconds(60));
      bool rests = false, waits = false;
      for (const w::InProgram& x : e.programs) {
        early = early || (x.name == "first" && x.waits);
        rests = rests || (x.name == "first" && !x.standstills.empty() && x.standstills[0] > 0);
        waits = waits || (x.name == "second" && x.waits);
      }
      if (rests && waits) break;
    }
    std::raise(SIGUSR1);
  });
  const std::string text =
      report_of(waits_for_a_signal(stop.reader(), back.reader()).named("waits"));
  raises.join();
  check(!early, "who waits for a signal does not wait for other programs");
  check(has(text, "main/waits: read 'back'"), "once it has come: a deadlock", text);
  check(status_of(p.wait()) == deadlock, "once it has come: the other");
}

template <class L>
void killed() {
  Starter<L> s;
  Channel<int> back{named("back")};
  int fds[2];
  if (::pipe(fds) != 0) return check(false, "no pipe");
  auto& p = s.start("person", fds[0]);
  p.link().give(back.writer(), "out");
  int got = 0;
  std::thread kills([&, token = Outside(Outside::link)] {
    while (s.rounds.everywhere(std::chrono::seconds(60)).programs.size() != 2) {
    }
    p.kill();
  });
  const std::string text = report_of(reads(back.reader(), got).named("waits"));
  kills.join();
  check(text == "PeerDied", "a program that is killed is no deadlock", text);
  const w::Everywhere alone = s.rounds.everywhere();
  check(alone.programs.size() == 1 && alone.whole, "it is not asked any more", alone.text());
  p.wait();
  ::close(fds[0]), ::close(fds[1]);
}

template <class L>
void all() {
  two_programs<L>();
  three_programs<L>();
  a_circle<L>();
  two_sessions<L>();
  many_processes<L>();
  two_runs<L>();
  a_meeting_point<L>();
  another_space<L>();
  barrier<L>();
  a_person<L>();
  somebody_unknown<L>("silent");
  somebody_unknown<L>("second");
  a_signal<L>();
  killed<L>();
}
}  // namespace

int main(int argc, char** argv) {
  if (const int socket = w::inherited(); socket >= 0 && argc == 4) {
    const int fd = std::atoi(argv[3]);
    return std::strcmp(argv[2], "shm") == 0 ? part<w::ShmLink>(argv[1], socket, fd)
                                            : part<w::StreamLink>(argv[1], socket, fd);
  }
  {
    const auto space = w::Space::make("one");
    const w::Rounds rounds(space);
    bool refused = false;
    try {
      const w::Rounds second(space);
    } catch (const BadUse&) {
      refused = true;
    }
    check(refused, "a second Rounds is bad use");
  }
  all<w::StreamLink>();
  all<w::ShmLink>();
  std::printf("%ld passed, %ld failed\n", passed, failed);
  return failed != 0;
}
