// The definitions of here.hpp.
#include <cstring>
#include <mutex>

#include <weft/here.hpp>
#include <weft/runtime/function_info.hpp>

namespace weft::inline WEFT_ABI::detail {

// Returns false for the headers of libstdc++ and libc++, which are in directories …/c++/VERSION/.
bool of_the_program(const char* file) noexcept {
  if (!file) return false;
  if (file == program_file.load(std::memory_order_relaxed)) return true;
  for (const char* at = file; (at = std::strstr(at, "/c++/")); at += 5)
    if ((at[5] >= '0' && at[5] <= '9') || std::strncmp(at + 5, "v1/", 3) == 0) return false;
  program_file.store(file, std::memory_order_relaxed);
  return true;
}

void name_made(core::SyncObject& made, Here at, const char* unnamed) noexcept {
  const bool ours = of_the_program(at.file);
  made.name = ours ? at.file : unnamed;
  made.line = ours ? at.line : 0;
}

void name_used(core::SyncObject& used, Here at) noexcept {
  if (!of_the_program(at.file)) return;
  static constinit std::mutex one_at_a_time;
  const std::lock_guard g(one_at_a_time);
  if (used.name != kUnnamed) return;
  // A report that is made at this moment shows the old name or the new one.
  prim::store_to(used.line, at.line, std::memory_order_relaxed);
  prim::store_to(used.name, at.file, std::memory_order_release);
}

void waits_at(runtime::ThreadProcess& self, Here at) noexcept {
  if (of_the_program(at.file)) self.stands_at(runtime::in_file(nullptr, at.file), at.line);
}

}  // namespace weft::inline WEFT_ABI::detail
