// Tests resending below a session, and sessions over a link that drops, delays, doubles, reorders,
// spoils and is cut (WIRE-LINKS.md 13).
#include <doctest/doctest.h>

#include "wire_lossy.hpp"

namespace wire_lossy {
namespace {
using namespace weft;
using weft::test::run_network;
namespace w = weft::wire;
using w::detail::Resender;

w::Buffer bytes(std::string_view s) {
  return {std::as_bytes(std::span(s)).begin(), std::as_bytes(std::span(s)).end()};
}
std::string text(const w::Buffer& b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

TEST_CASE("wire 13.1: the checksum is CRC-32") {
  CHECK(w::detail::crc32(bytes("123456789")) == 0xCBF43926u);
}

TEST_CASE(
    "wire 13.1: what was lost goes again after a while; the window holds back what is beyond it") {
  Resender a(2, 3), b(2, 3);
  w::Buffer packet, got;
  CHECK(a.queue(bytes("abcdefgh")) == 6);
  REQUIRE(a.next(packet));  // The first packet is lost.
  REQUIRE(a.next(packet));
  b.input(packet, got);  // The packet is beyond the gap: it is neither accepted nor acknowledged.
  CHECK(got.empty());
  CHECK_FALSE(a.next(packet));
  REQUIRE(b.next(packet));
  a.input(packet, got);
  CHECK(a.under_way() == 2);
  REQUIRE(a.waited());
  while (a.next(packet)) b.input(packet, got);
  CHECK(text(got) == "abcdef");
  w::Buffer none;
  REQUIRE(b.next(packet));
  a.input(packet, none);
  CHECK(a.under_way() == 0);
  a.input(packet, none);  // The same packet arrives again.
  CHECK(a.queue(bytes("gh")) == 2);
  a.input(packet, none);  // An old packet does not reset the acknowledged number.
  CHECK(a.under_way() == 1);
  CHECK(none.empty());
}

TEST_CASE(
    "wire 13.1: numbers wrap; a packet that is spoilt, cut off or made up is passed over; an "
    "acknowledgement of the future too") {
  Resender a(4, 1, 50, 0xFFFF'FFFEu), b(4, 1, 50, 0xFFFF'FFFEu);
  w::Buffer packet, got, none;
  for (int i = 0; i < 3; ++i) {
    CHECK(a.queue(bytes("xy")) == 2);
    while (a.next(packet)) {
      for (std::size_t at = 0; at < packet.size(); ++at) {
        w::Buffer spoilt = packet;
        spoilt[at] ^= std::byte{16};
        b.input(spoilt, none);
        b.input(w::Bytes(packet).first(at), none);
      }
      b.input(packet, got);
      b.input(packet, none);
    }
    while (b.next(packet)) a.input(packet, none);
    CHECK(a.under_way() == 0);
  }
  CHECK(text(got) == "xyxyxy");
  CHECK(none.empty());
  Resender liar(4, 1, 50, 100), c(4, 1);
  CHECK(c.queue(bytes("z")) == 1);
  CHECK(liar.queue(bytes("q")) == 1);
  REQUIRE(liar.next(packet));  // `packet` acknowledges all packets below 100.
  c.input(packet, none);
  CHECK(c.under_way() == 1);
}

TEST_CASE(
    "wire 13.1: without any acknowledgement the link is lost, after so many whiles; one that is "
    "idle waits for ever") {
  Resender a(2, 8, 5);
  for (int i = 0; i < 100; ++i) CHECK(a.waited());
  CHECK(a.queue(bytes("x")) == 1);
  int whiles = 1;
  while (a.waited()) ++whiles;
  CHECK(whiles == 5);
}

TEST_CASE(
    "wire 13.3: who holds acknowledges nothing that has come since; the other sends a window, "
    "again "
    "and again, and it is given once") {
  Resender a(2, 3), b(2, 3);
  w::Buffer packet, got, none;
  CHECK(a.queue(bytes("abc")) == 3);
  REQUIRE(a.next(packet));
  b.input(packet, got);
  b.hold(true);
  while (b.next(packet)) a.input(packet, none);
  CHECK(a.under_way() == 0);  // The packets of `a` have all been acknowledged by now.
  CHECK(a.queue(bytes("defghijkl")) == 6);
  for (int again = 0; again < 5; ++again) {
    int packets = 0;
    while (a.next(packet)) b.input(packet, got), ++packets;
    CHECK(packets == 2);
    CHECK(text(got) == "abcdefghi");
    while (b.next(packet)) a.input(packet, none);
    CHECK(a.under_way() == 2);
    CHECK(a.queue(bytes("jkl")) == 0);
    REQUIRE(a.waited());
  }
  b.hold(false);
  CHECK(b.owes());
  while (b.next(packet)) a.input(packet, none);
  CHECK(a.under_way() == 0);
  CHECK(a.queue(bytes("jkl")) == 3);
}

TEST_CASE(
    "wire 13.3: an acknowledgement waits for what is said next, and for a quarter of a window at "
    "most") {
  Resender a(16, 1), b(16, 1);
  w::Buffer packet, got;
  for (int i = 1; i <= 4; ++i) {
    CHECK(a.queue(bytes("x")) == 1);
    REQUIRE(a.next(packet));
    b.input(packet, got);
    CHECK(b.owes());
    CHECK(b.next(packet, true) == (i == 4));
  }
  CHECK_FALSE(b.owes());
  CHECK(a.queue(bytes("y")) == 1);
  REQUIRE(a.next(packet));
  b.input(packet, got);
  CHECK(b.queue(bytes("answer")) == 6);
  REQUIRE(b.next(packet, true));  // The acknowledgement is sent with the first byte.
  CHECK_FALSE(b.owes());
  w::Buffer none;
  a.input(packet, none);
  CHECK(text(none) == "a");
  CHECK(a.under_way() == 0);
}

TEST_CASE(
    "wire 13.1: random networks over links that lose a fifth, double, spoil and disorder: nothing "
    "lost or doubled (seeds 0 to 39)") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) CHECK(run_network(seed, false) == "");
}
TEST_CASE(
    "wire 13.1, 2.4: the same, and one link is cut at some step: what comes is a beginning of what "
    "was sent, then PeerDied (seeds 100 to "
    "159)") {
  for (std::uint64_t seed = 100; seed < 160; ++seed) CHECK(run_network(seed, true) == "");
}
}  // namespace
}  // namespace wire_lossy
