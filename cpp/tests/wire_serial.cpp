// Tests the serial line: COBS, compact frames, START, sessions over a line that loses and invents
// bytes, and the check of CBOR (WIRE-LINKS.md 12.6 to 12.8).
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "random.hpp"
#include "weft/weft.hpp"
#include "weft/wire/cbor.hpp"
#include "weft/wire/serial.hpp"

namespace {
using namespace weft;
using weft::test::Random;
namespace w = weft::wire;
using w::detail::Line;

w::Buffer bytes(std::string_view s) {
  return {std::as_bytes(std::span(s)).begin(), std::as_bytes(std::span(s)).end()};
}
std::string text(const w::Buffer& b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }
w::Buffer random_bytes(Random& r, int most, int zeros) {
  w::Buffer b(static_cast<std::size_t>(r.below(most + 1)));
  for (auto& x : b) x = r.below(100) < zeros ? std::byte{0} : static_cast<std::byte>(r.next());
  return b;
}

TEST_CASE(
    "wire 12.6: COBS brings every packet through without a zero in it, also at its lengths of "
    "254") {
  Random r(1);
  for (int i = 0; i < 3000; ++i) {
    const w::Buffer in = i < 600 ? w::Buffer(static_cast<std::size_t>(i), std::byte{7})
                                 : random_bytes(r, 600, i % 60);
    w::Buffer out, back;
    w::detail::cobs(in, out);
    REQUIRE(std::find(out.begin(), out.end(), std::byte{0}) == out.end() - 1);
    CHECK(out.size() <= in.size() + 2 + in.size() / 254);
    REQUIRE(w::detail::uncobs(w::Bytes(out).first(out.size() - 1), back));
    REQUIRE(back == in);
  }
  w::Buffer back;
  CHECK_FALSE(w::detail::uncobs(bytes("\x05zz"), back));
}

TEST_CASE(
    "wire 12.7: a compact frame is the frame again, in any pieces; an OFFER of a small int takes 8 "
    "bytes for 40") {
  Random r(2);
  static constexpr std::uint8_t kinds[] = {1, 2, 3, 4, 10, 11, 20, 21, 25, 30, 40, 41, 48};
  w::Buffer frames, compact, back;
  for (std::uint32_t seq = 0; seq < 2000; ++seq) {
    const w::Buffer body = random_bytes(r, 90, 30);
    const std::uint64_t op = r.next() >> r.below(64), val = r.next() >> r.below(64);
    w::Frame f{static_cast<w::Kind>(kinds[r.below(13)]),
               static_cast<std::uint8_t>(r.next()),
               static_cast<std::uint32_t>(r.next() >> r.below(64)),
               static_cast<std::uint32_t>(r.next() >> r.below(64)),
               op,
               val,
               body};
    const std::size_t at = frames.size();
    w::append(frames, f, seq);
    w::detail::narrow(w::Bytes(frames).subspan(at), compact);
  }
  w::detail::Widener wide;
  for (w::Bytes in = compact; !in.empty();) {
    const std::size_t n =
        std::min<std::size_t>(static_cast<std::size_t>(1 + r.below(40)), in.size());
    REQUIRE(wide.input(in.first(n), back) == nullptr);
    in = in.subspan(n);
  }
  CHECK(back == frames);
  w::Buffer one, small;
  w::append(one, {w::Kind::offer, w::Flag::write | w::Flag::body, 0, 0, 5, 1, bytes("\x07")}, 9);
  w::detail::narrow(one, small);
  CHECK(one.size() == 40);
  CHECK(small.size() == 8);
}

TEST_CASE(
    "wire 12.7: a field that is too large, or a number without an end, is a fault, and nothing is "
    "taken after it") {
  for (const std::string& wrong : {std::string("\x01\x00\xFF\xFF\xFF\xFF\x1F", 7),
                                   std::string("\x01\x00\x00\x00", 4) + std::string(11, '\xFF'),
                                   std::string("\x14\x80\x00\x00\x01\x01\xF0\xFF\x7F", 9)}) {
    w::detail::Widener wide;
    w::Buffer out;
    CHECK(wide.input(bytes(wrong), out) != nullptr);
    CHECK(wide.input(bytes(std::string("\x02\x00\x00\x00\x01\x00\x00", 7)), out) != nullptr);
    CHECK(out.empty());
  }
}

// The two ends of a line, the line's faults, and the time.
struct World {
  explicit World(w::LineOptions a = {}, w::LineOptions b = {}, std::uint32_t again_most_ms = 0)
      : one(a, 11, again_most_ms), two(b, 22, again_most_ms) {}
  Line one, two;
  std::int64_t now = 0;
  w::Buffer at_one, at_two;
  Random dice{3};
  int spoils = 0, drops = 0, invents = 0;  // how many of a thousand bytes are affected

