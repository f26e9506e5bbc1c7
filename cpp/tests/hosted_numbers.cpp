// What reports and names are kept in: numbers.hpp, hashed.hpp, text.hpp, each beside the standard
// library's container of the same use. Seeds are fixed, and shown with a failure.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "random.hpp"
#include "weft/runtime/hashed.hpp"
#include "weft/runtime/numbers.hpp"
#include "weft/runtime/text.hpp"

namespace rt = weft::runtime;
using weft::test::Random;

namespace {

struct Entry : rt::Hashed {
  explicit Entry(std::size_t h) { hash = h; }
};

bool is_in(const rt::HashTable& table, const Entry& e) {
  for (const rt::Hashed* at = table.bucket(e.hash); at; at = at->next_hashed)
    if (at == &e) return true;
  return false;
}

}  // namespace

TEST_CASE("hash table: what was added and not removed is found, beside std::unordered_set") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    Random dice(seed);
    rt::HashTable table;
    std::deque<Entry> all;  // entries do not move
    std::unordered_set<Entry*> in;
    for (int step = 0; step < 400; ++step) {
      if (all.empty() || dice.below(3) != 0) {
        // few hashes: buckets with several
        all.emplace_back(static_cast<std::size_t>(dice.below(seed % 2 ? 40 : 1 << 30)));
        table.add(all.back());
        in.insert(&all.back());
      } else if (Entry& e = all[static_cast<std::size_t>(dice.below(static_cast<int>(all.size())))];
                 in.erase(&e) != 0) {
        table.remove(e);
      }
    }
    for (Entry& e : all) REQUIRE(is_in(table, e) == (in.count(&e) != 0));
    std::unordered_set<Entry*> taken;
    for (rt::Hashed* e = table.take_all(); e; e = e->next_hashed)
      REQUIRE(taken.insert(static_cast<Entry*>(e)).second);
    CHECK(taken == in);
    CHECK(table.take_all() == nullptr);
    for (Entry& e : all) REQUIRE(!is_in(table, e));
  }
}

TEST_CASE("hash table: one that is empty has no bucket, and one that was emptied is as new") {
  rt::HashTable table;
  CHECK(table.bucket(0) == nullptr);
  CHECK(table.take_all() == nullptr);
  Entry a(7), b(7);
  table.add(a);
  table.add(b);
  table.remove(a);
  CHECK(!is_in(table, a));
  CHECK(is_in(table, b));
  table.remove(b);
  CHECK(table.bucket(7) == nullptr);
  table.add(a);
  CHECK(is_in(table, a));
}

TEST_CASE("names: each is found by its text, whatever its address") {
  rt::Names names;
  CHECK(names.find("worker") == nullptr);
  std::deque<std::string> texts;
  std::map<std::string, std::uint32_t> counts;
  Random dice(20261125);
  for (int i = 0; i < 500; ++i) {
    const std::string text = "p" + std::to_string(dice.below(120));
    rt::Names::Name* name = names.find(text);
    REQUIRE((name != nullptr) == (counts.count(text) != 0));
    if (!name) {
      texts.push_back(text);
      name = &names.add(texts.back().c_str());
    }
    ++name->n;
    ++counts[text];
  }
  for (const auto& count : counts) {
    CAPTURE(count.first);
    const rt::Names::Name* const name = names.find(count.first);
    REQUIRE(name != nullptr);
    CHECK(name->n == count.second);
  }
  CHECK(names.find("p") == nullptr);
  CHECK(names.find("") == nullptr);
}

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

TEST_CASE("numbers: a list grows, shrinks, is copied and moved, beside std::vector") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    Random dice(seed);
    rt::Numbers list;
    std::vector<std::uint32_t> as;
    for (int step = 0; step < 300; ++step) {
      const auto n = static_cast<std::uint32_t>(dice.below(1 << 30));
      switch (dice.below(8)) {
        case 0: {
          const auto size = static_cast<std::size_t>(dice.below(60));
          list.resize(size);
          as.resize(size);
          break;
        }
        case 1:
          if (as.empty()) break;
          REQUIRE(list.back() == as.back());
          list.pop_back();
          as.pop_back();
          break;
        case 2: {
          rt::Numbers copy = list;
          copy.push_back(n);  // which changes nothing there
          REQUIRE(copy.size() == as.size() + 1);
          break;
        }
        case 3: {
          rt::Numbers moved = std::move(list);
          REQUIRE(list.empty());
          list = std::move(moved);
          break;
        }
        default: list.push_back(n); as.push_back(n);
      }
      REQUIRE(list.empty() == as.empty());
      REQUIRE(std::vector<std::uint32_t>(list.begin(), list.end()) == as);
    }
    list.clear();
    CHECK(list.empty());
  }
}

TEST_CASE("numbers: sorted by whatever order is given, unique, and found") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    Random dice(seed);
    rt::Numbers v(static_cast<std::size_t>(dice.below(60)));
    for (auto& n : v) n = static_cast<std::uint32_t>(dice.below(80));
    const std::set<std::uint32_t> as(v.begin(), v.end());
    rt::Numbers down = v;
    rt::sort_numbers(
        down, {[](const void*, std::uint32_t a, std::uint32_t b) { return a > b; }, nullptr});
    CHECK(std::is_sorted(std::make_reverse_iterator(down.end()),
                         std::make_reverse_iterator(down.begin())));
    rt::sort_unique(v);
    CHECK(std::vector<std::uint32_t>(v.begin(), v.end()) ==
          std::vector<std::uint32_t>(as.begin(), as.end()));
    for (std::uint32_t n = 0; n < 82; ++n) REQUIRE(rt::has(v, n) == (as.count(n) != 0));
  }
}

TEST_CASE("texts: parts are put one behind the other, whole") {
  CHECK(rt::joined({}) == "");
  CHECK(rt::joined({"a", "", std::string_view("b\0c", 3)}) == std::string("ab\0c", 4));
  std::string s = "x";
  rt::put(s, {rt::digits(0), "/", rt::digits(UINT64_MAX)});
  CHECK(s == "x0/18446744073709551615");
}
