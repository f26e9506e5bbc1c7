// Objects with a count of references: an object is deleted with the last Keeper that refers to it.
// A Keeper takes one word in each process; a std::shared_ptr would take two.
#pragma once
#include <cstdint>
#include <utility>

#include <atomic>
#include "../config.hpp"

namespace weft::inline WEFT_ABI::runtime {

// The base of such an object, which is made by new.
struct Kept {
  void (*const end)(Kept*) noexcept;  // deletes the object
  std::atomic<std::uint32_t> users{0};
};

class Keeper {
 public:
  constexpr Keeper() noexcept = default;
  explicit Keeper(Kept* k) noexcept : it_(k) { use(); }
  Keeper(const Keeper& o) noexcept : it_(o.it_) { use(); }
  Keeper(Keeper&& o) noexcept : it_(std::exchange(o.it_, nullptr)) {}
  Keeper& operator=(Keeper o) noexcept {
    std::swap(it_, o.it_);
    return *this;
  }
  ~Keeper() {
    if (it_) drop();
  }
  Kept* get() const noexcept { return it_; }

 private:
  void use() const noexcept {
    if (it_) it_->users.fetch_add(1, std::memory_order_relaxed);
  }
  [[gnu::noinline, gnu::cold]] void drop() noexcept {
    if (it_->users.fetch_sub(1, std::memory_order_acq_rel) == 1) it_->end(it_);
  }
  Kept* it_ = nullptr;
};

template <class T>
struct KeptValue final : Kept {
  T value;
  template <class U>
  explicit KeptValue(U&& v)
      : Kept{[](Kept* k) noexcept { delete static_cast<KeptValue*>(k); }},
        value(std::forward<U>(v)) {}
};

// Counts how many exist of a Poisoned exception and its copies.
struct Spreading final : Kept {
  std::atomic<std::uint32_t> exceptions{0};
  Spreading() noexcept : Kept{[](Kept* k) noexcept { delete static_cast<Spreading*>(k); }} {}
};

}  // namespace weft::inline WEFT_ABI::runtime
