// The objects that Python sees as limits, and what a cancellation raises.
#pragma once
#include "value.hpp"

namespace weft::py {

// Cancelled; and the request to end has been met
PyObject* raise_cancelled(ProcessBase& p, PyObject* value);
// borrowed; null for null
PyObject* limit_object(runtime::Limit* l) noexcept;

}  // namespace weft::py
