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

// A file's name as reports have it. Where the file system's encoding has no UTF-8 (the C locale)
// a name may have characters that no text can hold: they stand there as "\\udcc3". Borrowed, and
// kept for good if it is not `name` itself. Null: an exception is set.
PyObject* file_name(PyObject* name) noexcept;

}  // namespace weft::py
