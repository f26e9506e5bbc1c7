// The definitions of runtime/names.hpp; see config.hpp.
#pragma once
#include "../runtime/function_info.hpp"
#include "../runtime/group.hpp"
#include "../runtime/names.hpp"

namespace weft::inline WEFT_ABI::runtime {

WEFT_IMPL std::string path_while_still(const ProcessBase& process) {
  constexpr int kPathLevels = 64;
  std::string r;
  int level = 0;
  for (const ProcessBase* p = &process; p; p = p->group ? p->group->owner() : nullptr) {
    if (++level > kPathLevels) return "…/" + r;
    std::string step =
        p->group && p->group->name ? std::string(p->group->name) + "/" : std::string();
    step += p->function ? p->function : "process";
    if (p->group && p->group->started(p->function) > 1)
      step.append("[").append(std::to_string(p->index)).append("]");
    if (level > 1) step.append("/").append(r);
    r = std::move(step);
  }
  return r;
}

WEFT_IMPL std::string path_of(const ProcessBase& process) {
  std::string r;
  const auto walk = [&] { r = path_while_still(process); };
  if (process.group)
    process.group->run.still(walk);
  else
    walk();
  return r;
}

WEFT_IMPL std::string name_of(const core::SyncObject& c) {
  std::string r = c.name ? c.name : "?";
  if (c.line == 0) return "'" + r + "'";
  const std::size_t slash = r.rfind('/');
  return (slash == std::string::npos ? r : r.substr(slash + 1)) + ":" + std::to_string(c.line);
}

WEFT_IMPL std::string where(const ProcessBase& p) {
  ProcessBase& it = const_cast<ProcessBase&>(p);  // of which nothing is changed
  const FunctionInfo* const about = it.stands_in();
  if (!about || !about->file) return "?";
  const std::string f = about->file;
  const std::size_t slash = f.rfind('/');
  return (slash == std::string::npos ? f : f.substr(slash + 1)) + ":" +
         std::to_string(it.stands_on());
}

}  // namespace weft::inline WEFT_ABI::runtime