  w::Buffer carry(const w::Buffer& in) {
    w::Buffer out;
    for (std::byte b : in) {
      if (dice.below(1000) < drops) continue;
      if (dice.below(1000) < spoils) b ^= static_cast<std::byte>(1 << dice.below(8));
      out.push_back(b);
      while (dice.below(1000) < invents) out.push_back(static_cast<std::byte>(dice.next()));
    }
    return out;
  }
  void step(bool down = true, bool up = true) {
    w::Buffer a, b;
    one.passed(now), two.passed(now);
    one.output(now, a), two.output(now, b);
    if (down) two.input(carry(a), now, at_two);
    if (up) one.input(carry(b), now, at_one);
    now += 20;
  }
  void steps(int n) {
    for (int i = 0; i < n; ++i) step();
  }
};

TEST_CASE(
    "wire 12.6: two sides that start find each other, whoever is first, and bytes go both ways") {
  World v;
  for (int i = 0; i < 50; ++i) v.step(false, false);  // No peer is at the other end yet.
  v.steps(30);
  REQUIRE(v.one.linked());
  REQUIRE(v.two.linked());
  CHECK(v.one.queue(bytes("hello")) == 5);
  CHECK(v.two.queue(bytes("there")) == 5);
  v.steps(5);
  CHECK(text(v.at_two) == "hello");
  CHECK(text(v.at_one) == "there");
}

TEST_CASE(
    "wire 12.6, 13.1: over a line that drops, spoils and invents bytes all arrives, in order, "
    "once: 40 seeds") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    w::LineOptions o;
    o.most = 20;
    o.lease_ms = 60'000;
    World v(o, o);
    v.dice = Random(seed);
    v.drops = static_cast<int>(seed % 3) * 2, v.spoils = static_cast<int>(seed % 4),
    v.invents = static_cast<int>(seed % 5) * 3;
    w::Buffer down = random_bytes(v.dice, 3000, 20), up = random_bytes(v.dice, 3000, 20);
    std::size_t a = 0, b = 0;
    for (int i = 0; i < 20'000 && (v.at_two.size() < down.size() || v.at_one.size() < up.size());
         ++i) {
      a += v.one.queue(w::Bytes(down).subspan(a));
      b += v.two.queue(w::Bytes(up).subspan(b));
      v.step();
    }
    INFO(seed);
    CHECK(v.one.lost() == nullptr);
    CHECK(v.at_two == down);
    CHECK(v.at_one == up);
  }
}

TEST_CASE(
    "wire 12.6: a side that starts anew ends the other's session; none of its bytes reach the new "
    "one") {
  World v;
  v.steps(30);
  REQUIRE(v.two.linked());
  CHECK(v.one.queue(bytes("for the old one")) == 15);
  w::Buffer late;
  v.one.output(v.now, late);  // `late` has been sent, and has not arrived, when the board is reset.
  Line anew({}, 33);
  w::Buffer got, out;
  anew.input(late, v.now, got);
  anew.output(v.now, out);
  CHECK_FALSE(anew.linked());
  v.one.input(out, v.now, v.at_one);
  REQUIRE(v.one.lost() != nullptr);
  CHECK(std::string(v.one.lost()) == "it has started anew");
  Line again({}, 44);  // `again` is a new link, as a program makes it after the loss.
  for (int i = 0; i < 20; ++i) {
    w::Buffer a, b;
    again.output(v.now, a), anew.output(v.now, b);
    anew.input(late, v.now, got);
    anew.input(a, v.now, got), again.input(b, v.now, v.at_one);
    v.now += 50;
  }
  CHECK(again.linked());
  CHECK(anew.linked());
  CHECK(got.empty());
}

