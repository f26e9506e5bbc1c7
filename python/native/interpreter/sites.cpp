// The numbers of lines (sites.hpp).
//
// Making an end takes few instructions, so recording its place must be fast. In CPython 3.11 this
// code reads the running frame directly, whose layout is fixed for the minor version. In other
// versions it uses the public calls, which take longer.
#include "interpreter/sites.hpp"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000 && !defined(PYPY_VERSION)
#define WEFT_FRAMES 1
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "owned.hpp"

namespace weft::py {

namespace {

std::vector<Site> sites(1);  // the index is the number of the line
std::map<std::pair<std::string, std::uint32_t>, std::uint32_t> numbers;

std::uint32_t number_of(PyCodeObject* code, int line) {
  PyObject* const name = file_name(code->co_filename);
  const char* const file = name ? PyUnicode_AsUTF8(name) : nullptr;
  if (!file || line < 0 || sites.size() == kSites) {
    PyErr_Clear();
    return 0;
  }
  const auto [at, is_new] = numbers.try_emplace({file, static_cast<std::uint32_t>(line)},
                                                static_cast<std::uint32_t>(sites.size()));
  if (is_new) sites.push_back({Py_NewRef(name), static_cast<std::uint32_t>(line)});
  return at->second;
}

// To find a line the interpreter searches the table of all lines of a code object, so the last
// results are kept. The entries own their code objects, so that no other code object can have the
// same address.
struct Place {
  PyCodeObject* code;  // owned
  const void* instruction;
  std::uint32_t number;
};
Place places[64];

#ifndef WEFT_FRAMES
#define WEFT_FRAMES 0
// Returns the instruction at which `f` is. The returned address is used only for comparison.
const void* instruction_of(PyFrameObject* f, PyCodeObject* code) {
#if PY_VERSION_HEX < 0x030B0000
  return nullptr;
#else
  return reinterpret_cast<const char*>(code) + PyFrame_GetLasti(f);
#endif
}
#endif

Place& place_of(const void* instruction) noexcept {
  return places[reinterpret_cast<std::uintptr_t>(instruction) / 2 % std::size(places)];
}

[[gnu::noinline]] std::uint32_t look_up(const void* instruction) noexcept {
  PyFrameObject* const f = PyEval_GetFrame();
  if (!f) return 0;
  Owned code(PyFrame_GetCode(f));
  std::uint32_t number = 0;
#if WEFT_FRAMES
  // A frame that is still being entered has no line yet, so its caller is used instead.
  if (f->f_frame->prev_instr != instruction) instruction = nullptr;
#else
  instruction = instruction_of(f, code.get());
  if (instruction && place_of(instruction).instruction == instruction)
    return place_of(instruction).number;
#endif
  try {
    number = number_of(code.get(), PyFrame_GetLineNumber(f));
  } catch (...) {  // there is no memory, so the line gets no number
  }
  if (!instruction || number == 0) return number;
  code.reset(std::exchange(place_of(instruction), {code.release(), instruction, number}).code);
  return number;
}

}  // namespace

std::uint32_t site_here() noexcept {
  const void* instruction = nullptr;
#if WEFT_FRAMES
  const _PyInterpreterFrame* const f = PyThreadState_Get()->cframe->current_frame;
  if (!f) return 0;
  instruction = f->prev_instr;
  if (const Place& at = place_of(instruction); at.instruction == instruction) [[likely]]
    return at.number;
#endif
  return look_up(instruction);
}

Site site_of(std::uint32_t number) noexcept { return sites[number]; }

PyObject* file_name(PyObject* name) noexcept {
  if (PyUnicode_AsUTF8(name)) [[likely]]
    return name;
  PyErr_Clear();
  static PyObject* kept = nullptr;  // a dict; the keys are names of files
  if (!kept && !(kept = PyDict_New())) return nullptr;
  if (PyObject* const known = PyDict_GetItemWithError(kept, name)) return known;
  if (PyErr_Occurred()) return nullptr;
  const Owned bytes(PyUnicode_AsEncodedString(name, "utf-8", "backslashreplace"));
  const Owned text(bytes ? PyUnicode_FromEncodedObject(bytes.get(), "utf-8", "strict") : nullptr);
  if (!text) return nullptr;
  const bool stored = PyDict_SetItem(kept, name, text.get()) == 0;
  return stored ? text.get() : nullptr;  // the dict keeps the text alive
}

}  // namespace weft::py
