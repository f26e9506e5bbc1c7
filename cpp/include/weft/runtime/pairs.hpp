// Pairs of a key and a value; a key may have several values. All pairs are added first, then
// sorted, then looked up. Reports and the search for partial deadlocks keep their facts in such
// pairs, because these need few allocations, and nothing else runs meanwhile.
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
  void sort();  // sorts by key, then by value; removes duplicates
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(all_.size()); }
  bool empty() const noexcept { return all_.empty(); }
  const Pair& operator[](std::size_t i) const noexcept { return all_[i]; }
  // The functions below need sorted pairs. Returns all pairs of this key.
  std::span<const Pair> of(std::uintptr_t key) const noexcept;
  // Returns the index of the first pair of this key; size() if there is none.
  std::uint32_t find(std::uintptr_t key) const noexcept;

 private:
  std::vector<Pair> all_;
};

}  // namespace weft::inline WEFT_ABI::runtime
