// Tests the parts of which reports are made: pairs.hpp and text.hpp. The seeds are fixed, and a
// failure shows its seed.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "random.hpp"
#include "weft/runtime/pairs.hpp"
#include "weft/runtime/text.hpp"

namespace rt = weft::runtime;
using weft::test::Random;

TEST_CASE("pairs: sorted and each once, beside std::map of std::set") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    Random dice(seed);
    rt::Pairs pairs;
    std::map<std::uintptr_t, std::set<std::uintptr_t>> as;
    const int keys = 1 + dice.below(30);
    for (int i = dice.below(300); i > 0; --i) {
      const auto key = static_cast<std::uintptr_t>(dice.below(keys)) * 3;
      const auto value = static_cast<std::uintptr_t>(dice.below(10));
      pairs.add(key, value);
      as[key].insert(value);
    }
    pairs.sort();
    std::size_t n = 0;
    for (const auto& [key, values] : as) {
      REQUIRE(pairs[pairs.find(key)].key == key);
      REQUIRE(pairs.find(key) == n);
      const auto of = pairs.of(key);
      REQUIRE(of.size() == values.size());
      std::size_t i = 0;
      for (const std::uintptr_t value : values) REQUIRE(of[i++].value == value);
      n += values.size();
    }
    CHECK(pairs.size() == n);
    for (std::uintptr_t key : {std::uintptr_t{1}, std::uintptr_t{100}, UINTPTR_MAX}) {
      CHECK(pairs.find(key) == pairs.size());
      CHECK(pairs.of(key).empty());
    }
  }
}

TEST_CASE("texts: parts are put one behind the other, whole") {
  CHECK(rt::joined({}) == "");
  CHECK(rt::joined({"a", "", std::string_view("b\0c", 3)}) == std::string("ab\0c", 4));
  std::string s = "x";
  rt::put(s, {std::to_string(0), "/", std::to_string(UINT64_MAX)});
  CHECK(s == "x0/18446744073709551615");
}
