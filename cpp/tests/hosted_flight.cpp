// Rule 14.14: the flight recorder of C++ programs.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <weft/flight.hpp>

#include "hosted.hpp"

using namespace test;

namespace {

namespace form = weft::runtime::flight;

struct File {
  std::string path = std::string(std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "/tmp") +
                     "/weft-flight-" + std::to_string(getpid());
  ~File() { std::remove(path.c_str()); }
  std::string bytes() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

// The contents of a file, decoded by its specification (docs/flight.md of the Python package).
struct Recorded {
  std::vector<std::string> processes, places;
  std::size_t reads = 0, writes = 0, waited = 0, ends = 0, blocks = 0;
  bool whole = false;
};
Recorded found_in(const std::string& bytes) {
  Recorded f;
  REQUIRE(bytes.size() > 8);
  REQUIRE(std::memcmp(bytes.data(), form::kMagic, 8) == 0);
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data()) + 8;
  const auto* const all = reinterpret_cast<const unsigned char*>(bytes.data()) + bytes.size();
  while (p < all) {
    const char letter = static_cast<char>(*p);
    const std::size_t size = p[1] | p[2] << 8 | p[3] << 16 | std::size_t{p[4]} << 24;
    p += 5;
    const auto* const end = p + size;
    REQUIRE(end <= all);
    if (letter == 'Z') f.whole = true;
    if (letter != 'B') {
      p = end;
      continue;
    }
    ++f.blocks;
    const auto number = [&] {
      std::uint64_t v = 0;
      p = form::take_varint(p, end, v);
      REQUIRE(p);
      return v;
    };
    const auto text = [&] {
      const std::size_t n = number();
      std::string s(reinterpret_cast<const char*>(p), n);
      p += n;
      return s;
    };
    std::vector<std::uint64_t> processes;
    std::size_t places = 0;
    number();
    number();
    while (p < end) {
      const unsigned tag = *p++;
      if (tag < 0x80) {
        number();
        REQUIRE(number() < processes.size());
        REQUIRE(number() <= places);
        const unsigned op = tag & form::kOpBits;
        if (op >= 3 && op <= 5) number();
        if (tag & form::kWaited) number(), ++f.waited;
        f.reads += op == 0;
        f.writes += op == 1;
      } else if (tag == form::kProcess) {
        processes.push_back(number());
        f.processes.push_back(text());
      } else if (tag == form::kPlace) {
        for (int i = 0; i < 4; ++i) number();
        f.places.push_back(text());
        ++places;
      } else if (tag == form::kEnd) {
        number();
        REQUIRE(number() < processes.size());
        ++p;
        text();
        ++f.ends;
      } else {
        REQUIRE(tag == form::kOther);
        text();
      }
    }
  }
  return f;
}

Process gives(weft::Writer<int> out, int n) {
  for (int i = 0; i < n; ++i) co_await out.write(i);
}
Process takes(weft::Reader<int> in) {
  while (auto v = co_await in.next()) {
  }
}

}  // namespace

TEST_CASE("rule 14.14: waits and ends are in the file") {
  const File file;
  weft::Channel<int> c{weft::named("numbers")};
  {
    weft::flight recorder(file.path);
    weft::run(gives(c.writer(), 1000), takes(c.reader()));
  }
  const Recorded f = found_in(file.bytes());
  CHECK(f.whole);
  CHECK(f.processes == std::vector<std::string>{"main/gives", "main/takes"});
  CHECK(f.places == std::vector<std::string>{"numbers"});
  CHECK(f.reads + f.writes >= 900);  // in each communication one of the two parties has waited
  CHECK(f.waited >= 900);
  CHECK(f.ends == 2);
}

TEST_CASE("rule 14.14: the ring is never more than what was asked for") {
  const File file;
  weft::Channel<int> c;
  {
    weft::flight recorder(file.path, form::kLeast);
    weft::run(gives(c.writer(), 300'000), takes(c.reader()));
  }
  const std::string bytes = file.bytes();
  CHECK(bytes.size() <= form::kLeast);
  const Recorded f = found_in(bytes);
  CHECK(f.blocks >= 2);
  CHECK(f.ends == 2);
}

TEST_CASE("rule 14.14: threads have lanes of their own, and there is one recorder") {
  const File file;
  weft::Channel<int> c{weft::named("c")};
  {
    weft::flight recorder(file.path);
    weft::run(weft::thread([w = c.writer()] {
                for (int i = 0; i < 100; ++i) w(i);
              }),
              takes(c.reader()));
    CHECK_THROWS_AS(weft::flight(file.path), weft::BadUse);
    recorder.write();
    CHECK(found_in(file.bytes()).whole);
  }
  CHECK(found_in(file.bytes()).places.size() >= 1);
  weft::flight again(file.path);  // The first recorder has ended before this one begins.
  CHECK_THROWS_AS(weft::flight("/none", 1), weft::BadUse);
}