TEST_CASE(
    "wire 12.6: a START that was overtaken by what its sender said later ends nothing, also if it "
    "comes again and again with packets between") {
  World v;
  w::Buffer early;
  v.two.output(v.now, early);  // `early` takes a long time to arrive.
  v.steps(10);
  REQUIRE((v.one.linked() && v.two.linked()));
  for (int i = 1; i < 6; ++i) {
    CHECK(v.two.queue(bytes("x")) == 1);
    v.steps(3);
    REQUIRE(v.at_one.size() == static_cast<std::size_t>(i));
    v.one.input(early, v.now, v.at_one);
    v.now += 150;
    CHECK(v.one.lost() == nullptr);
  }
}

TEST_CASE(
    "wire 12.6: a side that starts anew with the token that it had ends the other's session too, "
    "once a packet of it has come") {
  World v;
  v.steps(10);
  REQUIRE(v.one.linked());
  REQUIRE(v.two.linked());
  Line twin({}, 22);
  w::Buffer hello, got;
  twin.output(v.now, hello);
  // In w2 the peer has sent nothing but its START. There `hello` counts as a repetition of that
  // START, as if the peer had received no answer yet.
  World w2;
  w2.one.output(0, got);
  w2.two.input(got, 0, got);
  w::Buffer answer;
  w2.two.output(0, answer);
  w2.one.input(answer, 0, got);
  REQUIRE(w2.one.linked());
  w2.one.input(hello, 0, got);
  CHECK(w2.one.lost() == nullptr);
  CHECK(v.two.queue(bytes("x")) == 1);
  v.steps(3);
  v.one.input(hello, v.now, got);
  v.one.input(hello, v.now + 99, got);
  CHECK(v.one.lost() == nullptr);
  v.one.input(hello, v.now + 100, got);
  REQUIRE(v.one.lost() != nullptr);
  CHECK(std::string(v.one.lost()) == "it has started anew");
}

TEST_CASE(
    "wire 12.6: a START for who was here before links nobody, and the answer tells its sender that "
    "he is gone") {
  World v;
  v.steps(30);
  REQUIRE(v.one.linked());
  Line heard({}, 11), peer({}, 22), anew({}, 33);
  w::Buffer hello, stale, answer, got;
  peer.output(0, hello);
  heard.input(hello, 0, got);
  heard.output(0, stale);  // START(11, 22) is on the line while the board is reset.
  anew.input(stale, 0, got);
  CHECK_FALSE(anew.linked());
  anew.output(0, answer);
  v.one.input(answer, v.now, got);
  CHECK(v.one.lost() != nullptr);
}

TEST_CASE("wire 12.6: an echo of one's own is nobody") {
  World v;
  w::Buffer a, got;
  for (int i = 0; i < 40; ++i) {
    a.clear();
    v.one.output(v.now, a);
    v.one.input(a, v.now, got);
    v.now += 100;
  }
  CHECK_FALSE(v.one.linked());
  v.steps(30);
  REQUIRE(v.one.linked());
  CHECK(v.one.queue(bytes("x")) == 1);
  a.clear();
  v.one.output(v.now, a);
  v.one.input(a, v.now, got);  // The line receives its own packet.
  CHECK(got.empty());
  CHECK_FALSE(v.one.settled());
}

