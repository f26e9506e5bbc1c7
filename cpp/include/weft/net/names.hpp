// Names of channels in a key-value bucket of JetStream: which program holds a name, and how two
// programs meet by a name (WIRE-NETWORKS.md 17.3, 17.4). Uses NATS's client in C, nats.c.
//
//   offered ──create──► the entry has a ticket ──a program takes it out (compare-and-set)──► none
//                           ▲                                                   TicketWatch │
//                           └──────────write(): it was taken, or kRenew has passed──────────┘
//
// Invariants
//  1 Several threads use `Names` at once. Its members never change, except the function that is
//    called when the server is back; that is changed under a lock.
//  2 While the server is down, no session waits for anything in this file.
#pragma once
#include <nats/nats.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "tls.hpp"

namespace weft::inline WEFT_ABI::net::detail {

inline constexpr const char* kBucket = "weft_names";
inline constexpr std::size_t kMaxEntry = 65'536;  // in bytes
inline constexpr std::chrono::seconds kLives{15},
    // How long an entry exists, and how often its home writes the entry again.
    kRenew{5};
// How long a ticket stays valid after it was taken from the entry.
inline constexpr std::chrono::seconds kMeeting{30};
// The maximum number of valid tickets of a name. Beyond that number the oldest tickets become
// invalid.
inline constexpr std::size_t kMaxOut = 1024;
inline constexpr std::chrono::seconds kServer{5};  // how long to wait for an answer from the server

// Returns the name. Throws BadUse if it is not a valid name.
inline const std::string& checked(const std::string& name) {
  bool good = !name.empty() && name.size() <= 60;
  bool part = false;  // whether the previous character is a letter
  for (const char c : name) {
    const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                        (c >= 'a' && c <= 'z') || c == '-' || c == '_';
    good = good && (letter || (part && (c == '/' || c == '.')));
    part = letter;
  }
  if (!good || !part)
    bad("a name must be 1 to 60 letters, digits, - and _, in parts with / or . between, as "
        "'lab/results'; not '" +
        name + "'");
  return name;
}

template <class T, void (*Destroy)(T*)>
struct Destroys {
  void operator()(T* p) const { Destroy(p); }
};
template <class T, void (*Destroy)(T*)>
using Owned = std::unique_ptr<T, Destroys<T, Destroy>>;

// The value that is stored under a name, and its revision.
struct Entry {
  Any said;
  std::uint64_t revision = 0;
  std::string text(const char* key) const {
    const auto at = said.find(key);
    return at != said.end() && at->is_string() ? at->get<std::string>() : std::string();
  }
  std::string at() const {
    const std::string address = text("address");
    return address.empty() ? "by the relay" : "at " + address;
  }
  // Returns whether the home is reached through the relay.
  bool relay() const {
    const auto at = said.find("relay");
    return at != said.end() && at->is_boolean() && at->get<bool>();
  }
  // Reads an entry. Throws BadUse if Weft did not write it.
  static Entry of(kvEntry* e, const std::string& name) {
    const auto size = static_cast<std::size_t>(std::max(kvEntry_ValueLen(e), 0));
    const auto* const data = static_cast<const char*>(kvEntry_Value(e));
    return of(size ? std::string_view(data, size) : std::string_view(), kvEntry_Revision(e), name);
  }
  static Entry of(std::string_view packed, std::uint64_t revision, const std::string& name) {
    Entry made{parsed(packed, kMaxEntry), revision};
    const Any& j = made.said;
    bool good =
        j.is_object() && j.contains("ticket") && (j["ticket"].is_null() || j["ticket"].is_string());
    for (const char* text : {"address", "fingerprint", "home", "host"})
      good = good && j.contains(text) && j[text].is_string();
    for (const char* is : {"readers", "writers"})
      good = good && j.contains(is) && j[is].is_boolean();
    if (!good)
      bad("the entry '" + name + "' in the bucket " + kBucket +
          " is not an entry of Weft's: another program writes there");
    for (const char* text : {"address", "host"}) made.said[text] = shown(made.text(text), 260);
    return made;
  }
};

// Reports that the server has not answered, or has answered with an error; what() says which.
class Lost : public std::runtime_error {
 public:
  explicit Lost(natsStatus s) : std::runtime_error(natsStatus_GetText(s)) {}
};

// A connection of nats.c, whose threads call this program back. No callback runs after the
// destructor.
class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    if (!connection_) return;
    natsConnection_Close(connection_);
    {
      std::unique_lock g(lock_);
      news_.wait(g, [this] { return closed_; });
    }
    natsConnection_Destroy(connection_);
  }
  natsStatus connect(natsOptions* options) {
    natsStatus s = natsOptions_SetReconnectedCB(
        options, [](natsConnection*, void* me) { static_cast<Client*>(me)->again(); }, this);
    const auto closed = [](natsConnection*, void* me) { static_cast<Client*>(me)->closed(); };
    if (s == NATS_OK) s = natsOptions_SetClosedCB(options, closed, this);
    return s == NATS_OK ? natsConnection_Connect(&connection_, options) : s;
  }
  natsConnection* get() const noexcept { return connection_; }
  unsigned times_back() const noexcept { return times_back_.load(); }
  // Sets a function f that is called each time the server is reachable again. If f is null, there
  // are no further calls, and no call is still in progress when when_back() returns.
  void when_back(std::function<void()> f) {
    const std::lock_guard g(lock_);
    back_ = std::move(f);
  }

 private:
  void again() {
    ++times_back_;
    const std::lock_guard g(lock_);
    if (back_) back_();
  }
  void closed() {
    const std::lock_guard g(lock_);
    closed_ = true;
    news_.notify_all();
  }

  natsConnection* connection_ = nullptr;
  std::mutex lock_;
  std::condition_variable news_;
  bool closed_ = false;
  std::atomic<unsigned> times_back_{0};
  std::function<void()> back_;
};

