// TLS over the streams of weft::io, by OpenSSL 3 (rule 18.10; the page is cpp/docs/io.md). A
// program that includes this header links libssl and libcrypto. weft.hpp does not include this
// header. *TLS's own end* is the message close_notify, with which a peer ends its side.
//
//   weft::tls::Context trust = weft::tls::Context::client();
//   weft::tls::Stream s = co_await weft::tls::connect(tcp, trust, "example.org");
//   co_await s.write_all("GET / HTTP/1.0\r\n\r\n");
//
//   write_all ──SSL_write──► Session::sealed ──send_sealed()──► the socket ──SSL_read──► read_some
//
// Invariants
//  1 Each use of a session's SSL object and of `sealed` holds the session's lock. No process waits
//    while it holds the lock. So one process may read while another writes, also on two cores.
//  2 OpenSSL writes only to memory (`sealed`). The sealed records are sent in order, and any
//    operation may send them. So an operation that is abandoned leaves no partial record behind.
//  3 OpenSSL may keep whole records that no process has read, and the kernel does not know of them.
//    So each read informs the descriptor whether there are any (Watched::keeps).
#pragma once
#if defined(__linux__)
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "io.hpp"

namespace weft::inline WEFT_ABI::tls {

// Thrown if TLS refuses something: a certificate, a record, or a connection that ends without TLS's
// own end. Errors of the socket below are std::system_error.
class Error final : public weft::Error {
 public:
  using weft::Error::Error;
};

namespace detail {

using io::detail::Operation;
using io::detail::Side;
using io::detail::Tried;
using io::detail::Watched;

// Returns the text of OpenSSL's first error of this thread, and removes all errors from OpenSSL's
// queue.
inline std::string openssl_error() {
  const unsigned long first = ERR_peek_error();
  const char* const text = first ? ERR_reason_error_string(first) : nullptr;
  ERR_clear_error();
  return text ? text : "OpenSSL does not say why";
}
[[noreturn]] inline void refused(const std::string& what) {
  throw Error("weft::tls: " + what + ": " + openssl_error());
}

// A connection: its SSL object, and what has not been sent yet.
struct Session {
  const io::Stream below;
  const std::string peer;  // the name that the peer must prove; "" at a server
  SSL* const ssl;
  const std::shared_ptr<SSL_CTX> context;
  std::mutex lock;
  std::string sealed;    // records to send
  std::size_t gone = 0;  // how many bytes of `sealed` the socket has accepted
  long unsent = 0;       // the error number with which the socket has refused `sealed`
  long error = 0;        // the error number with which the socket has refused a read
  std::string failure;   // why TLS cannot read any more
  bool ended = false;    // the socket is at its end
  bool over = false;     // the peer has sent TLS's own end