TEST_CASE(
    "wire 12.6: a peer that falls silent is gone after the lease, of both the longer; one that "
    "only has nothing to say is not") {
  w::LineOptions longer;
  longer.lease_ms = 5000;
  World v({}, longer);
  v.steps(1000);  // 20 s pass without a value.
  REQUIRE(v.one.linked());
  REQUIRE(v.two.linked());
  const std::int64_t cut = v.now;
  while (!v.one.lost() && v.now < cut + 20'000) v.step(true, false);
  CHECK(v.now - cut > 3000);
  CHECK(v.now - cut <= 5100);
  CHECK(v.two.lost() == nullptr);
}

TEST_CASE(
    "wire 12.6: without a lease a silent peer stays, and nothing is sent while nothing is said") {
  w::LineOptions none;
  none.lease_ms = 0;
  World v(none, {});
  v.steps(30);
  REQUIRE(v.one.linked());
  w::Buffer a;
  for (int i = 0; i < 1000; ++i) v.one.passed(v.now += 1000), v.one.output(v.now, a);
  CHECK(a.empty());
  CHECK(v.one.due() == Line::kNever);
  CHECK(v.one.lost() == nullptr);
}

TEST_CASE("wire 13.2: who is heard and never acknowledges is lost, for his bytes go nowhere") {
  World v;
  v.steps(30);
  REQUIRE(v.one.linked());
  CHECK(v.one.queue(bytes("x")) == 1);
  for (int i = 0; i < 5000 && !v.one.lost(); ++i) v.step(false, true);
  // First the lease of the other side runs out; then that side sends no more signs of life.
  CHECK(v.two.lost() != nullptr);
  CHECK(v.one.lost() != nullptr);
}

w::LineOptions of_a_relay() {
  w::LineOptions o;
  o.window = 8, o.most = 16'384, o.lease_ms = 20'000;
  return o;
}

TEST_CASE(
    "wire 13.3: who holds, from before there was a peer, costs the other a window and is not lost "
    "while he lives; then all comes, once") {
  World v(of_a_relay(), of_a_relay(), 1600);
  v.step();
  v.two.hold(true);
  CHECK_FALSE(v.two.linked());
  v.steps(30);
  REQUIRE(v.one.linked());
  const w::Buffer sent = random_bytes(v.dice, 1'000'000, 3);
  std::size_t a = 0;
  for (int i = 0; i < 5000; ++i) {  // 100 s pass.
    a += v.one.queue(w::Bytes(sent).subspan(a));
    v.step();
  }
  CHECK(v.one.lost() == nullptr);
  CHECK(v.two.lost() == nullptr);
  CHECK(a <= 8 * 16'384u);
  CHECK(v.at_two.size() == a);
  v.two.hold(false);
  for (int i = 0; i < 5000 && v.at_two.size() < sent.size(); ++i) {
    a += v.one.queue(w::Bytes(sent).subspan(a));
    v.step();
  }
  CHECK(v.at_two == sent);
}

TEST_CASE(
    "wire 13.3: what is not acknowledged goes again after a time that doubles up to a bound, and "
    "at "
    "once when it is said that the link works again") {
  World v(of_a_relay(), of_a_relay(), 1600);
  v.steps(30);
  REQUIRE(v.one.linked());
  CHECK(v.one.queue(bytes("x")) == 1);
  std::vector<std::int64_t> at;
  const auto looks = [&] {
    w::Buffer out;
    v.one.passed(v.now);
    v.one.output(v.now, out);
    if (out.size() > 0) at.push_back(v.now);
    v.now += 10;
  };
  while (at.size() < 7) looks();
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 1; i < at.size(); ++i) gaps.push_back(at[i] - at[i - 1]);
  CHECK(gaps == std::vector<std::int64_t>{200, 400, 800, 1600, 1600, 1600});
  v.one.hurry(v.now);
  CHECK(v.one.due() <= v.now);
  looks();
  CHECK(at.back() == v.now - 10);
  v.steps(30);
  CHECK(text(v.at_two) == "x");
  CHECK(v.one.settled());
}

TEST_CASE(
    "wire 13.3: on a line of one session what says that it starts anew is passed over, and so is "
    "all that is repeated") {
  World v(of_a_relay(), of_a_relay(), 1600);
  w::Buffer seen, none;
  for (int i = 0; i < 60; ++i) {
    w::Buffer a;
    if (i == 30) CHECK(v.one.queue(bytes("hello")) == 5);
    v.one.output(v.now, a);
    seen.insert(seen.end(), a.begin(), a.end());
    v.two.input(a, v.now, v.at_two);
    a.clear();
    v.two.output(v.now, a);
    v.one.input(a, v.now, v.at_one);
    v.now += 20;
  }
  REQUIRE(v.two.linked());
  Line other(of_a_relay(), 33, 1600);
  other.output(v.now, seen);
  for (int i = 0; i < 3; ++i) v.two.input(seen, v.now, none);  // The first START arrives again.
  CHECK(none.empty());
  CHECK(v.two.lost() == nullptr);
  CHECK(v.one.queue(bytes(" again")) == 6);
  v.steps(5);
  CHECK(text(v.at_two) == "hello again");
}

TEST_CASE("wire 12.6, 13.3: large packets over a line that spoils and drops them: 10 seeds") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    World v(of_a_relay(), of_a_relay(), 1600);
    v.dice = Random(seed);
    const w::Buffer down = random_bytes(v.dice, 300'000, 20),
                    up = random_bytes(v.dice, 300'000, 20);
    std::size_t a = 0, b = 0;
    for (int i = 0; i < 20'000 && (v.at_two.size() < down.size() || v.at_one.size() < up.size());
         ++i) {
      a += v.one.queue(w::Bytes(down).subspan(a));
      b += v.two.queue(w::Bytes(up).subspan(b));
      v.step(v.dice.below(4) > 0, v.dice.below(4) > 0);
    }
    INFO(seed);
    CHECK(v.at_two == down);
    CHECK(v.at_one == up);
  }
}

// Reads a vector of conformance/wire/serial.txt. The clients of the boards are tested with the same
// vectors.
w::Buffer vector(const std::string& name) {
  std::ifstream file(WEFT_SERIAL_VECTORS);  // The path is set in CMakeLists.txt.
  w::Buffer out;
  for (std::string word, hex; file >> word;)
    if (word == name && file >> hex)
      for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        out.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  REQUIRE(!out.empty());
  return out;
}

TEST_CASE(
    "wire 12.6, 12.7: START, a packet and frames are, byte for byte, what the boards' clients "
    "say") {
  Line one({}, 0x01020304), two({}, 0x0A0B0C0D);
  w::Buffer line, answer, session, hello, compact;
  one.output(0, line);
  CHECK(line == vector("start"));
  two.input(line, 0, session);
  two.output(0, answer);
  CHECK(answer == vector("heard"));
  one.input(answer, 0, session);
  std::vector<std::byte> body(8);
  for (const char c : {'b', 'o', 'a', 'r', 'd'}) body.push_back(static_cast<std::byte>(c));
  w::append(hello,
            {w::Kind::hello, 0, 0x54464557, 0x10001, 0x11121314'01020304, std::uint64_t{1024} << 32,
             body},
            0);
  w::detail::narrow(hello, compact);
  CHECK(compact == vector("hello"));
  CHECK(one.queue(compact) == compact.size());
  line.clear();
  one.output(0, line);
  w::Buffer wanted = vector("start_linked");
  const w::Buffer packet = vector("packet");
  wanted.insert(wanted.end(), packet.begin(), packet.end());
  CHECK(line == wanted);
  for (const char* name :
       {"cbor_minus_70000", "cbor_two_to_40", "cbor_text", "cbor_bytes", "cbor_array", "cbor_map"})
    CHECK(w::cbor_fault(vector(name)) == nullptr);
  for (const char* name :
       {"offer_read", "offer_write", "offer_choice", "withdraw", "retire", "poison"}) {
    w::detail::Widener wide;
    w::Buffer whole, again;
    REQUIRE(wide.input(vector(name), whole) == nullptr);
    for (w::Bytes rest = whole; !rest.empty();
         rest = rest.subspan(w::detail::get<std::uint16_t>(rest.data())))
      w::detail::narrow(rest.first(w::detail::get<std::uint16_t>(rest.data())), again);
    INFO(name);
    CHECK(again.size() + 7 >= vector(name).size());  // Padding at the end may be missing.
    CHECK(w::detail::get<std::uint8_t>(again.data()) ==
          w::detail::get<std::uint8_t>(vector(name).data()));
    w::detail::Widener twice;
    w::Buffer whole_again;
    REQUIRE(twice.input(again, whole_again) == nullptr);
    CHECK(whole_again == whole);
  }
}

TEST_CASE("wire 17.15: typed values may have objects, which a board has not") {
  const auto fault = [](const std::string& s, bool typed = true) {
    return w::cbor_fault(bytes(s), typed);
  };
  using namespace std::string_literals;
  for (const std::string& good :
       {"\xD8\x1B\x80"s, "\xD8\x1B\x82\x61z\xA1\x61x\xD8\x1B\x80"s, "\x81\xD8\x1B\x81\xC2\x41\x01"s,
        "\xDA\0\0\0\x1B\x80"s, "\x81\x01"s}) {
    CHECK_MESSAGE(fault(good) == nullptr, good);
    CHECK((fault(good, false) == nullptr) == (good == "\x81\x01"s));
  }
  for (const std::string& bad :
       {"\xD8\x1B"s, "\xD8\x1B\xA0"s, "\xD8\x1B\x01"s, "\xD8\x1B\x81"s, "\xD8\x1C\x80"s,
        "\xC1\x01"s, "\xA1\xD8\x1B\x80\x01"s, "\xD8\x1B\x9F\xFF"s, "\xD8\x1B\xD8\x1B\x80"s,
        std::string(65, '\x81') + "\x01"})
    CHECK_MESSAGE(fault(bad) != nullptr, bad);
  CHECK(fault(std::string(64, '\x81') + "\x01") == nullptr);
  std::string objects;  // An object is an array within a tag, which makes two levels.
  for (int i = 0; i < 40; ++i) objects += "\xD8\x1B\x81";
  CHECK(fault(objects + "\x01") != nullptr);
}

TEST_CASE("wire 12.8: what is one value of a board's channel, and what is none") {
  const auto fault = [](const std::string& s) { return w::cbor_fault(bytes(s)); };
  using namespace std::string_literals;
  for (const std::string& good :
       {"\x00"s, "\x18\xFF"s, "\x3B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s, "\xF4"s, "\xF5"s, "\xF6"s,
        "\xFB\x3F\xF0\0\0\0\0\0\0"s, "\xFA\0\0\0\0"s, "\xF9\x7C\0"s, "\x63\xE2\x82\xAC"s,
        "\x42\xFF\x00"s, "\x80"s, "\x83\x01\x61z\xF6"s, "\xA2\x01\x02\x61z\x80"s,
        "\xC2\x49\x01\0\0\0\0\0\0\0\0"s, "\xC3\x41\x01"s})
    CHECK_MESSAGE(fault(good) == nullptr, good);
  for (const std::string& bad : {""s,
                                 "\x18"s,
                                 "\x00\x00"s,
                                 "\x1C"s,
                                 "\x5F"s,
                                 "\x9F\xFF"s,
                                 "\x62z"s,
                                 "\x61\xFF"s,
                                 "\x62\xC0\x80"s,
                                 "\x63\xED\xA0\x80"s,
                                 "\x82\x01"s,
                                 "\x9B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s,
                                 "\xA1\x80\x01"s,
                                 "\xA1\x01"s,
                                 "\xC1\x01"s,
                                 "\xC2\x01"s,
                                 "\xC2"s,
                                 "\xF7"s,
                                 "\xF8\x14"s,
                                 "\xF9\0"s,
                                 "\xFB\0"s,
                                 "\xE0"s,
                                 std::string(17, '\x81') + "\x01"})
    CHECK_MESSAGE(fault(bad) != nullptr, bad);
  CHECK(fault(std::string(16, '\x81') + "\x01") == nullptr);
}

// A line between two links, whose bytes a thread carries and spoils.
class Noisy {
 public:
  explicit Noisy(std::uint64_t seed, int per_mille) : dice_(seed), per_mille_(per_mille) {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, a_) == 0);
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, b_) == 0);
    REQUIRE(::pipe(stop_) == 0);
    thread_ = std::thread([this] { carry(); });
  }
  ~Noisy() {
    CHECK(::write(stop_[1], "x", 1) == 1);
    thread_.join();
    for (const int fd : {a_[1], b_[1], stop_[0], stop_[1]}) ::close(fd);
  }
  int one() const { return a_[0]; }
  int two() const { return b_[0]; }
  int spoilt() const { return spoilt_; }

 private:
  void carry() {
    for (;;) {
      pollfd fds[] = {{a_[1], POLLIN, 0}, {b_[1], POLLIN, 0}, {stop_[0], POLLIN, 0}};
      if (::poll(fds, 3, -1) < 0) continue;
      if (fds[2].revents) return;
      for (int i = 0; i < 2; ++i) {
        char room[512];
        const ssize_t n = fds[i].revents ? ::read(fds[i].fd, room, sizeof(room)) : 0;
        std::string out;
        for (ssize_t k = 0; k < n; ++k) {
          const bool bad = dice_.below(1000) < per_mille_;
          spoilt_ += bad;
          const int how = bad ? dice_.below(3) : 3;
          if (how == 0) continue;
          out.push_back(how == 1 ? static_cast<char>(dice_.next()) : room[k]);
          if (how == 2) out.append("\0rubbish", 8);
        }
        if (!out.empty() && ::write(i == 0 ? b_[1] : a_[1], out.data(), out.size()) < 0) return;
      }
    }
  }
  Random dice_;
  const int per_mille_;
  std::atomic<int> spoilt_{0};
  int a_[2], b_[2], stop_[2];
  std::thread thread_;
};

