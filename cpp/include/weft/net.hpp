// Programs on several machines: channels by name, whose other end is in a program in C++ or Python
// that has joined the same network (WIRE.md 17). Not part of weft.hpp: link CMake's weft::net,
// which wants OpenSSL, NATS's client in C and nlohmann's JSON. POSIX.
//
//   auto network = weft::join("nats://127.0.0.1:4222");
//   weft::Channel<weft::Typed<long>> numbers;
//   network.offer("lab/numbers", numbers, {.writers = true});           this program is its home
//
//   auto out = network.at("lab/numbers").writer<weft::Typed<long>>();   in another one
//   out(7);
//
// The calls here block the thread; so they are for threads, and for before a run.
//
//   join() ──offer()──► a name ──withdraw(), or another has it──► none
//     ├──let_in(): who comes shows a ticket──► a session
//     └──close(), the destructor: no names, nobody comes, sessions end
//
// Invariants
//  1 `mutex_` protects the offers and their tickets, the sessions, those who are coming, and whom
//    the relay reaches. Nothing that may take its time is done under it.
//  2 A ticket is known from before it is in the entry until it is shown, or kMeeting after it was
//    replaced.
//  3 `Offer::writing` is held by whoever writes or deletes the entry: this program does one at a
//    time.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <thread>
#include <unordered_map>

#include "net/link.hpp"
#include "net/names.hpp"
#include "net/relay.hpp"
#include "weft.hpp"
#include "wire/rounds.hpp"