  Session(io::Stream s, std::shared_ptr<SSL_CTX> c, std::string name)
      : below(std::move(s)), peer(std::move(name)), ssl(SSL_new(c.get())), context(std::move(c)) {
    BIO* const b = ssl ? BIO_new(method()) : nullptr;
    if (!b) {
      SSL_free(ssl);
      refused("a new connection");
    }
    BIO_set_data(b, this);
    SSL_set_bio(ssl, b, b);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { SSL_free(ssl); }

  Watched& watched() const { return *below.watched(); }

  // The functions below are called with the lock held.

  // Sends as much of `sealed` as the socket accepts. Returns false if some of it is left: the
  // socket is full, or has failed (`unsent`).
  bool send_sealed() noexcept {
    while (gone < sealed.size()) {
      const long n = io::detail::try_write(watched(), sealed.data() + gone, sealed.size() - gone);
      if (n < 0) {
        if (!io::detail::blocks(n)) unsent = -n;
        return false;
      }
      gone += static_cast<std::size_t>(n);
    }
    sealed.clear();
    gone = 0;
    return true;
  }
  // Informs the descriptor whether OpenSSL still holds data for a read. To find out, OpenSSL
  // decrypts a record that it has taken from the socket.
  void tell_what_is_left() noexcept {
    bool some = over || !failure.empty() || SSL_pending(ssl) > 0;
    if (!some && SSL_has_pending(ssl)) {
      char c = 0;
      some = judge(SSL_peek(ssl, &c, 1)) != Tried::would_block;
    }
    watched().keeps(some);
  }
  // Returns what the result of SSL_read, SSL_peek or SSL_do_handshake means. After a failure of TLS
  // it sets `failure`.
  Tried judge(int result) noexcept {
    if (result > 0) return Tried::over;
    switch (SSL_get_error(ssl, result)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE: return Tried::would_block;
      case SSL_ERROR_ZERO_RETURN: over = true; return Tried::over;
      default: break;
    }
    if (error == 0 && failure.empty()) {
      const long verdict = SSL_get_verify_result(ssl);
      failure = ended ? "the connection has ended without TLS's own end: something may be missing"
                      : openssl_error();
      if (!ended && verdict != X509_V_OK && !SSL_is_init_finished(ssl))
        failure += std::string(" (") + X509_verify_cert_error_string(verdict) + ")";
    }
    ERR_clear_error();
    return Tried::over;
  }
  // Throws the error of the socket or of TLS, if there is one.
  void check(const char* verb) const {
    const std::string what = std::string(verb) + (peer.empty() ? "a client" : peer);
    if (error != 0) io::detail::failed((what + ", by").c_str(), watched(), error);
    if (!failure.empty()) throw Error("weft::tls: " + what + ": " + failure);
  }

 private:
  static Session& of(BIO* b) noexcept { return *static_cast<Session*>(BIO_get_data(b)); }
  static const BIO_METHOD* method() {
    static const BIO_METHOD* const made = [] {
      BIO_METHOD* const m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weft::io");
      BIO_meth_set_create(m, [](BIO* b) { return BIO_set_init(b, 1), 1; });
      BIO_meth_set_read(m, [](BIO* b, char* into, int n) {
        Session& s = of(b);
        BIO_clear_retry_flags(b);
        const long r = io::detail::try_read(s.watched(), into, static_cast<std::size_t>(n));
        if (r > 0) return static_cast<int>(r);
        if (io::detail::blocks(r))
          BIO_set_retry_read(b);
        else if (r == 0)
          s.ended = true;
        else
          s.error = -r;
        return r == 0 ? 0 : -1;
      });
      BIO_meth_set_write(m, [](BIO* b, const char* from, int n) {
        try {
          of(b).sealed.append(from, static_cast<std::size_t>(n));
          return n;
        } catch (...) {  // there is no memory
          return -1;
        }
      });
      BIO_meth_set_ctrl(m, [](BIO* b, int what, long, void*) -> long {
        return what == BIO_CTRL_FLUSH || (what == BIO_CTRL_EOF && of(b).ended);
      });
      return m;
    }();
    return made;
  }
};

struct Read {
  static constexpr Side side = Side::in;
  static constexpr bool kByHint = true;
  static constexpr const char* kOperation = "read from a TLS connection";
  std::shared_ptr<Session> s;
  std::span<char> into;
  int n = 0;
  Watched& watched() noexcept { return s->watched(); }
  Tried attempt() noexcept {
    const std::lock_guard g(s->lock);
    if (s->error != 0 || !s->failure.empty() || s->over) return Tried::over;
    ERR_clear_error();
    n = SSL_read(s->ssl, into.data(),
                 static_cast<int>(std::min<std::size_t>(into.size(), 1 << 30)));
    const Tried tried = s->judge(n);
    // OpenSSL might have answered the peer. The next write sends what the socket does not accept
    // now.
    s->send_sealed();
    s->tell_what_is_left();
    return tried;
  }
  static std::int64_t pause_ns() noexcept { return 0; }
  std::size_t result() const {
    if (n > 0) return static_cast<std::size_t>(n);
    const std::lock_guard g(s->lock);
    if (!s->over) s->check("read from ");
    return 0;
  }
};

struct Write {
  static constexpr Side side = Side::out;
  static constexpr bool kByHint = true;
  static constexpr const char* kOperation = "write to a TLS connection";
  static constexpr std::size_t kRecord = 16384;  // the maximum number of bytes in one record
  std::shared_ptr<Session> s;
  std::string_view from;
  std::size_t* sent;  // null if the caller does not want this number
  bool ends;          // whether TLS's own end follows
  std::size_t done = 0;
  std::string failure{};
  Watched& watched() noexcept { return s->watched(); }
  Tried attempt() noexcept {
    const std::lock_guard g(s->lock);
    if (watched().closed()) s->unsent = EBADF;
    for (;;) {
      if (s->unsent != 0) return Tried::over;
      if (!s->send_sealed()) return s->unsent != 0 ? Tried::over : Tried::would_block;
      ERR_clear_error();
      if (done < from.size()) {
        const std::size_t k = std::min(kRecord, from.size() - done);
        if (SSL_write(s->ssl, from.data() + done, static_cast<int>(k)) <= 0) {
          failure = openssl_error();
          return Tried::over;
        }
        done += k;
        if (sent) *sent = done;
      } else if (ends) {
        ends = false;
        if (!(SSL_get_shutdown(s->ssl) & SSL_SENT_SHUTDOWN)) SSL_shutdown(s->ssl);
      } else {
        return Tried::over;
      }
    }
  }
  static std::int64_t pause_ns() noexcept { return 0; }
  void result() const {
    if (!failure.empty()) throw Error("weft::tls: write: " + failure);
    const std::lock_guard g(s->lock);
    if (s->unsent != 0) io::detail::failed("write to", s->watched(), s->unsent);
  }
};

struct Handshake;

}  // namespace detail

// The settings of one side of connections: the authorities that it trusts, and its certificate. A
// Context is a handle, and any number of connections may use it. Do not change a Context after a
// connection has used it.
class Context {
 public:
  // Returns a context for connect(). It trusts the authorities of the system, or those in the PEM
  // file `authorities`. Throws Error.
  static Context client();
  static Context client(const std::string& authorities);
  // Returns a context for accept(). The PEM file `chain` has the server's certificate, and then the
  // certificates that lead to its authority; the PEM file `key` has its private key. Throws Error.
  static Context server(const std::string& chain, const std::string& key);
  // A Context that was moved from can still be used, since a move copies.
  Context(const Context&) = default;
  Context& operator=(const Context&) = default;

