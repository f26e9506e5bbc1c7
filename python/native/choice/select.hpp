// What a select (select.cpp) and an Alternative (alternative.cpp) know of each other.
#pragma once
#include "choice/choice.hpp"

namespace weft::py {

struct AlternativeObject {
  PyObject_HEAD Choice* choice;  // null: closed
  bool busy;                     // a process waits on it
};

extern PyTypeObject AlternativeType;

enum class Purpose : std::uint8_t { select, sleep, tick, end };

// An awaitable: of a choice that it owns, or of an alternative.
PyObject* new_select(Choice* owned, AlternativeObject* alternative, Purpose purpose);
PyObject* blocking_select(Choice& c, Purpose purpose, bool remember);
// The one or the other, as who calls it waits.
PyObject* select_here(Choice* owned, Purpose purpose);
// sleep; tick of a timer
PyObject* timed_operation(GuardKind kind, std::int64_t ns, TimerObject* timer);
// waiting for a process's end
PyObject* end_operation(PyObject* guard);

}  // namespace weft::py
