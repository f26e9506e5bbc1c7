// Says which ends were left open at a deadlock (left_open.cpp).
#pragma once
#include <string>

namespace weft::py {

struct PyRun;

std::string say_left_open(PyRun& run);

}  // namespace weft::py
