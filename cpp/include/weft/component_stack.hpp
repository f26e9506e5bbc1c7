// Remembers where an exception of a component was thrown. Used in debug builds only (`weft build
// --debug`, weft_add_component in Debug), which define WEFT_COMPONENT_STACKS and use the linker's
// --wrap=__cxa_throw.
//
//   throw ──__wrap___cxa_throw: keeps the addresses on the stack──► the runtime's own
//         ──caught: thrown_at()──► text for weft.native
//
// An exception that the standard library throws from its own library is not recorded, so it has no
// stack.
//
// Invariant: the stack that is kept belongs to the last exception that this thread threw, and is
// used only for that exception.
#pragma once
#include <exception>
#include <string>

#ifdef WEFT_COMPONENT_STACKS
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdio>
#include <cstring>
#include <typeinfo>

namespace weft::native::detail {

struct Thrown {
  void* exception = nullptr;
  int count = 0;
  void* frames[64];
};
inline thread_local Thrown thrown;

}  // namespace weft::native::detail

extern "C" {
[[noreturn]] void __real___cxa_throw(void* exception, std::type_info* type, void (*destroy)(void*));
[[noreturn, gnu::weak, gnu::visibility("hidden")]] void __wrap___cxa_throw(void* exception,
                                                                           std::type_info* type,
                                                                           void (*destroy)(void*)) {
  weft::native::detail::Thrown& t = weft::native::detail::thrown;
  t.exception = exception;
  t.count = ::backtrace(t.frames, 64);
  __real___cxa_throw(exception, type, destroy);
}
}
#endif

namespace weft::native::detail {

// Returns the stack of the exception that is being handled: a line for each frame, innermost first,
// with the file of a library, a space, and the address in it in hex.
inline std::string thrown_at() {
  std::string text;
#ifdef WEFT_COMPONENT_STACKS
  const std::exception_ptr now = std::current_exception();
  void* exception = nullptr;
  // In libstdc++ an exception_ptr is nothing but the pointer to the exception.
  std::memcpy(&exception, &now, sizeof exception);
  if (exception != thrown.exception) return text;
  for (int i = 1; i < thrown.count; ++i) {  // The first frame is that of the wrapper.
    Dl_info info;
    if (!::dladdr(thrown.frames[i], &info) || !info.dli_fname) continue;
    char line[32];
    std::snprintf(line, sizeof line, " %zx\n",
                  static_cast<std::size_t>(static_cast<char*>(thrown.frames[i]) -
                                           static_cast<char*>(info.dli_fbase)));
    text.append(info.dli_fname).append(line);
  }
#endif
  return text;
}

}  // namespace weft::native::detail
