// Tests the reports of programs about themselves, and the conclusions from these reports (WIRE.md
// 10.2, 10.3, 10.6), without any program. Also tests the reports that are refused from a peer.
// wire_rounds.cpp tests whole programs.
#include <doctest/doctest.h>

#include "weft/weft.hpp"
#include "weft/wire/rounds.hpp"
#include "wire_world.hpp"

namespace wire_everywhere {
namespace {
using namespace weft;
namespace w = weft::wire;
using P = w::InProgram;
using How = P::How;

// Returns two programs. Program 1 has the home of the channels 10 and 20, and lends program 2 the
// reader end of 10 (as end 0) and the writer end of 20 (as end 1). Each program has a process that
// waits to read.
w::Everywhere two_programs() {
  P a, b;
  a.incarnation = 1, a.name = "a", a.pid = 11, a.waits = true, a.standstills = {3};
  b.incarnation = 2, b.name = "b", b.pid = 22, b.waits = true, b.standstills = {5};
  a.sessions = {{2, 7, 9}};
  b.sessions = {{1, 9, 7}};
  a.lent = {{2, 0, 10, false, 0, 4}, {2, 1, 20, true, 4, 0}};
  b.far = {{1, 0, 6}, {1, 1, 6}};
  a.processes = {{1, 4, 0, false, "main/x", "read", "a.cpp:1", {{How::read, 0, 20, 0, "'back'"}}}};
  b.processes = {{1, 6, 0, false, "main/y", "read", "b.cpp:2", {{How::read, 1, 0, 0, "'to'"}}}};
  return {{a, b}, true};
}

TEST_CASE("wire 10.6: what a program says is read as it was written, and nothing else is") {
  w::Everywhere e = two_programs();
  e.programs[0].processes.push_back({2, 9, 4, true, "main", "wait", "a.cpp:3", {}});
  w::Buffer all;
  for (const P& p : e.programs) p.put(all);
  w::Bytes in = all;
  for (const P& p : e.programs) {
    const auto got = P::get(in);
    REQUIRE(got);
    w::Buffer x, y;
    p.put(x), got->put(y);
    CHECK(x == y);
    CHECK(got->processes.size() == p.processes.size());
    CHECK(got->name == p.name);
  }
  CHECK(in.empty());
  w::Buffer one;
  e.programs[0].put(one);
  for (std::size_t n = 0; n < one.size(); ++n) {
    w::Bytes cut = w::Bytes(one).first(n);
    CHECK_FALSE(P::get(cut));
  }
  // Counts that announce more entries than follow are refused before any memory is requested.
  for (std::size_t at = 0; at + 4 <= one.size(); ++at) {
    w::Buffer spoilt = one;
    for (std::size_t i = 0; i < 4; ++i) spoilt[at + i] = std::byte{0xFF};
    w::Bytes read = spoilt;
    if (const auto p = P::get(read)) CHECK(read.size() < spoilt.size());
  }
}

TEST_CASE("wire 10.3: a standstill: all wait, nothing is under way, nobody else has a session") {
  CHECK(two_programs().stands_still());
  w::Everywhere e = two_programs();
  SUBCASE("one runs") { e.programs[1].waits = false; }
  SUBCASE("a frame is under way") { e.programs[0].sessions[0].sent = 8; }
  SUBCASE("one that has been taken in, and not been queued") {
    e.programs[0].sessions[0].received = 10;
  }
  SUBCASE("a session with one that was not asked") { e.programs[1].sessions.push_back({3, 0, 0}); }
  SUBCASE("one side alone has the session") { e.programs[1].sessions.clear(); }
  SUBCASE("some have not answered") { e.whole = false; }
  SUBCASE("nobody has answered") { e.programs.clear(); }
  CHECK_FALSE(e.stands_still());
}

TEST_CASE("wire 10.3: numbers of frames wrap, and two sessions of the same two count together") {
  w::Everywhere e = two_programs();
  e.programs[0].sessions = {{2, 0xFFFF'FFFFu, 1}, {2, 2, 3}};
  e.programs[1].sessions = {{1, 3, 2}, {1, 1, 0xFFFF'FFFFu}};
  CHECK(e.stands_still());
  e.programs[1].sessions[1].received = 0;
  CHECK_FALSE(e.stands_still());
}

TEST_CASE("wire 10.3: between two rounds nothing has moved: no frame, and no run has gone on") {
  const w::Everywhere first = two_programs();
  w::Everywhere second = two_programs();
  std::swap(second.programs[0], second.programs[1]);  // The order of the answers does not matter.
  CHECK_FALSE(second.has_moved_since(first));
  SUBCASE("a frame each way") {
    ++second.programs[0].sessions[0].sent, ++second.programs[1].sessions[0].received;
    CHECK(second.stands_still());
  }
  SUBCASE("a run went on, and rests again") { second.programs[0].standstills = {6}; }
  SUBCASE("a run has come") { second.programs[0].standstills.push_back(1); }
  SUBCASE("a program has gone") { second.programs.pop_back(); }
  CHECK(second.has_moved_since(first));
}

TEST_CASE("wire 10.4: the knot over two programs, and who is in it (rule 10.2)") {
  w::Everywhere e = two_programs();
  const auto k = e.knot();
  CHECK(k.paths == std::vector<std::string>{"main/x in a", "main/y in b"});
  CHECK(k.text ==
        "deadlock: 2 processes are blocked and nothing outside can wake any; they are in 2 "
        "programs\n"
        "  main/x: read 'back' at a.cpp:1, in a (11)\n"
        "  main/y: read 'to' at b.cpp:2, in b (22)\n"
        "knot:\n"
        "  main/x in a waits for main/y in b\n"
        "  main/y in b waits for main/x in a");
}

TEST_CASE("wire 10.7: the name of an end: SipHash-2-4 of nothing, as its authors give it") {
  CHECK(w::detail::siphash(0x0706'0504'0302'0100u, 0x0F0E'0D0C'0B0A'0908u) ==
        0x726F'DB47'DD0E'0E31u);
  CHECK(w::detail::end_name(1) != w::detail::end_name(2));
}

TEST_CASE("wire 10.4: who waits for the knot is not in it; who waits as a parent is no line") {
  w::Everywhere e = two_programs();
  e.programs[1].processes[0].parent = 7;
  e.programs[1].processes.push_back({1, 7, 0, true, "main", "wait", "b.cpp:9", {}});
  e.programs[1].processes.push_back(
      {1, 8, 7, false, "main/z", "read", "b.cpp:3", {{How::read, 1, 0, 0, "'to'"}}});
  const auto k = e.knot();
  CHECK(k.paths.size() == 2);
  CHECK(k.text.find("deadlock: 3 processes are") == 0);
  CHECK(k.text.find("main/z: read 'to' at b.cpp:3") != std::string::npos);
  CHECK(k.text.find("\n  main: wait") == std::string::npos);
}

TEST_CASE(
    "wire 10.4: of an end that nobody has used anybody there may have it; and of one whose "
    "holder is not known that is said") {
  w::Everywhere e = two_programs();
  e.programs[1].far = {{1, 0, 0}, {1, 1, 0}};
  e.programs[1].processes.push_back(
      {1, 8, 0, false, "main/z", "read", "b.cpp:3", {{How::read, 1, 0, 0, "'to'"}}});
  CHECK(e.knot().text.find("main/x in a waits for main/y in b or main/z in b") !=
        std::string::npos);
  e = two_programs();
  e.programs[0].lent.pop_back();  // No program holds the other side of channel 20.
  const auto k = e.knot();
  CHECK(k.paths == std::vector<std::string>{"main/x in a"});
  CHECK(k.text.find("whoever is on the other side of 'back' (nobody that is known)") !=
        std::string::npos);
}

TEST_CASE("wire 10.4: at a barrier whoever is not there may be missing, where it is known") {
  w::Everywhere e = two_programs();
  e.programs[0].processes[0].places = {{How::sync, 0, 30, 0, "'step'"}};
  e.programs[0].lent.push_back({2, 2, 30, false, 0, 0});
  e.programs[1].processes.push_back(
      {1, 8, 0, false, "main/z", "sync", "b.cpp:3", {{How::sync, 1, 2, 0, "'step'"}}});
  const auto k = e.knot();
  CHECK(k.text.find("main/x in a waits for main/y in b\n") != std::string::npos);
  CHECK(k.paths == std::vector<std::string>{"main/x in a", "main/y in b"});
}

TEST_CASE("wire 10.6: everywhere, for people: names, who waits where, and frames") {
  w::Everywhere e = two_programs();
  e.programs[1].waits = false;
  e.programs[1].processes.clear();
  e.whole = false;
  CHECK(e.text() ==
        "2 programs, and some that have not answered\n"
        "a (11): waits; links: 1, frames sent: 7, received: 9, ends that others have: 2\n"
        "  main/x: read 'back' at a.cpp:1, in a (11)\n"
        "b (22): runs; links: 1, frames sent: 9, received: 7, ends that others have: 0");
}

// --- frames --------------------------------------------------------------------------------------

// A space that answers rounds, and its peer, which may answer rounds too.
struct Asked {
  std::shared_ptr<w::Space> home = w::Space::make("home", 1), far = w::Space::make("far", 2);
  w::Rounds rounds{home};
  struct Nobody final : w::Inquirer {
    const char* heard(w::Peer&, const w::Frame& f) override {
      return got = f.kind, bytes = f.val, where = f.where, nullptr;
    }
    void gone(w::Peer&) noexcept override {}
    w::Kind got{};
    std::uint64_t bytes = 0;
    std::uint32_t where = 9;
  } nobody;
  std::optional<test::Wire> wire;
  explicit Asked(bool both) {
    if (both) {
      const w::Space::Step step(*far);
      far->may_be_asked(nobody);
    }
    wire.emplace(*home, *far);
    wire->pump();
  }
  const std::string& after(const w::Frame& f) {
    wire->to_home(f);
    wire->pump();
    return wire->at_home.session.why();
  }
};

TEST_CASE("wire 10.6: frames of a round move no counter, and are answered") {
  Asked t(true);
  const auto sent = t.wire->at_home.session.sent(), got = t.wire->at_home.session.received();
  CHECK(t.after(w::Frame{w::Kind::ask, 0, 0, 1, 2, 0, {}}).empty());
  CHECK(t.nobody.got == w::Kind::said);
  t.nobody.got = {};
  // The same question is sent again.
  CHECK(t.after(w::Frame{w::Kind::ask, 0, 0, 1, 2, 0, {}}).empty());
  CHECK(t.nobody.got == w::Kind::said);
  CHECK(t.wire->at_home.session.sent() == sent);
  CHECK(t.wire->at_home.session.received() == got);
  // The next frame is the answer to an earlier round.
  CHECK(t.after(w::Frame{w::Kind::said, 0, 0, 9, 2, 0, {}}).empty());
}

TEST_CASE("wire 10.6: who is asked only whether all wait, and does not, asks nobody else") {
  Asked t(true);  // The program has no run that could wait.
  const auto third = w::Space::make("third", 3);
  Asked::Nobody other;
  {
    const w::Space::Step step(*third);
    third->may_be_asked(other);
  }
  // While the space has no other session, its own answer is complete: no other program's answer is
  // missing.
  CHECK(t.after(w::Frame{w::Kind::ask, 0, 1, 1, 2, 0, {}}).empty());
  CHECK((t.nobody.got == w::Kind::said && t.nobody.where == 0 && t.nobody.bytes > 0));
  test::Wire beyond(*t.home, *third);
  beyond.pump();
  t.nobody.got = {};
  CHECK(t.after(w::Frame{w::Kind::ask, 0, 1, 2, 2, 0, {}}).empty());
  beyond.pump();
  CHECK(other.got == w::Kind{});
  CHECK((t.nobody.got == w::Kind::said && t.nobody.where == 2 && t.nobody.bytes > 0));
}

TEST_CASE("wire 10.6: who is asked asks its other peers first, in each round anew") {
  Asked t(true);
  const auto third = w::Space::make("third", 3);
  Asked::Nobody other;
  {
    const w::Space::Step step(*third);
    third->may_be_asked(other);
  }
  test::Wire beyond(*t.home, *third);
  beyond.pump();
  for (std::uint32_t round = 1; round < 4; ++round) {
    CAPTURE(round);
    t.nobody.got = other.got = {};
    CHECK(t.after(w::Frame{w::Kind::ask, 0, 0, round, 2, 0, {}}).empty());
    CHECK(t.nobody.got == w::Kind{});  // No answer is sent before the third program has answered.
    beyond.pump();
    CHECK(other.got == w::Kind::ask);
    beyond.to_home(w::Frame{w::Kind::said, 0, 0, round, 2, 0, {}});
    beyond.pump();
    t.wire->pump();
    CHECK(t.nobody.got == w::Kind::said);
    CHECK(t.nobody.bytes > 0);
    t.nobody.got = {};
    // The same question arrives again, as if over another session.
    CHECK(t.after(w::Frame{w::Kind::ask, 0, 0, round, 2, 0, {}}).empty());
    CHECK(t.nobody.got == w::Kind::said);
    CHECK(t.nobody.bytes == 0);
  }
}

TEST_CASE("wire 10.6: while one asks the other is asked too; whoever goes is not waited for") {
  Asked t(true);
  w::Everywhere e;
  std::thread asks([&] { e = t.rounds.everywhere(std::chrono::hours(1)); });
  const auto has_asked = [&t] {
    const w::Space::Step step(*t.home);
    return t.wire->can_down();
  };
  while (!has_asked()) std::this_thread::yield();
  t.wire->pump();
  CHECK(t.nobody.got == w::Kind::ask);
  t.wire->tell(t.wire->at_home);
  asks.join();
  CHECK(e.programs.size() == 1);
  CHECK_FALSE(e.whole);
  CHECK_FALSE(e.stands_still());
}

TEST_CASE("wire 10.6: who does not answer in time is left out") {
  Asked t(true);
  const w::Everywhere e = t.rounds.everywhere(std::chrono::nanoseconds(1));
  CHECK(e.programs.size() == 1);
  CHECK_FALSE(e.whole);
}

TEST_CASE("wire 14.2: what a peer may not say in a round") {
  using F = w::Frame;
  using K = w::Kind;
  SUBCASE("a question from a peer that answers none") {
    Asked t(false);
    CHECK_FALSE(t.after(F{K::ask, 0, 0, 1, 2, 0, {}}).empty());
  }
  SUBCASE("") {
    Asked t(true);
    CHECK_FALSE(t.after(F{K::said, 0, 3, 1, 2, 0, {}}).empty());
  }
  SUBCASE("") {
    Asked t(true);
    CHECK_FALSE(t.after(F{K::tell, 0, 2, 1, 2, 0, {}}).empty());
  }
  SUBCASE("a SAID that was not asked for") {
    Asked t(true);
    CHECK(t.after(F{K::ask, 0, 0, 1, 2, 0, {}}).empty());
    CHECK_FALSE(t.after(F{K::said, 0, 0, 1, 2, 0, {}}).empty());
  }
  SUBCASE("very many who ask") {
    Asked t(true);
    for (std::uint64_t asker = 2; asker < 258; ++asker)
      REQUIRE(t.after(F{K::ask, 0, 0, 1, asker, 0, {}}).empty());
    CHECK_FALSE(t.after(F{K::ask, 0, 0, 1, 300, 0, {}}).empty());
  }
  SUBCASE("a deadlock, where nobody waits: it is passed over; nonsense too") {
    Asked t(true);
    const w::Buffer nonsense(9, std::byte{0xFF});
    CHECK(t.after(F{K::tell, 0, 0, 1, 2, nonsense.size(), nonsense}).empty());
    // The next frame announces that more data follows.
    CHECK(t.after(F{K::tell, 0, 1, 2, 2, nonsense.size(), nonsense}).empty());
    CHECK(t.after(F{K::tell, 0, 0, 2, 2, 0, {}}).empty());
  }
}

}  // namespace
}  // namespace wire_everywhere
