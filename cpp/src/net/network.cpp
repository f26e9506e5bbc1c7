// The member functions of Network (net.hpp): functions that its own threads run, and functions that
// its users call.
#include <weft/net.hpp>

namespace weft::inline WEFT_ABI::net {

// --- names ---------------------------------------------------------------------------------------

void Network::offer(const std::shared_ptr<Offer>& o) {
  detail::checked(o->name);
  if (const detail::Member& m = keys_.member; !m.may_hold(o->name))
    detail::bad(
        "this program may not offer '" + o->name + "': " + m.said() +
        ". Keys that may are made where the authority's key is: " + m.keys_command(o->name));
  {
    const std::lock_guard g(mutex_);
    if (closed_) detail::bad("this program has left the network: join again");
    if (!offers_.try_emplace(o->name, o).second)
      detail::bad("'" + o->name + "' is offered by this program already: withdraw it first");
  }
  const auto lost = [&](const std::string& why) {
    take_offer(o->name);
    detail::bad("the name '" + o->name + "' could not be written at " + names_.url() + " (" + why +
                "): is the server up?");
  };
  std::string by;
  try {
    if (!server_is_there(detail::Clock::now() + std::chrono::seconds(1)))
      lost("the connection is lost");
    if (write(*o)) return watch_tickets(*o);
    by = by_whom(o->name);
  } catch (const detail::Lost& e) {
    lost(e.what());
  }
  take_offer(o->name);
  detail::bad("the name '" + o->name + "' is taken" + by);
}

std::string Network::by_whom(const std::string& name) {
  const auto entry = names_.read(name);
  if (!entry) return ": try again, or take another name";
  return " by " + entry->text("host") + " " + entry->at() +
         ": take another name, or end that program. A name whose home was killed is free after 15 "
         "seconds";
}

// Ends the offer of that name, and returns it; null if there was none.
std::shared_ptr<detail::Offer> Network::take_offer(const std::string& name) {
  std::shared_ptr<Offer> o;
  {
    const std::lock_guard g(mutex_);
    const auto at = offers_.find(name);
    if (at == offers_.end()) return nullptr;
    o = std::move(at->second);
    offers_.erase(at);
  }
  const std::lock_guard g(o->writing);
  o->ticket_watch.reset();
  return o;
}

// Watches for the removal of a ticket of `o`. A second call does nothing, unless the server has
// lost the consumer.
void Network::watch_tickets(Offer& o) noexcept {
  const auto told = [this, &o](const Any& said, std::uint64_t revision) {
    if (said.is_object() && said.value("home", Any()) == home_ && said.contains("ticket") &&
        said["ticket"].is_null() && revision > o.revision)
      write_soon(o);
  };
  try {
    const std::lock_guard g(o.writing);
    {
      const std::lock_guard offered(mutex_);
      const auto at = offers_.find(o.name);
      if (at == offers_.end() || at->second.get() != &o) return;
    }
    if (o.ticket_watch)
      o.ticket_watch->ask();
    else
      o.ticket_watch.emplace(names_.client(), names_.streams(), o.name, told);
  } catch (const std::exception&) {  // The next renewal tries again.
  }
}

// Called when the ticket of `o` was taken: makes renew_all() write a new one.
void Network::write_soon(const Offer& o) {
  const std::lock_guard g(mutex_);
  const auto at = offers_.find(o.name);
  if (at == offers_.end() || at->second.get() != &o) return;
  if (std::find(due_offers_.begin(), due_offers_.end(), at->second) == due_offers_.end())
    due_offers_.push_back(at->second);
  news_.notify_all();
}

// Writes the entry, with a new ticket; writes nothing if the name has been withdrawn. Returns false
// if the entry belongs to another home, or the previous entry was not written by Weft. Throws Lost.
bool Network::write(Offer& o) {
  const std::lock_guard one(o.writing);
  const std::string ticket = detail::random_hex(16);
  {
    const std::lock_guard g(mutex_);
    const auto at = offers_.find(o.name);
    // If the offer is no longer in the list, the name has been withdrawn meanwhile.
    if (at == offers_.end() || at->second.get() != &o) return true;
    const auto now = detail::Clock::now();
    std::erase_if(o.tickets, [&](const auto& t) { return t.second && *t.second < now; });
    for (auto& [text, until] : o.tickets)
      if (!until) until = now + detail::kMeeting;
    if (o.tickets.size() > detail::kMaxOut)
      o.tickets.erase(
          std::min_element(o.tickets.begin(), o.tickets.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; }));
    o.tickets.emplace(ticket, std::nullopt);
  }
  const Any entry{{"address", address_},
                  {"fingerprint", keys_.fingerprint},
                  {"home", home_},
                  {"host", name_},
                  {"relay", ways_.has_value()},
                  {"relayed", ways_ ? ways_->sessions() : 0},
                  {"ticket", ticket},
                  {"readers", o.which.readers},
                  {"writers", o.which.writers}};
  std::uint64_t last = o.revision;
  for (int i = 0; i < 100; ++i) {
    if (const auto revision = names_.write(o.name, entry, last)) {
      o.revision = *revision;
      return true;
    }
    const auto there = names_.there(o.name);
    // If the entry belongs to another home, that home has the name now. But an entry of this home
    // that was overwritten with rubbish is written again.
    if (there && there->home != home_ && (!there->home.empty() || o.revision == 0)) return false;
    last = there ? there->revision : 0;
  }
  throw detail::Lost(NATS_ERR);
}

