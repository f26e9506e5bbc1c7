// The definitions of descriptors.hpp.
#include "choice/descriptors.hpp"

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <optional>
#include <system_error>

#include "channels/fork.hpp"
#include "checking/points.hpp"
#include "interpreter/errors.hpp"
#include "processes/loops.hpp"
#include "processes/run.hpp"
#include "weft/io.hpp"

namespace weft::py {

#if defined(__linux__)

void Descriptors::add(core::Guard& g, int fd, bool writes) {
  using io::detail::Side;
  all_.push_back(io::detail::Watched::of(fd));
  g.kind = core::Kind::descriptor;
  g.ops = &io::detail::ready_ops;
  g.where = &all_.back()->side(writes ? Side::out : Side::in);
  g.node.slot = nullptr;  // the engine keeps a pointer there while the guard waits
}

int Descriptors::check(const char* verb) {
  // In the child of a fork the engines are new, and know nothing of the waits that the child has
  // copied from its parent.
  static std::optional<std::uint32_t> first;  // the generation of the first wait
  constexpr const char* in_a_loop =
      "this process runs in a loop of asyncio, which waits for descriptors by itself: use the "
      "operations of that loop, or run the process by run()";
  runtime::Run* const run = current_run();
  const char* why = nullptr;
  if (checking)
    why = "weft check cannot say when a descriptor is ready: give the process a channel instead";
  else if (in_task())
    why = in_a_loop;
  else if (run && run->clock() == runtime::Clock::virtual_time)
    why =
        "with virtual time nothing says when a descriptor is ready: run without virtual_time, or "
        "give the process a channel instead";
  else if (first && *first != generation)
    why =
        "this OS process is the child of a fork, and its parent has waited for descriptors: start "
        "it by subprocess, or by the method \"spawn\" of multiprocessing";
  if (!why) {
    try {
      runtime::ProcessBase* const p = runtime::this_process();
      io::detail::Engine::here(p ? *p : runtime::ThreadProcess::self());
      first = generation;
      return 0;
    } catch (const std::system_error& e) {
      errno = e.code().value();
      PyErr_SetFromErrno(PyExc_OSError);
      return -1;
    } catch (const weft::BadUse&) {
      why = in_a_loop;
    }
  }
  bad_use("%s: %s", verb, why);
  return -1;
}

#else

void Descriptors::add(core::Guard&, int, bool) { all_.emplace_back(); }

int Descriptors::check(const char* verb) {
  bad_use("%s: readable() and writable() work only on Linux", verb);
  return -1;
}

#endif

}  // namespace weft::py