  // Sets the client's certificate, for servers that ask for one. Throws Error.
  Context& identify(const std::string& chain, const std::string& key);
  // Makes a server refuse each client that has no certificate of these authorities. Throws Error.
  Context& require(const std::string& authorities);
  // Sets the protocols that ALPN offers, the preferred one first: {"h2", "http/1.1"}. Throws BadUse
  // if a name is empty or longer than 255 bytes.
  Context& protocols(std::initializer_list<std::string_view> names);
  // Returns OpenSSL's object, for the settings that have no function here.
  SSL_CTX* native() const noexcept { return parts_->made.get(); }
  std::shared_ptr<SSL_CTX> shared() const noexcept { return {parts_, native()}; }

 private:
  struct Parts {
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> made;
    std::string protocols{};  // in the form in which ALPN sends them
  };
  explicit Context(const SSL_METHOD* how);
  std::shared_ptr<Parts> parts_;
};

// A connection with TLS. A Stream is a handle, as io::Stream is. One process can read while another
// writes.
class Stream {
 public:
  Stream() noexcept = default;
  // Reads at least one byte and at most into.size(). Returns the number of bytes, or 0 after the
  // peer has sent TLS's own end. Throws Error (a record is broken, or the connection has ended
  // without TLS's own end), std::system_error, Cancelled, TimedOut; BadUse if `into` is empty. If
  // it throws Cancelled or TimedOut, it has read nothing.
  detail::Operation<detail::Read> read_some(std::span<char> into) const {
    return detail::Operation<detail::Read>(read(into));
  }
  // Reads what is available now, and does not wait. Call it after readable(s), which can also be
  // ready when only a part of a record has arrived. Returns nullopt if there is nothing to read
  // yet. Otherwise it returns and throws what read_some() does.
  std::optional<std::size_t> try_read_some(std::span<char> into) const {
    detail::Read r = read(into);
    if (r.attempt() == detail::Tried::would_block) return {};
    return r.result();
  }
  // Writes all of `from`, whose bytes must stay in place until the operation has ended. Throws
  // Error, std::system_error, Cancelled, TimedOut. `*sent` is always the number of bytes that are
  // sealed in records. The sealed bytes are sent with the next write at the latest.
  detail::Operation<detail::Write> write_all(std::string_view from,
                                             std::size_t* sent = nullptr) const {
    if (sent) *sent = 0;
    return detail::Operation<detail::Write>(detail::Write{session(), from, sent, false});
  }
  // Sends TLS's own end, so that the peer's read returns 0. This side can still read. Throws what
  // write_all() throws.
  detail::Operation<detail::Write> shutdown_write() const {
    return detail::Operation<detail::Write>(detail::Write{session(), {}, nullptr, true});
  }
  // Sends TLS's own end, if the socket accepts it immediately, and closes the connection.
  void close() const noexcept {
    if (!s_) return;
    detail::Write{s_, {}, nullptr, true}.attempt();
    s_->below.close();
  }
  // Returns the protocol on which both sides have agreed by ALPN, or "" if there is none.
  std::string protocol() const;
  explicit operator bool() const noexcept { return s_ && s_->below; }
  const io::Stream& below() const { return session()->below; }
  // Returns OpenSSL's object, for everything that has no function here. No process must use the
  // connection at the same time.
  SSL* native() const { return session()->ssl; }
  // Returns the socket's object, which io::readable() and io::writable() take.
  const std::shared_ptr<io::detail::Watched>& watched() const { return below().watched(); }

