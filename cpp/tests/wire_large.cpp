// Tests large values: in pieces, in slots of shared memory, and shared by many (WIRE.md 9).
#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <numeric>
#include <thread>

#include "weft/weft.hpp"
#include "weft/wire/large.hpp"
#include "weft/wire/program.hpp"
#include "weft/wire/serial.hpp"
#include "weft/wire/shared.hpp"
#include "weft/wire/shm.hpp"
#include "wire_pipe.hpp"
#include "wire_world.hpp"

namespace wire_large {
namespace {
using namespace weft;
using namespace weft::test;

struct Two {
  std::shared_ptr<w::Space> home = w::Space::make("home"), far = w::Space::make("far");
  Wire a{*home, *far};
  void pump() { a.pump(); }
};
template <class L>
struct Joined {
  std::shared_ptr<w::Space> home = w::Space::make("home"), far = w::Space::make("far");
  int fds[2];
  std::optional<L> h, f;
  Joined() {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    if constexpr (std::is_same_v<L, w::SerialLink>) {
      w::LineOptions o;
      o.lease_ms = 600'000;  // Sending a gibibyte takes long on a slow machine.
      h.emplace(home, fds[0], o);
      f.emplace(far, fds[1], o);
    } else {
      h.emplace(home, fds[0]);
      f.emplace(far, fds[1]);
    }
  }
};
std::string text(std::size_t n) {
  std::string s(n, 'x');
  for (std::size_t i = 0; i < n; i += 1000) s[i] = static_cast<char>('a' + i / 1000 % 26);
  return s;
}
const std::size_t kSizes[] = {0,
                              5,
                              w::kApart - 1,
                              w::kApart,
                              w::kLargest - w::kHeader - 1,
                              w::kLargest - w::kHeader,
                              w::kLargest - w::kHeader + 1,
                              3'000'000,
                              200'000,  // Test cases use a value of this size.
                              3};

// --- in pieces (9.1) ---

TEST_CASE("wire 9.1: what a value in pieces has lain in is kept for the next, up to a bound") {
  w::detail::Spare spare;
  w::Buffer b(1'000'000, std::byte{1});
  const std::byte* const lay = b.data();
  spare.keep(std::move(b));
  spare.keep(w::Buffer(1000));  // The larger buffer stays.
  b = spare.take();
  CHECK(b.empty());
  CHECK(b.data() == lay);
  CHECK(spare.take().capacity() == 0);  // The memory is given to one value only.
  spare.keep(w::Buffer(w::detail::Spare::kMaxKeptBytes + 1));
  CHECK(spare.take().capacity() == 0);
  spare.keep(w::Buffer(w::detail::Spare::kMaxKeptBytes));
  CHECK(spare.take().capacity() == w::detail::Spare::kMaxKeptBytes);
}

TEST_CASE_TEMPLATE(
    "wire 9.1: a far writer's value of any length arrives, plainly and on credit, and the session "
    "goes on",
    L, w::StreamLink, w::ShmLink, w::SerialLink) {
  for (const std::size_t room : {std::size_t{0}, std::size_t{2}}) {
    Joined<L> p;
    Channel<std::string> c{room ? buffer(room) : ChannelOptions{}};
    p.h->give(c.writer(), "w", room);
    std::thread writes([&, token = Outside()] {
      auto to = p.f->template writer<std::string>("w");
      for (const std::size_t n : kSizes) to(text(n));
    });
    Reader<std::string> from = c.reader();
    for (const std::size_t n : kSizes) CHECK(from() == text(n));
    writes.join();
  }
}

TEST_CASE_TEMPLATE(
    "wire 9.1: long values among the guards of a choice: the one that is chosen arrives, the "
    "others are as they were",
    L, w::StreamLink, w::ShmLink) {
  Joined<L> p;
  Channel<std::string> c, d;
  p.h->give(c.writer(), "c");
  p.h->give(d.writer(), "d");
  auto first = p.f->template writer<std::string>("c"),
       second = p.f->template writer<std::string>("d");
  Reader<std::string> never = c.reader(), from = d.reader();
  std::thread reads([&, token = Outside()] { CHECK(from() == text(200'000)); });
  w::FarSelect s;
  s.out(first, text(100'000)).out(second, text(200'000));
  CHECK(s() == 1);
  reads.join();
  std::thread again([&, token = Outside()] { CHECK(never() == text(70'000)); });
  first(text(70'000));
  again.join();
}

TEST_CASE_TEMPLATE(
    "wire 9.2: a choice with more leased values than go with one message: each is that of its "
    "guard",
    L, w::StreamLink, w::ShmLink) {
  constexpr std::size_t n = 40;
  Joined<L> p;
  std::vector<Channel<std::string>> c(n);
  std::vector<w::FarWriter<std::string>> to;
  for (std::size_t i = 0; i < n; ++i) {
    p.h->give(c[i].writer(), std::to_string(i));
    to.push_back(p.f->template writer<std::string>(std::to_string(i)));
  }
  std::vector<Reader<std::string>> from;
  for (auto& each : c) from.push_back(each.reader());
  for (const std::size_t chosen :
       {std::size_t{0}, std::size_t{15}, std::size_t{16}, std::size_t{17}, n - 1}) {
    std::thread reads([&, token = Outside()] { CHECK(from[chosen]() == text(40'000 + chosen)); });
    w::FarSelect s;
    for (std::size_t i = 0; i < n; ++i) s.out(to[i], text(40'000 + i));
    CHECK(s() == static_cast<int>(chosen));
    reads.join();
  }
}

// Sends frames of a hand-made peer to the home, and returns the reason with which the home ends the
// session.
std::string home_says(std::initializer_list<w::Frame> frames, std::size_t room = 0) {
  Two t;
  Channel<std::string> c{room ? buffer(room) : ChannelOptions{}};
  Channel<int> d;
  const auto in = t.a.give(c.writer());
  const auto number = t.a.give(d.writer());
  Reader<std::string> r = c.reader();
  Reader<int> q = d.reader();
  t.pump();
  CHECK((in == 0 && number == 1));
  for (const w::Frame& f : frames) t.a.to_home(f);
  t.pump();
  return t.a.at_home.session.why();
}

TEST_CASE(
    "wire 9.1, 14.2: pieces that belong to no write, or come in the wrong order, end the session") {
  const w::Buffer eight(8);
  const auto piece = [&](std::uint32_t guard) {
    return w::Frame{w::Kind::value, w::Flag::write, guard, 0, 0, 8, eight};
  };
  const auto write = [](std::uint32_t end, std::uint8_t flags) {
    return w::Frame{
        w::Kind::offer, static_cast<std::uint8_t>(w::Flag::write | flags), end, 0, 1, 0, {}};
  };
  CHECK(home_says({piece(0), write(0, w::Flag::body)}).empty());
  CHECK(home_says({piece(255)}) == "a VALUE of a guard that is not the next");
  CHECK(home_says({piece(1), piece(0)}) == "a VALUE of a guard that is not the next");
  CHECK(home_says({piece(1), write(0, w::Flag::body)}) == "a VALUE of a guard that takes no bytes");
  CHECK(home_says({piece(0), write(1, 0)}) == "a VALUE of a guard that takes no bytes");
  CHECK(home_says({piece(0), w::Frame{w::Kind::offer, 0, 0, 0, 1, 0, {}}}) ==
        "a VALUE of a guard that takes no bytes");
  CHECK(home_says({piece(0), write(0, w::Flag::body | w::Flag::lease)}) ==
        "a VALUE of a guard that takes no bytes");
}
TEST_CASE("wire 9.2, 14.2: a lease that is none ends the session") {
  const w::Buffer described(w::Slot::kDescribed, std::byte{1}), eight(8);
  const std::uint8_t leased = w::Flag::write | w::Flag::body | w::Flag::lease;
  CHECK(home_says({{w::Kind::offer, leased, 0, 0, 1, 40, described}}) ==
        "an OFFER with a value that is not of its channel's type");
  CHECK(home_says({{w::Kind::offer, leased, 0, 0, 1, 8, eight}}) ==
        "an OFFER with a value that is not of its channel's type");
  CHECK(home_says({{w::Kind::offer, w::Flag::write | w::Flag::lease, 0, 0, 1, 0, {}}}) ==
        "an OFFER's guards do not add up");
}

// A value that claims to be larger than a gibibyte, without any memory of that size.
struct OversizedValue {};
}  // namespace
}  // namespace wire_large
template <>
struct weft::wire::Value<wire_large::OversizedValue> {
  using OversizedValue = wire_large::OversizedValue;
  static std::string type() { return "vast"; }
  static Bytes bytes(const OversizedValue&) {
    static void* const there = ::mmap(nullptr, kMaxBytes + 8, PROT_READ,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return {static_cast<const std::byte*>(there), kMaxBytes + 8};
  }
  static void put(const OversizedValue& v, Buffer& out) { detail::put(out, bytes(v)); }
  static std::optional<OversizedValue> get(Bytes) { return OversizedValue{}; }
};
namespace wire_large {
namespace {
TEST_CASE(
    "wire 9.1: a value of more than a gibibyte is bad use at a far writer, and nothing was sent") {
  for (const std::size_t room : {0, 4}) {
    Joined<w::SerialLink> p;  // SerialLink passes no descriptors.
    Channel<OversizedValue> c{room ? buffer(room) : ChannelOptions{}};
    p.h->give(c.writer(), "w", room);
    const Reader<OversizedValue> r = c.reader();
    auto to = p.f->writer<OversizedValue>("w");
    CHECK_THROWS_AS(to(OversizedValue{}), BadUse);
    CHECK_THROWS_AS(to(OversizedValue{}), BadUse);
  }
}

// --- slots (9.2) ---

std::unique_ptr<w::Slot> sent(Pipe& p, const w::Slot& s) {
  w::Buffer description;
  REQUIRE(s.lend_to(p, description));
  return w::Slot::take(description, p);
}

TEST_CASE(
    "wire 9.2: a slot is written here and read there, in the same memory; once it is known no "
    "descriptor goes along") {
  Pipe p{1, 1001};
  std::byte* first = nullptr;
  for (int round = 0; round < 5; ++round) {
    auto s = w::Slot::make(100'000);
    REQUIRE(s);
    if (round == 0) first = s->data();
    CHECK(s->data() == first);  // All shares had been returned.
    s->data()[99'999] = std::byte(round);
    const auto there = sent(p, *s);
    REQUIRE(there);
    CHECK(there->size() == 100'000);
    CHECK(there->data() != s->data());
    CHECK(there->data()[99'999] == std::byte(round));
    there->data()[5] = std::byte{77};
    CHECK(s->data()[5] == std::byte{77});
  }
  CHECK(p.passed_ever == 1);
}
TEST_CASE(
    "wire 9.2: a slot of which somebody has a share is not used again, whoever died with it") {
  Pipe p{1, 1002};
  w::Buffer lost;
  const std::byte* at;
  {
    const auto s = w::Slot::make(50'000);
    at = s->data();
    REQUIRE(s->lend_to(p, lost));  // The receiver of this share is killed.
  }
  const auto next = w::Slot::make(50'000);
  CHECK(next->data() != at);
  CHECK(w::Slot::take(lost, p));  // If the receiver lives, the slot arrives.
}
TEST_CASE(
    "wire 9.2: what its receiver has let go of is passed again; what was under way then is known "
    "all the same") {
  Pipe p{1, 1003};
  const w::Traffic session;
  const auto kept = w::Slot::make(70'000);
  kept->data()[0] = std::byte{9};
  CHECK(sent(p, *kept));
  CHECK(p.passed_ever == 1);
  w::Buffer under_way;
  REQUIRE(kept->lend_to(p, under_way));
  CHECK(p.passed_ever == 1);
  std::vector<std::unique_ptr<w::Slot>> more;
  for (int i = 0; i < 20; ++i) {  // more slots than are kept
    more.push_back(w::Slot::make(70'000));
    REQUIRE(sent(p, *more.back()));
  }
  CHECK(p.passed_ever == 21);
  w::Buffer after;
  REQUIRE(kept->lend_to(p, after));
  // The descriptor is passed again, because the receiver no longer knows the slot.
  CHECK(p.passed_ever == 22);
  const auto there = w::Slot::take(under_way, p);
  REQUIRE(there);
  CHECK(there->data()[0] == std::byte{9});
  CHECK(w::Slot::take(after, p));
}
// Returns how many segments this program has mapped.
int mapped() {
  std::ifstream maps("/proc/self/maps");
  int n = 0;
  for (std::string line; std::getline(maps, line);)
    n += line.find("memfd:") != std::string::npos ? 1 : 0;
  return n;
}
TEST_CASE(
    "wire 9.2: a mapping with the shares of a killed program goes once no session is open that "
    "could bring its values") {
  constexpr std::size_t kBytes = 90'000;
  Pipe p{1, 1007};
  for (int i = 0; i < 40; ++i) {  // From now on both sides keep 16 slots.
    const auto s = w::Slot::make(kBytes + 200'000 * (i % 2));
    CHECK(sent(p, *s));
  }
  std::vector<w::Buffer> lost(40);
  auto session = std::make_unique<w::Traffic>();
  for (w::Buffer& of_killed : lost) {
    const auto s = w::Slot::make(kBytes);
    REQUIRE(sent(p, *s));
    REQUIRE(s->lend_to(p, of_killed));  // The share is never given back.
  }
  // A slot that its maker has dropped is still mapped once.
  CHECK(mapped() >= 2 * 16 + 20);
  CHECK(w::Slot::take(lost[0], p));  // The session is open, so this slot might have been sent.
  session.reset();
  CHECK(sent(p, *w::Slot::make(kBytes)));
  CHECK(mapped() <= 2 * 16 + 1);
  CHECK_FALSE(w::Slot::take(lost[1], p));  // No program is left that could send that slot.
  CHECK(w::Slot::take(lost[39], p));       // lost[39] is among the last 16.
}
TEST_CASE("wire 9.2: a session that was begun later brings nothing that was let go of before") {
  w::Traffic first;
  const std::uint64_t then = w::Traffic::latest();
  const w::Traffic second;
  CHECK(w::Traffic::latest() > then);
  CHECK(w::Traffic::oldest() <= then);
  first.over();
  first.over();
  CHECK(w::Traffic::oldest() > then);
}
TEST_CASE(
    "wire 9.2: more spaces than a head has names for get descriptors, and the values all the "
    "same") {
  const auto s = w::Slot::make(7'000'000);  // so large that a new slot is made
  std::deque<Pipe> pipes;
  for (std::uint64_t to = 2000; to < 2010; ++to) pipes.push_back(Pipe{1, to});
  for (int round = 0; round < 3; ++round)
    for (Pipe& p : pipes) CHECK(sent(p, *s));
  std::size_t passed = 0;
  for (const Pipe& p : pipes) passed += p.passed_ever;
  CHECK(passed == 6 + 4 * 3);
}
TEST_CASE("wire 9.2: a slot and a sealed value for which there is no room here: it is said") {
  Pipe by{1, 1005};
  const auto s = w::Slot::make(20'000'000);
  w::Buffer description;
  REQUIRE(s->lend_to(by, description));
  w::Descriptor fd(by.passed());
  w::Segment there;
  rlimit before;
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  const rlimit none{1, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_AS, &none) == 0);
  // Only the maker of a slot knows the size of the slot; the receiver learns the size from the
  // descriptor.
  struct stat st;
  ::fstat(fd.get(), &st);
  const char* const wrong =
      w::Segment::map(fd, static_cast<std::size_t>(st.st_size), w::Segment::Peers::write, there);
  REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(wrong == w::Segment::kNoRoom);
  CHECK_FALSE(there);
  // The receiver of a value reports the lack of room once, instead of any other error.
  Two t;
  w::Carrier carrier(t.a.at_home);
  CHECK(carrier.wrong("another type") == std::string_view("another type"));
  carrier.no_room();
  CHECK(std::string_view(carrier.wrong("another type")).find("no room") != std::string_view::npos);
  CHECK(carrier.wrong("another type") == std::string_view("another type"));
}
TEST_CASE("wire 9.2, 14.2: descriptions that are none: nothing, and no crash") {
  Pipe p{1, 1004};
  const auto s = w::Slot::make(20'000'000);  // so large that a new slot is made
  w::Buffer good;
  REQUIRE(s->lend_to(p, good));
  const auto with = [&](std::size_t at, std::uint64_t v) {
    w::Buffer b = good;
    std::memcpy(b.data() + at, &v, 8);
    return b;
  };
  const auto refused = [&](const w::Buffer& b) {
    Pipe q{1, 1004};
    for (const int fd : p.fds) q.fds.push_back(::dup(fd));
    return w::Slot::take(b, q) == nullptr;
  };
  CHECK(refused(with(0, 0)));
  CHECK(refused(with(0, 3)));  // The description claims that the slot is known.
  CHECK(refused(with(8, 123)));
  CHECK(refused(with(16, 1 << 30)));
  CHECK(refused(with(16, 0)));
  CHECK(refused(with(24, 1 << 30)));
  CHECK(refused(with(24, ~std::uint64_t{0})));
  CHECK(refused(with(32, 1)));
  CHECK(refused(w::Buffer(good.begin(), good.end() - 8)));
  CHECK_FALSE(refused(good));
}
TEST_CASE("wire 9.2: without memory there is no slot, and no crash") {
  CHECK_FALSE(w::Slot::make(std::size_t{1} << 46));
}

// --- values in place ---

TEST_CASE_TEMPLATE(
    "wire 9.2: an array that is written in place is read in place, changed, and goes on; a vector "
    "may be at either end",
    L, w::StreamLink, w::ShmLink, w::SerialLink) {
  constexpr bool passes = !std::is_same_v<L, w::SerialLink>;
  Joined<L> p;
  Channel<w::Large<int>> there, back;
  Channel<std::vector<int>> vectors;
  p.h->give(there.reader(), "there");
  p.h->give(back.writer(), "back");
  p.h->give(vectors.writer(), "vectors");
  std::thread other([&, token = Outside()] {
    auto in = p.f->template reader<std::vector<int>>("there");
    auto in_place = w::Large<int>();
    auto out = p.f->template writer<w::Large<int>>("back");
    auto plain = p.f->template writer<w::Large<int>>("vectors");
    std::vector<int> v = in();
    w::Large<int> l(v.size());
    std::copy(v.begin(), v.end(), l.begin());
    out(std::move(l));
    plain(w::Large<int>(0));
    w::Large<int> m(3);
    std::iota(m.begin(), m.end(), 7);
    plain(std::move(m));
  });
  w::Large<int> big(100'000);
  CHECK(big.shared());
  std::iota(big.begin(), big.end(), 0);
  there.writer()(std::move(big));
  const w::Large<int> got = back.reader()();
  CHECK(got.shared() == passes);
  CHECK(got.size() == 100'000);
  CHECK(std::accumulate(got.begin(), got.end(), 0L) == 4'999'950'000);
  Reader<std::vector<int>> r = vectors.reader();
  CHECK(r().empty());
  CHECK(r() == std::vector<int>{7, 8, 9});
  other.join();
}
TEST_CASE("wire 9.2: lengths that cannot be") {
  CHECK_THROWS_AS(w::Large<double>(std::size_t{1} << 61), std::length_error);
  CHECK(w::Large<double>(0).size() == 0);
  CHECK(w::Large<double>().begin() == nullptr);
}
TEST_CASE("wire 9.2: bytes that are no whole number of elements are no value of the type") {
  CHECK_FALSE(w::Value<w::Large<int>>::get(w::Buffer(7)));
  CHECK(w::Value<w::Large<int>>::get(w::Buffer(8))->size() == 2);
}

// A program keeps all values that it receives. Values that do not fit are copied, no program waits,
// and every value is right.
TEST_CASE(
    "wire 9.2: who keeps more values than can be open gets copies, which are counted, and no "
    "writer waits for it") {
  constexpr int n = 260;
  int s[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(s[0]);
    w::Slot::forget();
    int wrong = 0;
    {
      w::ShmLink link(w::Space::make("keeps"), s[1]);
      auto in = link.reader<w::Large<int>>("in");
      auto out = link.writer<int>("out");
      std::vector<w::Large<int>> kept;
      for (int i = 0; i < n; ++i) kept.push_back(in());
      for (int i = 0; i < n; ++i)
        if (kept[static_cast<std::size_t>(i)][9'999] != i) ++wrong;
      const auto copied = w::Slot::copied.load();
      out(wrong == 0 && copied > 0 && copied < 100 ? 1 : 0);
    }
    ::_exit(0);
  }
  ::close(s[1]);
  {
    w::ShmLink link(w::Space::make("writes"), s[0]);
    Channel<w::Large<int>> c;
    Channel<int> d;
    link.give(c.reader(), "in");
    link.give(d.writer(), "out");
    Writer<w::Large<int>> to = c.writer();
    for (int i = 0; i < n; ++i) {
      w::Large<int> v(10'000);
      v[9'999] = i;
      to(std::move(v));
    }
    CHECK(d.reader()() == 1);
  }
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

// --- shared by many (9.3) ---

TEST_CASE_TEMPLATE(
    "wire 9.3: an array that is shared is mapped once by each program that gets it, whatever way "
    "it comes",
    L, w::StreamLink, w::ShmLink, w::SerialLink) {
  Joined<L> p;
  Channel<w::SharedArray<double>> c;
  Channel<w::SharedArray<double>> d;
  p.h->give(c.writer(), "w");
  p.h->give(d.reader(), "r");
  std::vector<double> numbers(50'000);
  std::iota(numbers.begin(), numbers.end(), 0.5);
  const w::SharedArray<double> table{std::span<const double>(numbers)};
  std::thread other([&, token = Outside()] {
    auto to = p.f->template writer<w::SharedArray<double>>("w");
    auto from = p.f->template reader<w::SharedArray<double>>("r");
    to(table);
    to(table);
    to(w::SharedArray<double>());
    CHECK(from().size() == 0);
  });
  Reader<w::SharedArray<double>> r = c.reader();
  const w::SharedArray<double> one = r(), two = r();
  CHECK(std::equal(numbers.begin(), numbers.end(), one.begin(), one.end()));
  if constexpr (!std::is_same_v<L, w::SerialLink>) {
    CHECK(one.data() == two.data());
    CHECK(one.data() == table.data());  // This program already has the array.
  }
  CHECK(r().size() == 0);
  d.writer()(w::SharedArray<double>(std::span<const double>()));
  other.join();
}
TEST_CASE(
    "wire 9.3: nobody can write to a shared array, nor its maker; and nobody gets one that is not "
    "sealed") {
  const std::vector<int> v{1, 2, 3};
  const w::SharedArray<int> a{std::span<const int>(v)};
  CHECK(a[2] == 3);
  CHECK(::mprotect(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(a.data()) &
                                           ~std::uintptr_t{4095}),
                   4096, PROT_READ | PROT_WRITE) != 0);
  CHECK(errno == EACCES);
}
TEST_CASE("wire 9.3: memory that is used again is written only while nobody has a share of it") {
  const auto bytes = [](char c) { return std::vector<std::byte>(100'000, std::byte(c)); };
  const auto is = [](std::span<const std::byte> all, char c) {
    return all.size() == 100'000 &&
           std::all_of(all.begin(), all.end(), [c](std::byte b) { return b == std::byte(c); });
  };
  auto one = w::Sealed::copy_again(bytes('1'));
  const auto two = w::Sealed::copy_again(bytes('2'));
  CHECK(is(one->bytes(), '1'));
  CHECK(one->bytes().data() != two->bytes().data());
  {
    const auto own = two->to_change();
    CHECK(own->is_unchanged());
    CHECK(is(own->bytes(), '2'));
    CHECK(own->is_unchanged());  // it was only read
    own->bytes().front() = std::byte('w');
    CHECK(!own->is_unchanged());
    CHECK(is(two->bytes(), '2'));
  }
  one.reset();
  const auto three = w::Sealed::copy_again(bytes('3'));  // in the memory of `one`
  CHECK(is(two->bytes(), '2'));
  CHECK(is(three->bytes(), '3'));
  w::Sealed::free_unused();
  CHECK(is(two->bytes(), '2'));
  CHECK(is(w::Sealed::copy_again(bytes('4'))->bytes(), '4'));
  w::Sealed::free_unused();
}
TEST_CASE("wire 9.3, 14.2: descriptions that are none end the session") {
  for (const std::size_t n : {std::size_t{1}, std::size_t{31}, std::size_t{32}, std::size_t{40}}) {
    for (const std::uint8_t mark : {0, 1, 2}) {
      Two t;
      Channel<w::SharedArray<int>> c;
      const auto in = t.a.give(c.writer());
      t.pump();
      w::Buffer b(n);
      b[0] = std::byte{mark};
      t.a.to_home({w::Kind::offer, w::Flag::write | w::Flag::body, in, 0, 1, n, b});
      t.pump();
      const bool empty = n == 32 && mark == 0;  // an array without elements
      CHECK(t.a.at_home.session.why() ==
            (empty ? "" : "an OFFER with a value that is not of its channel's type"));
    }
  }
}

}  // namespace
}  // namespace wire_large
