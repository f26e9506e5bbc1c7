// The definitions of coroutine.hpp.
#include <weft/coroutine.hpp>

namespace weft::inline WEFT_ABI::detail {

void local_on_cores(const runtime::ProcessBase& p) {
  bad_use(runtime::joined(
      {"start of '", p.function ? p.function : "process",
       "' on a multi-core executor: it is given an end of a weft::Local channel, which works on "
       "one core only; make the channel weft::Shared, or run the process on a weft::Core"}));
}

void PromiseBase::remember_those(runtime::FunctionInfos& known, runtime::HeldAt* at,
                                 std::size_t n) {
  const char* const frame = static_cast<const char*>(handle().address());
  const runtime::LastFrame last = runtime::last_frame;
  // Either the frame is not on the heap, or the copying of an argument has made another frame.
  if (last.begin != frame) return;
  const std::ptrdiff_t begin =
      frame - reinterpret_cast<const char*>(static_cast<runtime::ProcessBase*>(this));
  const std::ptrdiff_t end = begin + static_cast<std::ptrdiff_t>(last.size);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (at[i].offset >= begin && at[i].offset < end) at[kept++] = at[i];
  if (kept > 0) about = runtime::layout(known, at, kept);
}

void PromiseBase::wrong_frame(const char* function, const char* file, std::uint32_t line) {
  bad_use(
      runtime::joined({"'", function, "' at ", file, ":", std::to_string(line), WEFT_WRONG_FRAME}));
}

void PromiseBase::gave_nothing() noexcept {
  try {
    bad_use(runtime::joined({"a ProcessOf gives its result by co_return; after ",
                             runtime::where(*this), " it came to its end without one"}));
  } catch (...) {
    unhandled_exception();
  }
}

void PromiseBase::unhandled_exception() noexcept {
  std::exception_ptr& kept = *::new (static_cast<void*>(&slot)) std::exception_ptr;
  kept = caught(*this);
  const Left l = left_by_handled();
  ending = l.how;
  dying = l.poison;
  if (ending != Ending::failed && !group->keeps_end()) kept = nullptr;
}

}  // namespace weft::inline WEFT_ABI::detail
