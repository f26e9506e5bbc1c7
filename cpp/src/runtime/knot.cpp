// The definitions of runtime/knot.hpp.
#include <algorithm>

#include <weft/runtime/knot.hpp>

namespace weft::inline WEFT_ABI::runtime {

Numbers smallest_knot(const Pairs& to, std::uint32_t n, std::uint32_t counted, std::uint32_t out) {
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Node {
    std::uint32_t number = kNone, low = 0;
    // The next edge, as an index of `to`; kNone if the node has not been entered yet.
    std::uint32_t edge = kNone;
    bool open = false;    // whether the node is on the stack
    bool leaves = false;  // whether an edge leaves the node's component
  };
  std::vector<Node> nodes(n);
  Numbers stack, path, best, members;  // path contains the nodes from the root to the current node
  std::uint32_t next = 0;
  for (std::uint32_t root = 0; root < counted; ++root) {
    if (nodes[root].number != kNone) continue;
    path.push_back(root);
    while (!path.empty()) {
      const std::uint32_t at = path.back();
      Node& v = nodes[at];
      if (v.edge == kNone) {
        v.edge = to.find(at);
        v.number = v.low = next++;
        stack.push_back(at);
        v.open = true;
        v.leaves = at == out;
      }
      if (v.edge < to.size() && to[v.edge].key == at) {
        const auto far = static_cast<std::uint32_t>(to[v.edge++].value);
        const Node& w = nodes[far];
        if (w.number == kNone)
          path.push_back(far);
        else if (!w.open)
          v.leaves = true;
        else if (w.number < v.low)
          v.low = w.number;
        continue;
      }
      path.pop_back();
      const bool whole = v.low == v.number;
      if (whole) {
        members.clear();
        bool knot = true;
        for (std::uint32_t w = kNone; w != at;) {
          w = stack.back();
          stack.pop_back();
          nodes[w].open = false;
          knot = knot && !nodes[w].leaves;
          if (w < counted) members.push_back(w);
        }
        if (knot) {
          std::ranges::sort(members);
          if (best.empty() || members.size() < best.size() ||
              (members.size() == best.size() && members[0] < best[0]))
            best.swap(members);
        }
      }
      if (!path.empty()) {
        Node& parent = nodes[path.back()];
        if (whole)
          parent.leaves = true;
        else if (v.low < parent.low)
          parent.low = v.low;
      }
    }
  }
  return best;
}

}  // namespace weft::inline WEFT_ABI::runtime
