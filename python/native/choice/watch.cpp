// The end of a process as a guard (rule 7.11). The guard's place is a latch of the core, to which a
// choice commits as to any other guard.
//
//   not watched (no Watch) ──ended() │ watched()──► watched ──the process ends: tell_watchers()──► set, for good
#include "choice/watch.hpp"

#include "choice/guard.hpp"
#include "declare.hpp"
#include "interpreter/error_types.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/pending.hpp"
#include "keywords.hpp"
#include "processes/no_result.hpp"
#include "processes/process_type.hpp"
#include "processes/rare.hpp"
#include "weft/runtime/report.hpp"

namespace weft::py {

namespace {

Watch& watch_of(ProcessObject* p) {
  if (Watch* w = p->watch()) return *w;
  if (!p->rare) p->rare = new Rare;
  p->rare->watch.reset(new Watch);
  Watch& w = *p->rare->watch;
  w.process = p;
  name_watch(p);
  if (p->done) w.latch.set();
  return w;
}

PyObject* f_watched(PyObject*, PyObject* o) {
  run_deferred();
  if (!Py_IS_TYPE(o, &ProcessType)) return no_process(o, ", given to watched,");
  if (proc(o)->started) return bad_use("watched(%R): it was started already: say so before", o);
  watch_of(proc(o)).watched = true;
  return Py_NewRef(o);
}

PyMethodDef watch_functions[] = {
    {"watched", method(gated<with_keyword<"watched", "process", f_watched>>), kKeywords,
     "Returns the process. From now on its failure goes to the processes that watch it by ended(), "
     "and not to its group (rule 7.11).\n\n"
     "The result in a Parallel of a process that fails in this way is a NoResult (rule 7.1). If no "
     "watcher is alive when it fails, its group fails (rule 7.2).\n\n"
     "Raises:\n"
     "    BadUse: `process` is not a process, or was started already."},
    {}};

}  // namespace

PyObject* process_ended(PyObject* o, PyObject*) {
  run_deferred();
  ProcessObject* p = proc(o);
  ProcessObject* me = process_object(this_process());
  if (me == p) return bad_use("ended() of the process itself: it would wait for ever");
  Watch& w = watch_of(p);
  if (!me) {
    w.beyond = true;
  } else if (!p->done && std::none_of(w.watchers.begin(), w.watchers.end(),
                                      [me](const auto& one) { return one == me; })) {
    w.watchers.push_back(new_ref(me));
  }
  return end_guard(p);
}

void name_watch(ProcessObject* p) {
  Watch& w = *p->watch();
  w.name = "the end of " + (p->started && !p->done
                                ? runtime::path_of(base_of(p))
                                : std::string(p->base.function ? p->base.function : "?"));
  w.latch.name = w.name.c_str();
  w.latch.last_writer = p->started ? std::uint32_t(p->base.id) : 0;
}

bool watched_by_others(ProcessObject* p) noexcept {
  const Watch* const w = p->watch();
  if (!w || !w->watched) return false;
  return w->beyond || std::any_of(w->watchers.begin(), w->watchers.end(),
                                  [](const auto& one) { return !one->done; });
}

void tell_watchers(ProcessObject* p) noexcept {
  p->watch()->latch.set();
  forget_watchers(p);
}

void forget_watchers(ProcessObject* p) noexcept {
  Watch* const watch = p->watch();
  if (!watch) return;
  const std::vector<Owned<ProcessObject>> gone(std::move(watch->watchers));
}

PyObject* how_it_ended(ProcessObject* p) {
  return PyObject_CallFunction(errors.Ended, "sOO", name_of(p->how),
                               p->how == Ending::returned ? p->outcome : Py_None,
                               p->failed ? p->outcome : Py_None);
}

runtime::Run* run_of_end(const core::SyncObject& e) noexcept {
  const auto& latch = static_cast<const core::LatchEngine<Shared>&>(e);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
  const auto* w = reinterpret_cast<const Watch*>(reinterpret_cast<const char*>(&latch) -
                                                 offsetof(Watch, latch));
#pragma GCC diagnostic pop
  ProcessObject* const p = w->process;
  runtime::Group* const g = p->started && !p->done ? base_of(p).group : nullptr;
  return g ? &g->run : nullptr;
}

int init_watch(PyObject* m) { return PyModule_AddFunctions(m, watch_functions); }

}  // namespace weft::py
