// The definitions of look_up.hpp.
#include "sockets/look_up.hpp"

#if defined(__linux__)
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <string_view>
#include <system_error>
#include <thread>

#include "weft/runtime/affinity.hpp"

namespace weft::py {

std::pair<std::string, std::string> name_and_port(const std::string& address) {
  const auto is_letter = [](unsigned char c) { return (c | 32) - 'a' < 26u || c >= 128; };
  const auto is_digit = [](unsigned char c) { return c - '0' < 10u; };
  const std::size_t colon = address.rfind(':');
  if (colon == address.npos || address.starts_with("unix:")) return {};
  const std::string_view host = std::string_view(address).substr(0, colon);
  const std::string_view port = std::string_view(address).substr(colon + 1);
  if (std::none_of(host.begin(), host.end(), is_letter) || host.find_first_of(":[]") != host.npos)
    return {};
  if (port.empty() || port.size() > 5 || !std::all_of(port.begin(), port.end(), is_digit) ||
      std::stoi(std::string(port)) > 65535)
    return {};
  return {std::string(host), std::string(port)};
}

struct LookUp::Shared {
  std::vector<io::Address> found;
  std::exception_ptr error;
  std::atomic<bool> over{false};  // set when `found` and `error` are final
};

LookUp::LookUp(std::string name, std::string port) : shared_(std::make_shared<Shared>()) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    throw std::system_error(errno, std::generic_category(), "look up " + name);
  try {
    watched_ = io::detail::Watched::owned(ends[0], false, false);
    std::thread([shared = shared_, name = std::move(name), port = std::move(port), end = ends[1]] {
      runtime::name_this_thread("weft look-up");
      try {
        shared->found = io::detail::looked_up(name.c_str(), port.c_str());
      } catch (...) {
        shared->error = std::current_exception();
      }
      shared->over.store(true, std::memory_order_release);
      ::close(end);
    }).detach();
  } catch (...) {
    if (!watched_) ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
}

bool LookUp::is_over() const noexcept { return shared_->over.load(std::memory_order_acquire); }

std::vector<io::Address> LookUp::result() {
  if (shared_->error) std::rethrow_exception(shared_->error);
  return std::move(shared_->found);
}

}  // namespace weft::py
#endif
