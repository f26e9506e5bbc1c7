// The relay: it connects two programs that cannot reach each other, through the NATS server
// (WIRE-NETWORKS.md 17.17 to 17.21).
//
//   Connection, with TLS ◄──a pair of sockets──► Way: a Line ──packets──► Ways ──messages──► the server
//
//   begun ──START, both ways──► linked ──its socket is closed, all acknowledged────────────► over
//                └── leave() │ the peer's last message │ nothing heard for the lease, or kMeet ──┘
//
// A server that restarts, or that cuts off a program which does not keep up, loses messages without
// notice. So a way (one connection through the relay) uses the protocol of a serial line, whose
// packets are sent again until they are acknowledged. Each way has a thread, which reads its
// socket; the thread of nats.c writes what arrives to the socket.
//
// Invariants
//  1 `Way::lock_` protects the members of a way. Messages are given to nats.c under this lock,
//    which takes at most kServer; nothing else waits under the lock, and no other lock is taken
//    under it.
//  2 A way holds a window of packets, and kHigh bytes in each direction. Beyond that, the socket is
//    not read (`out_`), and packets that arrive are first not acknowledged, and then not accepted
//    (`in_`).
//  3 Once a way has ended, nothing is sent for it.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "../wire/line.hpp"
#include "names.hpp"

