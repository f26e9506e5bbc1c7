// A hash table that holds its user's own entries: only the table itself is allocated, and its code
// is the same for all kinds of entries. (Each kind of std::unordered_map would be compiled anew in
// every file of a header-only program.)
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::runtime {

// An entry: a base of what is kept.
struct Hashed {
  Hashed* next_hashed = nullptr;  // in its bucket
  std::size_t hash = 0;
};

class HashTable {
 public:
  HashTable() = default;
  HashTable(const HashTable&) = delete;
  HashTable& operator=(const HashTable&) = delete;
  ~HashTable() { delete[] buckets_; }

  // The first of a bucket, in which all entries of that hash are, and perhaps others.
  Hashed* bucket(std::size_t hash) const noexcept {
    return buckets_ ? buckets_[hash & mask_] : nullptr;
  }
  // With its hash. Where as many were before it does not throw.
  void add(Hashed& e) {
    if (!buckets_ || size_ > mask_) grow();
    ++size_;
    link(e);
  }
  void remove(Hashed& e) noexcept {
    Hashed** at = &buckets_[e.hash & mask_];
    while (*at != &e) at = &(*at)->next_hashed;
    *at = e.next_hashed;
    --size_;
  }
  // Takes all out, in a list.
  Hashed* take_all() noexcept {
    Hashed* all = nullptr;
    for (std::size_t i = 0; size_ != 0; ++i)
      while (Hashed* const e = buckets_[i]) {
        remove(*e);
        e->next_hashed = std::exchange(all, e);
      }
    return all;
  }

 private:
  void link(Hashed& e) noexcept { e.next_hashed = std::exchange(buckets_[e.hash & mask_], &e); }
  void grow() {
    const std::size_t old = buckets_ ? mask_ + 1 : 0;
    Hashed** const were = std::exchange(
        buckets_, new Hashed* [old ? old * 2 : 8] {});
    mask_ = old ? old * 2 - 1 : 7;
    for (std::size_t i = 0; i < old; ++i)
      for (Hashed* e = were[i]; e;) link(*std::exchange(e, e->next_hashed));
    delete[] were;
  }

  Hashed** buckets_ = nullptr;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
};

// Names, and a number for each.
class Names {
 public:
  struct Name : Hashed {
    const char* text;
    std::uint32_t n = 0;
  };
  Names() = default;
  ~Names() {
    for (Hashed* e = all_.take_all(); e;)
      delete static_cast<Name*>(std::exchange(e, e->next_hashed));
  }
  // Null: it has not been added.
  Name* find(std::string_view name) const noexcept {
    for (Hashed* e = all_.bucket(hash_of(name)); e; e = e->next_hashed)
      if (name == static_cast<Name*>(e)->text) return static_cast<Name*>(e);
    return nullptr;
  }
  // It is not there yet, and stays as long as this.
  Name& add(const char* name) {
    auto* const e = new Name;
    e->text = name;
    e->hash = hash_of(name);
    try {
      all_.add(*e);
    } catch (...) {
      delete e;
      throw;
    }
    return *e;
  }

 private:
  static std::size_t hash_of(std::string_view name) noexcept {
    return std::hash<std::string_view>()(name);
  }
  HashTable all_;
};

}  // namespace weft::inline WEFT_ABI::runtime
