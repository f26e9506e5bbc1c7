// Tests the features of the link in shared memory alone: segments, the ring, the notice of a death,
// and peers that break its protocol (wire 12.4, 12.5, 14).
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <system_error>
#include <thread>

#include "random.hpp"
#include "weft/weft.hpp"
#include "weft/wire/program.hpp"
#include "weft/wire/shm.hpp"

namespace {
thread_local int yields = 0;
}
extern "C" int sched_yield() noexcept {
  ++yields;
  return static_cast<int>(::syscall(SYS_sched_yield));
}

namespace wire_shm {
namespace {
using namespace weft;
namespace w = weft::wire;

constexpr std::size_t kPage = 4096, kRing = w::ShmLink::kRing;
struct Hello {
  std::uint64_t magic = 0x324D485354464557, ring = kRing;
};

// A peer made by the test. It has the same memory and descriptors as a link, and may misuse them.
struct HandMadePeer {
  std::shared_ptr<w::Space> home = w::Space::make("home");
  int fds[2];
  std::optional<w::ShmLink> link;
  w::Descriptor segment_fd, life_fd;
  w::Segment segment, life, theirs;
  w::Direction* out = nullptr;
  std::uint32_t seq = 0, at = 0;
  HandMadePeer() {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    segment = w::Segment::make(kPage + kRing, w::Segment::Peers::write, segment_fd);
    life = w::Segment::make(w::Life::kSize, w::Segment::Peers::read, life_fd);
    out = ::new (static_cast<void*>(segment.data())) w::Direction;
    live(static_cast<std::uint32_t>(::getpid()));
    link.emplace(home, fds[0]);
  }
  ~HandMadePeer() { ::close(fds[1]); }
  prim::atomic<std::uint32_t>& word() {
    return *reinterpret_cast<prim::atomic<std::uint32_t>*>(life.data());
  }
  void live(std::uint32_t id) {
    word().store(id | FUTEX_WAITERS);
    ::syscall(SYS_futex, &word(), FUTEX_WAKE, 100, nullptr, nullptr, 0);
  }
  void shake(int first, int second, Hello hello = {}) {
    const std::array<int, 2> both{first, second};
    REQUIRE(w::send_descriptors(fds[1], std::as_bytes(std::span(&hello, 1)), both));
  }
  void shake() {
    shake(segment_fd.get(), life_fd.get());
    std::vector<w::Descriptor> got;
    Hello hello;
    pollfd p{fds[1], POLLIN, 0};
    REQUIRE(::poll(&p, 1, -1) == 1);
    REQUIRE(w::receive_descriptors(fds[1], std::as_writable_bytes(std::span(&hello, 1)), got) ==
            sizeof(hello));
    REQUIRE(got.size() == 2);
    REQUIRE(w::Segment::map(got[0], kPage + kRing, w::Segment::Peers::write, theirs) == nullptr);
  }
  w::Direction& in() { return *reinterpret_cast<w::Direction*>(theirs.data()); }
  void say(const w::Frame& f) {
    w::Buffer b;
    w::append(b, f, seq++);
    for (const std::byte c : b) segment.data()[kPage + (at++ & (kRing - 1))] = c;
    publish(at);
  }
  void publish(std::uint32_t tail) {
    out->tail.store(tail);
    if (const w::Knock k = w::knock(out->bell); k.wake)
      ::syscall(SYS_futex, k.wake, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
  void greet() {
    const w::Buffer lease(8);
    say({w::Kind::hello, 0, w::kMagic, 0x0001'0001, 99,
         w::Profile::credits | std::uint64_t{w::kLargest} << 32, lease});
  }
  bool open() {
    const w::Space::Step step(*home);
    return true;
  }
};

// Makes a memfd of this size with these seals.
int memory(std::size_t size, int seals) {
  const int fd = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(::ftruncate(fd, static_cast<off_t>(size)) == 0);
  REQUIRE(::fcntl(fd, F_ADD_SEALS, seals) == 0);
  return fd;
}

TEST_CASE(
    "wire 12.4: who looks before it parks, looks as long as steady answers took, and no longer") {
  using P = weft::runtime::SpinTime;
  P p;
  CHECK(p.now() == P::kLongest);
  p.in_vain();
  CHECK(p.now() == P::kLongest / 2);
  p.came(3'000);
  CHECK(p.now() == P::kLongest);
  // Answers now take 50 us. The thread sleeps before each answer, until it has learned this time.
  for (std::uint32_t i = 2; i < P::kSteady; ++i) {
    p.in_vain();
    p.slept(50'000);
    CHECK(p.now() <= P::kLongest);
  }
  p.in_vain();
  p.slept(50'000);
  CHECK(p.now() == 50'000);
  p.came(45'000);
  CHECK(p.now() == 75'000);
  p.came(P::kAnswer - 1'000);
  CHECK(p.now() == P::kAnswer);
  // Quick answers between slow ones change nothing; after only quick ones the usual time returns.
  for (std::uint32_t i = 1; i < P::kSteady; ++i) {
    p.came(2'000);
    CHECK(p.now() == P::kAnswer);
  }
  p.came(2'000);
  CHECK(p.now() == P::kLongest);
  // If answers take longer, the thread sleeps before each answer, and soon without spinning first.
  for (int i = 0; i < 12; ++i) {
    p.in_vain();
    p.slept(P::kAnswer + 1);
  }
  CHECK(p.now() == P::kLeast);
  p.in_vain();
  p.slept(50'000);
  CHECK(p.now() == P::kLeast);  // One answer alone is not steady.
  bool tried = false;
  for (std::uint32_t i = 0; i < P::kRetry; ++i) tried = tried || p.now() == P::kLongest;
  CHECK(tried);
}

TEST_CASE("wire 12.4: what is made is sealed, of its size and there: nobody takes its pages away") {
  w::Descriptor fd;
  const w::Segment s = w::Segment::make(3 * kPage, w::Segment::Peers::write, fd);
  CHECK(::ftruncate(fd.get(), kPage) != 0);
  CHECK(::ftruncate(fd.get(), 4 * kPage) != 0);
  struct stat st;
  REQUIRE(::fstat(fd.get(), &st) == 0);
  CHECK(static_cast<std::size_t>(st.st_blocks) * 512 == 3 * kPage);
  w::Descriptor read_only;
  const w::Segment r = w::Segment::make(kPage, w::Segment::Peers::read, read_only);
  CHECK(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, read_only.get(), 0) ==
        MAP_FAILED);
}

TEST_CASE("wire 12.4: a lack of memory or of descriptors is an error, not a signal") {
  // No file of this process may be large, so this test takes no memory from other programs.
  rlimit size;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &size) == 0);
  const auto signal = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1 << 20, size.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  w::Descriptor fd;
  CHECK_THROWS_WITH_AS(w::Segment::make(2 << 20, w::Segment::Peers::write, fd),
                       doctest::Contains("bytes: File too large"), BadUse);
  CHECK_THROWS_WITH_AS(w::Segment::make(std::size_t{1} << 50, w::Segment::Peers::write, fd),
                       doctest::Contains("bytes: Cannot allocate"),
                       // More than half of all memory: if granted, a process would be killed.
                       BadUse);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &size) == 0);
  ::signal(SIGXFSZ, signal);
  rlimit before;
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  const rlimit none{3, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const auto space = w::Space::make("home");
  CHECK_THROWS_AS(w::ShmLink(space, fds[0]), BadUse);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  ::close(fds[1]);
}

TEST_CASE("wire 12.4: no room for a link's second thread is an error, and the first one ends") {
  // Only root can take the identity of a user who has no other process running.
  if (::geteuid() != 0) return;
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit two{2, 2};
    if (::setresuid(54321, 54321, 54321) != 0 || ::setrlimit(RLIMIT_NPROC, &two) != 0) ::_exit(2);
    try {
      const w::Attendant attendant;
    } catch (const std::system_error&) {
      ::_exit(0);
    }
    ::_exit(1);
  }
  int status = -1;
  CHECK((::waitpid(child, &status, 0) == child && status == 0));
}

TEST_CASE("wire 12.4, 14.2: descriptors that are none of ours are refused: why") {
  int pipes[2];
  REQUIRE(::pipe(pipes) == 0);
  constexpr int both = F_SEAL_SHRINK | F_SEAL_GROW;
  const std::size_t right = kPage + kRing;
  const int unsealed = memory(right, 0), half = memory(right, F_SEAL_GROW),
            small = memory(kPage, both), good = memory(right, both),
            no_life = memory(kPage, F_SEAL_GROW), zero = ::open("/dev/zero", O_RDWR),
            frozen = memory(right, both | F_SEAL_WRITE);
  const auto why = [](int first, int second, Hello hello = {}) {
    HandMadePeer h;
    h.shake(first, second, hello);
    return h.link->wait();
  };
  HandMadePeer h;
  CHECK(why(unsealed, h.life_fd.get()) ==
        "a segment that is not sealed against shrinking and growing");
  CHECK(why(half, h.life_fd.get()) == "a segment that is not sealed against shrinking and growing");
  CHECK(why(small, h.life_fd.get()) == "a segment of another size than was agreed");
  CHECK(why(pipes[0], h.life_fd.get()) == "a descriptor that is not of a segment of memory");
  CHECK(why(zero, h.life_fd.get()) == "a descriptor that is not of a segment of memory");
  CHECK(why(frozen, h.life_fd.get()).find("a segment ") == 0);
  CHECK(why(good, no_life) == "a segment that is not sealed against shrinking and growing");
  CHECK(why(good, h.life_fd.get(), {1, kRing}) ==
        "the peer does not speak over shared memory, or in another version");
  CHECK(why(good, h.life_fd.get(), {Hello{}.magic, 5}) == "the peer's ring is of another size");
  for (const int fd : {unsealed, half, small, good, no_life, zero, frozen, pipes[0], pipes[1]})
    ::close(fd);
}

TEST_CASE("wire 12.4: no descriptors at all, and a socket that is closed before the hand-shake") {
  {
    HandMadePeer h;
    const Hello hello;
    REQUIRE(::send(h.fds[1], &hello, sizeof(hello), 0) == sizeof(hello));
    CHECK(h.link->wait() == "the peer has not passed its two descriptors");
  }
  HandMadePeer h;
  ::shutdown(h.fds[1], SHUT_RDWR);
  CHECK(h.link->wait() == "its socket was closed");
  int fds[2];
  REQUIRE(::pipe(fds) == 0);
  const auto space = w::Space::make("home");
  CHECK_THROWS_WITH_AS(w::ShmLink(space, fds[0]), "ShmLink: the descriptor is not of a Unix socket",
                       BadUse);
  ::close(fds[1]);
}

TEST_CASE(
    "wire 12.4: frames by hand, over the end of the ring, in pieces; a peer that writes nonsense "
    "into the indices ends its session") {
  for (const bool head : {false, true}) {
    HandMadePeer h;
    Channel<std::string> c;
    h.link->give(c.writer(), "in");
    h.shake();
    h.greet();
    const std::string text(1000, 'x');
    const w::Bytes body = std::as_bytes(std::span(text));
    Reader<std::string> r = c.reader();
    for (std::uint64_t op = 1; op <= 200; ++op) {  // The values go three times round the ring.
      h.say({w::Kind::offer, w::Flag::write | w::Flag::body, 0, 0, op, text.size(), body});
      CHECK(r() == text);
    }
    if (head) {
      // The peer has taken bytes that were never written. The fault is found when the writer next
      // checks how much room there is, once in each ring of answers.
      h.in().head.store(h.in().tail.load() + kRing);
      const auto reads_on = [&] {
        for (std::uint64_t op = 201; op <= 200 + 2 * kRing / w::kHeader; ++op) {
          h.say({w::Kind::offer, w::Flag::write | w::Flag::body, 0, 0, op, text.size(), body});
          r();
        }
      };
      CHECK_THROWS_AS(reads_on(), PeerDied);
    } else {
      h.publish(h.at + 2 * kRing);
    }
    CHECK(h.link->wait() == "the peer has written nonsense into the ring");
  }
}

TEST_CASE(
    "wire 12.4: a bell that is never set right, and words that change all the time, hold nobody "
    "up") {
  HandMadePeer bad;
  bad.shake();
  bad.greet();
  std::atomic<bool> over{false};
  std::thread meddles([&] {
    while (!over) {
      bad.out->bell.who.store(w::Bell::looking);
      bad.out->bell.thread.fetch_add(1);
      bad.out->bell.service.fetch_add(1);
      bad.in().starved.store(1);
      bad.out->starved.store(1);
      ::syscall(SYS_futex, &bad.out->bell.thread, FUTEX_WAKE, 1, nullptr, nullptr, 0);
      std::this_thread::yield();
    }
  });
  const auto home = w::Space::make("home"), far = w::Space::make("far");
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  w::ShmLink h(home, fds[0]), f(far, fds[1]);
  Channel<int> c;
  h.give(c.reader(), "r");
  std::thread reads([&, token = Outside()] {
    auto r = f.reader<int>("r");
    for (int i = 0; i < 500; ++i) CHECK(r() == i);
  });
  Writer<int> to = c.writer();
  for (int i = 0; i < 500; ++i) to(i);
  reads.join();
  over = true;
  meddles.join();
}

// Returns a file of this size; size_of() recognises the file by its size.
int file_of(long size) {
  const int fd = ::memfd_create("aside", MFD_CLOEXEC);
  REQUIRE(::ftruncate(fd, size) == 0);
  return fd;
}
long size_of(int fd) {
  struct stat s {};
  REQUIRE(::fstat(fd, &s) == 0);
  ::close(fd);
  return s.st_size;
}

TEST_CASE(
    "wire 12.4: descriptors go over the socket in their order, and no byte is published before its "
    "own; a full socket holds both back") {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  const int small = 1;  // the smallest size that the system gives
  REQUIRE(::setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)) == 0);
  w::Aside from, to;
  constexpr long kMany = 100;
  for (long i = 0; i < kMany; ++i) from.attach(file_of(i), static_cast<std::size_t>(8 * i));
  CHECK(from.may_go(fds[0]) == 0);  // The hand-shake has not been sent.
  CHECK_FALSE(from.waits());
  from.begin();
  long came = 0;
  std::size_t published = 0;
  int rounds = 0;
  for (; came < kMany; ++rounds) {
    const std::ptrdiff_t may = from.may_go(fds[0]);
    REQUIRE(may > 0);
    const std::size_t n =
        std::min<std::size_t>(static_cast<std::size_t>(may), 8 * kMany - published);
    from.published(n);
    published += n;
    CHECK(from.waits() == (may != PTRDIFF_MAX));
    // All descriptors of the published bytes have arrived.
    for (; 8 * static_cast<std::size_t>(came) < published; ++came)
      REQUIRE(size_of(to.next(fds[1])) == came);
  }
  CHECK(rounds > 1);
  CHECK(from.may_go(fds[0]) == PTRDIFF_MAX);
  CHECK(to.next(fds[1]) == -1);
  from.attach(-1, 0);  // This descriptor cannot be sent.
  CHECK(from.may_go(fds[0]) == -1);
  ::close(fds[0]);
  CHECK_FALSE(to.receive(fds[1]));
  ::close(fds[1]);
}

TEST_CASE(
    "wire 12.4, 14.2: descriptors that nobody announces are kept for so long as a ring has frames, "
    "and then the session is over") {
  HandMadePeer h;
  h.shake();
  h.greet();
  const int one = file_of(1);
  const std::byte mark{};
  for (int i = 0; i < 2100; ++i) {
    while (!w::send_descriptors(h.fds[1], w::Bytes(&mark, 1), std::span(&one, 1))) {
      if (errno == EPIPE || errno == ECONNRESET) break;
      std::this_thread::yield();
    }
  }
  ::close(one);
  CHECK(h.link->wait() == "its socket was closed");
}

TEST_CASE(
    "wire 12.4: on its program's only CPU who waits yields while a peer looks too, and parks where "
    "that does not help") {
  cpu_set_t before, one;
  REQUIRE(::sched_getaffinity(0, sizeof(before), &before) == 0);
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  REQUIRE(::sched_setaffinity(0, sizeof(one), &one) == 0);
  {
    HandMadePeer h;
    Channel<int> c;
    h.link->give(c.writer(), "in");
    h.shake();
    h.greet();
    const Reader<int> r = c.reader();
    h.in().cpu.store(static_cast<std::uint32_t>(::sched_getcpu()));
    while (h.in().tail.load() == 0) std::this_thread::yield();  // HELLO rings the bell.
    std::uint64_t op = 0;
    for (const auto who : {w::Bell::standby, w::Bell::looking}) {
      // If the bells' thread polls just now, the waiter sleeps by itself, and the test tries again.
      bool parked = false;
      for (int attempt = 0; !parked && attempt < 1000; ++attempt) {
        h.in().bell.who.store(who);
        std::atomic<int> so_far{0};
        std::thread waits([&] {
          const Outside token;
          yields = 0;
          CHECK(r() == static_cast<int>(who));
          so_far = yields;
        });
        for (int n = 0; !parked && n < 10'000; ++n) {
          parked = h.out->bell.who.load() == w::Bell::parked;
          std::this_thread::yield();
        }
        h.say({w::Kind::offer, w::Flag::write, 0, 0, ++op, who, {}});
        waits.join();
        if (parked) CHECK((so_far > 0) == (who == w::Bell::looking));
      }
      CHECK(parked);
    }
  }
  REQUIRE(::sched_setaffinity(0, sizeof(before), &before) == 0);
}

TEST_CASE(
    "wire 12.5: the life word ends a session while the socket is open: what was published before "
    "it is read first") {
  for (const std::uint32_t word : {FUTEX_OWNER_DIED | FUTEX_WAITERS, 0u}) {
    HandMadePeer h;
    Channel<int> c{buffer(8)};
    h.link->give(c.writer(), "in");
    h.shake();
    h.greet();
    Reader<int> r = c.reader();
    h.say({w::Kind::offer, w::Flag::write, 0, 0, 1, 7, {}});
    CHECK(r() == 7);
    // The next write is on credit (WIRE.md 6.2), which the first answer gave: it rings no bell.
    w::Buffer b;
    w::append(b, {w::Kind::put, 0, 0, 0, 0, 8, {}}, h.seq++);
    for (const std::byte x : b) h.segment.data()[kPage + (h.at++ & (kRing - 1))] = x;
    h.out->tail.store(h.at);
    h.word().store(word);
    ::syscall(SYS_futex, &h.word(), FUTEX_WAKE, 1, nullptr, nullptr, 0);
    CHECK(h.link->wait() == "its program has ended");
    CHECK(r() == 8);
    CHECK_THROWS_AS(r(), PeerDied);
  }
}

TEST_CASE(
    "wire 12.5: a program that is killed is known by its life word, though its socket lives on in "
    "another") {
  int fds[2], ready[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    {
      w::ShmLink link(w::Space::make("child"), fds[1]);
      Channel<int> c;
      link.give(c.reader(), "r");
      link.wait();
    }
    ::_exit(0);
  }
  {
    // fds[1] is open in this program too, so the link will not see an end of file.
    w::ShmLink link(w::Space::make("parent"), fds[0]);
    auto r = link.reader<int>("r");
    ::kill(child, SIGKILL);
    CHECK_THROWS_AS(r(), PeerDied);
    CHECK(link.wait() == "its program has ended");
  }
  ::waitpid(child, nullptr, 0);
  for (const int fd : {fds[1], ready[0], ready[1]}) ::close(fd);
}

TEST_CASE(
    "wire 12.4: a full ring: what does not fit goes when there is room, whoever writes meanwhile "
    "(14.3)") {
  const auto home = w::Space::make("home"), far = w::Space::make("far");
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  w::ShmLink h(home, fds[0]), f(far, fds[1]);
  Channel<std::string> c{buffer(4, Overflow::unbounded)};
  h.give(c.writer(), "in");
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([&, t, token = Outside()] {
      static std::mutex once;
      static std::optional<w::FarWriter<std::string>> shared;
      w::FarWriter<std::string> to;
      {
        const std::lock_guard g(once);
        if (t == 0) shared = f.writer<std::string>("in");
      }
      for (;;) {
        const std::lock_guard g(once);
        if (shared) {
          to = *shared;
          break;
        }
      }
      for (int i = 0; i < 20; ++i) to(std::string(40'000, static_cast<char>('a' + t)));
    });
  Reader<std::string> r = c.reader();
  std::array<int, 4> seen{};
  for (int i = 0; i < 80; ++i) {
    const std::string s = r();
    CHECK((s.size() == 40'000 && s.front() == s.back()));
    ++seen[static_cast<std::size_t>(s[0] - 'a')];
  }
  for (std::thread& t : writers) t.join();
  CHECK(seen == std::array<int, 4>{20, 20, 20, 20});
}

TEST_CASE(
    "wire 12.4: the last link goes while threads sleep for other things: it waits for none of them "
    "(10.1)") {
  const auto home = w::Space::make("home"), far = w::Space::make("far");
  for (int round = 0; round < 60; ++round) {
    std::array<Channel<int>, 3> come, go;
    std::array<Reader<int>, 3> from;
    std::array<Writer<int>, 3> to;
    std::array<std::thread, 3> sleep;
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    {
      w::ShmLink h(home, fds[0]), f(far, fds[1]);
      for (std::size_t t = 0; t < 3; ++t) {
        sleep[t] = std::thread([r = go[t].reader(), w = come[t].writer(), token = Outside()] {
          w(1);
          w(r());
        });
        from[t] = come[t].reader();
        to[t] = go[t].writer();
        // The thread has begun, and is about to sleep; at most one thread serves the links.
        CHECK(from[t]() == 1);
      }
    }
    for (std::size_t t = 0; t < 3; ++t) {
      to[t](7);
      CHECK(from[t]() == 7);
      sleep[t].join();
    }
  }
}

TEST_CASE(
    "wire 12.4: a thread that has looked for others only sleeps by itself: they look when they "
    "wait") {
  constexpr int kTimes = 2000;
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  const pid_t other = ::fork();
  if (other == 0) {
    ::close(fds[0]);
    {
      w::ShmLink link(w::Space::make("other"), fds[1]);
      const auto in = link.reader<int>("there");
      const auto out = link.writer<int>("back");
      try {
        for (;;) out(in() + 1);
      } catch (const ChannelEnd&) {
      }
      link.wait();
    }
    ::_exit(0);
  }
  ::close(fds[1]);
  {
    w::ShmLink link(w::Space::make("first"), fds[0]);
    Channel<int> there, back, never;
    Writer<int> out = there.writer(), end = never.writer();
    Reader<int> in = back.reader();
    link.give(there.reader(), "there");
    link.give(back.writer(), "back");
    out(0);
    REQUIRE(in() == 1);  // From now on the link is open, and no thread asks for the list of names.
    std::atomic<int> id{0};
    long sleeps = 0;
    std::thread idle([&, r = never.reader(), token = Outside()] {
      id = static_cast<int>(::syscall(SYS_gettid));
      CHECK(r() == 1);
      rusage use;
      REQUIRE(::getrusage(RUSAGE_THREAD, &use) == 0);
      sleeps = use.ru_nvcsw;
    });
    // The idle thread waits first, so it polls for both threads.
    const auto asleep = [&] {
      if (id == 0) return false;
      std::ifstream stat("/proc/self/task/" + std::to_string(id) + "/stat");
      const std::string line((std::istreambuf_iterator<char>(stat)), {});
      return line.find(") S ") != std::string::npos;
    };
    while (!asleep()) std::this_thread::yield();
    for (int i = 0; i < kTimes; ++i) {
      out(i);
      REQUIRE(in() == i + 1);
    }
    end(1);
    idle.join();
    // The idle thread polls three times, and again for a frame that wakes no other thread. If it
    // never stopped polling, each round trip would wake it.
    CHECK(sleeps < kTimes / 2);
  }
  int status = 0;
  REQUIRE(::waitpid(other, &status, 0) == other);
  CHECK(status == 0);
}

TEST_CASE(
    "wire 12.4: a ring's writer looks where its reader is once it seems full, and loses nothing") {
  constexpr std::uint32_t size = 64;
  w::Direction d;
  std::array<std::byte, size> bytes{};
  w::Outlet out;
  w::Inlet in;
  out.open(d, bytes.data(), size);
  in.open(d, bytes.data(), size);
  weft::test::Random dice(1);
  std::uint32_t written = 0, read = 0;
  while (read < 10'000) {
    std::array<std::byte, size + 9> some{};
    const auto n = static_cast<std::size_t>(dice.below(size + 9));
    for (std::size_t i = 0; i < n; ++i) some[i] = static_cast<std::byte>(written + i);
    const std::size_t went = out.put(w::Bytes(some).first(n));
    CHECK(went == std::min<std::size_t>(n, size - (written - read)));
    written += static_cast<std::uint32_t>(went);
    CHECK((d.starved.load() != 0) == (n > 0 && went == 0));
    bool room = false;
    const std::size_t came =
        in.take(std::span(some).first(static_cast<std::size_t>(dice.below(size))), room);
    for (std::size_t i = 0; i < came; ++i) CHECK(some[i] == static_cast<std::byte>(read + i));
    read += static_cast<std::uint32_t>(came);
    if (came > 0) CHECK(room == (n > 0 && went == 0));
    if (came == 0) d.starved.store(0);
  }
}

TEST_CASE("wire 12.4: somebody waits until what was urgent has been taken, and no longer") {
  w::Direction d;
  d.tail = d.head = d.urgent = 0;
  std::array<std::byte, 64> bytes{}, some{};
  w::Outlet out;
  w::Inlet in;
  out.open(d, bytes.data(), 64);
  in.open(d, bytes.data(), 64);
  const auto take = [&](std::size_t n) {
    bool room = false;
    CHECK(in.take(std::span(some).first(n), room) == n);
  };
  for (int round = 0; round < 100; ++round) {
    out.put(w::Bytes(some).first(8));
    CHECK(!in.hurries());
    out.hurry(16);
    out.put(w::Bytes(some).first(16));
    out.put(w::Bytes(some).first(8));
    CHECK(in.hurries());
    take(16);
    CHECK(in.hurries());
    take(8);
    CHECK(!in.hurries());
    take(8);
  }
}

TEST_CASE(
    "wire 12.4: links that come and go from several threads: each time the one that serves them "
    "ends, and the next begins") {
  std::array<std::thread, 3> threads;
  for (std::thread& t : threads)
    t = std::thread([] {
      const auto home = w::Space::make("home"), far = w::Space::make("far");
      for (int round = 0; round < 100; ++round) {
        int fds[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) std::abort();
        w::ShmLink h(home, fds[0]), f(far, fds[1]);
      }
    });
  for (std::thread& t : threads) t.join();
}
}  // namespace
}  // namespace wire_shm
