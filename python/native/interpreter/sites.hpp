// The lines of the program at which channels and ends were made. Each line has a number that is
// small enough for an end to hold.
//
// Invariant: a line that has a number keeps it, with the name of its file; 0 is not a line. The GIL
// protects everything here.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cstdint>

namespace weft::py {

struct Site {
  PyObject* file;  // a str
  std::uint32_t line;
};
// Numbers of lines must be less than this, to fit into an end.
inline constexpr std::uint32_t kSites = 1u << 24;

// Returns the number of the running line; 0 if no line runs, or there are too many lines.
std::uint32_t site_here() noexcept;
Site site_of(std::uint32_t number) noexcept;  // the number must not be 0

// Returns the name of a file as reports show it. Where the encoding of the file system is not UTF-8
// (the C locale), a name may contain bytes that are not characters: reports show such a byte as
// "\\udcc3". The result is borrowed; unless it is `name` itself, it is kept forever. Returns null
// with an exception.
PyObject* file_name(PyObject* name) noexcept;

}  // namespace weft::py
