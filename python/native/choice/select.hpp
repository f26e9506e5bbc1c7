// Shared by select.cpp and alternative.cpp.
#pragma once
#include "choice/choice.hpp"

namespace weft::py {

struct AlternativeObject {
  PyObject_HEAD Choice* choice;  // null if the alternative is closed
  bool busy;                     // whether a process waits in a select over this alternative
};

extern PyTypeObject AlternativeType;

enum class Purpose : std::uint8_t { select, sleep, tick, end, reads, writes };

// Returns an awaitable for a choice that the awaitable owns, or for an alternative's choice.
PyObject* new_select(Choice* owned, AlternativeObject* alternative, Purpose purpose);
PyObject* blocking_select(Choice& c, Purpose purpose, bool remember);
// Performs a select as the caller waits: returns an awaitable, or blocks.
PyObject* select_here(Choice* owned, Purpose purpose);
// Returns the operation of sleep, or of a timer's tick.
PyObject* timed_operation(GuardKind kind, std::int64_t ns, TimerObject* timer);
// Returns the operation that waits for the end of a process.
PyObject* end_operation(PyObject* guard);
// Returns the operation that waits until a descriptor is ready to be read, or to be written.
PyObject* ready_operation(PyObject* guard, bool writes);

}  // namespace weft::py
