// The smallest knot of a graph, in linear time.
//
// A knot is a strongly connected component that no edge leaves: every process in it waits, directly
// or through others, for exactly those in it. Source: Tarjan, "Depth-first search and linear graph
// algorithms" (1972). The search has a stack of its own, since a ring of processes may be longer
// than a thread's stack.
#pragma once
#include <cstdint>

#include "pairs.hpp"

namespace weft::inline WEFT_ABI::runtime {

// Finds the smallest knot. `to` contains pairs of a node and a node to which an edge leads, sorted;
// there are `n` nodes. Only nodes below `counted` count for a knot's size. Among knots of one size,
// the knot with the lowest node is chosen. A knot contains neither the node `out` nor any node that
// leads to it. Returns the knot's counted nodes in ascending order.
Numbers smallest_knot(const Pairs& to, std::uint32_t n, std::uint32_t counted, std::uint32_t out);

}  // namespace weft::inline WEFT_ABI::runtime
