// The smallest knot of a graph, in linear time.
//
// A knot is a strongly connected component that no edge leaves: everybody in it waits, directly or
// through others, for exactly those in it. Source: Tarjan, "Depth-first search and linear graph
// algorithms" (1972), with a stack of its own: rings are longer than a thread's.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::runtime {

// The one way in which the report sorts and searches numbers: each kind of order would be compiled
// anew.
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

// `to[n]`: where the edges of node n lead. Nodes below `counted` count for a knot's size; among
// knots of one size the one with the lowest node is taken. `out`: a node that is in no knot, nor
// what leads to it. Returns the knot's counted nodes, ascending.
inline std::vector<std::uint32_t> smallest_knot(const std::vector<std::vector<std::uint32_t>>& to,
                                                std::uint32_t counted, std::uint32_t out) {
  struct Frame {
    std::uint32_t node;
    std::uint32_t edge;
  };
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  const auto n = static_cast<std::uint32_t>(to.size());
  std::vector<std::uint32_t> number(n, kNone), low(n), stack, best, members;
  std::vector<std::uint8_t> open(n, 0), leaves(n, 0);  // on the stack; an edge leaves its component
  std::vector<Frame> frames;
  std::uint32_t next = 0;
  for (std::uint32_t root = 0; root < counted; ++root) {
    if (number[root] != kNone) continue;
    frames.push_back({root, 0});
    while (!frames.empty()) {
      const std::uint32_t v = frames.back().node;
      if (frames.back().edge == 0) {
        number[v] = low[v] = next++;
        stack.push_back(v);
        open[v] = 1;
        leaves[v] = v == out;
      }
      if (frames.back().edge < to[v].size()) {
        const std::uint32_t w = to[v][frames.back().edge++];
        if (number[w] == kNone)
          frames.push_back({w, 0});
        else if (open[w])
          low[v] = std::min(low[v], number[w]);
        else
          leaves[v] = 1;
        continue;
      }
      frames.pop_back();
      bool whole = false;
      if (low[v] == number[v]) {
        members.clear();
        bool knot = true;
        for (std::uint32_t w = kNone; w != v;) {
          w = stack.back();
          stack.pop_back();
          open[w] = 0;
          knot = knot && !leaves[w];
          if (w < counted) members.push_back(w);
        }
        whole = true;
        if (knot) {
          sort_numbers(members);
          if (best.empty() || members.size() < best.size() ||
              (members.size() == best.size() && members[0] < best[0]))
            best = members;
        }
      }
      if (!frames.empty()) {
        const std::uint32_t parent = frames.back().node;
        if (whole)
          leaves[parent] = 1;
        else
          low[parent] = std::min(low[parent], low[v]);
      }
    }
  }
  return best;
}

}  // namespace weft::inline WEFT_ABI::runtime
