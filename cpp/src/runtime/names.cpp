// The definitions of runtime/names.hpp.
#include <cstring>

#include <weft/runtime/function_info.hpp>
#include <weft/runtime/group.hpp>
#include <weft/runtime/names.hpp>
#include <weft/runtime/text.hpp>

namespace weft::inline WEFT_ABI::runtime {

std::string path_while_still(const ProcessBase& process) {
  constexpr int kPathLevels = 64;
  std::string r;
  int level = 0;
  for (const ProcessBase* p = &process; p; p = p->group ? p->group->owner() : nullptr) {
    if (++level > kPathLevels) return joined({"…/", r});
    std::string step;
    if (p->group && p->group->name) put(step, {p->group->name, "/"});
    put(step, {p->function ? p->function : "process"});
    if (p->group && p->group->started(p->function) > 1)
      put(step, {"[", std::to_string(p->index), "]"});
    if (level > 1) put(step, {"/", r});
    r.swap(step);
  }
  return r;
}

std::string path_of(const ProcessBase& process) {
  std::string r;
  const auto walk = [&] { r = path_while_still(process); };
  if (process.group)
    process.group->run.still(walk);
  else
    walk();
  return r;
}

// Returns FILE:LINE, where FILE has no directories.
inline std::string at_line(const char* file, std::uint32_t line) {
  const char* const slash = std::strrchr(file, '/');
  return joined({slash ? slash + 1 : file, ":", std::to_string(line)});
}

std::string name_of(const core::SyncObject& c) {
  const char* const name = c.name ? c.name : "?";
  return c.line == 0 ? joined({"'", name, "'"}) : at_line(name, c.line);
}

std::string where(const ProcessBase& p) {
  ProcessBase& it = const_cast<ProcessBase&>(p);  // The process is only read here.
  const FunctionInfo* const about = it.stands_in();
  return about && about->file ? at_line(about->file, it.stands_on()) : "?";
}

}  // namespace weft::inline WEFT_ABI::runtime
