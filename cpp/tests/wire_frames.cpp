// Tests frames and values (WIRE.md 3, 14): an encoded frame is decoded unchanged, and input that is
// not a frame is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "weft/channel.hpp"
#include "weft/wire/space.hpp"
#include "weft/wire/value.hpp"

namespace wire_frames {
namespace {
using namespace weft::wire;
namespace wd = weft::wire::detail;

Buffer made(const Frame& f, std::uint32_t seq = 0) {
  Buffer b;
  append(b, f, seq);
  return b;
}
Buffer text(std::string_view s) {
  Buffer b;
  wd::put(b, std::as_bytes(std::span(s)));
  return b;
}
const char* fault(const Buffer& b, std::uint32_t seq = 0) {
  const Taken t = take(b, seq, kLargest);
  return t.what == Taken::fault ? t.why : nullptr;
}

// The carrier of values to a peer that never greets. The values here contain no ends, so the
// carrier needs nothing from the peer.
struct Nowhere {
  std::shared_ptr<Space> space = Space::make("here", 1);
  std::shared_ptr<Peer> peer = std::make_shared<Peer>(*space);
  Carrier& carrier = peer->carrier;
};

// Only numbers are written as their own bytes: the bytes of a vector are pointers.
template <class U>
concept IsWritten = requires(std::byte* p, U v) {
  wd::put(p, v);
};
static_assert(IsWritten<std::uint32_t> && IsWritten<std::uint64_t>);
static_assert(!IsWritten<Buffer> && !IsWritten<std::string> && !IsWritten<int> &&
              !IsWritten<double>);

TEST_CASE("wire 3.1: of a buffer that is put into another it is what it holds that goes there") {
  Buffer all = text("ab");
  wd::put(all, text("cde"));
  CHECK(all == text("abcde"));
}

TEST_CASE("wire 3.1: a frame comes back as it was, from any number of pieces") {
  const Buffer body = text("thirteen byte");
  const Buffer b =
      made(Frame{Kind::done, Flag::body, 7, 0, 0x1122334455667788, body.size(), body}, 5);
  CHECK(b.size() == 48);
  for (std::size_t n = 0; n < b.size(); ++n)
    CHECK(take(Bytes(b).first(n), 5, kLargest).what == Taken::more);
  const Taken t = take(b, 5, kLargest);
  REQUIRE(t.what == Taken::frame);
  CHECK(t.size == b.size());
  CHECK(t.frame_.kind == Kind::done);
  CHECK(t.frame_.where == 7);
  CHECK(t.frame_.op == 0x1122334455667788);
  const Payload p = t.frame_.payload();
  CHECK((p.in_body && Buffer(p.bytes.begin(), p.bytes.end()) == body));
}

TEST_CASE("wire 3.1: the layout is little-endian, byte for byte") {
  const Buffer b = made(
      Frame{Kind::poison, 0, 0x01020304, 0x0A0B0C0D, 0x1112131415161718, 0x2122232425262728, {}},
      0x31323334);
  const unsigned expected[32] = {0x20, 0x00, 11,   0,    0x04, 0x03, 0x02, 0x01, 0x34, 0x33, 0x32,
                                 0x31, 0x0D, 0x0C, 0x0B, 0x0A, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13,
                                 0x12, 0x11, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21};
  REQUIRE(b.size() == 32);
  for (std::size_t i = 0; i < 32; ++i) CHECK(std::to_integer<unsigned>(b[i]) == expected[i]);
}

TEST_CASE("wire 14.2: what is wrong with a header is a fault") {
  const Buffer good = made(Frame{Kind::withdraw, 0, 0, 0, 3, 0, {}});
  CHECK(take(good, 0, kLargest).what == Taken::frame);
  const auto with = [&](std::size_t at, unsigned v) {
    Buffer b = good;
    b[at] = static_cast<std::byte>(v);
    return b;
  };
  CHECK(fault(with(0, 24)));  // The length is less than that of the header.
  CHECK(fault(with(0, 33)));  // The length is not a multiple of 8.
  CHECK(fault(with(2, 0)));
  CHECK(fault(with(2, 99)));
  CHECK(fault(with(3, Flag::write)));  // WITHDRAW has no flag
  CHECK(fault(with(8, 1)));            // The numbers have a gap.
  CHECK(fault(good, 1));               // The number is repeated.
  Buffer longer = with(0, 40);
  longer.resize(40);
  CHECK(fault(longer));  // The frame has a body where no body is allowed.
  CHECK(take(good, 0, 256).what == Taken::frame);
  CHECK(take(made(Frame{Kind::bye, 0, 0, 0, 0, 300, Buffer(300)}), 0, 256).what == Taken::fault);
}

TEST_CASE(
    "wire 14.2: a body that is not of the length it says is a fault, and so is padding that is not "
    "zero") {
  Buffer b = made(Frame{Kind::done, Flag::body, 0, 0, 1, 5, text("12345")});
  CHECK_FALSE(fault(b));
  Buffer c = b;
  c[24] = std::byte{9};
  CHECK(fault(c));
  c[24] = std::byte{4};
  CHECK(fault(c));  // Now the fifth byte is padding.
  c = b;
  c[38] = std::byte{1};
  CHECK(fault(c));
  c = b;
  c[31] = std::byte{0xFF};  // The length is near 2^64.
  CHECK(fault(c));
  // The flag for a body is missing.
  CHECK(fault(made(Frame{Kind::done, 0, 0, 0, 1, 5, text("12345")})));
}

TEST_CASE("wire 3.5: the guards of an OFFER come back, with values in the header and in the body") {
  const Buffer a = text("a value of 22 bytes ..."), z = text("z");
  const Asked asked[] = {{3, true, {0, a, true}},
                         {9, false, {}},
                         {4, true, {77, {}, false}},
                         {0xFFFFFFFF, true, {0, z, true}}};
  Buffer body;
  const Buffer b = made(offer(12, asked, body));
  const Taken t = take(b, 0, kLargest);
  REQUIRE(t.what == Taken::frame);
  std::vector<Asked> got;
  REQUIRE(guards_of(t.frame_, got) == nullptr);
  REQUIRE(got.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(got[i].end == asked[i].end);
    CHECK(got[i].writes == asked[i].writes);
    CHECK(got[i].value.in_body == asked[i].value.in_body);
    CHECK(got[i].value.small == asked[i].value.small);
    CHECK(std::equal(got[i].value.bytes.begin(), got[i].value.bytes.end(),
                     asked[i].value.bytes.begin(), asked[i].value.bytes.end()));
  }
}

TEST_CASE("wire 14.2: guards that do not add up are refused") {
  std::vector<Asked> got;
  const auto bad = [&](const Frame& f) { return guards_of(f, got) != nullptr; };
  const Buffer eight(8), sixteen(16);
  // The frame has a value where no value is allowed.
  CHECK(bad(Frame{Kind::offer, 0, 0, 0, 1, 5, {}}));
  CHECK(bad(Frame{Kind::offer, Flag::body, 0, 0, 1, 5, eight}));  // A read has a body.
  // The length is greater than that of the body.
  CHECK(bad(Frame{Kind::offer, Flag::write | Flag::body, 0, 0, 1, 9, eight}));
  CHECK(bad(Frame{Kind::offer, Flag::write, 0, 0, 1, 0, eight}));  // The body is half a guard.
  CHECK_FALSE(bad(Frame{Kind::offer, Flag::write, 0, 0, 1, 0, sixteen}));
  // The choice polls, and does not span.
  CHECK(bad(Frame{Kind::offer, Flag::now, 0, 0, 1, 0, {}}));
  CHECK_FALSE(bad(Frame{Kind::offer, Flag::now | Flag::spans, 0, 1, 1, 0, {}}));
  Buffer g(16);
  g[4] = std::byte{4};
  CHECK(bad(Frame{Kind::offer, 0, 0, 0, 1, 0, g}));  // The guard has an unknown flag.
  g[4] = std::byte{0}, g[6] = std::byte{1};
  CHECK(bad(Frame{Kind::offer, 0, 0, 0, 1, 0, g}));
  const Buffer many(16 * 254), too_many(16 * 255);
  CHECK_FALSE(bad(Frame{Kind::offer, 0, 0, 0, 1, 0, many}));
  CHECK(got.size() == 255);
  CHECK(bad(Frame{Kind::offer, 0, 0, 0, 1, 0, too_many}));
}

TEST_CASE(
    "wire 14.2: random bytes, and good frames with bytes changed, are taken or refused and nothing "
    "else (seed 14)") {
  std::mt19937 random(14);
  const Buffer a = text("some bytes of a value");
  const Asked asked[] = {{3, true, {0, a, true}}, {9, false, {}}, {4, true, {77, {}, false}}};
  Buffer body;
  const std::vector<Buffer> good = {made(offer(12, asked, body)),
                                    made(Frame{Kind::done, Flag::body, 0, 0, 1, a.size(), a}),
                                    made(Frame{Kind::give, Flag::write, 0, 0, 1, a.size(), a}),
                                    made(Frame{Kind::ended, 0, 1, 0, 2, 3, {}})};
  std::size_t frames = 0, faults = 0;
  const Nowhere to;
  for (int i = 0; i < 40'000; ++i) {
    Buffer b = good[random() % good.size()];
    if (i % 4 == 0)
      for (std::byte& x : b) x = static_cast<std::byte>(random());
    for (unsigned n = random() % 4; n > 0; --n)
      b[random() % b.size()] = static_cast<std::byte>(random());
    b.resize(random() % (b.size() + 1));
    b.shrink_to_fit();  // so that AddressSanitizer detects a read beyond the end
    const Taken t = take(b, 0, kLargest);
    faults += t.what == Taken::fault;
    if (t.what != Taken::frame) continue;
    ++frames;
    REQUIRE(t.size <= b.size());
    std::vector<Asked> got;
    if (t.frame_.kind == Kind::offer && !guards_of(t.frame_, got))
      for (const Asked& x : got)
        if (x.value.in_body && !x.value.bytes.empty())
          REQUIRE((x.value.bytes.data() >= b.data() &&
                   x.value.bytes.data() + x.value.bytes.size() <= b.data() + b.size()));
    if (t.frame_.kind == Kind::done) {
      RoomOf<std::string> s;
      s.load(t.frame_.payload(), to.carrier);
    }
  }
  CHECK(frames > 100);
  CHECK(faults > 1000);
}

struct Point {
  std::int32_t x, y;
};
struct Big {
  std::int64_t a[5];
};

template <class T>
void back(const T& v, bool in_body) {
  RoomOf<T> from{v}, to;
  Buffer keep;
  const Nowhere by;
  const Payload p = from.unload(keep, by.carrier);
  CHECK(p.in_body == in_body);
  REQUIRE(to.load(p, by.carrier));
  if constexpr (requires { v == v; }) CHECK(to.take() == v);
}

TEST_CASE(
    "wire 3.2: a value of at most 8 bytes is in the header, any other in the body; a string "
    "always") {
  back<int>(-5, false);
  back<std::uint64_t>(~std::uint64_t{0}, false);
  back<bool>(true, false);
  back<double>(0.1, false);
  back<Point>({1, 2}, false);
  back<Big>({{1, 2, 3, 4, 5}}, true);
  back<std::string>("", true);
  back<std::string>("exactly8", true);
  back<std::vector<int>>({1, 2, 3}, true);
  back<std::vector<int>>({}, true);
}

TEST_CASE("wire 7.2: types have names, the same for the same layout") {
  CHECK(Value<int>::type() == "i4");
  CHECK(Value<std::uint64_t>::type() == "u8");
  CHECK(Value<double>::type() == "f8");
  CHECK(Value<bool>::type() == "b1");
  CHECK(Value<Point>::type() == "s8a4");
  CHECK(Value<std::string>::type() == "str");
  CHECK(Value<std::vector<Point>>::type() == "v:s8a4");
}

TEST_CASE("wire 14.2: what is no value of the type is refused") {
  Buffer eight(8), seven(7);
  const Nowhere by;
  // The value does not fit into its four bytes.
  CHECK_FALSE(RoomOf<int>().load({0x1'0000'0000, {}, false}, by.carrier));
  CHECK_FALSE(RoomOf<int>().load({0, eight, true}, by.carrier));
  CHECK_FALSE(RoomOf<bool>().load({2, {}, false}, by.carrier));
  CHECK_FALSE(RoomOf<Big>().load({0, eight, true}, by.carrier));
  CHECK_FALSE(RoomOf<Big>().load({0, {}, false}, by.carrier));
  CHECK_FALSE(RoomOf<std::vector<int>>().load({0, seven, true}, by.carrier));
  CHECK_FALSE(RoomOf<std::string>().load({8, {}, false}, by.carrier));
}
}  // namespace
}  // namespace wire_frames
