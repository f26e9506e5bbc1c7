// Measures raw blocking TCP on loopback between two processes, each on its own CPU: the layer below
// the links of a network.
//
//   tcp int SAMPLES PER      ns a round trip of 4 bytes
//   tcp 1mb SAMPLES PER      ns one way of a megabyte, from before the write to after the read of
//                            the last byte, by the system's clock; the reader requests each
#include <netinet/in.h>

#include <cstdint>
#include <cstring>

#include "../../cpp/pin.hpp"
#include "../../cpp/tcp.hpp"

namespace {
constexpr std::size_t kMegabyte = std::size_t{1} << 20;

void put(int fd, const void* data, std::size_t n) {
  for (const char* p = static_cast<const char*>(data); n > 0;) {
    const ssize_t done = ::send(fd, p, n, MSG_NOSIGNAL);
    if (done <= 0) bench::fail("tcp: the connection broke");
    p += done, n -= static_cast<std::size_t>(done);
  }
}
bool get(int fd, void* data, std::size_t n) {
  for (char* p = static_cast<char*>(data); n > 0;) {
    const ssize_t done = ::recv(fd, p, n, 0);
    if (done <= 0) return false;
    p += done, n -= static_cast<std::size_t>(done);
  }
  return true;
}
std::int64_t now() { return bench::Clock::now().time_since_epoch().count(); }

void answers(int fd) {
  for (std::int32_t x; get(fd, &x, sizeof x);) {
    ++x;
    put(fd, &x, sizeof x);
  }
}
void sends(int fd) {
  std::vector<char> data(kMegabyte);
  for (std::size_t i = 0; i < kMegabyte; ++i) data[i] = static_cast<char>(i);
  for (char asked; get(fd, &asked, 1);) {
    const std::int64_t began = now();
    put(fd, data.data(), data.size());
    put(fd, &began, sizeof began);
  }
}
}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 4 ? argv[1] : "";
  if (what != "int" && what != "1mb") bench::fail("usage: tcp int|1mb SAMPLES PER");
  const long samples = bench::number(argv[2]), per = bench::number(argv[3]);
  const bench::Placement place;
  const auto [here, there] = bench::tcp_pair();
  const pid_t other = ::fork();
  if (other == 0) {
    ::close(here);
    place.pin(1);
    what == "int" ? answers(there) : sends(there);
    ::_exit(0);
  }
  ::close(there);
  place.pin(0);
  std::vector<char> data(kMegabyte);
  std::vector<double> means;
  std::int32_t x = 0;
  for (long k = 0; k <= samples; ++k) {  // stretch 0 warms up
    std::int64_t total = 0;
    const std::int64_t start = now();
    for (long i = 0; i < per; ++i) {
      if (what == "int") {
        std::int32_t back = x;
        put(here, &back, sizeof back);
        if (!get(here, &back, sizeof back) || back != ++x) bench::fail("tcp: a wrong answer");
        continue;
      }
      std::int64_t began = 0;
      put(here, "?", 1);
      if (!get(here, data.data(), data.size())) bench::fail("tcp: the connection broke");
      total += now();
      if (!get(here, &began, sizeof began) || data[1] != 1 || data[kMegabyte - 1] != '\xFF')
        bench::fail("tcp: a wrong megabyte");
      total -= began;
    }
    if (what == "int") total = now() - start;
    if (k > 0) means.push_back(static_cast<double>(total) / static_cast<double>(per));
  }
  bench::print_means(means);
  ::close(here);
  bench::ended_well(other, "tcp");
}
