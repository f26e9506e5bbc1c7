// Reads arguments that may be given by name.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <algorithm>
#include <cstddef>
#include <string>

namespace weft::py {

// Reads the arguments of a METH_FASTCALL | METH_KEYWORDS function, each of which must be given
// once. Returns false, with TypeError set, if the arguments are not of this form.
template <std::size_t N>
bool arguments(const char* verb, const char* const (&names)[N], PyObject* const* args, Py_ssize_t n,
               PyObject* keywords, PyObject* (&to)[N]) noexcept {
  const Py_ssize_t k = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  bool fine = n + k == static_cast<Py_ssize_t>(N);
  for (std::size_t i = 0; i < N; ++i) to[i] = static_cast<Py_ssize_t>(i) < n ? args[i] : nullptr;
  for (Py_ssize_t j = 0; fine && j < k; ++j) {
    std::size_t i = 0;
    while (i < N && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, j), names[i]) != 0)
      ++i;
    if ((fine = i < N && !to[i])) to[i] = args[n + j];
  }
  if (fine) [[likely]]
    return true;
  std::string list;
  for (const char* name : names) list.append(list.empty() ? "" : ", ").append(name);
  PyErr_Format(PyExc_TypeError, "%s() takes %s: %s", verb,
               N == 1 ? "one argument" : "these arguments", list.c_str());
  return false;
}
template <std::size_t N>
struct Names {
  char text[N];
  constexpr Names(const char (&s)[N]) noexcept { std::copy_n(s, N, text); }
};
// A function of one argument, which can also be given by its name.
template <Names Verb, Names Argument, auto F>
PyObject* with_keyword(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  if (n == 1 && !keywords) [[likely]]
    return F(self, args[0]);
  PyObject* to[1];
  const char* const names[1] = {Argument.text};
  return arguments(Verb.text, names, args, n, keywords, to) ? F(self, to[0]) : nullptr;
}
inline constexpr int kKeywords = METH_FASTCALL | METH_KEYWORDS;

}  // namespace weft::py
