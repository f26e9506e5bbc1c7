// The lines of the program at which channels and ends were made, each with a number, which fits
// where an end has room.
//
// Invariant: what has a number keeps it, and its file's name; 0 is no line. Everything here is
// under the GIL.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cstdint>

namespace weft::py {

struct Site {
  PyObject* file;  // str
  std::uint32_t line;
};
inline constexpr std::uint32_t kSites = 1u << 24;  // as many numbers as an end can tell apart

// of the line that runs; 0 if none does, or if there is no room
std::uint32_t site_here() noexcept;
Site site_of(std::uint32_t number) noexcept;  // not of 0

}  // namespace weft::py
