// Numbers of lines: see sites.hpp.
#include "sites.hpp"

#include <deque>
#include <map>
#include <string>
#include <utility>

namespace weft::py {

namespace {

std::deque<Site> sites(1);  // by number
std::map<std::pair<std::string, std::uint32_t>, std::uint32_t> numbers;

std::uint32_t number_of(PyCodeObject* code, int line) {
  const char* const file = PyUnicode_AsUTF8(code->co_filename);
  if (!file || line < 0 || sites.size() == kSites) {
    PyErr_Clear();
    return 0;
  }
  const auto [at, is_new] = numbers.try_emplace({file, static_cast<std::uint32_t>(line)}, static_cast<std::uint32_t>(sites.size()));
  if (is_new) sites.push_back({Py_NewRef(code->co_filename), static_cast<std::uint32_t>(line)});
  return at->second;
}

// The interpreter walks the table of all lines of a code to find one: the places that were asked for last are kept, with their codes, so
// that none is another at the same address.
std::uint32_t look_up(PyFrameObject* f, PyCodeObject* code) {
#if PY_VERSION_HEX < 0x030B0000
  return number_of(code, PyFrame_GetLineNumber(f));
#else
  struct Place {
    PyCodeObject* code;
    int instruction;
    std::uint32_t number;
  };
  static Place places[32];
  const int instruction = PyFrame_GetLasti(f);
  Place& at = places[(reinterpret_cast<std::uintptr_t>(code) / 64 + static_cast<unsigned>(instruction) / 2) % 32];
  if (at.code != code || at.instruction != instruction) {
    const std::uint32_t number = number_of(code, PyFrame_GetLineNumber(f));
    PyCodeObject* const before = at.code;
    at = {reinterpret_cast<PyCodeObject*>(Py_NewRef(reinterpret_cast<PyObject*>(code))), instruction, number};
    Py_XDECREF(reinterpret_cast<PyObject*>(before));
    return number;
  }
  return at.number;
#endif
}

}  // namespace

std::uint32_t site_here() noexcept {
  PyFrameObject* const f = PyEval_GetFrame();
  if (!f) return 0;
  PyCodeObject* const code = PyFrame_GetCode(f);
  std::uint32_t number = 0;
  try {
    number = look_up(f, code);
  } catch (...) {  // no memory: it has no number
  }
  Py_DECREF(code);
  return number;
}

const Site& site_of(std::uint32_t number) noexcept { return sites[number]; }

}  // namespace weft::py
