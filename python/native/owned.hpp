// References to Python's objects.
//
//   Owned      has one reference, or none. It can be moved, and drops the reference where its scope
//              ends.
//   PyObject*  as a parameter or a variable is borrowed: other code owns the reference.
//   Value      (value.hpp)  is what a channel moves. A Value may be destroyed under a lock of the
//              core, so its reference is dropped at the next safe point (pending.cpp); Owned drops
//              its reference at once.
//
// Conventions
//  1 A function that returns a PyObject* returns a new reference, or null with an exception set. A
//    function that returns a borrowed reference, or null without an exception, says so. A function
//    that returns an int returns -1, with an exception set, if it fails.
//  2 Members of Python's objects are plain pointers, since no C++ constructor makes those objects:
//    tp_dealloc and tp_clear drop the references by hand, and Py_XSETREF replaces one. Globals are
//    plain pointers too, because destructors would run after the end of the interpreter. Any other
//    code that drops a reference by hand says why.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <utility>

namespace weft::py {

template <class T = PyObject>
class [[nodiscard]] Owned {
 public:
  Owned() noexcept = default;
  explicit Owned(T* taken) noexcept : o_(taken) {}  // takes ownership of the reference
  Owned(Owned&& from) noexcept : o_(from.release()) {}
  Owned& operator=(Owned&& from) noexcept {
    reset(from.release());
    return *this;
  }
  ~Owned() { Py_XDECREF(reinterpret_cast<PyObject*>(o_)); }

  T* get() const noexcept { return o_; }  // the result is borrowed
  T* operator->() const noexcept { return o_; }
  explicit operator bool() const noexcept { return o_ != nullptr; }
  bool operator==(const T* other) const noexcept { return o_ == other; }
  [[nodiscard]] T* release() noexcept { return std::exchange(o_, nullptr); }
  // Drops the reference, and takes ownership of `taken`.
  void reset(T* taken = nullptr) noexcept {
    Py_XDECREF(reinterpret_cast<PyObject*>(std::exchange(o_, taken)));
  }
  // Returns the address for a function that stores a new reference there.
  T** out() noexcept {
    reset();
    return &o_;
  }

 private:
  T* o_ = nullptr;
};

// Makes a new reference to an object whose reference is borrowed. For null, the result holds no
// reference.
template <class T>
Owned<T> new_ref(T* borrowed) noexcept {
  Py_XINCREF(reinterpret_cast<PyObject*>(borrowed));
  return Owned<T>(borrowed);
}

// Saves the current exception while this object lives; the destructor restores it.
class SavedException {
 public:
  SavedException() noexcept { PyErr_Fetch(&type_, &value_, &traceback_); }
  SavedException(const SavedException&) = delete;
  SavedException& operator=(const SavedException&) = delete;
  ~SavedException() { PyErr_Restore(type_, value_, traceback_); }

 private:
  PyObject *type_, *value_, *traceback_;
};

}  // namespace weft::py
