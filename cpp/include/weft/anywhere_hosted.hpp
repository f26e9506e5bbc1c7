// The placement of a placeable source (anywhere.hpp) in a C++ program. Its processes are coroutines
// of the hosted library. This header adds only what the hosted library does not have.
#pragma once
#include "placing.hpp"
#include "weft.hpp"

namespace weft::inline WEFT_ABI {

namespace detail {

template <class T, class P>
struct WriteOrEndAwaiter : WriteAwaiter<T, P> {
  using WriteAwaiter<T, P>::WriteAwaiter;
  Status await_resume() {
    const Status s = this->p->status;
    if (is_end(s)) return s;
    WriteAwaiter<T, P>::await_resume();
    return Status::ok;
  }
};

template <class T, class P>
struct [[nodiscard("nothing is written until it is awaited: co_await")]] WriteOrEndOp {
  core::SyncObject* place;
  T value;
  std::uint32_t line;
  WriteOrEndAwaiter<T, P> bind(runtime::ProcessBase * p)&& {
    return {p, place, std::move(value), line};
  }
};

}  // namespace detail

// Returns an operation for co_await, which writes the value and waits as write() does. Its result
// is ok, or says how the channel has ended: retired, poisoned, died or in_doubt. Throws Cancelled,
// BadUse.
template <class T, class P>
auto write_or_end(const Writer<T, P>& w, std::type_identity_t<T> v,
                  std::uint32_t line = __builtin_LINE()) {
  return detail::WriteOrEndOp<T, P>{w.checked("write"), std::move(v), line};
}

namespace placing {

using Declared = Undeclared;
using Parameter = Unread;
}  // namespace placing
}  // namespace weft::inline WEFT_ABI

#define WEFT_PLACING_DECLARE(F)
