// What reports sort and look up, in one form: numbers. Each std::map, std::set or std::sort of
// another type would be compiled anew in every file of a header-only program.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::runtime {

// An order of numbers; `x` is what it goes by (of indices: what they are indices in).
struct Order {
  bool (*before)(const void* x, std::uint32_t a, std::uint32_t b) =
      [](const void*, std::uint32_t a, std::uint32_t b) { return a < b; };
  const void* x = nullptr;
  bool operator()(std::uint32_t a, std::uint32_t b) const { return before(x, a, b); }
};
inline void sort_numbers(std::vector<std::uint32_t>& v, Order by = {}) {
  std::sort(v.begin(), v.end(), by);
}
inline void sort_unique(std::vector<std::uint32_t>& v) {
  sort_numbers(v);
  v.erase(std::unique(v.begin(), v.end()), v.end());
}
// In an ascending one.
inline bool has(const std::vector<std::uint32_t>& v, std::uint32_t n) noexcept {
  std::size_t low = 0, high = v.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (v[middle] < n)
      low = middle + 1;
    else
      high = middle;
  }
  return low < v.size() && v[low] == n;
}

// Pairs of a key and a value, several to a key: all are put in first, then sorted, then looked up.
class Pairs {
 public:
  struct Pair {
    std::uintptr_t key, value;
  };
  static std::uintptr_t number(const void* p) noexcept {
    return reinterpret_cast<std::uintptr_t>(p);
  }

  void add(std::uintptr_t key, std::uintptr_t value) { all_.push_back({key, value}); }
  void sort() {  // by key, then by value; each pair once
    std::vector<std::uint32_t> order(all_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    sort_numbers(order, {&before, &all_});
    std::vector<Pair> sorted;
    for (const std::uint32_t i : order)
      if (sorted.empty() || before(sorted.back(), all_[i])) sorted.push_back(all_[i]);
    all_.swap(sorted);
  }
  // From here on they are sorted.
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(all_.size()); }
  const Pair& operator[](std::size_t i) const noexcept { return all_[i]; }
  // The index of the first pair of that key; size(): there is none.
  std::uint32_t find(std::uintptr_t key) const noexcept {
    std::uint32_t low = 0, high = size();
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (all_[middle].key < key)
        low = middle + 1;
      else
        high = middle;
    }
    return low < size() && all_[low].key == key ? low : size();
  }
  // All pairs of that key.
  std::span<const Pair> of(std::uintptr_t key) const noexcept {
    const std::uint32_t first = find(key);
    std::uint32_t n = 0;
    while (first + n < size() && all_[first + n].key == key) ++n;
    return {all_.data() + first, n};
  }

 private:
  static bool before(const Pair& a, const Pair& b) noexcept {
    return a.key != b.key ? a.key < b.key : a.value < b.value;
  }
  static bool before(const void* x, std::uint32_t a, std::uint32_t b) {
    const auto& all = *static_cast<const std::vector<Pair>*>(x);
    return before(all[a], all[b]);
  }

  std::vector<Pair> all_;
};

}  // namespace weft::inline WEFT_ABI::runtime
