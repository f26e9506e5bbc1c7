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
      {what, ": this operation was awaited already, and what it had is gone: make another"}));
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

}  // namespace weft::inline WEFT_ABI::detail
