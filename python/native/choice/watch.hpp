// How the end of a process is watched, and who is told of it (rule 7.11).
#pragma once
#include "value.hpp"

namespace weft::py {

struct ProcessObject;

PyObject* process_ended(PyObject* o, PyObject*);
PyObject* how_it_ended(ProcessObject* p);           // an Ended
void name_watch(ProcessObject* p);                  // it has been started, or just watched
bool watched_by_others(ProcessObject* p) noexcept;  // does its failure go to watchers that live?
void tell_watchers(ProcessObject* p) noexcept;      // it is done, and somebody may watch
void forget_watchers(ProcessObject* p) noexcept;
// of the process whose end it is; null: it has not been started
runtime::Run* run_of_end(const core::SyncObject& e) noexcept;

}  // namespace weft::py
