// The objects that Python sees as limits, and what a cancellation raises.
#pragma once
#include "value.hpp"

namespace weft::py {

// Raises Cancelled; the request to end is then met.
PyObject* raise_cancelled(ProcessBase& p, PyObject* value);
// Returns a borrowed reference; null for null.
PyObject* limit_object(runtime::Limit* l) noexcept;

}  // namespace weft::py
