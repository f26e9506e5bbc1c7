// The definitions of channel.hpp.
#include <mutex>
#include <string>
#include <unordered_set>

#include <weft/channel.hpp>

namespace weft::inline WEFT_ABI::detail {

const char* intern(const char* name) {
  static std::mutex m;
  static auto& names = *new std::unordered_set<std::string>;
  const std::lock_guard g(m);
  return names.emplace(name).first->c_str();
}

void one_too_many(const core::SyncObject* c, const char* end) {
  bad_use(runtime::joined({"channel ", runtime::name_of(*c), " has a ", end,
                           " end already and may have one only (rule 1.8): move that end, or make "
                           "the channel with any2any"}));
}

void not_at_home(const core::SyncObject* c, const char* what) {
  bad_use(runtime::joined(
      {what, " on local channel ", runtime::name_of(*c),
       ", at which a process of another scheduler waits: a weft::Local channel works on one "
       "scheduler only (rule 11.2); make it weft::Shared, or run both processes on one executor"}));
}

void closed_end(const char* what, const char* kind) {
  bad_use(runtime::joined(
      {what, " on a ", kind, " end that is closed (retired, moved away or never opened)"}));
}

void awaited_twice(const char* what) {
  bad_use(runtime::joined(
      {what, ": this operation was awaited already, and can be awaited only once: make another"}));
}

void no_place(const core::SyncObject* place, const char* what, const char* kind) {
  if (place == &spent_place) awaited_twice(what);
  closed_end(what, kind);
}

runtime::ThreadProcess& blocking_guest(const char* what) {
  if (runtime::this_context && runtime::this_context->executor && runtime::this_context->running)
    bad_use(runtime::joined({what, " blocks the thread: in a coroutine process use co_await"}));
  return runtime::ThreadProcess::self();
}

#if WEFT_CHECKED
runtime::ThreadProcess& checked_caller(const char* what) {
  if (runtime::ThreadProcess* const p = runtime::ThreadProcess::plain(); p && p->checked >= 0)
    return *p;
  if (runtime::this_context && runtime::this_context->executor) return blocking_guest(what);
  runtime::points->refuses(what);
  return blocking_guest(what);
}

void from_outside(const core::SyncObject& place) {
  runtime::used_from_outside = true;
  bad_use(runtime::joined(
      {"weft::check cannot check this: a thread that is not Weft's, such as a std::thread, uses ",
       runtime::name_of(place),
       ", which the checked function has made: make it a process, weft::thread(f)"}));
}
#endif

}  // namespace weft::inline WEFT_ABI::detail
