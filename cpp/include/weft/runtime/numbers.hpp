// What reports sort and look up, in one form: numbers. Each std::map, std::set, std::sort or
// std::vector would be compiled anew in every file of a header-only program: a vector is some fifty
// functions for each type of element.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "../config.hpp"
#include "../row.hpp"

namespace weft::inline WEFT_ABI::runtime {

// A list of what is copied by its bytes, as far as it is the same for all kinds of elements.
class Elements {
 public:
  std::uint32_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  void clear() noexcept { size_ = 0; }
  void pop_back() noexcept { --size_; }

 protected:
  Elements() = default;
  // With room for n, of so many bytes each.
  [[gnu::cold, gnu::noinline]] Elements(const void* from, std::size_t n, std::size_t bytes) {
    if (n > 0) std::memcpy(more(n, bytes), from, n * bytes);
  }
  Elements(Elements&& o) noexcept
      : at_(std::exchange(o.at_, nullptr)),
        size_(std::exchange(o.size_, 0)),
        room_(std::exchange(o.room_, 0)) {}
  [[gnu::cold, gnu::noinline]] ~Elements() { ::operator delete(at_); }
  void swap(Elements& o) noexcept {
    std::swap(at_, o.at_);
    std::swap(size_, o.size_);
    std::swap(room_, o.room_);
  }
  // A place at the end for n more.
  [[gnu::noinline]] void* more(std::size_t n, std::size_t bytes) {
    if (room_ - size_ < n) {
      const std::size_t room =
          size_ + n > 2 * std::size_t{room_} ? size_ + n : 2 * std::size_t{room_};
      void* const to = ::operator new(room* bytes);
      if (size_ > 0) std::memcpy(to, at_, size_ * bytes);
      ::operator delete(at_);
      at_ = to;
      room_ = static_cast<std::uint32_t>(room);
    }
    void* const place = static_cast<char*>(at_) + size_ * bytes;
    size_ += static_cast<std::uint32_t>(n);
    return place;
  }
  void* at_ = nullptr;
  std::uint32_t size_ = 0, room_ = 0;
};

class Numbers : public Elements {
 public:
  using Number = std::uint32_t;
  Numbers() = default;
  explicit Numbers(std::size_t n) { resize(n); }
  Numbers(const Numbers& o) : Elements(o.at_, o.size_, sizeof(Number)) {}
  Numbers(Numbers&&) = default;
  Numbers& operator=(Numbers o) noexcept {
    swap(o);
    return *this;
  }
  void swap(Numbers& o) noexcept { Elements::swap(o); }

  Number* begin() const noexcept { return static_cast<Number*>(at_); }
  Number* end() const noexcept { return begin() + size_; }
  Number& operator[](std::size_t i) const noexcept { return begin()[i]; }
  Number& back() const noexcept { return begin()[size_ - 1]; }
  void push_back(std::uintptr_t n) {
    *static_cast<Number*>(more(1, sizeof(Number))) = static_cast<Number>(n);
  }
  // New ones are 0.
  [[gnu::cold, gnu::noinline]] void resize(std::size_t n) {
    if (n > size_) {
      const std::size_t fresh = n - size_;
      std::memset(more(fresh, sizeof(Number)), 0, fresh * sizeof(Number));
    }
    size_ = static_cast<std::uint32_t>(n);
  }
};

// An order of numbers; `x` is what it goes by (of indices: what they are indices in).
struct Order {
  bool (*before)(const void* x, std::uint32_t a, std::uint32_t b) =
      [](const void*, std::uint32_t a, std::uint32_t b) { return a < b; };
  const void* x = nullptr;
  bool operator()(std::uint32_t a, std::uint32_t b) const { return before(x, a, b); }
};
// By a heap: half of the code of std::sort, and it needs no <algorithm>.
[[gnu::cold, gnu::noinline]] inline void sort_numbers(Numbers& v, Order by = {}) {
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
[[gnu::cold, gnu::noinline]] inline void sort_unique(Numbers& v) {
  sort_numbers(v);
  std::size_t n = 0;
  for (const std::uint32_t x : v)
    if (n == 0 || v[n - 1] != x) v[n++] = x;
  v.resize(n);
}
// In an ascending one.
inline bool has(const Numbers& v, std::uint32_t n) noexcept {
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
class Pairs : public Elements {
 public:
  struct Pair {
    std::uintptr_t key, value;
  };
  Pairs() = default;
  Pairs(Pairs&&) = default;
  static std::uintptr_t number(const void* p) noexcept {
    return reinterpret_cast<std::uintptr_t>(p);
  }

  [[gnu::cold, gnu::noinline]] void add(std::uintptr_t key, std::uintptr_t value) {
    *static_cast<Pair*>(more(1, sizeof(Pair))) = {key, value};
  }
  [[gnu::cold, gnu::noinline]] void sort() {  // by key, then by value; each pair once
    Numbers order(size_);
    for (std::uint32_t i = 0; i < size_; ++i) order[i] = i;
    sort_numbers(order, {&before, this});
    Pairs sorted;
    for (const std::uint32_t i : order)
      if (sorted.empty() || before(sorted[sorted.size_ - 1], (*this)[i]))
        sorted.add((*this)[i].key, (*this)[i].value);
    swap(sorted);
  }
  // From here on they are sorted.
  const Pair& operator[](std::size_t i) const noexcept { return data()[i]; }
  // The index of the first pair of that key; size(): there is none.
  [[gnu::cold, gnu::noinline]] std::uint32_t find(std::uintptr_t key) const noexcept {
    std::uint32_t low = 0, high = size();
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (data()[middle].key < key)
        low = middle + 1;
      else
        high = middle;
    }
    return low < size() && data()[low].key == key ? low : size();
  }
  // All pairs of that key.
  [[gnu::cold, gnu::noinline]] Row<const Pair> of(std::uintptr_t key) const noexcept {
    const std::uint32_t first = find(key);
    std::uint32_t n = 0;
    while (first + n < size() && data()[first + n].key == key) ++n;
    return {data() + first, n};
  }

 private:
  static bool before(const Pair& a, const Pair& b) noexcept {
    return a.key != b.key ? a.key < b.key : a.value < b.value;
  }
  static bool before(const void* x, std::uint32_t a, std::uint32_t b) {
    const auto& all = *static_cast<const Pairs*>(x);
    return before(all[a], all[b]);
  }
  const Pair* data() const noexcept { return static_cast<const Pair*>(at_); }
};

}  // namespace weft::inline WEFT_ABI::runtime
