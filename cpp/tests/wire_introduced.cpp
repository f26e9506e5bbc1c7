// Tests ends that are passed on to a third program over real sockets: each of two spaces receives a
// descriptor, and the two have a session (WIRE.md 7.5).
#include <doctest/doctest.h>

#include <dirent.h>
#include <netinet/in.h>
#include <thread>

#include "weft/weft.hpp"
#include "weft/wire/program.hpp"
#include "weft/wire/shm.hpp"

namespace wire_introduced {
namespace {
using namespace weft;
namespace w = weft::wire;
using Out = w::WriterEnd<int>;
using In = w::ReaderEnd<int>;

// `middle` has a link to each of the other two spaces.
template <class L, class R = L>
struct Three {
  std::shared_ptr<w::Space> middle = w::Space::make("middle"), left = w::Space::make("left"),
                            right = w::Space::make("right");
  std::optional<L> ml, lm;
  std::optional<R> mr, rm;
  Three() {
    join(middle, left, ml, lm);
    join(middle, right, mr, rm);
  }
  template <class K>
  static void join(const std::shared_ptr<w::Space>& a, const std::shared_ptr<w::Space>& b,
                   std::optional<K>& x, std::optional<K>& y) {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    x.emplace(a, fds[0]);
    y.emplace(b, fds[1]);
  }
};

std::size_t descriptors() {
  std::size_t n = 0;
  DIR* const d = ::opendir("/proc/self/fd");
  while (d && ::readdir(d)) ++n;
  if (d) ::closedir(d);
  return n;
}

// A world with a stream to the left, and shared memory to the right. The link that is made between
// left and right is a stream.
struct Mixed {};
template <class K>
struct Kinds {
  using L = K;
  using R = K;
};
template <>
struct Kinds<Mixed> {
  using L = w::StreamLink;
  using R = w::ShmLink;
};

TEST_CASE_TEMPLATE(
    "wire 7.5: an end of the left program, sent by the middle one to the right one; then the "
    "middle one leaves, and it goes on",
    K, w::StreamLink, w::ShmLink, Mixed) {
  const Outside outside;
  const std::size_t before = descriptors();
  {
    Three<typename Kinds<K>::L, typename Kinds<K>::R> t;
    Channel<int> c{named("c")};
    Channel<Out> carry{named("carry")};
    Reader<int> from = c.reader();
    Reader<Out> ends = carry.reader();
    t.lm->give(c.writer(), "c");
    t.rm->give(carry.writer(), "carry");
    {
      auto carrier = t.mr->template writer<Out>("carry");
      std::thread sends([&, token = Outside()] { carrier(t.ml->template writer_end<int>("c")); });
      Out e = ends();
      sends.join();
      std::thread writes([&, token = Outside()] {
        for (int i = 0; i < 100; ++i) e(i);
      });
      int sum = 0;
      for (int i = 0; i < 100; ++i) sum += from();
      writes.join();
      CHECK(sum == 4950);
      carrier.retire();
      t.ml.reset();
      t.mr.reset();
      std::thread more([&, token = Outside()] { e(7); });
      CHECK(from() == 7);
      more.join();
    }
    CHECK_THROWS_AS(from(), Retired);
  }
  CHECK(descriptors() == before);
}

Process reads_all(Reader<In> ends, std::vector<int>& got) {
  const In e = co_await ends.read();
  try {
    for (;;) got.push_back(co_await e.read());
  } catch (const Retired&) {
  }
}
Process writes_far(Out e, int n) {
  for (int i = 0; i < n; ++i) co_await e.write(i);
}

TEST_CASE_TEMPLATE(
    "wire 7.5: coroutines at both ends that were handed on, one by name and one in a value", L,
    w::StreamLink, w::ShmLink) {
  Three<L> t;
  Channel<int> c;
  Channel<In> carry;
  t.lm->give(c.writer(), "w");
  t.lm->give(c.reader(), "r");
  t.mr->give(carry.reader(), "carry");
  t.mr->give(t.ml->template writer_end<int>("w"), "w");  // gives the right space the end, by name
  std::vector<int> got;
  std::thread right([&] { run(writes_far(t.rm->template writer_end<int>("w"), 50)); });
  // The reader end returns to its home: the end moves back to the left space through the middle
  // one.
  Channel<In> back;
  t.lm->give(back.writer(), "back");
  std::thread left([&, ends = back.reader()]() mutable { run(reads_all(std::move(ends), got)); });
  {
    const Outside outside;
    t.ml->template writer<In>("back")(t.ml->template reader_end<int>("r"));
  }
  left.join();
  right.join();
  REQUIRE(got.size() == 50);
  CHECK(got.back() == 49);
}

TEST_CASE_TEMPLATE(
    "wire 7.5: the far home dies: who has the end learns it, and no session of the others ends", L,
    w::StreamLink, w::ShmLink) {
  const Outside outside;
  Three<L> t;
  Channel<int> c;
  t.lm->give(c.reader(), "r");
  t.mr->give(t.ml->template reader_end<int>("r"), "r");
  const In e = t.rm->template reader_end<int>("r");
  std::thread dies([&] { t.lm.reset(); });
  CHECK_THROWS_AS(e(), PeerDied);
  dies.join();
  Channel<int> d;
  t.mr->give(d.reader(), "d");
  const auto r = t.rm->template reader<int>("d");
  std::thread writes([w = d.writer(), token = Outside()] { w(3); });
  CHECK(r() == 3);
  writes.join();
}

TEST_CASE(
    "wire 7.2, 7.5: taken as what it is not, and over a link that passes no descriptors: bad use, "
    "and it says so") {
  Three<w::StreamLink> t;
  Channel<int> c;
  t.lm->give(c.reader(), "r");
  t.ml->give(t.ml->reader_end<int>("r"), "home");
  CHECK_THROWS_WITH_AS((void)t.lm->reader<int>("home"),
                       doctest::Contains("the home of this end is this program"), BadUse);
  Channel<int> m;
  t.ml->give(m.writer(), "w");
  CHECK_THROWS_WITH_AS((void)t.lm->writer_end<double>("w"),
                       doctest::Contains("is of type i4, and f8"), BadUse);
  // In this part the link is a TCP connection.
  const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(a);
  REQUIRE(::bind(listening, reinterpret_cast<sockaddr*>(&a), size) == 0);
  REQUIRE(::listen(listening, 1) == 0);
  REQUIRE(::getsockname(listening, reinterpret_cast<sockaddr*>(&a), &size) == 0);
  const int out = ::socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(::connect(out, reinterpret_cast<sockaddr*>(&a), size) == 0);
  const auto net = w::Space::make("net");
  w::StreamLink there(net, ::accept(listening, nullptr, nullptr)), here(t.middle, out);
  ::close(listening);
  Channel<int> d;
  t.lm->give(d.writer(), "d");
  Channel<Out> carry;
  there.give(carry.writer(), "carry");
  auto to = here.writer<Out>("carry");
  CHECK_THROWS_WITH_AS(to(t.ml->writer_end<int>("d")),
                       doctest::Contains("links over Unix sockets can"), BadUse);
  // An end of the sender's own channel is also sent over the new link.
  Channel<int> mine;
  std::thread sends([&, token = Outside()] { to(Out(mine.writer())); });
  const Out e = carry.reader()();
  sends.join();
  std::thread writes([&, token = Outside()] { e(5); });
  CHECK(mine.reader()() == 5);
  writes.join();
}

TEST_CASE(
    "wire 14.2: an INTRODUCE without its descriptor is a fault; descriptors that nobody asked for "
    "are closed") {
  const std::size_t before = descriptors();
  {
    const auto space = w::Space::make("home");
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    w::StreamLink link(space, fds[0]);
    w::Buffer out;
    const w::Buffer lease(8);
    w::append(
        out,
        {w::Kind::hello, 0, w::kMagic, 0x0001'0001, 99, std::uint64_t{w::kLargest} << 32, lease},
        0);
    {
      w::detail::Descriptors d;
      for (int i = 0; i < 20; ++i) d.attach(::dup(fds[1]), static_cast<std::size_t>(i));
      for (w::Bytes rest = out; !rest.empty();)
        rest = rest.subspan(static_cast<std::size_t>(d.send(fds[1], rest)));
    }
    // The peer announces that it can make no links.
    w::Buffer introduce;
    w::append(introduce, {w::Kind::introduce, 0, 0, 0, 0, 4096, {}}, 1);
    REQUIRE(::send(fds[1], introduce.data(), introduce.size(), 0) == 32);
    CHECK(link.wait() == "an INTRODUCE that does not say to whom");
    ::close(fds[1]);
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    w::StreamLink other(space, fds[0]);
    introduce.clear();
    w::append(introduce, {w::Kind::introduce, 0, 0, 0, 7, 4096, {}}, 1);
    REQUIRE(::send(fds[1], out.data(), out.size(), 0) > 0);
    REQUIRE(::send(fds[1], introduce.data(), introduce.size(), 0) == 32);
    CHECK(other.wait() == "an INTRODUCE without its descriptor");
    ::close(fds[1]);
  }
  CHECK(descriptors() == before);
}
}  // namespace
}  // namespace wire_introduced