// Calls `f`, on a thread of nats.c, with each new content of an entry and its revision, beginning
// with the present content. The destructor ends the calls, and waits for `f`. The object is a
// consumer of the bucket's stream, because a consumer receives only what was written, and not each
// attempt to write.
class TicketWatch {
 public:
  using Told = std::function<void(const Any&, std::uint64_t)>;
  TicketWatch(Client& client, jsCtx* js, const std::string& name, Told f)
      : client_(client),
        js_(js),
        subject_(std::string("$KV.") + kBucket + "." + name),
        consumer_(random_hex(8)),
        inbox_("_INBOX." + random_hex(16)),
        f_(std::move(f)) {
    natsStatus s =
        natsConnection_Subscribe(&heard_, client.get(), inbox_.c_str(), on_message, this);
    if (s == NATS_OK)
      s = natsSubscription_SetOnCompleteCB(
          heard_, [](void* me) { static_cast<TicketWatch*>(me)->heard_all(); }, this);
    if (s == NATS_OK) {
      ask();
      return;
    }
    natsSubscription_Destroy(heard_);
    throw Lost(s);
  }
  // Creates the consumer if needed: a server that was restarted has forgotten it. A server that
  // refuses the request does not answer.
  void ask() {
    const unsigned times = client_.times_back();
    if (asked_ == times) return;
    jsConsumerConfig config;
    jsConsumerConfig_Init(&config);
    config.Name = consumer_.c_str();
    config.DeliverSubject = inbox_.c_str();
    config.DeliverPolicy = js_DeliverLastPerSubject;
    config.AckPolicy = js_AckNone;
    config.FilterSubject = subject_.c_str();
    config.InactiveThreshold = std::chrono::nanoseconds(kLives).count();
    const std::string stream = std::string("KV_") + kBucket;
    if (js_AddConsumer(nullptr, js_, stream.c_str(), &config, nullptr, nullptr) == NATS_OK)
      asked_ = times;
  }
  TicketWatch(const TicketWatch&) = delete;
  TicketWatch& operator=(const TicketWatch&) = delete;
  ~TicketWatch() {
    natsSubscription_Unsubscribe(heard_);
    {
      std::unique_lock g(lock_);
      all_.wait(g, [this] { return all_heard_; });
    }
    natsSubscription_Destroy(heard_);
  }

 private:
  static void on_message(natsConnection*, natsSubscription*, natsMsg* m, void* me) {
    const Owned<natsMsg, natsMsg_Destroy> message(m);
    const auto size = static_cast<std::size_t>(std::max(natsMsg_GetDataLength(m), 0));
    jsMsgMetaData* about = nullptr;
    if (natsMsg_GetMetaData(&about, m) != NATS_OK) return;
    const Owned<jsMsgMetaData, jsMsgMetaData_Destroy> owned(about);
    try {
      static_cast<TicketWatch*>(me)->f_(parsed({size ? natsMsg_GetData(m) : "", size}, kMaxEntry),
                                        about->Sequence.Stream);
    } catch (const std::exception&) {  // There was no memory: the next renewal tries again.
    }
  }
  void heard_all() {
    const std::lock_guard g(lock_);
    all_heard_ = true;
    all_.notify_all();
  }

