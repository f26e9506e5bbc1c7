// Tests the ways of the relay in isolation (WIRE-NETWORKS.md 17.19, 17.20): two ways in one
// program, and between them code that handles messages as the server does. Also tests other parts
// of weft/net.hpp that need no server.
#include <doctest/doctest.h>
#include <sys/ioctl.h>

#include <condition_variable>
#include <deque>
#include <random>

#include "weft/net.hpp"

namespace {
using namespace weft;
namespace n = weft::net::detail;
namespace w = weft::wire;
using Chars = std::string;

// The packets are small, since unacknowledged packets are all sent again, which is slow in a build
// with checks.
constexpr w::LineOptions kLine{.window = 8, .most = 1024, .again_ms = 200, .lease_ms = 60'000};

// Two connected ways. A thread carries the messages between them, and loses those that the test has
// chosen.
class Pair {
 public:
  explicit Pair(w::LineOptions o = kLine, unsigned lost_of_100 = 0, unsigned seed = 1)
      : lost_(lost_of_100), random_(seed) {
    for (int i = 0; i < 2; ++i)
      ways[i] = std::make_unique<n::Way>([this, i](w::Bytes b) { sent(1 - i, b); }, o);
    carries_ = std::thread([this] { carry(); });
    for (int i = 0; i < 2; ++i) sockets[i] = ways[i]->connects();
  }
  ~Pair() {
    for (const int s : sockets)
      if (s >= 0) ::close(s);
    for (auto& way : ways) way->leave(n::Clock::time_point::min());
    for (auto& way : ways) way->wait();
    {
      const std::lock_guard g(lock_);
      over_ = true;
      news_.notify_all();
    }
    carries_.join();
  }
  void close(int i) { ::close(std::exchange(sockets[i], -1)); }
  // Stops forwarding messages.
  void cut() {
    const std::lock_guard g(lock_);
    lost_ = 100;
  }
  std::size_t messages() {
    const std::lock_guard g(lock_);
    return messages_;
  }

  std::unique_ptr<n::Way> ways[2];
  int sockets[2] = {-1, -1};

 private:
  void sent(int to, w::Bytes b) {
    const std::lock_guard g(lock_);
    ++messages_;
    if (random_() % 100 < lost_) return;
    under_way_.emplace_back(to, w::Buffer(b.begin(), b.end()));
    news_.notify_all();
  }
  void carry() {
    std::unique_lock g(lock_);
    for (;;) {
      news_.wait(g, [this] { return over_ || !under_way_.empty(); });
      if (over_) return;
      const auto [to, bytes] = std::move(under_way_.front());
      under_way_.pop_front();
      g.unlock();
      ways[to]->heard(bytes);
      g.lock();
    }
  }
  std::mutex lock_;
  std::condition_variable news_;
  std::deque<std::pair<int, w::Buffer>> under_way_;
  unsigned lost_;
  std::size_t messages_ = 0;
  bool over_ = false;
  std::mt19937 random_;
  std::thread carries_;
};

Chars some(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Chars all;
  while (all.size() < size) all += static_cast<char>(random());
  return all;
}
void pour(int socket, const Chars& all) {
  for (std::size_t at = 0; at < all.size();) {
    const ssize_t n = ::send(socket, all.data() + at,
                             std::min<std::size_t>(all.size() - at, 50'000), MSG_NOSIGNAL);
    if (n <= 0) return;
    at += static_cast<std::size_t>(n);
  }
}
// Reads until the end of the stream, but at most `most` characters.
Chars drawn(int socket, std::size_t most = SIZE_MAX) {
  Chars all(std::min<std::size_t>(most, 1 << 16), 0), got;
  while (got.size() < most) {
    const ssize_t n = ::recv(socket, all.data(), std::min(all.size(), most - got.size()), 0);
    if (n <= 0) break;
    got.append(all, 0, static_cast<std::size_t>(n));
  }
  return got;
}
void wait_until_over(n::Way& way) {
  while (!way.over()) std::this_thread::yield();
}
}  // namespace

TEST_CASE("wire 17.19: all of it goes both ways, in order, though messages are lost") {
  for (const unsigned lost : {0u, 5u}) {
    CAPTURE(lost);
    Pair p(kLine, lost);
    const Chars a = some(100'000, 1), b = some(100'000, 2);
    std::thread pours[2] = {std::thread([&] { pour(p.sockets[0], a); }),
                            std::thread([&] { pour(p.sockets[1], b); })};
    Chars back;
    std::thread draws([&] { back = drawn(p.sockets[0], b.size()); });
    CHECK(drawn(p.sockets[1], a.size()) == a);
    draws.join();
    CHECK(back == b);
    for (auto& each : pours) each.join();
  }
}

TEST_CASE("wire 17.19: what was said last comes before the end, and then both are over") {
  for (const unsigned lost : {0u, 5u}) {
    Pair p(kLine, lost, 3);
    const Chars last = some(30'000, 4);
    // A way that closes before it is linked has no peer to notify, and ends immediately.
    while (!p.ways[0]->linked()) std::this_thread::yield();
    std::thread pours([&] {
      pour(p.sockets[0], last);
      p.close(0);
    });
    CHECK(drawn(p.sockets[1], last.size()) == last);
    pours.join();
    if (lost)
      p.close(1);  // the last message of this way may be lost
    else
      CHECK(drawn(p.sockets[1]).empty());
    for (auto& way : p.ways) wait_until_over(*way);
  }
}

TEST_CASE("wire 17.19: who hears nothing for the lease has lost the other") {
  w::LineOptions o = kLine;
  o.lease_ms = 1'000;
  Pair p(o);
  pour(p.sockets[0], "x");
  CHECK(drawn(p.sockets[1], 1) == "x");
  p.cut();
  CHECK(drawn(p.sockets[1]).empty());
  CHECK(drawn(p.sockets[0]).empty());
  for (auto& way : p.ways) {
    wait_until_over(*way);
    CHECK(!way->linked());
  }
}

TEST_CASE("wire 17.20: who does not read costs a bounded number of bytes") {
  Pair p;
  pour(p.sockets[0], "x");
  CHECK(drawn(p.sockets[1], 1) == "x");
  ::fcntl(p.sockets[0], F_SETFL, ::fcntl(p.sockets[0], F_GETFL) | O_NONBLOCK);
  const Chars piece(50'000, 'y');
  std::size_t took = 0;
  // Waits until the packets are being resent, and no more bytes are accepted.
  const std::size_t window = std::size_t{kLine.window} * kLine.most;
  const std::size_t most = 4 * window + 2 * n::kHigh + 4 * 212'992;
  for (std::size_t quiet = p.messages(); p.messages() < quiet + 6 && took < most;) {
    pollfd full{p.sockets[0], POLLOUT, 0};
    ::poll(&full, 1, 10);
    const ssize_t n = ::send(p.sockets[0], piece.data(), piece.size(), MSG_NOSIGNAL);
    if (n > 0) took += static_cast<std::size_t>(n), quiet = p.messages();
  }
  CHECK(took < most);
  CHECK(p.ways[0]->linked());
  CHECK(drawn(p.sockets[1], took) == Chars(took, 'y'));
}

TEST_CASE("wire 17.19: rubbish, and more than a window, is passed over") {
  Pair p;
  pour(p.sockets[0], "x");
  CHECK(drawn(p.sockets[1], 1) == "x");
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Chars rubbish = some(2'000, seed);
    p.ways[1]->heard(std::as_bytes(std::span(rubbish)));
  }
  pour(p.sockets[0], "y");
  CHECK(drawn(p.sockets[1], 1) == "y");
}

TEST_CASE("wire 17.19: who leaves says so, also to one who was never linked") {
  Pair p;
  pour(p.sockets[0], "x");
  CHECK(drawn(p.sockets[1], 1) == "x");
  p.ways[0]->leave(n::Clock::time_point::min());
  CHECK(drawn(p.sockets[1]).empty());
  wait_until_over(*p.ways[1]);
  std::atomic<int> last = 0;
  n::Way alone([&](w::Bytes b) { last += b.empty(); });
  ::close(alone.connects());
  wait_until_over(alone);
  CHECK(last == 1);
}

TEST_CASE("wire 17.19: the server is back, and what was not acknowledged goes at once") {
  w::LineOptions o = kLine;
  o.again_ms = 60'000;
  o.lease_ms = 0;
  std::mutex lock;
  std::deque<w::Buffer> to[2];
  bool away = false;
  std::unique_ptr<n::Way> ways[2];
  for (int i = 0; i < 2; ++i)
    ways[i] = std::make_unique<n::Way>(
        [&, i](w::Bytes b) {
          const std::lock_guard g(lock);
          if (!away) to[1 - i].emplace_back(b.begin(), b.end());
        },
        o);
  const int sockets[2] = {ways[0]->connects(), ways[1]->connects()};
  const auto carry = [&](auto&& until) {
    while (!until()) {
      for (int i = 0; i < 2; ++i) {
        std::optional<w::Buffer> next;
        {
          const std::lock_guard g(lock);
          if (!to[i].empty()) next = std::move(to[i].front()), to[i].pop_front();
        }
        if (next) ways[i]->heard(*next);
      }
      std::this_thread::yield();
    }
  };
  const auto has = [&] {
    pollfd fd{sockets[1], POLLIN, 0};
    return ::poll(&fd, 1, 0) > 0;
  };
  pour(sockets[0], "x");
  carry(has);
  CHECK(drawn(sockets[1], 1) == "x");
  {
    const std::lock_guard g(lock);
    away = true;
  }
  pour(sockets[0], "y");
  const auto taken = [&] {
    int left = 1;
    return ::ioctl(sockets[0], TIOCOUTQ, &left) != 0 || left == 0;
  };
  carry(taken);  // these packets had been sent, and were lost
  ways[0]->hurry();
  {
    const std::lock_guard g(lock);
    away = false;
  }
  ways[0]->hurry();
  carry(has);
  CHECK(drawn(sockets[1], 1) == "y");
  for (const int s : sockets) ::close(s);
}

TEST_CASE("wire 17.18: who asks for a session says which, and where it is") {
  const std::string session(32, 'a'), from = std::string(64, 'b') + "." + std::string(16, 'c');
  const auto ask = [](net::Any said) { return n::session_request(said.dump()); };
  CHECK(ask({{"session", session}, {"from", from}})->from == from);
  CHECK(!ask({{"session", session}}));
  CHECK(!ask({{"session", 7}, {"from", from}}));
  CHECK(!ask({{"session", session + "a"}, {"from", from}}));
  CHECK(!ask({{"session", std::string(32, 'A')}, {"from", from}}));
  CHECK(!ask({{"session", session}, {"from", from + ".>"}}));
  CHECK(!n::session_request("[]"));
  CHECK(!n::session_request(""));
  CHECK(!n::session_request(R"({"session": )"));
}

TEST_CASE("wire 17.2, 17.3: what nests deeper than anything that is said is not taken") {
  // Copying a deep value and printing it recurse once for each level.
  const auto deep = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  const auto entry = [&](std::size_t n) {
    return R"({"address":"","fingerprint":"","home":"","host":"","readers":true,"ticket":null,"writers":true,"x":)" +
           deep(n) + "}";
  };
  CHECK(n::Entry::of(entry(10), 1, "lab").text("host").empty());
  CHECK_THROWS_AS((void)n::Entry::of(entry(500'000), 1, "lab"), BadUse);
  CHECK(n::first_message(R"({"host":"x","y":[]})"));
  CHECK(!n::first_message(R"({"host":"x","y":)" + deep(2'000) + "}"));
}

TEST_CASE("wire 17.15: a typed value that is put is its bytes, and comes back") {
  using Typed = weft::Typed<std::string>;
  w::Buffer out;
  w::Value<Typed>::put(Typed("of some length, so that it lies on the heap"), out);
  const auto back = w::Value<Typed>::get(out);
  REQUIRE(back);
  CHECK(**back == "of some length, so that it lies on the heap");
}
