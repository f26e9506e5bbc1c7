// The objects that Python code sees as a guard and as a timer.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstddef>
#include <cstdint>

namespace weft::py {

struct ProcessObject;

enum class GuardKind : std::uint8_t {
  input,
  output,
  after,
  at,
  skip,
  barrier,
  timer,
  end,
  readable,
  writable
};
inline constexpr std::size_t kGuardKinds = static_cast<std::size_t>(GuardKind::writable) + 1;

struct GuardObject {
  PyObject_HEAD PyObject* target;  // an end, Barrier, Timer or Process object
  PyObject* value;                 // the value of an output; null if the function `make` makes it
  PyObject* make;
  std::int64_t ns;  // a span or a time in ns; the number of a descriptor
  GuardKind kind;
  bool enabled;
  bool loud;  // ended="raise": the retirement of its channel is an outcome (rule 5.6)
};
inline GuardObject* guard_of(PyObject* o) noexcept { return reinterpret_cast<GuardObject*>(o); }

struct TimerObject {
  PyObject_HEAD std::int64_t period;
  std::int64_t next;  // the time in ns of the next tick; 0: ticks are counted from the first use
};

extern PyTypeObject GuardType, TimerType, EndType, InputType, OutputType, ReadyType;

// Reads `ended`, an argument of guards, selects and Alternatives. Returns 1 for "raise", 0 for the
// default, or -1 with an error for bad use.
int loud_by(PyObject* ended, const char* verb);

PyObject* guard_on(PyObject* target, GuardKind kind, bool on);
PyObject* end_guard(ProcessObject* p);

}  // namespace weft::py
