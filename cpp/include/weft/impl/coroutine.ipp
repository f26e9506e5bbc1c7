// The definitions of coroutine.hpp; see config.hpp.
#pragma once
#include "../coroutine.hpp"

namespace weft::inline WEFT_ABI::detail {

[[noreturn]] WEFT_IMPL void local_on_cores(const runtime::ProcessBase& p) {
  bad_use(runtime::joined(
      {"start of '", p.function ? p.function : "process",
       "' on a multi-core executor: it is given an end of a weft::Local channel, which works on "
       "one core only; make the channel weft::Shared, or run the process on a weft::Core"}));
}

WEFT_IMPL void PromiseBase::unhandled_exception() noexcept {
  std::exception_ptr& kept = *::new (static_cast<void*>(&slot)) std::exception_ptr;
  const Left l = left_by_handled();
  ending = l.how;
  dying = l.poison;
  if (ending == Ending::failed || group->keeps_end()) kept = std::current_exception();
}

}  // namespace weft::inline WEFT_ABI::detail
