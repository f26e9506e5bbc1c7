// Datagrams: UDP over IPv4 or IPv6.
#pragma once
#include "stream.hpp"

namespace weft::inline WEFT_ABI::io {

struct Received {
  std::size_t size;  // in bytes; bytes that did not fit are lost
  Address from;
};

namespace detail {

struct ReceiveWork {
  static constexpr Side side = Side::in;
  static constexpr bool kByHint = true;
  static constexpr const char* kVerb = "read from";
  static constexpr const char* kOperation = "read from a descriptor";
  std::shared_ptr<Watched> w;
  std::span<char> into;
  Address from{};
  long n = 0;
  Watched& watched() noexcept { return *w; }
  Tried attempt() noexcept;
  static std::int64_t pause_ns() noexcept { return 0; }
  Received result() const {
    if (n < 0) failed(kVerb, *w, -n);
    return {static_cast<std::size_t>(n), from};
  }
};
struct SendWork {
  static constexpr Side side = Side::out;
  static constexpr bool kByHint = true;
  static constexpr const char* kVerb = "write to";
  static constexpr const char* kOperation = "write to a descriptor";
  std::shared_ptr<Watched> w;
  std::string_view data;
  Address to;
  long n = 0;
  Watched& watched() noexcept { return *w; }
  Tried attempt() noexcept;
  static std::int64_t pause_ns() noexcept { return 0; }
  void result() const {
    if (n < 0) failed(kVerb, *w, -n);
  }
};

}  // namespace detail

class Datagrams {
 public:
  // Opens a socket that receives at this address (IPv4 or IPv6). Throws std::system_error.
  explicit Datagrams(const Address& at);
  // Receives one datagram. Throws std::system_error, Cancelled, TimedOut. If it throws, it has
  // received no datagram.
  detail::Operation<detail::ReceiveWork> receive(std::span<char> into) const {
    return detail::Operation<detail::ReceiveWork>(detail::ReceiveWork{watched(), into});
  }
  // Sends one datagram. Throws std::system_error, Cancelled, TimedOut. If it throws, it has sent no
  // datagram.
  detail::Operation<detail::SendWork> send(std::string_view data, const Address& to) const {
    return detail::Operation<detail::SendWork>(detail::SendWork{watched(), data, to});
  }
  // Returns the address at which the object receives, with the port that the system has chosen.
  Address address() const;
  void close() const noexcept {
    if (w_) w_->close();
  }
  int fd() const noexcept { return w_ ? w_->fd() : -1; }
  const std::shared_ptr<detail::Watched>& watched() const { return detail::there(w_, "Datagrams"); }

 private:
  std::shared_ptr<detail::Watched> w_;
};

}  // namespace weft::inline WEFT_ABI::io
