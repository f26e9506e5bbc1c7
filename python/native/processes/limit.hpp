// The objects that Python code sees as limits, and the function that raises Cancelled.
#pragma once
#include "value.hpp"

namespace weft::py {

// Raises Cancelled, and records that the request to cancel was met.
PyObject* raise_cancelled(ProcessBase& p, PyObject* value);
// Returns the object of a limit (borrowed), or null for null.
PyObject* limit_object(runtime::Limit* l) noexcept;

}  // namespace weft::py
