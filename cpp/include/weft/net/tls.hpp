// Connections between machines: TLS 1.3 over TCP, with a certificate on both sides
// (WIRE-NETWORKS.md 17.1), and the first message of each side (17.2). This file uses OpenSSL.
//
//   Keys keys(folder);
//   Connection c = Connection::reach(keys, "10.0.0.2:4711", seconds);         c.fingerprint(), c.member()
//   Connection c = Connection::relayed(keys, fd, "its name, by the relay,");  relay.hpp's socket
//   Connection c = Connection::accepted(keys, fd);
//   c.say(json)   c.heard()                                                    until a link has it
//
// Invariants
//  1 Sockets do not block; every wait has a limit. Nothing here raises SIGPIPE.
//  2 A connection that has been made has shown its certificate, and has verified the peer's
//    certificate.
#pragma once
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../wire/space.hpp"
#include "grants.hpp"
#include "typed.hpp"

namespace weft::inline WEFT_ABI::net {

// Thrown if no program answers at an address. For example, the home of a name might have been
// killed. (Python raises ConnectionError.)
class Unreachable final : public Error {
 public:
  using Error::Error;
};

namespace detail {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;
// The limit for the handshake, and for the first message.
inline constexpr std::chrono::seconds kGreeting{10};
inline constexpr std::size_t kMaxFirstMessage = 4096;  // in bytes
inline constexpr char kMagic[] = "WEFTNET1";
// The number of bytes before the text of the first message: kMagic, and the length of the text.
inline constexpr std::size_t kHead = 12;

[[noreturn]] inline void bad(const std::string& why) { throw BadUse(why); }

// Parses JSON that another program has sent. Returns `discarded` if the text is not JSON, is longer
// than `most`, or nests deeper than anything that Weft sends. (Copying or printing a nested value
// takes stack for each level.)
inline Any parsed(std::string_view text, std::size_t most = kMaxFirstMessage) {
  static constexpr int kDeepest = 16;
  if (text.size() > most) return Any(Any::value_t::discarded);
  bool deep = false;
  Any made = Any::parse(
      text.begin(), text.end(),
      [&deep](int depth, Any::parse_event_t event, Any&) {
        const bool begins =
            event == Any::parse_event_t::object_start || event == Any::parse_event_t::array_start;
        return !(deep = deep || (begins && depth >= kDeepest));
      },
      false);
  return deep ? Any(Any::value_t::discarded) : made;
}

// Prepares text of another program for messages: the result is one line without control characters,
// and has at most `most` bytes. A longer text is cut between characters.
inline std::string shown(std::string_view text, std::size_t most) {
  while (most < text.size() && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  std::string s(text.substr(0, most));
  for (char& c : s)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  return s;
}

// Returns how many bytes follow the head of a first message; nullopt if the head is not valid.
inline std::optional<std::size_t> follow(std::string_view head) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i)
    size |= std::size_t{static_cast<unsigned char>(head[8 + i])} << (8 * i);
  if (head.compare(0, 8, kMagic) != 0 || size > kMaxFirstMessage) return {};
  return size;
}
// Parses the text of a first message. Returns nullopt if the text does not name its sender.
inline std::optional<Any> first_message(std::string_view text) {
  Any said = parsed(text);
  if (!said.is_object() || !said.contains("host") || !said["host"].is_string()) return {};
  return said;
}

// Returns the text of OpenSSL's latest error; "" if there is none.
inline std::string openssl_error() {
  const unsigned long last = ERR_peek_last_error();
  const char* const text = last ? ERR_reason_error_string(last) : nullptr;
  ERR_clear_error();
  return text ? text : "";
}

// Returns the methods of a BIO for a socket. OpenSSL's own BIO would raise SIGPIPE.
inline const BIO_METHOD* quiet_socket() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* const m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weft socket");
    BIO_meth_set_create(m, [](BIO* b) { return BIO_set_init(b, 1), 1; });
    const auto result = [](BIO* b, ssize_t n, int retry) {
      BIO_clear_retry_flags(b);
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        BIO_set_flags(b, retry | BIO_FLAGS_SHOULD_RETRY);
      return static_cast<int>(n);
    };
    static const auto result_of = result;
    BIO_meth_set_write(m, [](BIO* b, const char* data, int n) {
      const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(b)));
      return result_of(b, ::send(fd, data, static_cast<std::size_t>(n), MSG_NOSIGNAL),
                       BIO_FLAGS_WRITE);
    });
    BIO_meth_set_read(m, [](BIO* b, char* data, int n) {
      const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(b)));
      return result_of(b, ::recv(fd, data, static_cast<std::size_t>(n), 0), BIO_FLAGS_READ);
    });
    BIO_meth_set_ctrl(m,
                      [](BIO*, int what, long, void*) -> long { return what == BIO_CTRL_FLUSH; });
    return m;
  }();
  return method;
}

