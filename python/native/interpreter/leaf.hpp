// Channels and ends that cannot be part of a cycle of references: a channel without a buffer refers
// only to its name, and its ends refer only to the channel. The garbage collector does not track
// such objects, and they have no header for the collector. In a program with a million processes,
// three in five of the objects that the collector would visit are such objects. In builds without a
// GIL the ends are tracked, so that they can be found.
//
//   allocate(type, traced) ──► track() ──► untrack() ──► release()
//
// Invariant: `traced` is fixed before any other code knows the object, and says whether the object
// was allocated with a header.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// In 3.14 and later the interpreter can put any dying object of such a type in a list that is
// linked through the headers.
#if PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
inline constexpr bool headerless = true;
#else
inline constexpr bool headerless = false;
#endif
// In builds without a GIL ends have a header in any case, since the collector finds only objects
// that have one.
#ifdef Py_GIL_DISABLED
inline constexpr bool every_end_is_known = true;
#else
inline constexpr bool every_end_is_known = false;
#endif

template <class Object>
Object* allocate(PyTypeObject* type, bool traced) noexcept {
  Object* o = nullptr;
  if (headerless && !traced)
    o = PyObject_New(Object, type);
  else
    o = PyObject_GC_New(Object, type);
  if (o) o->traced = traced;
  return o;
}
template <class Object>
void track(Object* o) noexcept {
  if (o->traced) PyObject_GC_Track(reinterpret_cast<PyObject*>(o));
}
template <class Object>
void untrack(Object* o) noexcept {
  if (o->traced) PyObject_GC_UnTrack(reinterpret_cast<PyObject*>(o));
}
template <class Object>
void release(Object* o) noexcept {
  if (headerless && !o->traced)
    PyObject_Free(o);
  else
    PyObject_GC_Del(o);
}
// For tp_is_gc: returns whether the object has a header.
template <class Object>
int has_header(PyObject* o) noexcept {
  return !headerless || reinterpret_cast<Object*>(o)->traced;
}

}  // namespace weft::py