 private:
  friend struct detail::Handshake;
  explicit Stream(std::shared_ptr<detail::Session> s) noexcept : s_(std::move(s)) {}
  const std::shared_ptr<detail::Session>& session() const {
    if (!s_)
      weft::detail::bad_use(
          "weft::tls: this Stream has no connection: it was made by Stream(), or was moved away; "
          "take one from connect() or accept()");
    return s_;
  }
  detail::Read read(std::span<char> into) const {
    if (into.empty())
      weft::detail::bad_use(
          "weft::tls: read_some: the buffer is empty: give it at least one byte, since 0 bytes "
          "mean the end");
    return detail::Read{session(), into};
  }
  std::shared_ptr<detail::Session> s_;
};

namespace detail {

struct Handshake {
  static constexpr bool kByHint = true;
  static constexpr const char* kOperation = "a TLS handshake";
  std::shared_ptr<Session> s;
  Side side = Side::in;
  Watched& watched() noexcept { return s->watched(); }
  Tried attempt() noexcept {
    const std::lock_guard g(s->lock);
    ERR_clear_error();
    const Tried tried = s->judge(SSL_do_handshake(s->ssl));
    const bool sent = s->send_sealed();
    side = sent ? Side::in : Side::out;
    if (s->error != 0 || !s->failure.empty()) return Tried::over;
    // A client can end the connection immediately after its part of the handshake, and then the
    // server cannot send its last records. The handshake succeeds nevertheless; the next write
    // throws.
    if (s->unsent != 0) return Tried::over;
    if (!sent) return Tried::would_block;
    if (tried == Tried::over) s->tell_what_is_left();
    return tried;
  }
  static std::int64_t pause_ns() noexcept { return 0; }
  Stream result() {
    if (!SSL_is_init_finished(s->ssl) && s->error == 0 && s->failure.empty()) s->error = s->unsent;
    s->check("shake hands with ");
    return Stream(std::move(s));
  }
};

inline void use(SSL_CTX* c, const std::string& chain, const std::string& key) {
  if (SSL_CTX_use_certificate_chain_file(c, chain.c_str()) != 1)
    refused("the certificate in " + chain);
  if (SSL_CTX_use_PrivateKey_file(c, key.c_str(), SSL_FILETYPE_PEM) != 1)
    refused("the key in " + key);
  if (SSL_CTX_check_private_key(c) != 1) refused("the key in " + key);
}
inline void trust(SSL_CTX* c, const std::string& authorities) {
  if (SSL_CTX_load_verify_file(c, authorities.c_str()) != 1)
    refused("the authorities in " + authorities);
}

}  // namespace detail

inline Context::Context(const SSL_METHOD* how)
    : parts_(new Parts{{SSL_CTX_new(how), &SSL_CTX_free}}) {
  if (!native()) detail::refused("a context");
  SSL_CTX_set_min_proto_version(native(), TLS1_2_VERSION);
  SSL_CTX_set_options(native(), SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(native(), SSL_MODE_RELEASE_BUFFERS);  // a server can have many idle connections
  SSL_CTX_set_read_ahead(native(), 1);  // one read of the socket for a record, not two
}
inline Context Context::client() {
  Context c(TLS_client_method());
  SSL_CTX_set_verify(c.native(), SSL_VERIFY_PEER, nullptr);
  if (SSL_CTX_set_default_verify_paths(c.native()) != 1)
    detail::refused("the system's authorities");
  return c;
}
inline Context Context::client(const std::string& authorities) {
  Context c(TLS_client_method());
  SSL_CTX_set_verify(c.native(), SSL_VERIFY_PEER, nullptr);
  detail::trust(c.native(), authorities);
  return c;
}
inline Context Context::server(const std::string& chain, const std::string& key) {
  Context c(TLS_server_method());
  // Without this, OpenSSL refuses a client that must have a certificate and connects again.
  SSL_CTX_set_session_id_context(c.native(), reinterpret_cast<const unsigned char*>("weft"), 4);
  detail::use(c.native(), chain, key);
  return c;
}
inline Context& Context::identify(const std::string& chain, const std::string& key) {
  detail::use(native(), chain, key);
  return *this;
}
inline Context& Context::require(const std::string& authorities) {
  detail::trust(native(), authorities);
  SSL_CTX_set_verify(native(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return *this;
}
inline Context& Context::protocols(std::initializer_list<std::string_view> names) {
  std::string all;
  for (const std::string_view name : names) {
    if (name.empty() || name.size() > 255)
      weft::detail::bad_use("weft::tls: the name of a protocol has 1 to 255 bytes");
    all += static_cast<char>(name.size());
    all += name;
  }
  parts_->protocols = std::move(all);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(parts_->protocols.data());
  const auto size = static_cast<unsigned>(parts_->protocols.size());
  if (SSL_CTX_set_alpn_protos(native(), bytes, size) != 0) detail::refused("the protocols");
  // The server chooses the first protocol of its own list that the client also has.
  SSL_CTX_set_alpn_select_cb(
      native(),
      [](SSL*, const unsigned char** out, unsigned char* n, const unsigned char* theirs,
         unsigned theirs_size, void* ours) {
        const auto& all_ours = *static_cast<const std::string*>(ours);
        const int found =
            SSL_select_next_proto(const_cast<unsigned char**>(out), n,
                                  reinterpret_cast<const unsigned char*>(all_ours.data()),
                                  static_cast<unsigned>(all_ours.size()), theirs, theirs_size);
        return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
      },
      &parts_->protocols);
  return *this;
}

inline std::string Stream::protocol() const {
  const unsigned char* name = nullptr;
  unsigned n = 0;
  SSL_get0_alpn_selected(native(), &name, &n);
  return n == 0 ? std::string() : std::string(reinterpret_cast<const char*>(name), n);
}

// Does the client's handshake over `below`, and returns a Stream. The server must prove that it is
// `name`, the name of a host or an address in numbers. Throws Error (the certificate is not
// trusted, has another name or has expired; the peer does not speak TLS), std::system_error,
// Cancelled, TimedOut; BadUse if `name` is empty. If connect() throws, close the connection.
[[nodiscard]] inline detail::Operation<detail::Handshake> connect(io::Stream below,
                                                                  const Context& with,
                                                                  const std::string& name) {
  if (name.empty()) weft::detail::bad_use("weft::tls: connect: the server's name is empty");
  static_cast<void>(below.watched());  // throws BadUse if `below` has no descriptor
  auto s = std::make_shared<detail::Session>(std::move(below), with.shared(), name);
  unsigned char number[16];
  const bool numbers = inet_pton(AF_INET, name.c_str(), number) == 1 ||
                       inet_pton(AF_INET6, name.c_str(), number) == 1;
  const int taken = numbers ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(s->ssl), name.c_str())
                            : SSL_set1_host(s->ssl, name.c_str()) *
                                  static_cast<int>(SSL_set_tlsext_host_name(s->ssl, name.c_str()));
  if (taken != 1) detail::refused("the name " + name);
  SSL_set_connect_state(s->ssl);
  return detail::Operation<detail::Handshake>(detail::Handshake{std::move(s)});
}
// Does the server's handshake over `below`, and returns a Stream. Throws what connect() throws.
[[nodiscard]] inline detail::Operation<detail::Handshake> accept(io::Stream below,
                                                                 const Context& with) {
  static_cast<void>(below.watched());  // throws BadUse if `below` has no descriptor
  auto s = std::make_shared<detail::Session>(std::move(below), with.shared(), "");
  SSL_set_accept_state(s->ssl);
  return detail::Operation<detail::Handshake>(detail::Handshake{std::move(s)});
}

}  // namespace weft::inline WEFT_ABI::tls
#endif
