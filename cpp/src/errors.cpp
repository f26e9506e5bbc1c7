// The definitions of errors.hpp.
#include <cstdio>
#include <cstdlib>

#include <weft/count.hpp>
#include <weft/errors.hpp>

namespace weft::inline WEFT_ABI {

std::string Failures::describe(const std::vector<std::exception_ptr>& e) {
  std::string s = runtime::joined({std::to_string(e.size()), " processes failed"});
  for (const auto& x : e) {
    try {
      std::rethrow_exception(x);
    } catch (const std::exception& y) {
      runtime::put(s, {"; ", y.what()});
    } catch (...) {
      runtime::put(s, {"; an exception of another type"});
    }
  }
  return s;
}

namespace detail {

std::string who() {
  const runtime::ProcessBase* p = runtime::this_process();
  return p ? runtime::joined({runtime::path_of(*p), ": "}) : std::string();
}

Left left_by_handled() noexcept {
  if (handled<Cancelled>()) return {Ending::cancelled};
  if (const Retired* e = handled<Retired>()) return left_by(*e);
  try {
    throw;
  } catch (const Cancelled&) {
    return {Ending::cancelled};
  } catch (const Retired& e) {
    return left_by(e);
  } catch (const Poisoned& e) {
    return left_by(e);
  } catch (...) {
    return {Ending::failed};
  }
}

std::exception_ptr caught(const runtime::ProcessBase& p) noexcept {
  if (std::exception_ptr e = std::current_exception()) return e;
  thread_needed(p);
}

void thread_needed(const runtime::ProcessBase& p) noexcept {
  const std::string path = runtime::path_of(p);
  std::fprintf(stderr,
               "weft: %s: pthread_exit() or pthread_cancel() here would end a thread that other "
               "processes need; in a process with a thread of its own it ends that process\n",
               path.c_str());
  std::abort();
}

void raise_again(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const Poisoned& p) {
    p.under_way();
    throw;
  }
}

template <class E>
[[noreturn]] static void throw_with(E e, Error::Carried&& not_done) {
  e.carry(std::move(not_done));
  throw e;
}

void throw_cancelled(runtime::ProcessBase& p, Error::Carried not_done) {
  if (const runtime::Limit* const by = runtime::Limit::take(p))
    throw_with(TimedOut(by), std::move(not_done));
  throw_with(Cancelled(), std::move(not_done));
}

void throw_end(Status s, const core::SyncObject& c, std::uint8_t strength, const char* verb,
               int guard, Error::Carried not_done, bool met) {
  const auto that = [&](const char* what) __attribute__((noinline, cold)) {
    return runtime::joined({who(), verb, " on channel ", runtime::name_of(c), ": ", what});
  };
  if (s == Status::poisoned)
    throw_with(Poisoned(that("it was poisoned"), guard, strength, met), std::move(not_done));
  if (s == Status::died || s == Status::in_doubt) {
    PeerDied e(that(s == Status::died ? "its holder died"
                                      : "its holder died; the value may have been taken"),
               guard, met);
    e.in_doubt = s == Status::in_doubt;
    throw_with(std::move(e), std::move(not_done));
  }
  if (s == Status::cancelled) {
    if (runtime::ProcessBase* p = runtime::this_process()) throw_cancelled(*p, std::move(not_done));
    throw_with(Cancelled(), std::move(not_done));
  }
  throw_with(Retired(that("it has retired"), guard, met), std::move(not_done));
}

void bad_use(std::string_view what) { throw BadUse(runtime::joined({who(), what})); }

void out_of_range(const char* what, std::int64_t given, std::int64_t least, std::int64_t most) {
  const auto size = [](std::int64_t n) {
    return n < 0 ? 0 - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
  };
  bad_use(runtime::joined({what, " must be from ", std::to_string(size(least)), " to ",
                           std::to_string(size(most)), ", not ", given < 0 ? "-" : "",
                           std::to_string(size(given))}));
}
void not_a_time() { bad_use("a time that is not a number (nan): it would never come"); }

void started_twice() {
  bad_use("a process that was started already (or moved away) cannot be started");
}

}  // namespace detail
}  // namespace weft::inline WEFT_ABI
