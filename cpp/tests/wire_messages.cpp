// Sends very many messages over one link between two programs, each with a checksum: no message may
// be lost, doubled, changed or out of order (wire 2.2, 6.2, 12.4).
//
//   wire_messages shm|stream CAPACITY MESSAGES [SEED]
//
// The other program writes, through a buffer of this capacity at the reader (0: a rendezvous), and
// then closes its end. A message has its number, 64 random bits that follow from the number, and
// the CRC-32 of both. The program prints how many messages arrived and how long they took, and last
// `N passed, N failed`; its exit status says the same.
#include <sys/wait.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "random.hpp"
#include "weft/weft.hpp"
#include "weft/wire/resend.hpp"
#include "weft/wire/shm.hpp"

namespace {
using namespace weft;
namespace w = weft::wire;
using Clock = std::chrono::steady_clock;

struct Message {
  std::uint64_t number = 0, random = 0, check = 0;
};
// Makes the message with this number.
Message message(std::uint64_t number, std::uint64_t seed) {
  Message m{number, test::Random::mix(seed + number * 0x9E3779B97F4A7C15ull), 0};
  m.check = w::detail::crc32(std::as_bytes(std::span(&m, 1)).first(offsetof(Message, check)));
  return m;
}

template <class L>
void write_all(int socket, std::uint64_t messages, std::uint64_t seed) {
  L link(w::Space::make("writer"), socket);
  {
    const auto out = link.template writer<Message>("in");
    for (std::uint64_t n = 0; n < messages; ++n) out(message(n, seed));
  }
  link.wait();  // until the reader has seen the end
}

// Returns a description of the fault, or an empty text if there was none. `got` becomes the number
// of right messages.
template <class L>
std::string read_all(int socket, std::size_t capacity, std::uint64_t messages, std::uint64_t seed,
                     std::uint64_t& got) {
  L link(w::Space::make("reader"), socket);
  Channel<Message> c{capacity ? buffer(capacity) : ChannelOptions{}};
  const Reader<Message> in = c.reader();
  link.give(c.writer(), "in", capacity);
  auto said = Clock::now();
  try {
    for (;; ++got) {
      const Message m = in(), due = message(got, seed);
      if (std::memcmp(&m, &due, sizeof(m)) != 0)
        return "message " + std::to_string(got) + " came as number " + std::to_string(m.number) +
               (message(m.number, seed).check == m.check ? "" : ", and its checksum is wrong");
      if (got % 65'536 || Clock::now() - said < std::chrono::seconds(20)) continue;
      said = Clock::now();
      // A sign of life for the runner of the tests.
      std::fprintf(stderr, "%llu messages\n", static_cast<unsigned long long>(got));
    }
  } catch (const Retired&) {
    if (got != messages) return "the writer has ended after " + std::to_string(got);
  } catch (const PeerDied& e) {
    return std::string("after ") + std::to_string(got) + ": " + e.what();
  }
  return {};
}

template <class L>
int run(std::size_t capacity, std::uint64_t messages, std::uint64_t seed) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 2;
  const pid_t other = ::fork();  // before there is any other thread
  if (other < 0) return 2;
  if (other == 0) {
    ::close(ends[0]);
    try {
      write_all<L>(ends[1], messages, seed);
    } catch (const ChannelEnd&) {
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  const auto begin = Clock::now();
  std::uint64_t got = 0;
  std::string wrong = read_all<L>(ends[0], capacity, messages, seed, got);
  const double s = std::chrono::duration<double>(Clock::now() - begin).count();
  int status = 0;
  if (::waitpid(other, &status, 0) != other || status != 0) wrong += " (the writer has failed)";
  std::printf("%llu messages of %zu bytes in %.1f s, %.0f ns each\n",
              static_cast<unsigned long long>(got), sizeof(Message), s,
              1e9 * s / static_cast<double>(got ? got : 1));
  if (!wrong.empty()) std::printf("%s\n", wrong.c_str());
  std::printf("%d passed, %d failed\n", wrong.empty(), !wrong.empty());
  return wrong.empty() ? 0 : 1;
}
}  // namespace

int main(int argc, char** argv) {
  const std::string link = argc > 1 ? argv[1] : "";
  const std::uint64_t messages = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
  if ((link != "shm" && link != "stream") || messages == 0)
    return std::fputs("wire_messages shm|stream CAPACITY MESSAGES [SEED]\n", stderr), 2;
  const std::size_t capacity = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t seed = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1;
  return link == "shm" ? run<w::ShmLink>(capacity, messages, seed)
                       : run<w::StreamLink>(capacity, messages, seed);
}
