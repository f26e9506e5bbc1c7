// Tests long values that are sent from their own memory, and whose pieces are stored straight into
// their place (WIRE.md 9.1, 9.5).
#include <doctest/doctest.h>

#include <netinet/in.h>
#include <algorithm>
#include <random>
#include <thread>

#include "weft/weft.hpp"
#include "weft/wire/stream.hpp"
#include "wire_world.hpp"

namespace wire_lent {
namespace {
using namespace weft;
using namespace weft::test;

struct Nobody final : w::Receiver {
  void opened() override {}
  const char* received(const w::Frame&) override { return nullptr; }
  void session_over() noexcept override {}
};
w::Greeting greeting() { return {7, "a"}; }

w::Buffer noise(std::mt19937& dice, std::size_t n) {
  w::Buffer b(n);
  for (std::byte& x : b) x = static_cast<std::byte>(dice());
  return b;
}

// Returns the first `n` bytes to send, put together from their parts.
w::Buffer from_parts(const w::Session& s, std::size_t n) {
  std::array<w::Bytes, 5> parts;
  const std::size_t k = s.parts(parts);
  w::Buffer all;
  for (std::size_t i = 0; i < k; ++i) w::detail::put(all, parts[i]);
  all.resize(std::min(n, all.size()));
  return all;
}

TEST_CASE(
    "wire 9.5: what goes from where it lies is what goes by copy, however much goes at a time, and "
    "whatever becomes of the memory afterwards") {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    const auto below = [&](std::size_t n) { return dice() % n; };
    Nobody nobody;
    w::Session lends(nobody, greeting()), copies(nobody, greeting());
    lends.may_lend();
    for (w::Session* s : {&lends, &copies}) {
      s->expect(8, w::kLargest);
      s->greet();
    }
    w::Buffer sent, due;
    std::vector<std::unique_ptr<w::Buffer>> borrowed;
    std::vector<std::weak_ptr<w::Buffer>> kept;
    const auto send_some = [&] {
      while (lends.queued() > 0) {
        const std::size_t whole = lends.frames(1 + below(100'000));
        // Takes whole frames, or as many parts of frames as there are.
        if (dice() % 2 && whole > 0) {
          const std::size_t at = sent.size();
          sent.resize(at + whole);
          lends.copy_to(sent.data() + at, whole);
          lends.went(whole);
        } else {
          w::Buffer some = from_parts(lends, 1 + below(150'000));
          REQUIRE(!some.empty());
          w::detail::put(sent, w::Bytes(some));
          lends.went(some.size());
          // Takes the rest of the last frame, so that the next take begins with a frame.
          const std::size_t to_come = lends.queued();
          some.resize(to_come);
          if (dice() % 3 == 0) return true;
          lends.copy_to(some.data(), to_come);
          w::detail::put(sent, w::Bytes(some));
          lends.went(to_come);
        }
        if (dice() % 3 == 0) return false;
      }
      return false;
    };
    for (int round = 0; round < 30; ++round) {
      for (std::size_t n = below(6); n > 0; --n) {
        const std::size_t size = below(4) ? below(w::kLargest - w::kHeader) : below(300);
        auto body = std::make_shared<w::Buffer>(noise(dice, size));
        const w::Frame f{w::Kind::value, 0, 0, 0, 1, size, *body};
        copies.send(f);
        w::Frame mine = f;
        w::Keeper keeper;
        if (dice() % 2) {
          keeper = body;
          kept.push_back(body);
        } else {
          borrowed.push_back(std::make_unique<w::Buffer>(*body));
          mine.body = *borrowed.back();
        }
        mine.keeper = &keeper;
        lends.send(mine);
      }
      if (dice() % 2) {
        // Stops in the middle of a frame. The rest of that frame must be sent before whole frames
        // are requested.
        if (send_some()) {
          const std::size_t n = lends.queued();
          sent.resize(sent.size() + n);
          lends.copy_to(sent.data() + sent.size() - n, n);
          lends.went(n);
        }
      }
      lends.own();  // The step ends here.
      for (auto& b : borrowed) std::fill(b->begin(), b->end(), std::byte{0xEE});
      borrowed.clear();
    }
    const std::size_t n = lends.queued();
    sent.resize(sent.size() + n);
    lends.copy_to(sent.data() + sent.size() - n, n);
    lends.went(n);
    CHECK(lends.queued() == 0);
    CHECK(lends.output().empty());
    due.assign(copies.output().begin(), copies.output().end());
    CHECK(sent.size() == due.size());
    CHECK(std::mismatch(sent.begin(), sent.end(), due.begin(), due.end()).first - sent.begin() ==
          static_cast<std::ptrdiff_t>(due.size()));
    for (const auto& k : kept) CHECK(k.expired());  // The memory is released with its last byte.
  }
}

// --- pieces ---

struct TwelveBytes {  // The size of the element is 12 bytes.
  std::array<std::uint32_t, 3> n;
  bool operator==(const TwelveBytes&) const = default;
};
template <class T>
T long_value(std::size_t elements) {
  T v(elements, typename T::value_type{});
  if constexpr (std::is_same_v<T, std::vector<TwelveBytes>>)
    for (std::size_t i = 0; i < elements; ++i) v[i].n[i % 3] = static_cast<std::uint32_t>(i + 1);
  else
    for (std::size_t i = 0; i < elements; ++i) v[i] = static_cast<typename T::value_type>(i % 251);
  return v;
}

struct Two {
  std::shared_ptr<w::Space> home = w::Space::make("home"), far = w::Space::make("far");
  Wire a{*home, *far};
  // Passes all output of one side to the other, in pieces of any length.
  void pass(w::Peer& from, w::Peer& to, std::mt19937& dice) {
    w::Buffer all;
    {
      const w::Space::Step step(*from.space);
      all.resize(from.session.queued());
      from.session.copy_to(all.data(), all.size());
      from.session.went(all.size());
    }
    for (w::Bytes rest = all; !rest.empty();) {
      const std::size_t n =
          std::min<std::size_t>(rest.size(), 1 + dice() % (dice() % 2 ? 9 : 70'000));
      // The bytes are copied, so that they may begin at any address.
      w::Buffer some(n + 16);
      const std::size_t at = dice() % 16;
      std::copy_n(rest.data(), n, some.data() + at);
      const w::Space::Step step(*to.space);
      to.session.input(w::Bytes(some).subspan(at, n));
      rest = rest.subspan(n);
    }
  }
};

TEST_CASE_TEMPLATE(
    "wire 9.1: a long value arrives, whoever writes it, however its bytes are cut up on the way", T,
    std::string, std::vector<double>, std::vector<TwelveBytes>) {
  for (const bool lends : {false, true})
    for (std::uint32_t seed = 1; seed <= 12; ++seed) {
      CAPTURE(lends);
      CAPTURE(seed);
      std::mt19937 dice(seed);
      Two t;
      if (lends)
        for (w::Peer* const p : {&t.a.at_home, &t.a.at_party}) p->session.may_lend();
      Channel<T> up, down;
      const auto w = t.a.give(up.writer()), r = t.a.give(down.reader());
      t.a.pump();
      Reader<T> here = up.reader();
      Writer<T> out = down.writer();
      const T v = long_value<T>(20'000 + dice() % 90'000);
      std::thread reads([&, token = Outside()] { CHECK(here() == v); });
      OpOf<T> write, read;
      write.write(w, v).begin(t.a.at_party);
      t.pass(t.a.at_party, t.a.at_home, dice);
      reads.join();
      t.pass(t.a.at_home, t.a.at_party, dice);
      CHECK(write.ok());

      std::thread writes([&, token = Outside()] { out(v); });
      read.read(r).begin(t.a.at_party);
      while (!read.is_over) {
        t.pass(t.a.at_party, t.a.at_home, dice);
        t.pass(t.a.at_home, t.a.at_party, dice);
      }
      writes.join();
      REQUIRE(read.ok());
      CHECK(read.value() == v);
      CHECK(t.a.at_home.session.why() == "");
    }
}

// Sends frames of a hand-made peer to the home, and returns the reason with which the home ends the
// session.
std::string home_says(std::initializer_list<w::Frame> frames) {
  Two t;
  Channel<std::string> c, d, kept{buffer(2)};
  for (Channel<std::string>* const each : {&c, &d, &kept}) t.a.give(each->writer());
  const Reader<std::string> r = c.reader(), q = d.reader(), k = kept.reader();
  t.a.pump();
  for (const w::Frame& f : frames) t.a.to_home(f);
  t.a.pump();
  return t.a.at_home.session.why();
}
TEST_CASE("wire 9.1, 14.2: a VALUE that says what does not come ends the session") {
  const w::Buffer eight(8);
  const auto piece = [&](std::uint32_t all, std::uint64_t end) {
    return w::Frame{w::Kind::value, w::Flag::write, 0, all, end, 8, eight};
  };
  const auto offer = [&](std::uint32_t end) {
    return w::Frame{w::Kind::offer, w::Flag::write | w::Flag::body, end, 0, 1, 8, eight};
  };
  CHECK(home_says({piece(16, 1), offer(0)}).empty());
  CHECK(home_says({piece(16, 0), offer(0)}).empty());
  CHECK(home_says({piece(99, 0), offer(0)}).empty());       // No end is named.
  CHECK(home_says({piece(16, 1 + 77), offer(0)}).empty());  // No end has this number.
  CHECK(home_says({piece(16, 1ull << 40), offer(0)}).empty());
  CHECK(home_says({piece(24, 1), offer(0)}) == "a value that is not as long as its VALUE said");
  CHECK(home_says({piece(8, 1), offer(0)}) == "a value that is not as long as its VALUE said");
  CHECK(home_says({piece(4, 1), offer(0)}) == "a VALUE of more than it said");
  CHECK(home_says({piece(16, 2), offer(0)}) == "a VALUE of another end");
  CHECK(home_says({piece(16, 3), w::Frame{w::Kind::put, w::Flag::body, 2, 0, 0, 8, eight}}) ==
        "a PUT at an end without credits");
}
TEST_CASE("wire 9.1, 14.2: padding that is not zero ends the session, also where it comes alone") {
  const w::Buffer body(w::kLargest - w::kHeader, std::byte{1});
  Two t;
  Channel<std::string> c;
  t.a.give(c.writer());
  t.a.pump();
  w::Buffer all;
  w::append(all, w::Frame{w::Kind::value, w::Flag::write, 0, 0, 0, body.size() - 3, body},
            t.a.at_party.session.sent());
  for (const std::size_t n : {std::size_t{1000}, body.size() + w::kHeader - 1008, std::size_t{8}}) {
    const w::Space::Step step(*t.home);
    CHECK(t.a.at_home.session.why() == "");
    t.a.at_home.session.input(w::Bytes(all).first(n));
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
  }
  CHECK(t.a.at_home.session.why() == "a frame's body is not of the length it says");
}

// --- whose memory it is ---

TEST_CASE(
    "wire 9.5: an operation that is over before it was sent leaves a copy: its value may be gone") {
  const std::string v(500'000, 'v');
  for (const bool by_death : {false, true}) {
    CAPTURE(by_death);
    Two t;
    t.a.at_party.session.may_lend();
    Channel<std::string> c;
    const auto w = t.a.give(c.writer());
    t.a.pump();
    auto op = std::make_unique<OpOf<std::string>>();
    w::Buffer all;
    {
      const w::Space::Step step(*t.far);
      op->write(w, v).begin(t.a.at_party);
      CHECK(t.a.at_party.session.queued() > v.size());
      if (by_death) {
        t.a.at_party.session.lost("a test");
        REQUIRE(op->is_over);
        op->forget();
      }
    }
    if (!by_death) {  // The step has ended, and none of its bytes has been sent.
      t.a.tell(t.a.at_party);
      op->forget();
    }
    all.resize(t.a.at_party.session.queued());
    t.a.at_party.session.copy_to(all.data(), all.size());
    CHECK(std::count(all.begin(), all.end(), static_cast<std::byte>('v')) >= 500'000);
  }
}

// Both ends of a connection over loopback.
struct Tcp {
  int fds[2];
  Tcp() {
    const int listens = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fds[0] = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    REQUIRE(::bind(listens, address, size) == 0);
    REQUIRE(::listen(listens, 1) == 0);
    REQUIRE(::getsockname(listens, address, &size) == 0);
    REQUIRE(::connect(fds[0], address, size) == 0);
    fds[1] = ::accept(listens, nullptr, nullptr);
    ::close(listens);
  }
};

// A value whose bytes the writer can still change.
struct ChangingValue {
  std::shared_ptr<std::string> at = std::make_shared<std::string>();
};
}  // namespace
}  // namespace wire_lent
template <>
struct weft::wire::Value<wire_lent::ChangingValue> {
  using ChangingValue = wire_lent::ChangingValue;
  static std::string type() { return "str"; }
  static Bytes bytes(const ChangingValue& v) { return std::as_bytes(std::span(*v.at)); }
  static void put(const ChangingValue& v, Buffer& out) { detail::put(out, bytes(v)); }
  static std::optional<ChangingValue> get(Bytes in) {
    ChangingValue v;
    v.at->assign(reinterpret_cast<const char*>(in.data()), in.size());
    return v;
  }
};
namespace wire_lent {
namespace {
TEST_CASE(
    "wire 9.5, 6.2: a writer that has been told success may change what it wrote, by offer and on "
    "credit") {
  constexpr std::size_t kBytes = 12'000'000;  // more than the connection can hold
  for (const std::size_t room : {std::size_t{0}, std::size_t{3}}) {
    CAPTURE(room);
    Tcp tcp;
    w::StreamLink home(w::Space::make("home"), tcp.fds[0], false),
        far(w::Space::make("far"), tcp.fds[1], false);
    Channel<ChangingValue> c{room ? buffer(room) : ChannelOptions{}};
    home.give(c.writer(), "w", room);
    std::thread writes([&, token = Outside()] {
      auto to = far.writer<ChangingValue>("w");
      ChangingValue v;
      for (char x = 'a'; x < 'g'; ++x) {
        v.at->assign(kBytes, x);
        to(v);
        v.at->assign(kBytes, '-');
      }
    });
    Reader<ChangingValue> from = c.reader();
    for (char x = 'a'; x < 'g'; ++x) CHECK(*from().at == std::string(kBytes, x));
    writes.join();
  }
}

TEST_CASE("wire 9.5: what a far reader gets is the home's no longer, and is sent to its end") {
  constexpr std::size_t kBytes = 12'000'000;
  Tcp tcp;
  w::StreamLink home(w::Space::make("home"), tcp.fds[0], false),
      far(w::Space::make("far"), tcp.fds[1], false);
  Channel<std::string> c;
  home.give(c.reader(), "r");
  std::thread reads([&, token = Outside()] {
    auto from = far.reader<std::string>("r");
    for (char x = 'a'; x < 'g'; ++x) CHECK(from() == std::string(kBytes, x));
  });
  Writer<std::string> to = c.writer();
  for (char x = 'a'; x < 'g'; ++x) to(std::string(kBytes, x));
  reads.join();
}

}  // namespace
}  // namespace wire_lent
