// How the end of a process is watched, and reported to its watchers (rule 7.11).
#pragma once
#include "value.hpp"

namespace weft::py {

struct ProcessObject;

PyObject* process_ended(PyObject* o, PyObject*);
PyObject* how_it_ended(ProcessObject* p);  // returns an Ended
// Called when the process has been started, or is watched for the first time.
void name_watch(ProcessObject* p);
// Returns whether the failure of `p` is reported to watchers that are still alive.
bool watched_by_others(ProcessObject* p) noexcept;
// Called when the process has ended. Wakes its watchers, if there are any.
void tell_watchers(ProcessObject* p) noexcept;
void forget_watchers(ProcessObject* p) noexcept;
// Returns the run of the process whose end `e` is; null if the process has not been started.
runtime::Run* run_of_end(const core::SyncObject& e) noexcept;

}  // namespace weft::py
