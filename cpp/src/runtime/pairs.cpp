// The definitions of runtime/pairs.hpp.
#include <algorithm>

#include <weft/runtime/pairs.hpp>

namespace weft::inline WEFT_ABI::runtime {

void sort_unique(Numbers& v) {
  std::ranges::sort(v);
  v.erase(std::unique(v.begin(), v.end()), v.end());
}

void Pairs::sort() {
  std::ranges::sort(all_);
  all_.erase(std::unique(all_.begin(), all_.end()), all_.end());
}

std::span<const Pairs::Pair> Pairs::of(std::uintptr_t key) const noexcept {
  const auto first = std::ranges::lower_bound(all_, key, {}, &Pair::key);
  const auto last = std::ranges::upper_bound(first, all_.end(), key, {}, &Pair::key);
  return {first, last};
}

std::uint32_t Pairs::find(std::uintptr_t key) const noexcept {
  const std::span<const Pair> those = of(key);
  return those.empty() ? size() : static_cast<std::uint32_t>(those.data() - all_.data());
}

}  // namespace weft::inline WEFT_ABI::runtime
