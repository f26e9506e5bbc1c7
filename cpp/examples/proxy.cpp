// A proxy for TCP: for each client a connection to TARGET is made, and bytes pass in both
// directions.
//
//   client ──► passes up ──► server        two processes for each connection; each has one buffer,
//   client ◄── passes down ◄── server      and reads no more until the other side has taken it
//
//   proxy ADDRESS TARGET [CONNECTIONS [SECONDS [SEED]]]    (for example 127.0.0.1:0 127.0.0.1:80)
//
//   CONNECTIONS is how many clients are served at once (default 1000). Further clients wait in the
//   system's queue.
//   SECONDS is the longest time that TARGET may take to accept a connection, that a side may leave
//   bytes untaken, and that both sides may be silent (default 60).
//   SEED makes the proxy a test of its clients and servers: it passes the bytes on in pieces of
//   random lengths, and cuts each connection at a random byte (see Trouble).
//
// If one side ends its stream (half-close), the proxy ends its stream to the other side, and the
// other direction continues. If a connection ends in any other way, the proxy resets both of its
// sides, so that neither side takes a part of the data for the whole. On SIGTERM or Ctrl-C the
// proxy takes no more connections, serves the present ones to their end, and ends. On a second
// signal it resets them.
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>

#include <weft/io.hpp>
#include <weft/weft.hpp>

namespace io = weft::io;

constexpr std::size_t kBuffer = 16 * 1024;  // the largest number of bytes that a direction holds

struct Settings {
  io::Address target;
  long most = 1000;
  weft::Span patience;
  std::optional<unsigned> seed;
};
struct Total {
  long connections = 0, cut = 0;
  std::uint64_t up = 0, down = 0;  // in bytes
};

// Damages one direction of a connection: passes on pieces of 1 to 100 bytes, and after a random
// number of bytes resets the connection, or ends this direction alone, with the rest unsent.
class Trouble {
 public:
  enum class Kind : std::uint8_t { none, resets, ends };

  explicit Trouble(unsigned seed) : numbers_(seed), left_(numbers_() % 5000) {}
  std::size_t piece(std::size_t n) {
    const std::size_t k = std::min<std::size_t>({n, 1 + numbers_() % 100, left_});
    left_ -= k;
    return k;
  }
  Kind now() { return left_ > 0 ? Kind::none : numbers_() % 2 ? Kind::resets : Kind::ends; }

 private:
  std::mt19937 numbers_;
  std::size_t left_;
};

// The two sides of a connection. When the object is destroyed, both sides are reset, unless
// `whole`.
struct Sides {
  io::Stream client, server;
  std::int64_t last = weft::now();  // when a byte was last passed on, in ns
  bool whole = false;