inline std::string hex(const unsigned char* bytes, std::size_t n) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < n; ++i) text += digits[bytes[i] >> 4], text += digits[bytes[i] & 15];
  return text;
}
inline std::string random_hex(std::size_t bytes) {
  std::string text;
  while (text.size() < 2 * bytes) {
    const std::uint64_t n = wire::Space::random();
    unsigned char raw[8];
    std::memcpy(raw, &n, 8);
    text += hex(raw, 8);
  }
  return text.substr(0, 2 * bytes);
}
inline std::string fingerprint_of(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (!certificate || X509_digest(certificate, EVP_sha256(), digest, &size) != 1) return "";
  return hex(digest, size);
}

struct Address {
  std::string host, port;
};
// Splits an address into its parts. Throws BadUse if the text is not an address.
inline Address split_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon), port;
  if (colon != std::string::npos) port = address.substr(colon + 1);
  const bool number = !port.empty() && port.size() <= 5 &&
                      port.find_first_not_of("0123456789") == std::string::npos;
  if (colon == std::string::npos || host.empty() || !number || std::stoi(port) > 65535)
    bad("an address must be 'HOST:PORT', with a port from 0 to 65535, not '" + address + "'");
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  return {host, port};
}

struct Found {
  addrinfo* first = nullptr;
  Found(const std::string& address, bool listens) {
    const Address a = split_address(address);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = listens ? AI_PASSIVE : 0;
    if (const int n = ::getaddrinfo(a.host.c_str(), a.port.c_str(), &hints, &first); n != 0)
      throw Unreachable(std::string(::gai_strerror(n)));
  }
  Found(const Found&) = delete;
  Found& operator=(const Found&) = delete;
  ~Found() {
    if (first) ::freeaddrinfo(first);
  }
};