TEST_CASE(
    "wire 12.6: a PC's first START has no byte 3, whatever its lease: it would stop a MicroPython "
    "board that is not in its program yet") {
  auto space = w::Space::make("pc");
  for (const std::uint32_t lease :
       {0u, 3u * 100, 700u, 768u, 1000u, 3000u, 20'000u, 65'536u, 70'000u, 3'600'000u})
    for (int i = 0; i < 20; ++i) {
      int fds[2];
      REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
      {
        w::LineOptions o;
        o.lease_ms = lease;
        w::SerialLink link(space, fds[0], o);
        std::byte said[64];
        const ssize_t n = ::read(fds[1], said, sizeof said);
        REQUIRE(n == 42);
        INFO(lease);
        CHECK(std::find(said, said + n, std::byte{3}) == said + n);
      }
      ::close(fds[1]);
    }
}

TEST_CASE(
    "wire 12.6: sessions over a line that spoils bytes: 400 strings each way, each once, in order; "
    "then retirement arrives") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Noisy noisy(seed, static_cast<int>(seed));
    w::LineOptions o;
    o.again_ms = 5;
    o.lease_ms = 300'000;  // In real time a thread may be held up for long on a busy machine.
    auto home = w::Space::make("home"), far = w::Space::make("far");
    w::SerialLink h(home, noisy.one(), o), f(far, noisy.two(), o);
    Channel<std::string> c, d;
    h.give(c.reader(), "there");
    h.give(d.writer(), "back");
    std::thread other([&, token = Outside()] {
      auto in = f.reader<std::string>("there");
      auto out = f.writer<std::string>("back");
      try {
        for (;;) out(in() + "!");
      } catch (const Retired&) {
      }
    });
    Writer<std::string> to = c.writer();
    Reader<std::string> from = d.reader();
    for (int i = 0; i < 400; ++i) {
      to(std::to_string(i));
      CHECK(from() == std::to_string(i) + "!");
    }
    to.retire();
    CHECK_THROWS_AS(from(), Retired);
    other.join();
    CHECK(noisy.spoilt() > 0);
  }
}

