// Addresses of sockets: of IPv4, of IPv6, and paths of Unix sockets.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "../config.hpp"

struct sockaddr;

namespace weft::inline WEFT_ABI::io {

// An address in numbers: "127.0.0.1:8080", "[::1]:8080", or a path: "unix:/run/chat". With port 0
// the system chooses a port. look_up() finds the addresses of a name.
class Address {
 public:
  // Throws BadUse if the text is not an address.
  explicit Address(std::string_view text);
  // Copies an address of `bytes` bytes, as the system returns it.
  Address(const sockaddr* a, std::size_t bytes) noexcept;
  Address() noexcept = default;

  const sockaddr* data() const noexcept { return reinterpret_cast<const sockaddr*>(bytes_); }
  unsigned size() const noexcept { return size_; }
  int family() const noexcept;
  // Returns the port; 0 if there is none.
  int port() const noexcept;
  // Returns the text of the address, in the form that the constructor takes.
  std::string text() const;

 private:
  static constexpr std::size_t kMaxBytes = 128;  // sizeof(sockaddr_storage)
  alignas(8) unsigned char bytes_[kMaxBytes] = {};
  unsigned size_ = 0;
};

}  // namespace weft::inline WEFT_ABI::io
