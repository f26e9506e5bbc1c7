// The definitions of io/address.hpp.
#include <weft/io/address.hpp>

#if defined(__linux__)
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <charconv>
#include <cstring>

#include <weft/errors.hpp>

namespace weft::inline WEFT_ABI::io {

Address::Address(const sockaddr* a, std::size_t bytes) noexcept
    : size_(static_cast<unsigned>(bytes < kMaxBytes ? bytes : kMaxBytes)) {
  static_assert(sizeof(sockaddr_storage) <= kMaxBytes);
  if (size_ != 0) std::memcpy(bytes_, a, size_);
}

Address::Address(std::string_view text) {
  constexpr std::string_view kUnix = "unix:";
  const auto set = [this](const auto& a) {
    std::memcpy(bytes_, &a, sizeof a);
    size_ = sizeof a;
  };
  const auto bad = [text](const char* why) {
    weft::detail::bad_use("weft::io::Address: \"" + std::string(text) + "\" " + why +
                          ": write 127.0.0.1:8080, [::1]:8080 or unix:/path");
  };
  if (text.starts_with(kUnix)) {
    const std::string_view path = text.substr(kUnix.size());
    sockaddr_un u{};
    u.sun_family = AF_UNIX;
    if (path.empty()) bad("has no path");
    if (path.size() >= sizeof u.sun_path) bad("has a path of more than 107 bytes");
    if (path.find('\0') != std::string_view::npos) bad("has a zero byte in its path");
    std::memcpy(u.sun_path, path.data(), path.size());
    set(u);
    return;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) bad("has no port");
  std::uint16_t port = 0;
  const std::string_view digits = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), port);
  if (error != std::errc() || end != digits.end() || digits.empty()) bad("has no such port");
  std::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    sockaddr_in6 a{};
    a.sin6_family = AF_INET6;
    a.sin6_port = htons(port);
    host = host.substr(1, host.size() - 2);
    if (inet_pton(AF_INET6, std::string(host).c_str(), &a.sin6_addr) != 1) bad("is no address");
    set(a);
    return;
  }
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  if (inet_pton(AF_INET, std::string(host).c_str(), &a.sin_addr) != 1)
    bad("is no address in numbers");
  set(a);
}

int Address::family() const noexcept { return size_ == 0 ? AF_UNSPEC : data()->sa_family; }

int Address::port() const noexcept {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(bytes_)->sin_port);
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(bytes_)->sin6_port);
  return 0;
}

std::string Address::text() const {
  char s[INET6_ADDRSTRLEN] = "";
  switch (family()) {
    case AF_INET:
      inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(bytes_)->sin_addr, s, sizeof s);
      return std::string(s) + ":" + std::to_string(port());
    case AF_INET6:
      inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(bytes_)->sin6_addr, s, sizeof s);
      return "[" + std::string(s) + "]:" + std::to_string(port());
    case AF_UNIX: {
      const char* const path = reinterpret_cast<const sockaddr_un*>(bytes_)->sun_path;
      const std::size_t most = size_ > sizeof(sa_family_t) ? size_ - sizeof(sa_family_t) : 0;
      return "unix:" + std::string(path, strnlen(path, most));
    }
    default: return "";
  }
}

}  // namespace weft::inline WEFT_ABI::io
#endif
