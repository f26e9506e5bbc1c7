// Programs on several machines: channels with names, whose other end is in a program in C++ or
// Python that has joined the same network (WIRE-NETWORKS.md 17). This header is not part of
// weft.hpp: link CMake's weft::net, which needs POSIX, OpenSSL, NATS's client in C and nlohmann's
// JSON.
//
//   auto network = weft::join("nats://127.0.0.1:4222");
//   weft::Channel<weft::Typed<long>> numbers;
//   network.offer("lab/numbers", numbers, {.writers = true});           // this program is its home
//
//   auto out = network.at("lab/numbers").writer<weft::Typed<long>>();   // in another program
//   out(7);
//
// The functions here block the calling thread. So call them in a thread, or before a run.
//
//   join() ──offer()──► a name ──withdraw(), or another program has it──► none
//     ├──let_in(): a program that connects shows a ticket──► a session
//     └──close(), the destructor: no names, no new programs, sessions end
//
// Invariants
//  1 `mutex_` protects the offers and their tickets, the sessions, the programs that are
//    connecting, and the homes that are reached by the relay. Nothing that may take long is done
//    under this lock.
//  2 This program knows a ticket before the ticket is in the entry. It forgets the ticket when a
//    program shows it, or when kMeeting has passed since the ticket was replaced.
//  3 `Offer::writing` is held by the thread that writes or deletes the entry, so this program does
//    only one of these at a time.
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
// How programs that cannot reach this program directly are connected with it through the NATS
// server (WIRE-NETWORKS.md 17.17).
enum class Relay {
  automatic,  // The relay is used if an address does not answer.
  only,       // The relay is always used, and this program does not listen.
  never,
};
}  // namespace net

struct NetOptions {
  // The folder of the keys. If it is empty: $WEFT_NET, or ~/.config/weft/net.
  std::string keys = {};
  // Where other programs reach this program; port 0 means a free port.
  std::string address = "127.0.0.1:0";
  // The name by which the program is shown to people. If it is empty: machine:process.
  std::string name = {};
  net::Relay relay = net::Relay::automatic;
  // Whether this program takes part in finding out that all programs of the network wait for each
  // other, and reports such a deadlock (WIRE-NETWORKS.md 17.23).
  bool rounds = true;
};

