// Numbers is a hash table that maps each key to a number. A key is an address or a uid. clear()
// forgets all keys in one step, because a record is cleared before each run of a check, some
// 100,000 times a second.
//
// Invariants
//  1 A slot is in use if its generation is that of the table. Otherwise it is free.
//  2 At least half of the slots are free, so each search ends. A key that was erased keeps its
//    slot, with the number kNone.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace weft::checking {

inline constexpr int kNone = -1;

class Numbers {
 public:
  void clear() noexcept {
    used_ = 0;
    if (++generation_ != 0) return;
    generation_ = 1;
    for (Slot& s : slots_) s.generation = 0;
  }
  // Returns the number of this key, or kNone.
  int of(std::uint64_t key) const noexcept {
    const Slot& s = slots_[at(key)];
    return s.generation == generation_ ? s.number : kNone;
  }
  void put(std::uint64_t key, int number) {
    Slot* s = &slots_[at(key)];
    if (s->generation != generation_) {
      if (2 * ++used_ > slots_.size()) {
        grow();
        s = &slots_[at(key)];
      }
      *s = {key, generation_, kNone};
    }
    s->number = number;
  }
  void erase(std::uint64_t key) noexcept {
    Slot& s = slots_[at(key)];
    if (s.generation == generation_) s.number = kNone;
  }

  int of(const void* key) const noexcept { return of(reinterpret_cast<std::uintptr_t>(key)); }
  void put(const void* key, int n) { put(reinterpret_cast<std::uintptr_t>(key), n); }
  void erase(const void* key) noexcept { erase(reinterpret_cast<std::uintptr_t>(key)); }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t generation = 0;
    int number = kNone;
  };

  // Returns the index of the slot in which the key is, or would be put.
  std::size_t at(std::uint64_t key) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ull) >> 32) & mask;
    while (slots_[i].generation == generation_ && slots_[i].key != key) i = (i + 1) & mask;
    return i;
  }
  void grow() {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (const Slot& s : old)
      if (s.generation == generation_) slots_[at(s.key)] = s;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(64);
  std::uint32_t generation_ = 1;
  std::size_t used_ = 0;  // how many slots are in use
};

}  // namespace weft::checking