  Client& client_;
  jsCtx* const js_;
  const std::string subject_, consumer_, inbox_;
  const Told f_;
  // Counts how often the server had become reachable again when the consumer was last created.
  std::optional<unsigned> asked_;
  natsSubscription* heard_ = nullptr;
  std::mutex lock_;
  std::condition_variable all_;
  bool all_heard_ = false;
};

class Names {
 public:
  // Connects. Throws BadUse if the server does not answer, refuses the keys, or has no JetStream.
  Names(std::string url, const Keys& keys, const std::string& host) : url_(std::move(url)) {
    natsStatus s = connect(keys, host, nullptr);
    // A server is recognised by its authority, not by the name by which it is reached. But nats.c
    // requires one of the names in the server's certificate, and every certificate by `weft net
    // keys` contains "localhost".
    if (s == NATS_SSL_ERROR) s = connect(keys, host, "localhost");
    if (s == NATS_OK) s = look_for_bucket();
    if (s != NATS_OK)
      bad("the NATS server at " + url_ + " cannot be used (" + natsStatus_GetText(s) +
          "): is it up (`weft net up` starts one for a developer), and has it TLS by the "
          "authority of these keys, and JetStream?");
  }

  const std::string& url() const noexcept { return url_; }
  bool connected() const {
    return natsConnection_Status(client_.get()) == NATS_CONN_STATUS_CONNECTED;
  }
  Client& client() noexcept { return client_; }
  jsCtx* streams() const noexcept { return js_.get(); }

  // Writes an entry, if the name is free (`last` is 0) or the entry still has revision `last`.
  // Returns the new revision; nullopt if the entry has been written meanwhile. Throws Lost.
  std::optional<std::uint64_t> write(const std::string& name, const Any& said, std::uint64_t last) {
    const std::string packed = said.dump();
    std::uint64_t revision = 0;
    const int size = static_cast<int>(packed.size());
    const natsStatus s =
        last ? kvStore_Update(&revision, bucket_.get(), name.c_str(), packed.data(), size, last)
             : kvStore_Create(&revision, bucket_.get(), name.c_str(), packed.data(), size);
    if (s == NATS_OK) return revision;
    // NATS_NOT_FOUND means that the entry has expired meanwhile.
    if (s != NATS_ERR && s != NATS_NOT_FOUND) throw Lost(s);
    return {};
  }
  // Returns the entry of that name, or nothing. Throws Lost, and BadUse if Weft did not write the
  // entry.
  std::optional<Entry> read(const std::string& name) {
    const auto e = got(name);
    if (!e) return {};
    return Entry::of(e.get(), name);
  }
  // The revision of an entry, and its home; the home is empty if Weft did not write the entry.
  // there() throws Lost.
  struct EntryHolder {
    std::uint64_t revision = 0;
    std::string home;
  };
  std::optional<EntryHolder> there(const std::string& name) {
    const auto e = got(name);
    if (!e) return {};
    EntryHolder t{kvEntry_Revision(e.get()), ""};
    try {
      t.home = Entry::of(e.get(), name).text("home");
    } catch (const BadUse&) {
    }
    return t;
  }
  // Deletes the entry, if it still has revision `last`. Throws Lost. (kvStore_Delete would delete
  // any revision.)
  bool remove(const std::string& name, std::uint64_t last) {
    natsMsg* made = nullptr;
    const std::string subject = std::string("$KV.") + kBucket + "." + name;
    if (const natsStatus s = natsMsg_Create(&made, subject.c_str(), nullptr, "", 0); s != NATS_OK)
      throw Lost(s);
    const Owned<natsMsg, natsMsg_Destroy> message(made);
    natsMsgHeader_Set(made, "KV-Operation", "DEL");
    jsPubOptions options;
    jsPubOptions_Init(&options);
    options.ExpectLastSubjectSeq = last;
    const natsStatus s = js_PublishMsg(nullptr, js_.get(), made, &options, nullptr);
    if (s != NATS_OK && s != NATS_ERR) throw Lost(s);
    return s == NATS_OK;
  }
  // Waits until there is an entry with a ticket, takes the ticket out, and returns the entry as it
  // was. Sets `seen` to the owner of an entry without a ticket, if there was one. Returns nullopt
  // if no ticket has arrived by `until`. Throws Lost and BadUse.
  std::optional<Entry> take_ticket(const std::string& name, const std::string& home,
                                   Clock::time_point until, std::string& seen) {
    kvWatcher* made = nullptr;
    if (const natsStatus s = kvStore_Watch(&made, bucket_.get(), name.c_str(), nullptr);
        s != NATS_OK)
      throw Lost(s);
    const Owned<kvWatcher, kvWatcher_Destroy> watcher(made);
    for (;;) {
      const auto left = std::chrono::ceil<Milliseconds>(until - Clock::now());
      kvEntry* e = nullptr;
      const natsStatus s = kvWatcher_Next(&e, made, std::max<std::int64_t>(left.count(), 1));
      const Owned<kvEntry, kvEntry_Destroy> owned(e);
      if (s == NATS_TIMEOUT) return {};
      if (s != NATS_OK) throw Lost(s);
      if (!e || kvEntry_Operation(e) != kvOp_Put) continue;
      Entry entry = Entry::of(e, name);
      if (entry.text("home") == home)
        bad("'" + name + "' is a channel of this program: use the ends of the channel itself");
      seen = entry.text("host");
      if (entry.said["ticket"].is_null()) continue;
      Any without = entry.said;
      without["ticket"] = nullptr;
      if (write(name, without, entry.revision)) return entry;
    }
  }

