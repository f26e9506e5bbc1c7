// Finds the places of a choice's guards, for a report.
#pragma once
#include "../core/guard.hpp"
#include "process.hpp"

namespace weft::inline WEFT_ABI::runtime {

// These functions visit the place of one guard, or the places of all guards that take part.
void visit_guard(const core::Guard& g, WaitVisitor& v);
void visit_guards(core::Guard* g, std::uint32_t n, WaitVisitor& v);

}  // namespace weft::inline WEFT_ABI::runtime
