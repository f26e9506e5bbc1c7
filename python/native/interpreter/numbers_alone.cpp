#include "interpreter/numbers_alone.hpp"

#include <cstring>

#include "owned.hpp"

namespace weft::py {

namespace {

std::string text_of(const Owned<>& o) {
  const char* const s = o && PyUnicode_Check(o.get()) ? PyUnicode_AsUTF8(o.get()) : nullptr;
  PyErr_Clear();
  return s ? s : "";
}

bool is_numpy_array(PyTypeObject* type) noexcept {
  PyObject* const all = type->tp_mro;
  for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(all); ++i)
    if (std::strcmp(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(all, i))->tp_name,
                    "numpy.ndarray") == 0)
      return true;
  return false;
}

}  // namespace

std::string more_than_numbers(PyObject* o) {
  PyTypeObject* const type = Py_TYPE(o);
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || !is_numpy_array(type)) return {};
  const std::string name = type->tp_name;
  const std::string module =
      text_of(Owned(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__")));
  const bool numpys = module == "numpy" || module.starts_with("numpy.");
  if (numpys && name == "MaskedArray")
    return "a masked array has a mask beside its numbers, which is in no buffer: take a.data and "
           "numpy.ma.getmaskarray(a), each by itself";
  if (numpys && (name == "memmap" || name == "recarray" || name == "matrix" || name == "chararray"))
    return {};
  return "an array of class " + name +
         " may have more than its numbers, which would be lost: take numpy.asarray(a), and give "
         "the "
         "rest by itself";
}

std::string no_buffer_of(PyObject* o) {
  const Owned dtype(PyObject_GetAttrString(o, "dtype"));
  if (!dtype) return PyErr_Clear(), std::string();
  const std::string kind = text_of(Owned(PyObject_GetAttrString(dtype.get(), "kind")));
  const std::string dates = text_of(Owned(PyObject_Str(dtype.get())));
  if (kind == "T" || kind == "O")
    return "texts and objects of " + dates +
           " lie elsewhere: take an array of numbers, or a.astype('U')";
  if (kind == "M" || kind == "m" ||
      (kind == "V" && (dates.find("M8") != dates.npos || dates.find("m8") != dates.npos)))
    return "numpy gives no buffer of " + dates +
           ": take its bytes, a.view('u1'), and numpy.asarray(…).view(a.dtype) where they are read";
  return {};
}

}  // namespace weft::py
