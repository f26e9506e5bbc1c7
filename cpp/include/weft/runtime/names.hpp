// The names of processes and places, for errors and reports.
#pragma once
#include "../config.hpp"
#include "../core/waiter.hpp"
#include "process.hpp"
#include "text.hpp"

namespace weft::inline WEFT_ABI::runtime {

// Returns the path of a process (rule 7.8). If the process is nested deeper than 64 levels, the
// path contains only the innermost levels: "…/inner/innermost". The caller must keep the process
// alive. The processes above it then exist too, unless an exception leaves their group
// (Group::abandon).
std::string path_of(const ProcessBase& process);
// Returns the path of a process, like path_of(), for use within Run::still().
std::string path_while_still(const ProcessBase& process);
// Returns the name of a channel or barrier in quotes, or the file:line that made it.
std::string name_of(const core::SyncObject& c);
// Returns the file:line of p's last operation.
std::string where(const ProcessBase& p);

}  // namespace weft::inline WEFT_ABI::runtime
