// The definitions of runtime/function_info.hpp; see config.hpp.
#pragma once
#include <algorithm>
#include <new>

#include "../runtime/function_info.hpp"

namespace weft::inline WEFT_ABI::runtime {

WEFT_IMPL const FunctionInfo* enlist(FunctionInfos& first, FunctionInfo* a) {
  a->next = first.load(std::memory_order_relaxed);
  while (!first.compare_exchange_weak(a->next, a, std::memory_order_acq_rel,
                                      std::memory_order_relaxed))
    ;
  return a;
}

WEFT_IMPL const FunctionInfo* layout(FunctionInfos& first, const HeldAt* at, std::size_t n) {
  for (const FunctionInfo* a = first.load(std::memory_order_acquire); a; a = a->next)
    if (std::equal(a->held.begin(), a->held.end(), at, at + n)) return a;
  auto* const kept = new HeldAt[n];
  std::copy(at, at + n, kept);
  auto* a = new FunctionInfo;
  a->held = {kept, n};
  return enlist(first, a);
}

[[gnu::noinline]] WEFT_IMPL const FunctionInfo* first_in_file(const FunctionInfo& a,
                                                              const char* file) noexcept {
  for (const FunctionInfo* f = a.in_files.load(std::memory_order_acquire); f; f = f->next)
    if (f->file == file) return f;
  auto* const f = new (std::nothrow) FunctionInfo;
  if (!f) return &a;
  f->file = file;
  f->held = a.held;
  return enlist(a.in_files, f);
}

}  // namespace weft::inline WEFT_ABI::runtime
