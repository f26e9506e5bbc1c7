// The names of processes and places, for errors and reports.
#pragma once
#include "../config.hpp"
#include "../core/waiter.hpp"
#include "process.hpp"
#include "text.hpp"

namespace weft::inline WEFT_ABI::runtime {

// The path of a process (rule 7.8). If it is nested deeper than 64 levels, only the nearest of
// them: "…/inner/innermost". The caller sees to it that the process stays meanwhile; those above it
// stay by themselves, unless an exception leaves their group (Group::abandon).
std::string path_of(const ProcessBase& process);
// The same, called within Run::still().
std::string path_while_still(const ProcessBase& process);
// The name of a channel or barrier in quotes, or file:line of its making.
std::string name_of(const core::SyncObject& c);
// file:line of the last operation of p.
std::string where(const ProcessBase& p);

}  // namespace weft::inline WEFT_ABI::runtime