namespace weft::inline WEFT_ABI::net::detail {

inline constexpr const char* kRelay = "weft.relay";  // the beginning of all subjects of the relay
inline constexpr std::uint32_t kRelayAgainMost = 2'000;
inline constexpr wire::LineOptions kRelayLine{
    .window = 32, .most = 16'384, .again_ms = 200, .lease_ms = 20'000};
// How long a program can take to answer when it is asked for a session, and then to become linked.
inline constexpr Milliseconds kMeet{10'000};
// How long after its own return this program waits for another program whose connection the server
// had also lost.
inline constexpr Milliseconds kBack{3'000};
// How many ms an acknowledgement waits for a packet with which it can be sent.
inline constexpr std::int64_t kTell = 5;
inline constexpr Milliseconds kLastWords{3'000};  // how long sending the last messages can take
inline constexpr std::size_t kHigh = std::size_t{1} << 18;

inline bool is_hex(std::string_view text, std::size_t size) {
  return text.size() == size && text.find_first_not_of("0123456789abcdef") == text.npos;
}
// Returns whether the text names a place where a program listens: F.H of WIRE-NETWORKS.md 17.18.
inline bool is_place(std::string_view text) {
  return text.size() == 81 && is_hex(text.substr(0, 64), 64) && text[64] == '.' &&
         is_hex(text.substr(65), 16);
}
// The message by which a program asks for a session.
struct SessionRequest {
  std::string session, from;
};
// Reads a message by which a program asks for a session. Returns nullopt for any other message.
inline std::optional<SessionRequest> session_request(std::string_view message) {
  const Any said = parsed(message);
  SessionRequest a;
  for (const auto& [key, to] : {std::pair{"session", &a.session}, std::pair{"from", &a.from}}) {
    const auto at = said.is_object() ? said.find(key) : said.end();
    if (at == said.end() || !at->is_string()) return {};
    *to = at->get<std::string>();
  }
  if (!is_hex(a.session, 32) || !is_place(a.from)) return {};
  return a;
}

// One connection through the relay, below TLS.
class Way {
 public:
  // Sends a message to the peer; the message can be lost. A message of no bytes says that this
  // program has left.
  using Sends = std::function<void(wire::Bytes)>;

  // Makes a way that sends by `sends`. Throws BadUse if no descriptor is left.
  explicit Way(Sends sends, const wire::LineOptions& o = kRelayLine)
      : sends_(std::move(sends)),
        most_(2 * std::size_t{o.window} * o.most),
        line_(o, token(), kRelayAgainMost),
        begun_(now()) {
    int pair[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0 ||
        ::pipe2(bell_, O_NONBLOCK | O_CLOEXEC) != 0) {
      for (const int fd : pair) ::close(fd);
      bad("no descriptor is left for a session by the relay");
    }
    socket_ = pair[0];
    theirs_ = pair[1];
    ::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) | O_NONBLOCK);
    thread_ = std::thread([this] { carry(); });
  }
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;
  ~Way() {
    leave(Clock::time_point::min());
    wait();
    for (const int fd : {socket_, theirs_, bell_[0], bell_[1]})
      if (fd >= 0) ::close(fd);
  }

  // Returns the socket for the TLS connection, which the caller then owns. Called once.
  int connects() {
    const std::lock_guard g(lock_);
    return std::exchange(theirs_, -1);
  }
  // Handles a message of the peer.
  void heard(wire::Bytes message) {
    const std::lock_guard g(lock_);
    if (over_) return;
    if (message.empty()) {
      gone_ = true;  // Messages that the peer sent before this are delivered first.
      return ring();
    }
    // If there is no room, the message is dropped; the peer will send it again.
    if (in_.size() - given_ > most_) return;
    line_.input(message, now(), in_);
    give();
    go(true);
    if (over_ || gives_ != waits_to_give() || takes_ != waits_to_take() || due() < wakes_) ring();
  }
  // Called when the server is reachable again: sends again what might have been lost.
  void hurry() {
    const std::lock_guard g(lock_);
    if (over_) return;
    line_.hurry(now());
    line_.passed(now());
    go(false);
    ring();
  }
  // Sends the last messages, until the time `until` at most. Then the way has ended, and the peer
  // is notified.
  void leave(Clock::time_point until) {
    const std::lock_guard g(lock_);
    leaves_ = std::min(leaves_, since(until));
    ring();
  }
  bool linked() {
    const std::lock_guard g(lock_);
    return !over_ && line_.linked();
  }
  // Returns whether the way's thread has ended.
  bool over() const noexcept { return ended_.load(); }
  // Waits until the way has ended. Called by one thread, after leave().
  void wait() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  static std::uint32_t token() {
    const std::uint64_t n = wire::Space::random();
    const auto low = static_cast<std::uint32_t>(n ^ n >> 32);
    return low == 0 ? 1 : low;
  }
  static std::int64_t since(Clock::time_point t) {
    return std::chrono::duration_cast<Milliseconds>(t.time_since_epoch()).count();
  }
  static std::int64_t now() { return since(Clock::now()); }

  void ring() noexcept {
    const char one = 1;
    if (::write(bell_[1], &one, 1) < 0) return;  // A full pipe: the thread is already woken.
  }
  bool waits_to_give() const noexcept { return given_ < in_.size(); }
  bool waits_to_take() const noexcept { return !closing_ && out_.size() < kHigh; }

  // Writes the bytes that have arrived to the socket, as far as the socket accepts them.
  void give() {
    while (waits_to_give()) {
      const ssize_t n =
          ::send(socket_, in_.data() + given_, in_.size() - given_, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      // After an error the socket is not read, so the bytes are dropped.
      given_ = n < 0 ? in_.size() : given_ + static_cast<std::size_t>(n);
    }
    if (!waits_to_give()) in_.clear(), given_ = 0;
    line_.hold(waits_to_give());
  }
  // Sends what is queued, as far as there is room for it, and all frames that are due.
  void go(bool patient) {
    if (const std::size_t took = line_.queue(out_))
      out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(took));
    packets_.clear();
    line_.output(now(), packets_, patient);
    if (!packets_.empty()) sends_(packets_);
    if (!line_.owes())
      tells_ = wire::detail::Line::kNever;
    else if (tells_ == wire::detail::Line::kNever)
      tells_ = now() + kTell;
    const bool said = closing_ && (!line_.linked() || (out_.empty() && line_.settled()));
    if (said || line_.lost() || now() >= leaves_ || (!line_.linked() && now() >= meets())) {
      sends_({});
      over_ = true;
    }
  }
  std::int64_t meets() const noexcept { return begun_ + kMeet.count(); }
  std::int64_t due() const noexcept {
    const std::int64_t at = std::min({line_.due(), tells_, leaves_});
    return line_.linked() ? at : std::min(at, meets());
  }

  void carry() {
    wire::Buffer room(std::size_t{1} << 16);
    std::unique_lock g(lock_);
    for (;;) {
      if (!over_) go(now() < tells_);
      over_ = over_ || (gone_ && !waits_to_give());
      if (over_) break;
      takes_ = waits_to_take();
      gives_ = waits_to_give();
      wakes_ = due();
      pollfd fds[] = {{takes_ || gives_ ? socket_ : -1,
                       static_cast<short>((takes_ ? POLLIN : 0) | (gives_ ? POLLOUT : 0)), 0},
                      {bell_[0], POLLIN, 0}};
      const std::int64_t wait = wakes_ == wire::detail::Line::kNever
                                    ? -1
                                    : std::clamp<std::int64_t>(wakes_ - now(), 0, 3'600'000);
      g.unlock();
      const int n = ::poll(fds, 2, static_cast<int>(wait));
      g.lock();
      if (n < 0) continue;
      if (fds[1].revents)
        while (::read(bell_[0], room.data(), room.size()) > 0) {
        }
      if (takes_ && (fds[0].revents & ~POLLOUT)) take(room);
      give();
      line_.passed(now());
    }
    ::shutdown(socket_, SHUT_RDWR);  // The reader of the socket learns that the way has ended.
    ended_ = true;
  }
  void take(wire::Buffer& room) {
    const ssize_t n = ::recv(socket_, room.data(), room.size(), MSG_DONTWAIT);
    if (n > 0)
      wire::detail::put(out_, wire::Bytes(room).first(static_cast<std::size_t>(n)));
    else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
      closing_ = true;
  }

  const Sends sends_;
  const std::size_t most_;  // the maximum number of bytes that can wait for the socket
  int socket_ = -1, theirs_ = -1, bell_[2] = {-1, -1};
  std::mutex lock_;
  wire::detail::Line line_;
  const std::int64_t begun_;
  // The time at which everything that has not been sent is dropped.
  std::int64_t leaves_ = wire::detail::Line::kNever;
  // The time at which an acknowledgement is sent without a packet.
  std::int64_t tells_ = wire::detail::Line::kNever;
  // in_: bytes for the socket; out_: bytes that are not queued yet; packets_: packets to send now.
  wire::Buffer in_, out_, packets_;
  std::size_t given_ = 0;  // how many bytes of in_ were written to the socket
  // closing_: this program ends the way. gone_: the peer has ended the way. over_: both have ended
  // it.
  bool closing_ = false, gone_ = false, over_ = false;
  // The events for which the thread waits: takes_: bytes in socket_; gives_: room in socket_.
  bool takes_ = false, gives_ = false;
  std::int64_t wakes_ = 0;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

// All ways of one program. This class sends and receives their messages through the server.
class Ways {
 public:
  // Takes ownership of the socket of a program that has connected. Returns false if too many
  // programs have connected.
  using Came = std::function<bool(int socket)>;

  // Listens at `place`, this program's F.H (WIRE-NETWORKS.md 17.18). Throws BadUse if the client
  // refuses the subscription.
  Ways(Client& client, const std::string& place, Came came)
      : client_(client), place_(place), came_(std::move(came)) {
    const std::string subject = std::string(kRelay) + "." + place_ + ".*";
    natsStatus s =
        natsConnection_Subscribe(&heard_, client_.get(), subject.c_str(), on_message, this);
    // These limits allow one window of packets for each of some hundred sessions. Packets beyond
    // the limits are lost, and sent again.
    if (s == NATS_OK) s = natsSubscription_SetPendingLimits(heard_, 1 << 16, 1 << 26);
    if (s == NATS_OK)
      s = natsSubscription_SetOnCompleteCB(
          heard_, [](void* me) { static_cast<Ways*>(me)->heard_all(); }, this);
    if (s != NATS_OK) {
      natsSubscription_Destroy(heard_);
      bad(std::string("no relay (") + natsStatus_GetText(s) + "): join without");
    }
    client_.when_back([this] { hurry(); });
  }
  Ways(const Ways&) = delete;
  Ways& operator=(const Ways&) = delete;
  ~Ways() { end(); }
  // Notifies all peers that this program has left, after they have acknowledged everything else. A
  // second call does nothing.
  void end() {
    client_.when_back(nullptr);
    std::unique_lock g(lock_);
    if (std::exchange(closed_, true)) return;
    const auto all = ways_;
    g.unlock();
    const auto until = Clock::now() + kLastWords;
    for (const auto& [session, way] : all) way->leave(until);
    for (const auto& [session, way] : all) way->wait();
    natsSubscription_Unsubscribe(heard_);
    g.lock();
    all_.wait(g, [this] { return all_heard_; });
    g.unlock();
    natsSubscription_Destroy(heard_);
  }

  // Returns how many sessions use the relay.
  int sessions() {
    reap();
    const std::lock_guard g(lock_);
    return static_cast<int>(std::count_if(ways_.begin(), ways_.end(),
                                          [](const auto& way) { return way.second->linked(); }));
  }

  // Returns the socket of a connection with the program at F.H. Throws Unreachable if that program
  // is not running, does not answer, or refuses.
  int open(const std::string& place) {
    if (!is_place(place)) throw Unreachable("its entry does not say where it can be reached");
    reap();
    const std::string session = random_hex(16);
    const std::shared_ptr<Way> way = made(session, place);
    {
      const std::lock_guard g(lock_);
      if (closed_) throw Unreachable("this program has left the network");
      ways_[session] = way;
    }
    try {
      ask(session, place);
    } catch (...) {
      way->leave(Clock::time_point::min());
      throw;
    }
    return way->connects();
  }

 private:
  std::shared_ptr<Way> made(const std::string& session, const std::string& place) {
    const std::string there = std::string(kRelay) + "." + place + "." + session;
    return std::make_shared<Way>([this, there](wire::Bytes data) {
      natsConnection* const c = client_.get();
      const auto most =
          static_cast<std::size_t>(std::max<std::int64_t>(natsConnection_GetMaxPayload(c), 1));
      do {
        // If the client is not connected, the message is dropped, and sent again later.
        if (natsConnection_Status(c) != NATS_CONN_STATUS_CONNECTED) return;
        const std::size_t n = std::min(most, data.size());
        natsConnection_Publish(c, there.c_str(), data.data(), static_cast<int>(n));
        data = data.subspan(n);
      } while (!data.empty());
    });
  }
  // Removes the ways that have ended.
  void reap() {
    std::vector<std::shared_ptr<Way>> over;  // destroyed after the lock is released
    const std::lock_guard g(lock_);
    for (auto at = ways_.begin(); at != ways_.end();) {
      const auto next = std::next(at);
      if (at->second->over()) {
        over.push_back(std::move(at->second));
        ways_.erase(at);
      }
      at = next;
    }
  }
  void hurry() {
    std::vector<std::shared_ptr<Way>> all;
    {
      const std::lock_guard g(lock_);
      since_ = Clock::now();
      for (const auto& [session, way] : ways_) all.push_back(way);
    }
    for (const auto& way : all) way->hurry();
  }

  // --- messages, on the thread of nats.c ---

  static void on_message(natsConnection*, natsSubscription*, natsMsg* m, void* me) {
    const Owned<natsMsg, natsMsg_Destroy> message(m);
    try {
      static_cast<Ways*>(me)->heard(m);
    } catch (const std::exception&) {  // no memory or no descriptor: the message will be sent again
    }
  }
  void heard_all() {
    const std::lock_guard g(lock_);
    all_heard_ = true;
    all_.notify_all();
  }
  void heard(natsMsg* m) {
    const std::string_view subject = natsMsg_GetSubject(m);
    const std::string last(subject.substr(subject.rfind('.') + 1));
    const auto size = static_cast<std::size_t>(std::max(natsMsg_GetDataLength(m), 0));
    const char* const data = size ? natsMsg_GetData(m) : "";
    if (last == "meet") {
      const char* const reply = natsMsg_GetReply(m);
      const std::string answer = answered({data, size}).dump();
      if (reply) natsConnection_PublishString(client_.get(), reply, answer.c_str());
      return;
    }
    std::shared_ptr<Way> way;
    {
      const std::lock_guard g(lock_);
      if (const auto at = ways_.find(last); at != ways_.end()) way = at->second;
    }
    if (way) way->heard(std::as_bytes(std::span(data, size)));
  }
  Any answered(std::string_view message) {
    const std::optional<SessionRequest> a = session_request(message);
    if (!a) return refusing("the request does not say its session and where it comes from");
    reap();
    std::shared_ptr<Way> way;
    {
      const std::lock_guard g(lock_);
      if (closed_) return refusing("this program is leaving");
      if (ways_.contains(a->session)) return Any::object();
      ways_[a->session] = way = made(a->session, a->from);
    }
    const int socket = way->connects();
    if (came_(socket)) return Any::object();
    ::close(socket);
    return refusing("too many ask at once: try again");
  }
  static Any refusing(const char* why) {
    Any said = Any::object();
    said["refused"] = why;
    return said;
  }

  // --- asking for a session ---

  void ask(const std::string& session, const std::string& place) {
    const std::string subject = std::string(kRelay) + "." + place + ".meet";
    const std::string asks = Any{{"session", session}, {"from", place_}}.dump();
    std::string why = "nobody answers";
    for (const auto until = Clock::now() + kMeet; Clock::now() < until;) {
      natsMsg* made = nullptr;
      const natsStatus s =
          natsConnection_RequestString(&made, client_.get(), subject.c_str(), asks.c_str(), 1'000);
      const Owned<natsMsg, natsMsg_Destroy> reply(made);
      if (s == NATS_OK) return agreed(reply.get());
      why = s == NATS_NO_RESPONDERS ? "nobody listens there" : natsStatus_GetText(s);
      if (s == NATS_NO_RESPONDERS) {
        const std::lock_guard g(lock_);
        // Until kBack after this program's own return, the other program might not have returned
        // yet.
        if (Clock::now() > since_ + kBack) break;
      }
      // If no program listens at that place, the server answers at once; but it does not report
      // when one begins to listen.
      std::this_thread::sleep_for(Milliseconds(50));
    }
    throw Unreachable(why +
                      ". Either the program has gone, or the NATS server does not let this program "
                      "publish to " +
                      kRelay + ".>, or does not let that one subscribe to it");
  }
  static void agreed(natsMsg* reply) {
    const auto size = static_cast<std::size_t>(std::max(natsMsg_GetDataLength(reply), 0));
    const Any said = parsed({size ? natsMsg_GetData(reply) : "", size});
    if (said.is_object() && said.empty()) return;
    const auto refused = said.is_object() ? said.find("refused") : said.end();
    if (refused == said.end() || !refused->is_string())
      throw Unreachable("the answer is not from a Weft program");
    throw Unreachable("it refuses: " + shown(refused->get<std::string>(), 200));
  }

  Client& client_;
  const std::string place_;
  const Came came_;
  std::mutex lock_;
  std::condition_variable all_;
  bool closed_ = false, all_heard_ = false;
  Clock::time_point since_ = Clock::now();  // when the connection to the server was made
  std::unordered_map<std::string, std::shared_ptr<Way>> ways_;
  natsSubscription* heard_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::net::detail
