// The names of processes and places, for errors and reports.
#pragma once
#include "../config.hpp"
#include "../core/waiter.hpp"
#include "process.hpp"
#include "text.hpp"

namespace weft::inline WEFT_ABI::runtime {

// Rule 7.8. Of a process that is nested deeper than 64 levels, the nearest of them:
// "…/inner/innermost". The process stays meanwhile; those above it stay by themselves, unless their
// group is left by an exception (Group::abandon).
std::string path_of(const ProcessBase& process);
// The same within Run::still().
std::string path_while_still(const ProcessBase& process);
// A channel's or barrier's: its own in quotes, or file:line of its making.
std::string name_of(const core::SyncObject& c);
// file:line of its last operation.
std::string where(const ProcessBase& p);

}  // namespace weft::inline WEFT_ABI::runtime
