// The definitions of runtime/function_info.hpp.
#include <new>

#include <weft/runtime/function_info.hpp>

namespace weft::inline WEFT_ABI::runtime {

const FunctionInfo* enlist(FunctionInfos& first, FunctionInfo* a) {
  a->next = first.load(std::memory_order_relaxed);
  while (!first.compare_exchange_weak(a->next, a, std::memory_order_acq_rel,
                                      std::memory_order_relaxed))
    ;
  return a;
}

static bool same(std::span<const HeldAt> held, const HeldAt* at, std::size_t n) noexcept {
  bool all = held.size() == n;
  for (std::size_t i = 0; i < n && all; ++i) all = held[i] == at[i];
  return all;
}

const FunctionInfo* layout(FunctionInfos& first, const HeldAt* at, std::size_t n) {
  for (const FunctionInfo* a = first.load(std::memory_order_acquire); a; a = a->next)
    if (same(a->held, at, n)) return a;
  auto* const kept = new HeldAt[n];
  for (std::size_t i = 0; i < n; ++i) kept[i] = at[i];
  auto* a = new FunctionInfo;
  a->held = {kept, n};
  return enlist(first, a);
}

const FunctionInfo* first_in_file(const FunctionInfo& a, const char* file) noexcept {
  for (const FunctionInfo* f = a.in_files.load(std::memory_order_acquire); f; f = f->next)
    if (f->file == file) return f;
  auto* const f = new (std::nothrow) FunctionInfo;
  if (!f) return &a;
  f->file = file;
  f->held = a.held;
  return enlist(a.in_files, f);
}

}  // namespace weft::inline WEFT_ABI::runtime
