// The definitions of guards.hpp.
#include <weft/guards.hpp>
#include <weft/runtime/text.hpp>

namespace weft::inline WEFT_ABI::detail {

void raise_fault(const core::Guard* guards, const core::Fault& f, const char* verb) {
  if (f.what == core::Fault::no_guard) bad_use("select needs at least one guard");
  if (f.what == core::Fault::none_on) none_holds();
  const std::string both = runtime::joined(
      {verb, ": guards ", std::to_string(f.a), " and ", std::to_string(f.b), " are "});
  if (f.what == core::Fault::barrier_twice)
    bad_use(runtime::joined(
        {both, "the same barrier: a process is one party; give each barrier once"}));
  bad_use(runtime::joined({both, "both ends of channel ", runtime::name_of(*guards[f.a].where),
                           ": a process cannot talk to itself; give one end to another process"}));
}

void moved_end(const char* verb) {
  bad_use(runtime::joined({verb,
                           ": a guard is the end of a process, from a Watch that was moved away: "
                           "use the one to which it was moved"}));
}

void used_elsewhere() {
  bad_use(
      "select: another process is in this select: an alternative, or the operation that select() "
      "gives, is used by one process at a time; each makes its own");
}

void nobody_enrolled(const char* verb, std::uint32_t guard) {
  bad_use(runtime::joined({verb, ": nobody is enrolled at the barrier of guard ",
                           std::to_string(guard), ": make it with parties, or enrol() first"}));
}

}  // namespace weft::inline WEFT_ABI::detail