TEST_CASE(
    "wire 12.6: a line that is closed is the peer's death; over a new line there is a new "
    "session") {
  auto home = w::Space::make("home");
  Channel<int> c;
  Reader<int> from = c.reader();
  for (int i = 0; i < 3; ++i) {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    auto h = std::make_unique<w::SerialLink>(home, fds[0]);
    Channel<int> fresh;
    Reader<int> r = fresh.reader();
    h->give(fresh.writer(), "in");
    auto far = w::Space::make("board");
    auto f = std::make_unique<w::SerialLink>(far, fds[1]);
    auto to = f->writer<int>("in");
    std::thread other([&, token = Outside()] { to(i); });
    CHECK(r() == i);
    other.join();
    f.reset();
    CHECK_THROWS_AS(r(), PeerDied);
    CHECK(h->wait().find("closed the session") != std::string::npos);
  }
}

TEST_CASE("wire 12.6: a speed that no line has is bad use, and says which there are") {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  CHECK_NOTHROW(w::make_line(fds[0], 12));  // The descriptor is not a terminal.
  for (const int fd : fds) ::close(fd);
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(master >= 0);
  CHECK_THROWS_WITH_AS(w::make_line(master, 12), doctest::Contains("115200"), BadUse);
  ::close(master);
  CHECK_THROWS_WITH_AS(w::open_line("/dev/no such line"), doctest::Contains("No such file"),
                       BadUse);
}

}  // namespace
