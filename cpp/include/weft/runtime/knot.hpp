// The smallest knot of a graph, in linear time.
//
// A knot is a strongly connected component that no edge leaves: everybody in it waits, directly or
// through others, for exactly those in it. Source: Tarjan, "Depth-first search and linear graph
// algorithms" (1972), with a stack of its own: rings are longer than a thread's.
#pragma once
#include <cstdint>

#include "pairs.hpp"

namespace weft::inline WEFT_ABI::runtime {

// `to`: pairs of a node and a node to which an edge leads, sorted; there are `n` nodes. Those below
// `counted` count for a knot's size; among knots of one size the one with the lowest node is taken.
// `out`: a node that is in no knot, nor what leads to it. Returns the knot's counted nodes,
// ascending.
Numbers smallest_knot(const Pairs& to, std::uint32_t n, std::uint32_t counted, std::uint32_t out);

}  // namespace weft::inline WEFT_ABI::runtime