namespace net {

// Which ends of a channel other programs may receive.
struct Ends {
  bool readers = false, writers = false;
};

namespace detail {
// A function that gives an end to the program that has asked for it.
using GiveEnd = std::function<void(Link&)>;
// A name that this program offers.
struct Offer {
  Offer(std::string n, Ends e, std::function<GiveEnd(bool)> f)
      : name(std::move(n)), which(e), end(std::move(f)) {}
  const std::string name;
  const Ends which;
  const std::function<GiveEnd(bool writes)> end;
  // Each ticket with the time until which it is valid. The ticket without a time is the one in the
  // entry.
  std::unordered_map<std::string, std::optional<Clock::time_point>> tickets;
  std::mutex writing;
  std::atomic<std::uint64_t> revision = 0;  // the revision that this program wrote last
  // Reports which program takes a ticket. It is used with `writing` locked and `mutex_` unlocked,
  // since it locks `mutex_` itself.
  std::optional<TicketWatch> ticket_watch;
  const Outside outside{Outside::due};
};
// A program that has connected and whose first message has not been answered yet.
struct PendingConnection {
  int socket = -1;  // another descriptor of the same socket; -1 once the program has its answer
  std::thread thread;
  std::atomic<bool> done{false};
};
}  // namespace detail

// This program as a member of a network. The destructor leaves the network: its sessions end, and
// the ends that were given to other programs through them die.
class Network {
 public:
  Network(const std::string& server, const NetOptions& o)
      : keys_(o.keys),
        name_(called(o.name)),
        relay_(o.relay),
        space_(wire::Space::make("c++ " + std::to_string(::getpid()))),
        names_(checked_url(server, keys_), keys_, name_) {
    if (o.rounds) answer_rounds();
    detail::split_address(o.address);
    if (relay_ != Relay::only) listen(o.address);
    if (relay_ != Relay::never)
      ways_.emplace(names_.client(), keys_.fingerprint + "." + home_,
                    [this](int socket) { return let_in(socket); });
    try {
      if (listens_ >= 0) accepts_ = std::thread([this] { accept_all(); });
      renews_ = std::thread([this] { renew_all(); });
    } catch (...) {  // A std::system_error says that the system cannot start another thread.
      close();
      throw;
    }
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network() { close(); }

  const std::string& name() const noexcept { return name_; }
  // Returns the address at which others reach this program, "HOST:PORT". The string is empty if
  // this program can be reached only by the relay.
  const std::string& address() const noexcept { return address_; }

  // Gives the channel a name, by which other programs ask for ends of it; this program is its home.
  // Each program that asks receives an end of its own. To keep the channel open while no other
  // program has such an end, this program should keep one. Throws BadUse if the name is taken or
  // not valid, if this program's keys do not permit it, or if the server does not answer.
  template <class T>
  void offer(const std::string& name, const Channel<T>& c, Ends which) {
    if (!which.readers && !which.writers)
      detail::bad("offer: say which ends others get: .readers = true, .writers = true, or both");
    offer(std::make_shared<Offer>(name, which, [c](bool writes) -> GiveEnd {
      const std::string given = ("end " + c.name()).substr(0, 150);
      const auto gives = [&](auto end) -> GiveEnd {
        return [given, end = std::make_shared<decltype(end)>(std::move(end))](Link& link) {
          link.give(std::move(*end), given);
        };
      };
      return writes ? gives(c.writer()) : gives(c.reader());
    }));
  }
  // Frees the name. Ends that other programs have received stay open. Throws BadUse if this program
  // does not offer the name.
  void withdraw(const std::string& name) {
    const std::shared_ptr<Offer> o = take_offer(detail::checked(name));
    if (!o) detail::bad("'" + name + "' is not offered by this program (any more)");
    let_go(*o);
  }

  // A named channel whose home is another program.
  class At {
   public:
    // Returns a new end of the channel. Waits until a program offers the name. Throws BadUse if no
    // program offers it within `patience`; if the home gives no such ends, has another type,
    // refuses, or may not hold the name; or if the server does not answer. Throws Unreachable if
    // the home does not answer, and PeerDied if the home died meanwhile.
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
  // Returns the channel of that name. `patience` is in seconds. Throws BadUse if `name` is not a
  // valid name, or `patience` is not more than 0 and at most 1e6 s.
  At at(const std::string& name,
        std::chrono::duration<double> patience = std::chrono::seconds(10)) {
    if (!(patience.count() > 0 && patience.count() <= 1e6))
      detail::bad("patience must be a number of seconds above 0");
    return At(*this, detail::checked(name), patience.count());
  }

  // Leaves the network: frees its names, and ends its sessions. A second call does nothing.
  void close();

 private:
  using Offer = detail::Offer;
  using PendingConnection = detail::PendingConnection;
  using Link = detail::Link;
  using GiveEnd = detail::GiveEnd;

  static std::string called(const std::string& given) {
    char machine[256] = "";
    ::gethostname(machine, sizeof machine - 1);
    const std::string name =
        given.empty() ? (std::string(machine) + ":" + std::to_string(::getpid())).substr(0, 60)
                      : given;
    if (name.size() > 60) detail::bad("the name of a program must have 1 to 60 characters");
    return *Typed<std::string>(name);  // Typed throws if the name is not UTF-8.
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
      detail::bad("a server must be nats://HOST:PORT, not '" + url + "'");
    return "tls://" + url.substr(colons + 3);
  }

  void answer_rounds() {
    try {
      rounds_.emplace(space_);
      // This program already has a Rounds, for another space. So deadlocks over this network are
      // not found.
    } catch (const BadUse&) {
    }
  }
  void listen(const std::string& address);
  void accept_all();
  bool let_in(int socket);
  void answer(int socket);
  std::shared_ptr<Link> keep(std::shared_ptr<Link> link);
  void offer(const std::shared_ptr<Offer>& o);
  std::shared_ptr<Offer> take_offer(const std::string& name);
  bool write(Offer& o);
  std::string by_whom(const std::string& name);
  void write_soon(const Offer& o);
  void watch_tickets(Offer& o) noexcept;
  void let_go(Offer& o) noexcept;
  void renew_all();
  std::shared_ptr<Offer> shown(const Any& said);
  std::shared_ptr<Link> come(const std::string& name, const char* side, double patience);
  std::pair<detail::Connection, std::string> connect_to_home(const detail::Entry& entry);
  // The client nats.c reconnects by itself. The server is polled only while it cannot be reached.
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
  const std::string home_ = detail::random_hex(8);  // identifies this program as a home
  const std::shared_ptr<wire::Space> space_;
  std::optional<wire::Rounds> rounds_;
  detail::Names names_;
  std::string address_;
  int listens_ = -1;

  std::mutex mutex_;
  std::condition_variable news_;
  bool closed_ = false, leaving_ = false;
  std::unordered_map<std::string, std::shared_ptr<Offer>> offers_;
  // Offers whose ticket was taken; their entries are to be written soon.
  std::vector<std::shared_ptr<Offer>> due_offers_;
  std::list<PendingConnection> coming_;
  std::vector<std::shared_ptr<Link>> sessions_;
  // Homes whose address did not answer, each with the time until which the relay is used
  // immediately.
  std::unordered_map<std::string, detail::Clock::time_point> unreachable_homes_;
  std::thread accepts_, renews_;
  std::optional<detail::Ways> ways_;
};

}  // namespace net

// Makes this program a member of the network whose programs meet at a NATS server. `server` is
// "nats://HOST:PORT"; if it is empty, the server is the one that `weft net up` has recorded beside
// the keys. Throws BadUse if there are no keys, if `server` is not an address, or if the server
// does not answer or refuses the keys.
inline net::Network join(const std::string& server = "", const NetOptions& o = {}) {
  return net::Network(server, o);
}

}  // namespace weft::inline WEFT_ABI
