// The current time, and times from Python code, in nanoseconds.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <optional>

namespace weft::py {

std::int64_t now_ns() noexcept;
std::optional<std::int64_t> to_ns(PyObject* seconds, const char* what);

}  // namespace weft::py