  explicit Sides(io::Stream c) : client(std::move(c)) {}
  Sides(const Sides&) = delete;
  Sides& operator=(const Sides&) = delete;
  ~Sides() {
    for (const io::Stream& s : {client, server}) {
      // With this option the system drops the unsent bytes and sends a reset when the last copy of
      // the stream is destroyed. (Stream::close() would end the connection in the usual way.)
      const linger now{1, 0};
      if (!whole && s) setsockopt(s.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
  }
};

// Waits until `from` has something to read. Throws TimedOut if both directions have been silent for
// too long.
weft::Process comes(const Sides& sides, io::Stream from, weft::Span patience) {
  for (;;) {
    const std::int64_t last = sides.last;
    const weft::Span left(last + patience.count() - weft::now());
    if ((co_await weft::select(io::readable(from), weft::after(left))).index == 0) co_return;
    if (sides.last == last) throw weft::TimedOut();
  }
}

// Passes on one direction, to its end. Throws std::system_error or TimedOut if a side fails.
weft::Process passes(Sides& sides, bool up, Settings by, std::uint64_t& bytes) {
  const io::Stream from = up ? sides.client : sides.server;
  const io::Stream to = up ? sides.server : sides.client;
  std::optional<Trouble> trouble;
  if (by.seed) trouble.emplace(*by.seed * 2 + (up ? 1 : 0));
  char buffer[kBuffer];
  bool sends = true;
  for (;;) {
    co_await comes(sides, from, by.patience);
    const std::size_t n = co_await from.read_some(buffer);
    if (n == 0) break;
    for (std::string_view rest(buffer, n); sends && !rest.empty();) {
      const weft::Timeout limit(by.patience);
      const std::size_t piece = trouble ? trouble->piece(rest.size()) : rest.size();
      const std::size_t sent = co_await to.write_some(rest.substr(0, piece));
      rest.remove_prefix(sent);
      bytes += sent;
      sides.last = weft::now();
      if (!trouble) continue;
      const Trouble::Kind kind = trouble->now();
      if (kind == Trouble::Kind::resets) throw std::runtime_error("cut");
      if (kind == Trouble::Kind::ends) to.shutdown_write(), sends = false;
    }
  }
  if (sends) to.shutdown_write();
}

weft::Process connection(io::Stream client, Settings by, weft::Writer<Total> left) {
  Total all{1, 1, 0, 0};
  {
    Sides sides(std::move(client));
    try {
      {
        const weft::Timeout limit(by.patience);
        sides.server = co_await io::connect(by.target);
      }
      co_await weft::par(passes(sides, true, by, all.up), passes(sides, false, by, all.down));
      sides.whole = true;
      all.cut = 0;
    } catch (const weft::Cancelled&) {
      throw;
    } catch (const std::exception&) {
      // TARGET does not answer; or a side has failed or stalled, and par has ended both directions.
    }
  }  // the descriptors are closed before another connection can have this one's place
  co_await left.write(all);
}

weft::Process serve(io::Listener door, weft::Reader<int> stop, Settings by) {
  weft::Group connections;
  weft::Channel<Total> left;
  const weft::Reader<Total> ended = left.reader();
  const weft::Writer<Total> tells = left.writer();
  Total sum;
  long now = 0;  // connections that are served at this moment
  for (bool open = true; open || now > 0;) {
    auto [which, value] = co_await weft::select(weft::Mode::priority, stop, weft::in(ended),
                                                io::readable(door).when(open && now < by.most));
    if (which == 0) {
      if (!open) break;
      open = false;
      door.close();
      std::puts("no more connections");
      std::fflush(stdout);
    } else if (which == 1) {
      const Total& one = std::get<Total>(value);
      sum.connections += one.connections;
      sum.cut += one.cut;
      sum.up += one.up;
      sum.down += one.down;
      --now;
    } else {
      connections.start(connection(co_await door.accept(), by, tells));
      ++now;
      if (by.seed) ++*by.seed;
    }
  }
  connections.cancel();  // ends those that are left, after a second signal
  co_await connections.wait();
  std::printf("%ld connections, %ld cut, %llu bytes up, %llu bytes down\n", sum.connections + now,
              sum.cut + now, static_cast<unsigned long long>(sum.up),
              static_cast<unsigned long long>(sum.down));
}

// Raises the limit of this OS process for descriptors, of which each connection has two. Throws if
// the system does not allow enough of them.
void have_descriptors_for(long connections) {
  rlimit r{};
  getrlimit(RLIMIT_NOFILE, &r);
  r.rlim_cur = r.rlim_max;
  setrlimit(RLIMIT_NOFILE, &r);
  const long room = (static_cast<long>(std::min<rlim_t>(r.rlim_cur, 1 << 30)) - 32) / 2;
  if (connections > room)
    throw std::invalid_argument("the system gives this program descriptors for " +
                                std::to_string(room) + " CONNECTIONS; see ulimit -n");
}

double number(const char* text, const char* name, double least, double most) {
  char* end = nullptr;
  const double n = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(n >= least && n <= most))
    throw std::invalid_argument(std::string(name) + " must be a number from " +
                                std::to_string(least).substr(0, 5) + " to " +
                                std::to_string(static_cast<long>(most)));
  return n;
}

int main(int argc, char** argv) try {
  if (argc < 3 || argc > 6)
    throw std::invalid_argument("usage: proxy ADDRESS TARGET [CONNECTIONS [SECONDS [SEED]]]");
  Settings by{.target = io::Address(argv[2]), .patience = {}, .seed = {}};
  if (argc > 3) by.most = static_cast<long>(number(argv[3], "CONNECTIONS", 1, 1e6));
  by.patience = weft::Span(
      static_cast<std::int64_t>((argc > 4 ? number(argv[4], "SECONDS", 0.001, 1e6) : 60) * 1e9));
  if (argc > 5) by.seed = static_cast<unsigned>(number(argv[5], "SEED", 0, 1e9));
  have_descriptors_for(by.most);
  io::Listener door((io::Address(argv[1])));
  weft::signals stop{SIGTERM, SIGINT};
  std::printf("listening at %s\n", door.address().text().c_str());
  std::fflush(stdout);
  weft::run(serve(std::move(door), stop.reader(), by));
  std::puts("drained");
} catch (const std::exception& e) {
  std::fprintf(stderr, "proxy: %s\n", e.what());
  return 2;
}