void Network::let_go(Offer& o) noexcept {
  try {
    const std::lock_guard one(o.writing);
    for (int i = 0; i < 100; ++i) {
      const auto there = names_.read(o.name);
      if (!there || there->text("home") != home_ || names_.remove(o.name, there->revision)) return;
    }
  } catch (const std::exception&) {  // The server cannot be reached: the entry will expire.
  }
}

void Network::renew_all() {
  for (auto next = detail::Clock::now() + detail::kRenew;;) {
    std::vector<std::shared_ptr<Offer>> due;
    {
      std::unique_lock g(mutex_);
      news_.wait_until(g, next, [this] { return leaving_ || !due_offers_.empty(); });
      if (leaving_) return;
      due = std::exchange(due_offers_, {});
      if (detail::Clock::now() >= next) {
        next = detail::Clock::now() + detail::kRenew;
        due.clear();
        for (const auto& [name, o] : offers_) due.push_back(o);
      }
    }
    for (const auto& o : due) {
      {
        const std::lock_guard g(mutex_);
        // If the offer is no longer in the list, the name has been withdrawn.
        if (!offers_.contains(o->name) || offers_[o->name] != o) continue;
      }
      try {
        if (write(*o)) {
          watch_tickets(*o);
          continue;
        }
        take_offer(o->name);
        std::fprintf(stderr, "weft: '%s', which this program has offered, is taken%s\n",
                     o->name.c_str(), by_whom(o->name).c_str());
      } catch (const std::exception&) {  // The next renewal tries again.
      }
    }
  }
}

// --- programs that connect -----------------------------------------------------------------------

void Network::listen(const std::string& address) {
  std::string why = "nothing is found there";
  const detail::Found found(address, true);
  for (const addrinfo* a = found.first; a && listens_ < 0; a = a->ai_next) {
    const int fd = ::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    if (fd < 0) continue;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(fd, a->ai_addr, a->ai_addrlen) == 0 && ::listen(fd, 128) == 0) {
      listens_ = fd;
    } else {
      why = std::strerror(errno);
      ::close(fd);
    }
  }
  if (listens_ < 0) detail::bad("this program cannot listen at " + address + ": " + why);
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  char host[256], port[16];
  ::getsockname(listens_, reinterpret_cast<sockaddr*>(&own), &size);
  ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  const bool v6 = own.ss_family == AF_INET6;
  address_ = (v6 ? "[" : "") + std::string(host) + (v6 ? "]:" : ":") + port;
}

void Network::accept_all() {
  for (;;) {
    const int fd = ::accept4(listens_, nullptr, nullptr, SOCK_CLOEXEC);
    // No descriptor is free, so the loop pauses before it tries again.
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (fd >= 0 && !let_in(fd)) ::close(fd);
    const std::lock_guard g(mutex_);
    if (leaving_) return;
  }
}

// Receives the first message of a program that has connected. `socket` is the connection, which the
// network then owns. Returns false if too many programs are connecting at the same time, or if this
// program is leaving the network.
bool Network::let_in(int socket) {
  static constexpr std::size_t kMaxComing = 256;
  const std::lock_guard g(mutex_);
  if (leaving_) return false;
  for (auto at = coming_.begin(); at != coming_.end();) {
    const auto next = std::next(at);
    if (at->done.load()) {
      at->thread.join();  // The thread has nothing left to do.
      coming_.erase(at);
    }
    at = next;
  }
  if (coming_.size() >= kMaxComing) return false;
  PendingConnection& one = coming_.emplace_back();
  one.socket = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
  try {
    one.thread = std::thread([this, &one, socket] {
      try {
        answer(socket);
      } catch (const std::exception&) {  // The program has left, or lacks a certificate.
      }
      const std::lock_guard mine(mutex_);
      // If the socket stayed open, the program would not learn that it was refused.
      ::close(std::exchange(one.socket, -1));
      one.done = true;
    });
  } catch (const std::system_error&) {  // The system cannot start another thread.
    ::close(one.socket);
    coming_.pop_back();
    return false;
  }
  return true;
}

