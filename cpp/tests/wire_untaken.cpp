// Tests the limit on the data that a peer may make a space hold before the data is taken (WIRE.md
// 14.5), and the faults of 14.2 that keep the peer from sending more.
#include <doctest/doctest.h>

#include <array>
#include <thread>

#include "weft/weft.hpp"
#include "weft/wire/serial.hpp"
#include "wire_pair.hpp"
#include "wire_world.hpp"

namespace wire_untaken {
namespace {
using namespace weft;
using namespace weft::test;

const w::Buffer kKilo(1024), kEight(8);

// Makes a piece of the value of `end`. `all` is the announced length of the value, or 0 if none is
// announced.
w::Frame piece(std::uint32_t all = 0, std::uint64_t end = 0) {
  return {w::Kind::value, w::Flag::write, 0, all, end ? end + 1 : 0, 1024, kKilo};
}
w::Frame write(std::uint64_t op, const w::Buffer& value, std::uint32_t end = 0) {
  return {w::Kind::offer, w::Flag::write | w::Flag::body, end, 0, op, value.size(), value};
}

// A home with some peers on other machines, each of which has a writer end. Together the peers may
// keep ten kilobytes at the home.
struct HomeWithPeers {
  static constexpr std::size_t kMaxUntaken = 10 * 1024;
  std::shared_ptr<w::Space> home = w::Space::make("home");
  std::array<std::shared_ptr<w::Space>, 3> far{w::Space::make("one"), w::Space::make("two"),
                                               w::Space::make("three")};
  std::array<Wire, 3> wires{Wire(*home, *far[0]), Wire(*home, *far[1]), Wire(*home, *far[2])};
  Channel<std::string> c;
  Reader<std::string> r = c.reader();

