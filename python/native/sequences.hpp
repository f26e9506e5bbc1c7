// Lists and tuples that are made item by item. If an item cannot be made, the list or tuple becomes
// null and the exception is set. Therefore a loop that fills a list or a tuple continues only while
// it is not null.
#pragma once
#include "owned.hpp"

namespace weft::py {

// Appends the item, and takes ownership of its reference. `list` may be null; it becomes null if
// `item` is null.
inline void append(Owned<>& list, PyObject* item) noexcept {
  const Owned taken(item);
  if (list && (!item || PyList_Append(list.get(), item) < 0)) list.reset();
}
// Like append(), for the i-th item of a tuple.
inline void put(Owned<>& tuple, Py_ssize_t i, PyObject* item) noexcept {
  Owned taken(item);
  if (!tuple) return;
  PyTuple_SET_ITEM(tuple.get(), i, taken.release());
  if (!item) tuple.reset();
}

}  // namespace weft::py
