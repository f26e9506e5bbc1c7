// What reports sort and look up, in one form: numbers. Each std::map, std::set, std::sort or vector
// of another type would be compiled anew in every file of a header-only program.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
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
// By a heap: half of the code of std::sort, and it needs no <algorithm>.
[[gnu::cold, gnu::noinline]] inline void sort_numbers(std::vector<std::uint32_t>& v,
                                                      Order by = {}) {
  std::size_t top = v.size() / 2, end = v.size();
  while (end > 1) {
    if (top > 0)  // the heap is not whole yet
      --top;
    else
      std::swap(v[0], v[--end]);
    for (std::size_t at = top, below = 2 * at + 1; below < end; at = below, below = 2 * at + 1) {
      if (below + 1 < end && by(v[below], v[below + 1])) ++below;
      if (!by(v[at], v[below])) break;
      std::swap(v[at], v[below]);
    }
  }
}
[[gnu::cold, gnu::noinline]] inline void sort_unique(std::vector<std::uint32_t>& v) {
  sort_numbers(v);
  std::size_t n = 0;
  for (const std::uint32_t x : v)
    if (n == 0 || v[n - 1] != x) v[n++] = x;
  v.resize(n);
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

  [[gnu::cold, gnu::noinline]] void add(std::uintptr_t key, std::uintptr_t value) {
    all_.push_back({key, value});
  }
  [[gnu::cold, gnu::noinline]] void sort() {  // by key, then by value; each pair once
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
  [[gnu::cold, gnu::noinline]] std::uint32_t find(std::uintptr_t key) const noexcept {
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
  [[gnu::cold, gnu::noinline]] std::span<const Pair> of(std::uintptr_t key) const noexcept {
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
