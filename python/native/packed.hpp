// What packed.cpp shares with the wire: see there, and wire.hpp.
#pragma once
#include "wire.hpp"

namespace weft::py {

struct PackedObject {
  PyObject_HEAD PyObject* bytes;
  PyObject* original;  // of a value that was written here; else null
};
bool is_packed(PyObject* o) noexcept;
// Null with an exception.
PyObject* packed_from(const void* data, std::size_t size) noexcept;
int init_packed(PyObject* m);

}  // namespace weft::py
