// Pairs of a key and a value, several to a key: all are put in first, then sorted, then looked up.
// Reports and partial deadlock keep their facts in these: few allocations, while nothing runs.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::runtime {

using Numbers = std::vector<std::uint32_t>;

void sort_unique(Numbers& v);

class Pairs {
 public:
  struct Pair {
    std::uintptr_t key, value;
    auto operator<=>(const Pair&) const = default;
  };
  static std::uintptr_t number(const void* p) noexcept {
    return reinterpret_cast<std::uintptr_t>(p);
  }

  void add(std::uintptr_t key, std::uintptr_t value) { all_.push_back({key, value}); }
  void sort();  // by key, then by value; each pair once
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(all_.size()); }
  bool empty() const noexcept { return all_.empty(); }
  const Pair& operator[](std::size_t i) const noexcept { return all_[i]; }
  // From here on they are sorted. All pairs of that key:
  std::span<const Pair> of(std::uintptr_t key) const noexcept;
  // The index of the first of them; size(): there is none.
  std::uint32_t find(std::uintptr_t key) const noexcept;

 private:
  std::vector<Pair> all_;
};

}  // namespace weft::inline WEFT_ABI::runtime
