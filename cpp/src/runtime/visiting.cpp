// The definitions of runtime/visiting.hpp.
#include <weft/runtime/visiting.hpp>

namespace weft::inline WEFT_ABI::runtime {

void visit_guard(const core::Guard& g, WaitVisitor& v) {
  switch (g.kind) {
    case core::Kind::input:
    case core::Kind::output: v.channel(*g.where, g.kind == core::Kind::output); break;
    case core::Kind::barrier: v.barrier(*g.where); break;
    case core::Kind::latch: v.end(*g.where); break;
    case core::Kind::descriptor: v.timed(); break;
    case core::Kind::timer:
      if (g.deadline == prim::forever) v.nowhere();
      break;
    case core::Kind::skip: break;
  }
}
void visit_guards(core::Guard* g, std::uint32_t n, WaitVisitor& v) {
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!g[i].enabled) continue;
    if (g[i].has_ended())
      v.ended(*g[i].where, i);
    else
      visit_guard(g[i], v);
  }
}

}  // namespace weft::inline WEFT_ABI::runtime
