// Shared by the files of native types (native_types.hpp): the types themselves, and values under
// way.
//
//   native_types.cpp   types and their texts; the classes of aggregates
//   native_values.cpp  conversion from Python and to Python
//   native_arrays.cpp  blocks; arrays that are lent, and views of arrays
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "values/native_types.hpp"

namespace weft::py {

class NativeType {
 public:
  char kind;           // the first letter of the type's text: i d b n s y v [ ( { ? < a
  char code = 0;       // the format of an array's numbers, as in Python's module struct
  int dimensions = 1;  // the number of dimensions of an array
  bool constant = false;
  bool lends = false;  // whether the type contains arrays
  std::vector<const NativeType*> parts;
  std::string text, name;             // name: the name of an aggregate
  std::vector<std::string> fields;    // for an aggregate: the names of its fields
  mutable PyObject* names = nullptr;  // the names of the fields, as a tuple of str
  mutable PyObject* made = nullptr;   // the class of the objects that Python code receives
  // The last class that was found to have these fields.
  mutable PyObject* fits = nullptr;

  std::size_t item() const noexcept {
    return std::strchr("bB", code)    ? 1
           : std::strchr("hH", code)  ? 2
           : std::strchr("iIf", code) ? 4
                                      : 8;
  }
  bool in_line() const noexcept { return kind == 'i' || kind == 'd' || kind == 'b' || kind == 'n'; }
  bool bare() const noexcept { return kind == 's' || kind == 'y'; }
};

// Sets a TypeError that names both types. Returns -1.
int refuse(const NativeType* t, PyObject* value);
// Returns whether the objects of this class have the fields of the aggregate; -1 with an exception.
int fits_aggregate(const NativeType* t, PyTypeObject* cls);

// The bytes of a value under way, and the blocks that go with them.
struct Flattened {
  std::string bytes;
  std::vector<void*> parts;  // owned
  Flattened() = default;
  Flattened(const Flattened&) = delete;
  Flattened& operator=(const Flattened&) = delete;
  ~Flattened() {
    for (void* p : parts) release_block(p);
  }
};

int lend(const NativeType* t, PyObject* v, weft_value& to);
// Makes a view of an array. Takes ownership of the block, even on failure. On failure returns null
// with an exception.
PyObject* view_of(const NativeType* t, weft_value& v);

}  // namespace weft::py
