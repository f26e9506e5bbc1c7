// Lists and tuples that are made item by item. If an item cannot be made, the whole is null and the
// exception is set, so a loop that fills one goes on only while it is there.
#pragma once
#include "owned.hpp"

namespace weft::py {

// Takes the item over. `list` may be null, and is null afterwards if `item` is.
inline void append(Owned<>& list, PyObject* item) noexcept {
  const Owned taken(item);
  if (list && (!item || PyList_Append(list.get(), item) < 0)) list.reset();
}
// The same of the i-th item of a tuple.
inline void put(Owned<>& tuple, Py_ssize_t i, PyObject* item) noexcept {
  Owned taken(item);
  if (!tuple) return;
  PyTuple_SET_ITEM(tuple.get(), i, taken.release());
  if (!item) tuple.reset();
}

}  // namespace weft::py
