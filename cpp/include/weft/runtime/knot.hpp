// The smallest knot of a graph, in linear time.
//
// A knot is a strongly connected component that no edge leaves: everybody in it waits, directly or
// through others, for exactly those in it. Source: Tarjan, "Depth-first search and linear graph
// algorithms" (1972), with a stack of its own: rings are longer than a thread's.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "numbers.hpp"

namespace weft::inline WEFT_ABI::runtime {

// `to[n]`: where the edges of node n lead. Nodes below `counted` count for a knot's size; among
// knots of one size the one with the lowest node is taken. `out`: a node that is in no knot, nor
// what leads to it. Returns the knot's counted nodes, ascending.
inline std::vector<std::uint32_t> smallest_knot(const std::vector<std::vector<std::uint32_t>>& to,
                                                std::uint32_t counted, std::uint32_t out) {
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  const auto n = static_cast<std::uint32_t>(to.size());
  std::vector<std::uint32_t> number(n, kNone), low(n), stack, best, members;
  std::vector<std::uint32_t> open(n), leaves(n);  // on the stack; an edge leaves its component
  std::vector<std::uint32_t> path, edge(n);       // from the root; the next edge of each node
  std::uint32_t next = 0;
  for (std::uint32_t root = 0; root < counted; ++root) {
    if (number[root] != kNone) continue;
    path.push_back(root);
    while (!path.empty()) {
      const std::uint32_t v = path.back();
      if (edge[v] == 0) {
        number[v] = low[v] = next++;
        stack.push_back(v);
        open[v] = 1;
        leaves[v] = v == out;
      }
      if (edge[v] < to[v].size()) {
        const std::uint32_t w = to[v][edge[v]++];
        if (number[w] == kNone)
          path.push_back(w);
        else if (open[w])
          low[v] = std::min(low[v], number[w]);
        else
          leaves[v] = 1;
        continue;
      }
      path.pop_back();
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
      if (!path.empty()) {
        const std::uint32_t parent = path.back();
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
