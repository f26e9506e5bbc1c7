// A table of the descriptors that are watched, by their numbers. The book's lock (Watched::book())
// protects the table.
#pragma once
#include <vector>

#include "watched.hpp"

namespace weft::inline WEFT_ABI::io::detail {

class Descriptors {
 public:
  static Descriptors& all() noexcept {
    static Descriptors& d = *new Descriptors;  // never destroyed: executors use it until the end
    return d;
  }

  // The value that an epoll stores for a descriptor, and by which find() finds the descriptor. For
  // an event of a closed descriptor find() finds nothing, even if another descriptor already has
  // its number.
  static std::uint64_t key(int fd, std::uint32_t number) noexcept {
    return std::uint64_t{number} << 32 | static_cast<std::uint32_t>(fd);
  }
  Watched* find(std::uint64_t key) noexcept {
    const auto fd = static_cast<std::size_t>(static_cast<std::uint32_t>(key));
    return fd < at_.size() && at_[fd].number == key >> 32 ? at_[fd].watched : nullptr;
  }

  struct Entry {
    Watched* watched = nullptr;
    std::weak_ptr<Watched> shared;
    std::uint32_t number = 0;
  };
  bool has(int fd) const noexcept { return static_cast<std::size_t>(fd) < at_.size(); }
  Entry& at(int fd) {
    if (at_.size() <= static_cast<std::size_t>(fd)) at_.resize(static_cast<std::size_t>(fd) + 1);
    return at_[static_cast<std::size_t>(fd)];
  }
  void forget(const Watched& w, int fd) noexcept {
    if (has(fd) && at(fd).watched == &w) at(fd) = {};
  }
  std::uint32_t next_number() noexcept { return ++last_ == 0 ? ++last_ : last_; }
  template <class F>
  void each(F&& f) {
    for (const Entry& e : at_)
      if (e.watched) f(*e.watched);
  }

 private:
  std::vector<Entry> at_;
  std::uint32_t last_ = 0;
};

}  // namespace weft::inline WEFT_ABI::io::detail
