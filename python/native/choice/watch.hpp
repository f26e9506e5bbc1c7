// How the end of a process is watched, and who is told of it (rule 7.11).
#pragma once
#include "value.hpp"

namespace weft::py {

struct ProcessObject;

PyObject* process_ended(PyObject* o, PyObject*);
PyObject* how_it_ended(ProcessObject* p);  // returns an Ended
// The process has been started, or is watched for the first time.
void name_watch(ProcessObject* p);
bool watched_by_others(ProcessObject* p) noexcept;  // does its failure go to watchers that live?
void tell_watchers(ProcessObject* p) noexcept;      // the process is done, and may have watchers
void forget_watchers(ProcessObject* p) noexcept;
// The run of the process whose end `e` is; null: the process has not been started.
runtime::Run* run_of_end(const core::SyncObject& e) noexcept;

}  // namespace weft::py