// Finds the offer that a program asks for. Throws BadUse, whose text is sent to the program.
std::shared_ptr<detail::Offer> Network::shown(const Any& said) {
  const auto text = [&](const char* key) {
    const auto at = said.find(key);
    return at != said.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  const std::string name = text("name"), side = text("side"), ticket = text("ticket");
  const std::lock_guard g(mutex_);
  const auto at = offers_.find(name);
  if (at == offers_.end())
    detail::bad("no channel '" + name +
                "' is offered here (any more): `weft net ls` shows the names");
  const std::shared_ptr<Offer> o = at->second;
  const auto known = o->tickets.find(ticket);
  const bool good =
      known != o->tickets.end() && (!known->second || *known->second > detail::Clock::now());
  if (known != o->tickets.end()) o->tickets.erase(known);
  if (!good)
    detail::bad("the ticket for '" + name +
                "' is not valid: each is valid once, for 30 seconds. Ask for the name again");
  const bool lacks =
      std::none_of(o->tickets.begin(), o->tickets.end(), [](const auto& t) { return !t.second; });
  if (lacks && std::find(due_offers_.begin(), due_offers_.end(), o) == due_offers_.end())
    due_offers_.push_back(o);
  news_.notify_all();
  if (!(side == "reader" ? o->which.readers : side == "writer" && o->which.writers))
    detail::bad("'" + name + "' gives " +
                (!o->which.writers   ? "reader"
                 : !o->which.readers ? "writer"
                                     : "reader and writer") +
                " ends only");
  return o;
}

void Network::answer(int socket) {
  detail::Connection c = detail::Connection::accepted(keys_, socket);
  const Any said = c.heard();
  GiveEnd gives;
  // The offer is kept until there is a session, because until then the offer is what counts as
  // outside.
  std::shared_ptr<Offer> o;
  try {
    o = shown(said);
    try {
      gives = o->end(said["side"] == "writer");
    } catch (const ChannelEnd& e) {
      detail::bad("the channel '" + o->name + "' has ended (" + e.what() + ")");
    }
  } catch (const BadUse& e) {
    c.say({{"host", ""}, {"refused", detail::shown(e.what(), 1000)}, {"again", false}});
    return;
  }
  c.say({{"host", name_}, {"trust", false}});
  const auto link = keep(std::make_shared<Link>(
      space_, std::move(c), detail::shown(said["host"].get<std::string>(), 60)));
  try {
    gives(*link);
  } catch (const BadUse& e) {
    link->bye(e.what());
  }
}

std::shared_ptr<detail::Link> Network::keep(std::shared_ptr<Link> link) {
  std::vector<std::shared_ptr<Link>> over;  // destroyed after the lock is released
  const std::lock_guard g(mutex_);
  for (auto& each : sessions_)
    if (each->closed()) over.push_back(std::move(each));
  std::erase(sessions_, nullptr);
  sessions_.push_back(link);
  return link;
}

// --- connecting to other programs ----------------------------------------------------------------

std::shared_ptr<detail::Link> Network::come(const std::string& name, const char* side,
                                            double patience) {
  const auto until = detail::Clock::now() + std::chrono::duration_cast<detail::Clock::duration>(
                                                std::chrono::duration<double>(patience));
  {
    const std::lock_guard g(mutex_);
    if (closed_) detail::bad("this program has left the network: join again");
  }
  std::string seen;
  std::optional<detail::Entry> entry;
  const auto lost = [&](const std::string& why) {
    detail::bad("the server at " + names_.url() + " does not answer (" + why +
                "), and that server alone knows the home of '" + name +
                "'. Channels that are joined go on");
  };
  try {
    if (!server_is_there(until)) lost("the connection is lost");
    entry = names_.take_ticket(name, home_, until, seen);
  } catch (const detail::Lost& e) {
    lost(e.what());
  }
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", patience);
  if (!entry && !names_.connected()) lost("the connection is lost");
  if (!entry && seen.empty())
    detail::bad("nobody has offered '" + name + "' within " + seconds +
                " seconds: `weft net ls` shows the names");
  if (!entry)
    detail::bad(seen + ", the home of '" + name + "', gave no ticket within " + seconds +
                " seconds: try again");
  std::optional<std::pair<detail::Connection, std::string>> way;
  try {
    way.emplace(connect_to_home(*entry));
  } catch (const Unreachable& e) {
    throw Unreachable(entry->text("host") + ", the home of '" + name + "', does not answer " +
                      e.what() +
                      ": if it was killed its name is gone within 15 seconds; if it is on another "
                      "machine, it has to join with an address that can be reached from here, or "
                      "with the relay");
  }
  auto& [c, where] = *way;
  if (c.fingerprint() != entry->text("fingerprint"))
    detail::bad(
        where +
        " is not the program that was announced: its certificate has another fingerprint. If the "
        "program there was restarted with other keys, its name is free in 15 seconds; else "
        "somebody stands in for it");
  // The home's right to the name is checked before anything is sent, because any member might have
  // written the entry (WIRE-NETWORKS.md 17.3).
  if (const detail::Member m = c.member(); !m.may_hold(name))
    detail::bad(where + " may not offer '" + name + "': " + m.said() +
                ". Somebody has taken the name who may not hold it (`weft net ls` says where); or "
                "it needs other keys: " +
                m.keys_command(name));
  c.say({{"host", name_},
         {"trust", false},
         {"name", name},
         {"side", side},
         {"ticket", entry->said["ticket"]}});
  const Any answer = c.heard();
  if (answer.contains("refused"))
    detail::bad(where + " refuses: " +
                (answer["refused"].is_string()
                     ? detail::shown(answer["refused"].get<std::string>(), 2000)
                     : "no reason"));
  return keep(std::make_shared<Link>(space_, std::move(c),
                                     detail::shown(answer["host"].get<std::string>(), 60)));
}

// Connects to the home of an entry, and returns the connection and the home's name for messages.
// Uses the home's address, or the relay if the address does not answer (WIRE-NETWORKS.md 17.17).
// Throws Unreachable, which says where and why, if the home does not answer. Throws BadUse if the
// home's certificate is not valid, or the home refuses this program's certificate.
std::pair<detail::Connection, std::string> Network::connect_to_home(const detail::Entry& entry) {
  static constexpr std::chrono::seconds kReach{3}, kBeyond{300};
  const std::string address = entry.text("address"), home = entry.text("home");
  const bool both = ways_ && entry.relay();
  const auto beyond = [&] {
    const std::lock_guard g(mutex_);
    const auto at = unreachable_homes_.find(home);
    return at != unreachable_homes_.end() && at->second > detail::Clock::now();
  };
  std::string why;
  if (!address.empty() && relay_ != Relay::only && !(both && beyond())) try {
      return {detail::Connection::reach(keys_, address, both ? kReach : 2 * detail::kGreeting),
              address};
    } catch (const Unreachable& e) {
      why = "at " + address + " (" + e.what() + ")";
    }
  if (!both) {
    const char* const side = ways_ ? "it" : "this program";
    if (why.empty()) why = std::string("by the relay (which ") + side + " does not use)";
    throw Unreachable(why);
  }
  const std::string where = entry.text("host") + ", by the relay,";
  try {
    const int socket = ways_->open(entry.text("fingerprint") + "." + home);
    auto c = detail::Connection::relayed(keys_, socket, where);
    const std::lock_guard g(mutex_);
    const auto now = detail::Clock::now();
    std::erase_if(unreachable_homes_, [now](const auto& known) { return known.second < now; });
    if (!why.empty()) unreachable_homes_[home] = now + kBeyond;
    return {std::move(c), where};
  } catch (const Unreachable& e) {
    const std::lock_guard g(mutex_);
    unreachable_homes_.erase(home);
    throw Unreachable((why.empty() ? "" : why + ", nor ") + "by the relay (" + e.what() + ")");
  }
}

void Network::close() {
  std::unordered_map<std::string, std::shared_ptr<Offer>> offers;
  std::vector<std::shared_ptr<Link>> sessions;
  {
    const std::lock_guard g(mutex_);
    if (std::exchange(closed_, true)) return;
    leaving_ = true;
    offers.swap(offers_);
    for (const PendingConnection& each : coming_)
      if (each.socket >= 0) ::shutdown(each.socket, SHUT_RDWR);
    news_.notify_all();
  }
  if (listens_ >= 0) {
    ::shutdown(listens_, SHUT_RDWR);  // shutdown() makes accept() return.
    if (accepts_.joinable()) accepts_.join();
    ::close(listens_);
  }
  if (renews_.joinable()) renews_.join();
  for (PendingConnection& each : coming_) each.thread.join();
  coming_.clear();
  for (const auto& [name, o] : offers) o->ticket_watch.reset();
  if (names_.connected())
    for (const auto& [name, o] : offers) let_go(*o);
  {
    const std::lock_guard g(mutex_);
    sessions.swap(sessions_);
  }
  for (const auto& link : sessions) link->bye("the other program has left the network");
  // clear() destroys the sessions that have no other owner, once their last messages have been
  // sent.
  sessions.clear();
  if (ways_) ways_->end();
}

}  // namespace weft::inline WEFT_ABI::net
