// Streams of bytes: connections and pipes; and the listeners that accept connections.
//
// The objects are handles: a copy refers to the same descriptor, which is closed by close(), or
// when the last copy is destroyed.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "../blocking.hpp"
#include "address.hpp"
#include "operation.hpp"

namespace weft::inline WEFT_ABI::io {

namespace detail {

// Asks the system for a read or write. Return the number of bytes moved, or minus the error number.
long try_read(Watched& w, char* into, std::size_t n) noexcept;
long try_write(Watched& w, const char* from, std::size_t n) noexcept;
// Throws std::system_error: "weft::io: read from descriptor 7: …".
[[noreturn]] void failed(const char* verb, const Watched& w, long error);
bool blocks(long result) noexcept;
// Returns the address that getsockname() or getpeername() gives. Throws std::system_error.
Address address_of(const Watched& w, int (*f)(int, sockaddr*, unsigned*));
// Returns its argument. Throws BadUse if the object with this name has none because it was moved
// from.
const std::shared_ptr<Watched>& there(const std::shared_ptr<Watched>& w, const char* object);

struct ReadSome {
  static constexpr Side side = Side::in;
  static constexpr bool kByHint = true;
  static constexpr const char* kVerb = "read from";
  static constexpr const char* kOperation = "read from a descriptor";
  std::shared_ptr<Watched> w;
  std::span<char> into;
  long n = 0;
  Watched& watched() noexcept { return *w; }
  Tried attempt() noexcept {
    n = try_read(*w, into.data(), into.size());
    return blocks(n) ? Tried::would_block : Tried::over;
  }
  static std::int64_t pause_ns() noexcept { return 0; }
  std::size_t result() const {
    if (n < 0) failed(kVerb, *w, -n);
    return static_cast<std::size_t>(n);
  }
};

// A write of at least one byte or, with All, of all bytes.
template <bool All>
struct Write {
  static constexpr Side side = Side::out;
  static constexpr bool kByHint = true;
  static constexpr const char* kVerb = "write to";
  static constexpr const char* kOperation = "write to a descriptor";
  std::shared_ptr<Watched> w;
  std::string_view from;
  std::size_t* sent;  // null if the caller does not want the number
  std::size_t done = 0;
  long error = 0;
  Watched& watched() noexcept { return *w; }
  Tried attempt() noexcept {
    while (done < from.size()) {
      const long n = try_write(*w, from.data() + done, from.size() - done);
      if (n < 0) {
        if (blocks(n)) return Tried::would_block;
        error = -n;
        return Tried::over;
      }
      done += static_cast<std::size_t>(n);
      if (sent) *sent = done;
      if constexpr (!All) break;
    }
    return Tried::over;
  }
  static std::int64_t pause_ns() noexcept { return 0; }
  std::size_t result() const {
    if (error != 0) failed(kVerb, *w, error);
    return done;
  }
};

struct ConnectWork;
struct AcceptWork;

}  // namespace detail

class Stream {
 public:
  Stream() noexcept = default;
  // Takes ownership of a descriptor: a pipe, a connection, a terminal. The descriptor is closed
  // with the Stream, and no longer blocks. Throws std::system_error if the descriptor is not open.
  static Stream adopt(int fd);
  // Returns two streams that are connected with each other (Unix sockets).
  static std::pair<Stream, Stream> pair();
  // Returns the two ends of a pipe: what is written to the second is read from the first.
  static std::pair<Stream, Stream> pipe();

  // Reads at least one byte and at most into.size(). Returns the number of bytes; 0 at the end of
  // the stream. Throws std::system_error (ECONNRESET: the peer has closed the connection; EBADF:
  // the stream was closed), Cancelled, TimedOut; BadUse if into.size() is 0, or if this is a
  // Stream(). If it throws, it has read nothing.
  detail::Operation<detail::ReadSome> read_some(std::span<char> into) const;
  // Writes all of `from`, whose bytes must stay in place until the operation has ended. Throws
  // std::system_error (EPIPE, ECONNRESET: the peer no longer reads), Cancelled, TimedOut; BadUse if
  // this is a Stream(). `*sent` is at every moment the number of bytes that the system has
  // accepted, also after an exception.
  detail::Operation<detail::Write<true>> write_all(std::string_view from,
                                                   std::size_t* sent = nullptr) const;
  // Writes at least one byte (none if `from` is empty). Returns the number of bytes. Throws what
  // write_all() throws. If it throws, it has written nothing.
  detail::Operation<detail::Write<false>> write_some(std::string_view from) const;

