// Arrays of numbers that pass between Python and C++ without a copy (rule 16.6). An Array may wrap
// an object of Python (a numpy array, an array.array, or another object with the buffer protocol or
// DLPack), which Python lends until the Array is destroyed. Or it is memory that C++ has allocated,
// and that Python receives as a memoryview.
//
//   Array<double>            one dimension; an array of any shape from Python, in memory order
//   Array<double, 2>         two dimensions, in C's order: a(i, j), a[i] is a row, a.extent(0)
//   Array<const double>      also takes an array from Python that is not writable
//
// Invariant: a block has one owner: an Array is moved, never copied, and once it is written to a
// channel it belongs to the reader.
#pragma once
#include <algorithm>
#include <array>

#include "component_values.hpp"

namespace weft::native {

// A view, in N dimensions, of numbers that belong to another object. It resembles std::mdspan,
// which C++20 lacks. v[i] is a view of one dimension less; in the last dimension v[i] is the
// number.
template <class T, std::size_t N>
class View {
 public:
  View(T* data, const std::size_t* extents) noexcept : data_(data) {
    std::copy_n(extents, N, extents_.begin());
  }
  std::size_t extent(std::size_t i) const noexcept { return extents_[i]; }
  std::size_t size() const noexcept {
    std::size_t n = 1;
    for (std::size_t e : extents_) n *= e;
    return n;
  }
  T* data() const noexcept { return data_; }
  T* begin() const noexcept { return data_; }
  T* end() const noexcept { return data_ + size(); }
  decltype(auto) operator[](std::size_t i) const noexcept {
    if constexpr (N == 1) {
      return (data_[i]);
    } else {
      std::size_t step = 1;
      for (std::size_t k = 1; k < N; ++k) step *= extents_[k];
      return View<T, N - 1>(data_ + i * step, extents_.data() + 1);
    }
  }
  template <class... I>
    requires(sizeof...(I) == N)
  T& operator()(I... i) const noexcept {
    std::size_t at = 0, k = 0;
    ((at = at * extents_[k++] + static_cast<std::size_t>(i)), ...);
    return data_[at];
  }

 private:
  T* data_;
  std::array<std::size_t, N> extents_;
};

template <class T, std::size_t N = 1>
class Array {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<std::remove_const_t<T>, bool> &&
                    sizeof(T) <= 8,
                "an array has numbers of at most 64 bits");
  static_assert(N >= 1 && N <= 6, "an array has one to six dimensions");

 public:
  using value_type = T;
  Array() = default;
  // Makes an array of zeros with these extents. Throws std::bad_alloc.
  template <class... I>
    requires(sizeof...(I) == N && (std::is_integral_v<I> && ...) && !std::is_const_v<T>)
  explicit Array(I... extents) {
    std::size_t count = 1;
    ((count *= static_cast<std::size_t>(extents)), ...);
    void* const block = detail::running.api->allocate(sizeof(weft_array) + count * sizeof(T));
    if (!block) throw std::bad_alloc();
    value_ = {count, block};
    char* const data = static_cast<char*>(block) + sizeof(weft_array);
    std::memset(data, 0, count * sizeof(T));
    *static_cast<weft_array*>(block) = {{data, count * sizeof(T)},
                                        {static_cast<std::uint64_t>(extents)...}};
  }
  explicit Array(weft_value taken_over) noexcept : value_(taken_over) {}
  Array(Array&& x) noexcept : value_(std::exchange(x.value_, {})) {}
  // A writable array may be used as a read-only one.
  Array(Array<std::remove_const_t<T>, N>&& x) noexcept requires std::is_const_v<T>
      : value_(x.give()) {}
  Array& operator=(Array&& x) noexcept {
    std::swap(value_, x.value_);
    return *this;
  }
  ~Array() {
    if (value_.block) detail::running.api->release(value_.block);
  }

  std::size_t size() const noexcept { return static_cast<std::size_t>(value_.bits); }
  std::size_t extent(std::size_t i) const noexcept {
    if constexpr (N == 1) return size();
    return value_.block
               ? static_cast<std::size_t>(static_cast<const weft_array*>(value_.block)->extents[i])
               : 0;
  }
  T* data() const noexcept {
    return value_.block ? static_cast<T*>(static_cast<weft_array*>(value_.block)->buffer.data)
                        : nullptr;
  }
  T* begin() const noexcept { return data(); }
  T* end() const noexcept { return data() + size(); }
  // Returns a view that is valid until the Array is moved or destroyed.
  View<T, N> view() const noexcept {
    std::size_t extents[N];
    for (std::size_t i = 0; i < N; ++i) extents[i] = extent(i);
    return View<T, N>(data(), extents);
  }
  decltype(auto) operator[](std::size_t i) const noexcept {
    if constexpr (N == 1)
      return (data()[i]);
    else
      return view()[i];
  }
  template <class... I>
    requires(sizeof...(I) == N)
  T& operator()(I... i) const noexcept { return view()(i...); }
  weft_value give() noexcept { return std::exchange(value_, {}); }

 private:
  weft_value value_{};
};

namespace detail {

template <class T, std::size_t N>
inline constexpr bool kArray<Array<T, N>> = true;
template <class T, std::size_t N>
inline constexpr bool kParts<Array<T, N>> = true;
template <class T, std::size_t N>
struct Codec<Array<T, N>> {
  static constexpr bool kInline = false;
  static constexpr char kCode = std::is_floating_point_v<T> ? (sizeof(T) == 4 ? 'f' : 'd')
                                : std::is_signed_v<T>       ? " bh i   q"[sizeof(T)]
                                                            : " BH I   Q"[sizeof(T)];
  static std::string name() {
    std::string s = std::is_const_v<T> ? "ar" : "a";
    if (N > 1) s += static_cast<char>('0' + N);
    return s + kCode;
  }
  // A value that contains arrays is written by a reference that is not const (Writer::write(T&&),
  // output(writer, value)), so this function can move the array out of it.
  static weft_value leave(const Array<T, N>& v) noexcept {
    return const_cast<Array<T, N>&>(v).give();
  }
  static void put(Out& to, const Array<T, N>& v) {
    Block b(leave(v));
    to.part(b.value);
    b.value.block = nullptr;
  }
  static Array<T, N> get(In& from) { return Array<T, N>(from.part()); }
};

}  // namespace detail

}  // namespace weft::native