namespace weft::inline WEFT_ABI {

namespace net {
// How programs that this one cannot reach are reached, and it by them: through the NATS server, or
// not (WIRE.md 17.17).
enum class Relay {
  automatic,  // where an address does not answer
  only,       // always: this program does not listen
  never,
};
}  // namespace net

struct NetOptions {
  std::string keys = {};                // a folder; empty: $WEFT_NET, or ~/.config/weft/net
  std::string address = "127.0.0.1:0";  // where others reach this program; port 0: a free one
  std::string name = {};                // what it calls itself; empty: machine:process
  net::Relay relay = net::Relay::automatic;
  // It is told where all programs of the network wait for each other, and tells (WIRE.md 17.23).
  bool rounds = true;
};

namespace net {

// Which ends others get.
struct Ends {
  bool readers = false, writers = false;
};

namespace detail {
// Hands an end to who has come for it.
using Gives = std::function<void(Link&)>;
// A name of this program's.
struct Offer {
  Offer(std::string n, Ends e, std::function<Gives(bool)> f)
      : name(std::move(n)), which(e), end(std::move(f)) {}
  const std::string name;
  const Ends which;
  const std::function<Gives(bool writes)> end;
  // until when; nothing: it is in the entry
  std::unordered_map<std::string, std::optional<Clock::time_point>> tickets;
  std::mutex writing;
  std::atomic<std::uint64_t> revision = 0;  // that we wrote last
  // who takes a ticket; under `writing`, and without `mutex_`, which it takes
  std::optional<Hears> hears;
  const Outside outside{Outside::due};
};
// Somebody whose first message has not been answered yet.
struct Coming {
  int socket = -1;  // another descriptor of the same; -1: it has its answer
  std::thread thread;
  std::atomic<bool> done{false};
};
}  // namespace detail

// This program as a member of a network. Its destructor leaves: sessions end, and ends in other
// programs die.
class Network {
 public:
  Network(const std::string& server, const NetOptions& o)
      : keys_(o.keys),
        name_(called(o.name)),
        relay_(o.relay),
        space_(wire::Space::make("c++ " + std::to_string(::getpid()))),
        names_(checked_url(server, keys_), keys_, name_) {
    if (o.rounds) answer_rounds();
    detail::parted(o.address);
    if (relay_ != Relay::only) listen(o.address);
    if (relay_ != Relay::never)
      ways_.emplace(names_.client(), keys_.fingerprint + "." + home_,
                    [this](int socket) { return let_in(socket); });
    try {
      if (listens_ >= 0) accepts_ = std::thread([this] { accept_all(); });
      renews_ = std::thread([this] { renew_all(); });
    } catch (...) {  // std::system_error: the system has no room for another thread
      close();
      throw;
    }
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network() { close(); }

  const std::string& name() const noexcept { return name_; }
  // Where others reach it, "HOST:PORT"; empty where that is the relay only.
  const std::string& address() const noexcept { return address_; }

  // Gives the channel a name, by which other programs get ends of it; this program is its home.
  // Each that asks gets an end of its own. To keep the channel open while nobody is there, keep an
  // end of that side. Throws BadUse: the name is taken or none, or this program's keys are not for
  // it; the server does not answer.
  template <class T>
  void offer(const std::string& name, const Channel<T>& c, Ends which) {
    if (!which.readers && !which.writers)
      detail::bad("offer: say which ends others get: .readers = true, .writers = true, or both");
    offer(std::make_shared<Offer>(name, which, [c](bool writes) -> Gives {
      const std::string given = ("end " + c.name()).substr(0, 150);
      const auto gives = [&](auto end) -> Gives {
        return [given, end = std::make_shared<decltype(end)>(std::move(end))](Link& link) {
          link.give(std::move(*end), given);
        };
      };
      return writes ? gives(c.writer()) : gives(c.reader());
    }));
  }
  // Frees the name; ends that were given stay. Throws BadUse: this program does not offer it.
  void withdraw(const std::string& name) {
    const std::shared_ptr<Offer> o = had(detail::checked(name));
    if (!o) detail::bad("'" + name + "' is not offered by this program (any more)");
    let_go(*o);
  }

  // A channel by its name, whose home is another program.
  class At {
   public:
    // An end of its own. Waits until a program offers the name. Throws BadUse: none does in
    // `patience`, or it gives no such ends, or of another type, or refuses, or may not hold the
    // name; the server does not answer. Unreachable: the home does not answer. PeerDied: it died
    // meanwhile.
    template <class T>
    wire::FarReader<T> reader() const {
      const auto link = network_.come(name_, "reader", patience_);
      return link->template reader<T>(link->given("end"));
    }
    template <class T>
    wire::FarWriter<T> writer() const {
      const auto link = network_.come(name_, "writer", patience_);
      return link->template writer<T>(link->given("end"));
    }

   private:
    friend class Network;
    At(Network& n, std::string name, double patience)
        : network_(n), name_(std::move(name)), patience_(patience) {}
    Network& network_;
    std::string name_;
    double patience_;
  };
  At at(const std::string& name,
        std::chrono::duration<double> patience = std::chrono::seconds(10)) {
    if (!(patience.count() > 0 && patience.count() <= 1e6))
      detail::bad("patience is seconds, more than 0");
    return At(*this, detail::checked(name), patience.count());
  }

  // Leaves: lets go of its names, and ends its sessions. A second time: nothing.
  void close();

 private:
  using Offer = detail::Offer;
  using Coming = detail::Coming;
  using Link = detail::Link;
  using Gives = detail::Gives;

  static std::string called(const std::string& given) {
    char machine[256] = "";
    ::gethostname(machine, sizeof machine - 1);
    const std::string name =
        given.empty() ? (std::string(machine) + ":" + std::to_string(::getpid())).substr(0, 60)
                      : given;
    if (name.size() > 60) detail::bad("what a program calls itself has 1 to 60 characters");
    return *Typed<std::string>(name);  // UTF-8?
  }
  static std::string checked_url(const std::string& given, const detail::Keys& keys) {
    std::string url = given;
    if (url.empty()) {
      std::FILE* const f = std::fopen(keys.file("server").c_str(), "r");
      char line[300] = "";
      if (f) {
        if (!std::fgets(line, sizeof line, f)) line[0] = 0;
        std::fclose(f);
      }
      url = std::string(line).substr(0, std::strcspn(line, "\r\n"));
      if (url.empty())
        detail::bad("no server is noted in " + keys.folder.string() +
                    ": start one with `weft net up`, or give its URL, nats://HOST:PORT");
    }
    const std::size_t colons = url.find("://");
    const std::string scheme = url.substr(0, colons);
    if (colons == std::string::npos || (scheme != "nats" && scheme != "tls") ||
        colons + 3 == url.size())
      detail::bad("a server is nats://HOST:PORT, not '" + url + "'");
    return "tls://" + url.substr(colons + 3);
  }

  void answer_rounds() {
    try {
      rounds_.emplace(space_);
    } catch (const BadUse&) {  // this program does so for another space: nothing is concluded
    }
  }
  void listen(const std::string& address);
  void accept_all();
  bool let_in(int socket);
  void answer(int socket);
  std::shared_ptr<Link> keep(std::shared_ptr<Link> link);
  void offer(const std::shared_ptr<Offer>& o);
  std::shared_ptr<Offer> had(const std::string& name);
  bool write(Offer& o);
  std::string by_whom(const std::string& name);
  void write_soon(const Offer& o);
  void hear(Offer& o) noexcept;
  void let_go(Offer& o) noexcept;
  void renew_all();
  std::shared_ptr<Offer> shown(const Any& said);
  std::shared_ptr<Link> come(const std::string& name, const char* side, double patience);
  std::pair<detail::Connection, std::string> way_to(const detail::Entry& entry);
  // nats.c connects again by itself; only while the server is away is it asked again and again.
  bool server_is_there(detail::Clock::time_point until) const {
    while (!names_.connected()) {
      if (detail::Clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
  }

  const detail::Keys keys_;
  const std::string name_;
  const Relay relay_;
  const std::string home_ = detail::random_hex(8);  // of this program: another one has another
  const std::shared_ptr<wire::Space> space_;
  std::optional<wire::Rounds> rounds_;
  detail::Names names_;
  std::string address_;
  int listens_ = -1;

  std::mutex mutex_;
  std::condition_variable news_;
  bool closed_ = false, leaving_ = false;
  std::unordered_map<std::string, std::shared_ptr<Offer>> offers_;
  std::vector<std::shared_ptr<Offer>> soon_;  // whose ticket is gone
  std::list<Coming> coming_;
  std::vector<std::shared_ptr<Link>> sessions_;
  // homes whose address did not answer: until when they are reached by the relay at once
  std::unordered_map<std::string, detail::Clock::time_point> beyond_;
  std::thread accepts_, renews_;
  std::optional<detail::Ways> ways_;
};

}  // namespace net

// Makes this program a member of the network whose programs meet at a NATS server. `server`:
// "nats://HOST:PORT"; empty: the one that `weft net up` has noted beside the keys. Throws BadUse:
// there are no keys; the server does not answer, or refuses them; that is no address.
inline net::Network join(const std::string& server = "", const NetOptions& o = {}) {
  return net::Network(server, o);
}

}  // namespace weft::inline WEFT_ABI
