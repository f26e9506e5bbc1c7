// Ends that were left open at a deadlock.
#pragma once
#include <string>

namespace weft::py {

struct PyRun;

std::string say_left_open(PyRun& run);

}  // namespace weft::py