  // Half-closes the connection: the peer reads the end of the stream; this side can still read.
  // Throws std::system_error if the stream is not a connection.
  void shutdown_write() const;
  // Closes the stream for all copies. Operations that wait, and all later ones, fail with EBADF.
  void close() const noexcept;
  // Returns the descriptor; -1 for a Stream made by Stream().
  int fd() const noexcept { return w_ ? w_->fd() : -1; }
  explicit operator bool() const noexcept { return w_ && !w_->closed(); }
  // Return the addresses of a connection's two ends. Throw std::system_error.
  Address local() const;
  Address peer() const;

  const std::shared_ptr<detail::Watched>& watched() const;

 private:
  friend struct detail::ConnectWork;
  friend struct detail::AcceptWork;
  explicit Stream(std::shared_ptr<detail::Watched> w) noexcept : w_(std::move(w)) {}
  std::shared_ptr<detail::Watched> w_;
};

namespace detail {

struct AcceptWork {
  static constexpr Side side = Side::in;
  static constexpr bool kByHint = true;
  static constexpr const char* kVerb = "accept from";
  static constexpr const char* kOperation = "accept a connection";
  std::shared_ptr<Watched> w;
  Stream made{};
  long error = 0;
  std::int64_t pause = 0;  // in ns
  Watched& watched() noexcept { return *w; }
  Tried attempt();
  std::int64_t pause_ns() const noexcept { return pause; }
  Stream result() {
    if (error != 0) failed(kVerb, *w, error);
    return std::move(made);
  }
};

}  // namespace detail

class Listener {
 public:
  // Listens at this address. A Unix socket's file must not exist yet; the file remains when the
  // listener is closed. Throws std::system_error.
  explicit Listener(const Address& at, int backlog = 4096);
  // Accepts the next connection. While there is no descriptor or no memory for the connection
  // (EMFILE, ENFILE, ENOBUFS, ENOMEM), the operation tries again, after 10 ms to 1 s. Throws
  // std::system_error (EBADF: the listener was closed), Cancelled, TimedOut.
  detail::Operation<detail::AcceptWork> accept() const {
    return detail::Operation<detail::AcceptWork>(detail::AcceptWork{watched()});
  }
  // Returns the address at which the listener listens, with the port that the system has chosen.
  Address address() const;
  void close() const noexcept {
    if (w_) w_->close();
  }
  int fd() const noexcept { return w_ ? w_->fd() : -1; }
  const std::shared_ptr<detail::Watched>& watched() const { return detail::there(w_, "Listener"); }

 private:
  std::shared_ptr<detail::Watched> w_;
};

namespace detail {

struct ConnectWork {
  static constexpr Side side = Side::out;
  static constexpr bool kByHint = false;
  static constexpr const char* kVerb = "connect by";
  static constexpr const char* kOperation = "connect";
  std::shared_ptr<Watched> w;
  Address to;
  bool begun = false;
  long error = 0;
  std::vector<Address> others;  // addresses to try after `to`, in reverse order
  Watched& watched() noexcept { return *w; }
  Tried attempt() noexcept;
  static std::int64_t pause_ns() noexcept { return 10'000'000; }
  Stream result();

 private:
  Tried once() noexcept;
  bool next() noexcept;  // makes the next address `to`; returns false if there is none
};
ConnectWork connecting(const Address& to);
ConnectWork connecting(const std::vector<Address>& to);
std::vector<Address> looked_up(const char* name, const char* service);

}  // namespace detail

// Connects. Throws std::system_error (ECONNREFUSED, …), Cancelled, TimedOut. If it throws, it has
// closed the socket.
detail::Operation<detail::ConnectWork> connect(const Address& to);
// Connects to the first of these addresses that answers; each is tried when the one before has
// failed. Throws what connect() throws for the last address; BadUse if there is none.
detail::Operation<detail::ConnectWork> connect(std::vector<Address> to);

// Looks up a name of the network, by getaddrinfo() on a thread of its own. Returns the addresses
// at which programs listen for TCP, in the order in which the system would try them. `service` is
// a port ("8080") or the name of a service ("https"). Throws std::system_error, whose code is
// getaddrinfo()'s, in the category look_up_category(); otherwise what weft::blocking throws.
[[nodiscard]] inline auto look_up(std::string name, std::string service) {
  return blocking([name = std::move(name), service = std::move(service)] {
    return detail::looked_up(name.c_str(), service.c_str());
  });
}
const std::error_category& look_up_category() noexcept;

}  // namespace weft::inline WEFT_ABI::io