 private:
  Owned<kvEntry, kvEntry_Destroy> got(const std::string& name) {
    kvEntry* e = nullptr;
    const natsStatus s = kvStore_Get(&e, bucket_.get(), name.c_str());
    if (s != NATS_OK && s != NATS_NOT_FOUND) throw Lost(s);
    return Owned<kvEntry, kvEntry_Destroy>(s == NATS_OK ? e : nullptr);
  }
  natsStatus connect(const Keys& keys, const std::string& host, const char* expected) {
    natsOptions* made = nullptr;
    natsStatus s = natsOptions_Create(&made);
    const Owned<natsOptions, natsOptions_Destroy> options(made);
    const auto and_then = [&s](natsStatus next) { s = s == NATS_OK ? next : s; };
    and_then(natsOptions_SetURL(made, url_.c_str()));
    and_then(natsOptions_SetName(made, host.c_str()));
    and_then(natsOptions_SetSecure(made, true));
    and_then(natsOptions_LoadCATrustedCertificates(made, keys.file("authority.pem").c_str()));
    and_then(natsOptions_LoadCertificatesChain(made, keys.file("certificate.pem").c_str(),
                                               keys.file("key.pem").c_str()));
    if (expected) and_then(natsOptions_SetExpectedHostname(made, expected));
    and_then(natsOptions_SetTimeout(made, Milliseconds(kServer).count()));
    and_then(natsOptions_SetMaxReconnect(made, -1));
    and_then(natsOptions_SetReconnectWait(made, 250));
    and_then(natsOptions_SetSendAsap(made, true));
    and_then(natsOptions_SetWriteDeadline(made, Milliseconds(kServer).count()));
    // nats.c would write errors to stderr. They need no report, because lost messages are sent
    // again, and no messages arrive for a subject that is not permitted.
    and_then(natsOptions_SetErrorHandler(
        made, [](natsConnection*, natsSubscription*, natsStatus, void*) {}, nullptr));
    and_then(client_.connect(made));
    return s;
  }
  natsStatus look_for_bucket() {
    jsOptions options;
    jsOptions_Init(&options);
    options.Wait = Milliseconds(kServer).count();
    jsCtx* js = nullptr;
    natsStatus s = natsConnection_JetStream(&js, client_.get(), &options);
    js_.reset(js);
    if (s != NATS_OK) return s;
    kvStore* bucket = nullptr;
    s = js_KeyValue(&bucket, js, kBucket);
    if (s == NATS_NOT_FOUND) {
      kvConfig config;
      kvConfig_Init(&config);
      config.Bucket = kBucket;
      config.History = 1;
      config.TTL = std::chrono::nanoseconds(kLives).count();
      s = js_CreateKeyValue(&bucket, js, &config);
      // If the bucket cannot be made, another program has made it first.
      if (s != NATS_OK) s = js_KeyValue(&bucket, js, kBucket);
    }
    bucket_.reset(bucket);
    return s;
  }

  const std::string url_;
  Client client_;
  Owned<jsCtx, jsCtx_Destroy> js_;
  Owned<kvStore, kvStore_Destroy> bucket_;
};

}  // namespace weft::inline WEFT_ABI::net::detail