  explicit HomeWithPeers(bool counts = true) {
    home->most_untaken = kMaxUntaken;
    for (Wire& each : wires) {
      each.at_home.home.counts = counts;
      each.give(c.writer());
    }
    pump();
  }
  void pump() {
    for (Wire& each : wires) each.pump();
  }
  void says(std::size_t who, const w::Frame& f, int times = 1) {
    for (int i = 0; i < times; ++i) wires[who].to_home(f);
    pump();
  }
  const std::string& why(std::size_t who) const { return wires[who].at_home.session.why(); }
  std::size_t held() const { return home->untaken.load(); }
};
constexpr const char* kMuch = "of all peers it has sent most";
bool is_much(const std::string& why) { return why.rfind(kMuch, 0) == 0; }

TEST_CASE("wire 14.5: values of which not all has come are counted over all sessions") {
  HomeWithPeers t;
  t.says(0, piece(), 2);
  t.says(1, piece(), 5);
  CHECK(t.held() == 7 * 1024);
  t.says(2, piece(), 3);
  CHECK(t.held() == HomeWithPeers::kMaxUntaken);
  // A further byte ends the session that holds the most bytes, not the session that has sent this
  // byte.
  t.says(2, piece());
  CHECK(is_much(t.why(1)));
  CHECK((t.why(0).empty() && t.why(2).empty()));
  CHECK(t.held() == 6 * 1024);
  // The other sessions continue to work: their values arrive.
  t.says(0, write(1, kEight));
  CHECK(t.r().size() == 2 * 1024 + 8);
  CHECK(t.held() == 4 * 1024);
  CHECK(t.why(0).empty());
}

TEST_CASE("wire 14.5: who has most himself is told so, and what was held for him goes") {
  HomeWithPeers t;
  t.says(0, piece(), 2);
  t.says(1, piece(), 9);
  CHECK(is_much(t.why(1)));
  CHECK(t.held() == 2 * 1024);
  CHECK(t.why(0).empty());
}

TEST_CASE("wire 14.5: what was announced counts at once, for room is made for it") {
  HomeWithPeers t;
  t.says(0, piece(9 * 1024, 0), 1);  // No end is named, so only the bytes that have arrived count.
  CHECK(t.held() == 1024);
  t.says(1, {w::Kind::value, w::Flag::write, 0, 9 * 1024, 1, 1024, kKilo});
  CHECK(t.held() == 10 * 1024);
  t.says(0, piece());
  CHECK(is_much(t.why(1)));
  CHECK(t.held() == 2 * 1024);
}

TEST_CASE("wire 14.5: writes that wait count, with what a guard takes, until somebody reads them") {
  HomeWithPeers t;
  for (std::uint64_t op = 1; op <= 4; ++op) t.says(0, write(op, kKilo));
  CHECK(t.held() == 4 * (1024 + w::Home::kVisitor));
  CHECK(t.r().size() == 1024);
  CHECK(t.held() == 3 * (1024 + w::Home::kVisitor));
  t.says(0, {w::Kind::withdraw, 0, 0, 0, 2, 0, {}});
  CHECK(t.held() == 2 * (1024 + w::Home::kVisitor));
  for (std::uint64_t op = 5; op <= 20; ++op) t.says(0, write(op, kKilo));
  CHECK(is_much(t.why(0)));
  CHECK(t.held() == 0);
}

TEST_CASE("wire 14.5: so do choices that span, and reads") {
  HomeWithPeers t;
  Wire& one = t.wires[0];
  t.says(0,
         {w::Kind::offer, w::Flag::write | w::Flag::spans | w::Flag::body, 0, 7, 1, 1024, kKilo});
  CHECK(t.held() == 1024 + w::Home::kVisitor);
  t.says(0, {w::Kind::gone, 0, 0, 0, 1, 0, {}});
  CHECK(t.held() == 0);
  const std::uint32_t end = one.give(t.c.reader());
  for (std::uint64_t op = 2; op <= 100; ++op) t.says(0, {w::Kind::offer, 0, end, 0, op, 0, {}});
  CHECK(is_much(one.at_home.session.why()));
  CHECK(t.held() == 0);
}

TEST_CASE("wire 14.5: of peers on this machine nothing is counted") {
  HomeWithPeers t(false);
  t.says(0, piece(), 20);
  CHECK(t.held() == 0);
  CHECK(t.why(0).empty());
  Pair<> p;  // a Unix socket, which can pass descriptors
  CHECK(!p.h->peer()->home.counts);
  Pair<w::SerialLink> q;  // a line, over which only bytes are sent
  CHECK(q.h->peer()->home.counts);
}

// --- faults (14.2) -------------------------------------------------------------------------------

std::string home_says(bool with_reader, std::initializer_list<w::Frame> frames) {
  const auto home = w::Space::make("home"), far = w::Space::make("far");
  Wire a{*home, *far};
  const Channel<std::string> c;
  const auto in = c.reader();
  const auto out = c.writer();
  if (with_reader) a.give(c.reader());
  a.pump();
  for (const w::Frame& f : frames) a.to_home(f);
  a.pump();
  return a.at_home.session.why();
}
TEST_CASE("wire 14.2: who holds no end to write to says no part of a value") {
  constexpr const char* kNone = "a VALUE from a peer that holds no end to write to";
  CHECK(home_says(false, {piece()}) == kNone);
  CHECK(home_says(true, {piece()}) == kNone);
  CHECK(home_says(true, {piece(4096, 0)}) == kNone);
  CHECK(home_says(true, {{w::Kind::value, w::Flag::write, 0, 4096, 1, 1024, kKilo}}) == kNone);
}
TEST_CASE("wire 14.2: a home says no part of a value to who writes") {
  const auto home = w::Space::make("home"), far = w::Space::make("far");
  Wire a{*home, *far};
  const Channel<int> c;
  const auto in = c.reader();
  const std::uint32_t end = a.give(c.writer());
  a.pump();
  Op out;
  out.write(end, 1).begin(a.at_party);
  {
    const w::Space::Step step(*home);
    a.at_home.session.send({w::Kind::value, 0, 0, 0, out.number(), 8, kEight});
  }
  a.pump();
  CHECK(a.at_party.session.why() == "a VALUE of an operation that reads nothing");
}
TEST_CASE("wire 14.2: an end's type and name have a bound") {
  const auto give = [](std::size_t n) {
    static w::Buffer body;
    body.assign(8 + n, std::byte{'x'});
    body[9] = std::byte{0};
    const std::size_t said = body.size();
    w::detail::pad(body);
    return w::Frame{w::Kind::give, 0, 0, 0, 0, said, body};
  };
  CHECK(home_says(false, {give(4096)}).empty());
  CHECK(home_says(false, {give(4097)}) == "a GIVE whose type and name are too long");
}
TEST_CASE("wire 14.2: who asks and does not read what he is answered comes to a bound") {
  const auto home = w::Space::make("home"), far = w::Space::make("far"),
             third = w::Space::make("third");
  Wire a{*home, *far}, b{*home, *third};
  Channel<int> c;
  const std::uint32_t end = a.give(c.reader());
  a.pump();
  const std::uint32_t other = b.give(c.reader());
  b.pump();
  c.writer().poison(1);
  std::uint64_t op = 0;
  const auto asks = [&] {
    a.to_home({w::Kind::offer, 0, end, 0, ++op, 0, {}});
    a.up();
  };
  const std::size_t before = a.at_home.session.queued();
  while (!a.at_home.session.is_over() && op < 200'000) asks();
  CHECK(a.at_home.session.why() == "more answers wait than a peer may leave unread");
  CHECK((op > 65'000 && op < 66'000));
  CHECK(a.at_home.session.queued() - before < 4'000'000);
  // A peer that reads its answers may ask any number of times.
  for (std::uint64_t i = 1; i < 150'000; ++i) {
    b.to_home({w::Kind::offer, 0, other, 0, i, 0, {}});
    b.pump();
  }
  CHECK(b.at_home.session.why().empty());
}

}  // namespace
}  // namespace wire_untaken
