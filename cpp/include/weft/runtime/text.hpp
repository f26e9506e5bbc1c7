// The texts of errors and reports, put together in one place: a chain of operator+ is compiled anew
// wherever it stands.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::runtime {

using Parts = std::initializer_list<std::string_view>;

// A string that is made, moved and ended by calls. Where texts are put together a std::string is
// inlined at each of these places, and once more on the way that an exception takes.
class Text final : public std::string {
 public:
  [[gnu::cold, gnu::noinline]] Text() noexcept {}
  [[gnu::cold, gnu::noinline]] Text(const char* s) : std::string(s) {}
  [[gnu::cold, gnu::noinline]] Text(const Text& o) : std::string(o) {}
  [[gnu::cold, gnu::noinline]] Text(Text&& o) noexcept : std::string(std::move(o)) {}
  [[gnu::cold, gnu::noinline]] ~Text() {}
  Text& operator=(const char* s) { return *this = Text(s); }
  [[gnu::cold, gnu::noinline]] Text& operator=(Text o) noexcept {
    static_cast<std::string&>(*this) = std::move(static_cast<std::string&>(o));
    return *this;
  }
};

// Adds the parts to `to`.
[[gnu::cold, gnu::noinline]] inline void put(std::string& to, Parts parts) {
  for (const std::string_view part : parts) to.append(part.data(), part.size());
}
[[gnu::cold, gnu::noinline]] inline Text joined(Parts parts) {
  Text s;
  put(s, parts);
  return s;
}
// A number as a part. No string: that would have to be ended at each of these places too.
class digits {
 public:
  [[gnu::cold, gnu::noinline]] explicit digits(std::uint64_t n) noexcept {
    do room_[--first_] = static_cast<char>('0' + n % 10);
    while ((n /= 10) != 0);
  }
  operator std::string_view() const noexcept { return {room_ + first_, sizeof room_ - first_}; }

 private:
  char room_[20];
  std::size_t first_ = sizeof room_;
};
// Names, in one text: each ends with a zero. (A vector of strings is forty functions.)
class NameList {
 public:
  [[gnu::cold, gnu::noinline]] void add(std::string_view name) {
    put(all_, {name, std::string_view("", 1)});
    ++n_;
  }
  std::size_t size() const noexcept { return n_; }
  class Iterator {
   public:
    explicit Iterator(const char* at) noexcept : at_(at) {}
    const char* operator*() const noexcept { return at_; }
    Iterator& operator++() noexcept {
      at_ += std::strlen(at_) + 1;
      return *this;
    }
    bool operator!=(const Iterator& o) const noexcept { return at_ != o.at_; }

   private:
    const char* at_;
  };
  Iterator begin() const noexcept { return Iterator(all_.data()); }
  Iterator end() const noexcept { return Iterator(all_.data() + all_.size()); }

 private:
  Text all_;
  std::size_t n_ = 0;
};

}  // namespace weft::inline WEFT_ABI::runtime
