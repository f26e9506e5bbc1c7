// Counts the data that the peers of a space have sent and that has not been taken yet: values of
// which a part is still missing, and operations that wait (WIRE.md 14.5). A peer on another machine
// decides how much such data there is, so the data is counted and limited.
//
//   Untaken u; u.add(all, bytes)        the bytes count in `all` as long as u lives
#pragma once
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::wire::detail {

class Untaken {
 public:
  using Count = std::atomic<std::size_t>;

  Untaken() = default;
  Untaken(Untaken&& o) noexcept
      : all_(std::exchange(o.all_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  Untaken& operator=(Untaken&& o) noexcept {
    std::swap(all_, o.all_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~Untaken() {
    if (all_) all_->fetch_sub(bytes_, std::memory_order_relaxed);
  }
  void add(Count& all, std::size_t bytes) noexcept {
    all_ = &all;
    bytes_ += bytes;
    all.fetch_add(bytes, std::memory_order_relaxed);
  }
  std::size_t bytes() const noexcept { return bytes_; }

  // Returns the limit in bytes for all peers together: a quarter of the machine's memory, but at
  // least 1.25 GiB, which is somewhat more than the size of one of the longest values.
  static std::size_t most() noexcept {
    constexpr std::size_t kLeast = std::size_t{5} << 28;
#if defined(_SC_PHYS_PAGES)
    static const std::size_t quarter = [] {
      const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
      return pages > 0 && size > 0
                 ? static_cast<std::size_t>(pages) / 4 * static_cast<std::size_t>(size)
                 : 0;
    }();
    return std::max(kLeast, quarter);
#else
    return kLeast;
#endif
  }

 private:
  Count* all_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace weft::inline WEFT_ABI::wire::detail