// Lets the system notice that the other machine no longer answers (WIRE-NETWORKS.md 17.7).
inline void enable_keepalive(int fd) {
  const auto set = [fd](int level, int name, int value) {
    ::setsockopt(fd, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
#if defined(__linux__)
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 20'000);
#endif
}

// A folder with a certificate, its key, and the authority that signed the certificate (`weft net
// keys` makes such a folder).
class Keys {
 public:
  // Reads the keys in the folder `given`; if `given` is empty, in $WEFT_NET,
  // $XDG_CONFIG_HOME/weft/net or ~/.config/weft/net. Throws BadUse if there are no keys, or they do
  // not say which names they permit.
  explicit Keys(const std::string& given) : folder(found(given)) {
    for (SSL_CTX* const each : {client_.get(), server_.get()}) {
      SSL_CTX_set_min_proto_version(each, TLS1_3_VERSION);
      SSL_CTX_set_mode(each, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
      SSL_CTX_set_verify(each, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
      SSL_CTX_set_session_cache_mode(each, SSL_SESS_CACHE_OFF);
      SSL_CTX_set_num_tickets(each, 0);
      if (SSL_CTX_load_verify_locations(each, file("authority.pem").c_str(), nullptr) != 1 ||
          SSL_CTX_use_certificate_chain_file(each, file("certificate.pem").c_str()) != 1 ||
          SSL_CTX_use_PrivateKey_file(each, file("key.pem").c_str(), SSL_FILETYPE_PEM) != 1 ||
          SSL_CTX_check_private_key(each) != 1)
        bad("no keys in " + folder.string() + " (" + openssl_error() +
            "): `weft net up` makes them, and `weft net keys` those of other machines; "
            "$WEFT_NET or keys=… says where they are");
    }
    const X509* const own = SSL_CTX_get0_certificate(server_.get());
    fingerprint = fingerprint_of(own);
    member = Member::of(own);
    if (!member.grants.empty()) return;
    bad("the keys in " + folder.string() +
        " do not say which names they are for, as those of an older Weft: " +
        (std::filesystem::exists(folder / "authority-key.pem")
             ? "remove certificate.pem and key.pem there, and `weft net up` makes new ones"
             : "make new ones where the authority's key is, `weft net keys FOLDER --name " +
                   member.name +
                   "` (--offers says other names than the usual), and bring them "
                   "here"));
  }
  std::string file(const char* name) const { return (folder / name).string(); }
  SSL_CTX* client() const noexcept { return client_.get(); }
  SSL_CTX* server() const noexcept { return server_.get(); }

  const std::filesystem::path folder;
  std::string fingerprint;  // SHA-256 of the certificate, in hex
  Member member;

 private:
  static std::filesystem::path found(const std::string& given) {
    const auto from = [](const char* name) {
      const char* const v = std::getenv(name);
      return std::string(v ? v : "");
    };
    if (!given.empty()) return given;
    if (const std::string v = from("WEFT_NET"); !v.empty()) return v;
    if (const std::string v = from("XDG_CONFIG_HOME"); !v.empty())
      return std::filesystem::path(v) / "weft" / "net";
    return std::filesystem::path(from("HOME")) / ".config" / "weft" / "net";
  }
  // OpenSSL cleans itself up when a program ends, unless its first user forbids that. nats.c's
  // threads release a connection some time after it was closed, and would crash if OpenSSL had
  // cleaned itself up before.
  static SSL_CTX* made(const SSL_METHOD* method) {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
    return SSL_CTX_new(method);
  }
  struct Free {
    void operator()(SSL_CTX* c) const { SSL_CTX_free(c); }
  };
  std::unique_ptr<SSL_CTX, Free> client_{made(TLS_client_method())};
  std::unique_ptr<SSL_CTX, Free> server_{made(TLS_server_method())};
};

class Connection {
 public:
  // Connects with the program at an address. Throws Unreachable if no program answers there within
  // `patience`. Throws BadUse if that program's certificate is not valid, or it refuses this
  // program's certificate.
  static Connection reach(const Keys& keys, const std::string& address, Milliseconds patience) {
    const auto until = Clock::now() + patience;
    const Found found(address, false);
    std::string why = "nobody answers";
    for (const addrinfo* a = found.first; a; a = a->ai_next) {
      const int fd = ::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      if (fd < 0) continue;
      int error = 0;
      socklen_t size = sizeof error;
      if (::connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
        error = errno == EINPROGRESS ? 0 : errno;
        if (!error && !waits(fd, POLLOUT, until)) error = ETIMEDOUT;
        if (!error) ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
      }
      if (!error) return Connection(keys.client(), fd, address).shaken(false, until);
      why = std::strerror(error);
      ::close(fd);
    }
    throw Unreachable(why);
  }
  // Connects over a way of the relay, and takes ownership of the socket. `where` is the name of the
  // other end in messages. Throws what reach() throws, and Unreachable if the socket is lost.
  static Connection relayed(const Keys& keys, int fd, const std::string& where) {
    Connection c(keys.client(), fd, where);
    c.relayed_ = true;
    return std::move(c).shaken(false, Clock::now() + kGreeting);
  }
  // Accepts a program that connects, and takes ownership of the socket. Throws BadUse if the
  // program has no certificate of this network, and Unreachable if it sends nothing.
  static Connection accepted(const Keys& keys, int fd) {
    return Connection(keys.server(), fd, "who comes").shaken(true, Clock::now() + kGreeting);
  }
  Connection(Connection&& o) noexcept
      : where_(std::move(o.where_)),
        fd_(std::exchange(o.fd_, -1)),
        relayed_(o.relayed_),
        ssl_(std::move(o.ssl_)) {}
  Connection& operator=(Connection&&) = delete;
  ~Connection() {
    ssl_.reset();
    if (fd_ >= 0) ::close(fd_);
  }

  std::string fingerprint() const { return fingerprint_of(shown().get()); }
  // Returns the owner of the certificate that the peer has shown.
  Member member() const { return Member::of(shown().get()); }
  // say() sends this side's first message; heard() returns the peer's. Both throw BadUse if the
  // peer has left, or has sent something that is not a first message.
  void say(const Any& what) {
    const std::string text = what.dump();
    std::string all(kMagic);
    for (unsigned i = 0; i < 4; ++i) all += static_cast<char>(text.size() >> (8 * i));
    all += text;
    const auto until = Clock::now() + kGreeting;
    for (std::size_t at = 0; at < all.size();)
      at += static_cast<std::size_t>(through(
          [&] { return SSL_write(ssl_.get(), all.data() + at, int(all.size() - at)); }, until));
  }
  Any heard() {
    const auto until = Clock::now() + kGreeting;
    const auto size = follow(exactly(kHead, until));
    if (!size) bad(where_ + ": the peer is not a Weft program, or has another version of Weft");
    auto said = first_message(exactly(*size, until));
    if (!said) bad(where_ + ": the first message does not say who sent it");
    return *std::move(said);
  }
  // Gives the socket and the TLS object to a link, which owns both from then on.
  std::pair<int, SSL*> release() { return {std::exchange(fd_, -1), ssl_.release()}; }
  int socket() const noexcept { return fd_; }

 private:
  // Takes ownership of the socket, on which nothing has been sent yet. The caller must call
  // shaken() next.
  Connection(SSL_CTX* context, int fd, std::string where)
      : where_(std::move(where)), fd_(fd), ssl_(SSL_new(context)) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    enable_keepalive(fd);
    BIO* const way = BIO_new(quiet_socket());
    BIO_set_data(way, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
    SSL_set_bio(ssl_.get(), way, way);
  }
  Connection shaken(bool server, Clock::time_point until) && {
    through<Unreachable>([&] { return server ? SSL_accept(ssl_.get()) : SSL_connect(ssl_.get()); },
                         until);
    return std::move(*this);
  }
  static bool waits(int fd, short what, Clock::time_point until) {
    const auto left = std::chrono::ceil<Milliseconds>(until - Clock::now());
    pollfd p{fd, what, 0};
    return left.count() > 0 && ::poll(&p, 1, static_cast<int>(left.count())) > 0;
  }
  // Completes an operation of TLS, and waits for the socket meanwhile. Throws E if the peer sends
  // nothing before the limit.
  template <class E = BadUse, class F>
  int through(F&& operation, Clock::time_point until) {
    for (;;) {
      ERR_clear_error();
      const int n = operation();
      if (n > 0) return n;
      const int how = SSL_get_error(ssl_.get(), n);
      const bool reads = how == SSL_ERROR_WANT_READ;
      if (!reads && how != SSL_ERROR_WANT_WRITE) refuse<E>(how);
      if (!waits(fd_, reads ? POLLIN : POLLOUT, until))
        throw E(where_ + " says nothing: is it a Weft program of this network?");
    }
  }
  template <class E>
  [[noreturn]] void refuse(int how) {
    const long verified = SSL_get_verify_result(ssl_.get());
    if (verified == X509_V_ERR_CERT_NOT_YET_VALID || verified == X509_V_ERR_CERT_HAS_EXPIRED)
      bad(where_ + " shows a certificate that is not good now (" +
          X509_verify_cert_error_string(verified) +
          "): look at the clocks of both machines, or make new keys (`weft net keys`)");
    if (verified != X509_V_OK)
      bad(where_ +
          " shows a certificate that our authority has not signed: both need keys of one "
          "network (`weft net keys`)");
    const std::string reason = openssl_error();
    if (how == SSL_ERROR_SSL && reason.find("unexpected eof") == std::string::npos)
      bad(where_ + " refuses our certificate, or speaks no TLS 1.3 (" + reason +
          "): both need keys of one network (`weft net keys`)");
    if (relayed_ && std::is_same_v<E, Unreachable>)
      throw Unreachable("it was lost in the hand-shake");
    bad(where_ +
        " closed the connection before it had answered: it was killed, it refuses our "
        "certificate (both need keys of one network: `weft net keys`), or it is not a Weft "
        "program");
  }
  std::string exactly(std::size_t n, Clock::time_point until) {
    std::string all(n, '\0');
    for (std::size_t at = 0; at < n;)
      at += static_cast<std::size_t>(
          through([&] { return SSL_read(ssl_.get(), all.data() + at, int(n - at)); }, until));
    return all;
  }

  struct Free {
    void operator()(SSL* s) const { SSL_free(s); }
    void operator()(X509* x) const { X509_free(x); }
  };
  std::unique_ptr<X509, Free> shown() const {
    return std::unique_ptr<X509, Free>(SSL_get1_peer_certificate(ssl_.get()));
  }
  std::string where_;
  int fd_;
  bool relayed_ = false;
  std::unique_ptr<SSL, Free> ssl_;
};

}  // namespace detail

}  // namespace weft::inline WEFT_ABI::net
