// Decrypts bytes that have arrived over a connection, with Python's TLS (ssl.MemoryBIO and its
// _SSLSocket). The functions of both are written in C, so no Python code runs. The caller holds the
// interpreter's lock and the lock for TLS (feed.hpp).
#pragma once
#include <cstddef>

#include "interpreter/door.hpp"
#include "owned.hpp"

namespace weft::py {

class TlsIn {
 public:
  TlsIn() = default;
  TlsIn(const TlsIn&) = delete;
  TlsIn& operator=(const TlsIn&) = delete;
  ~TlsIn() {
    for (PyObject* const o : {came_, write_, read_, left_, wants_, pending_}) Py_XDECREF(o);
  }
  // Called once. `wants` is the class ssl.SSLWantReadError. Returns false if an exception is set.
  bool begin(PyObject* came, PyObject* tls, PyObject* wants) noexcept {
    came_ = Py_NewRef(came);
    wants_ = Py_NewRef(wants);
    write_ = PyObject_GetAttrString(came, "write");
    read_ = PyObject_GetAttrString(tls, "read");
    left_ = PyObject_GetAttrString(tls, "pending");
    pending_ = PyUnicode_InternFromString("pending");
    return write_ && read_ && left_ && pending_;
  }

  // Gives encrypted bytes to TLS. Returns false if there is no memory.
  bool put(char* data, std::size_t n) noexcept {
    const Owned view(view_of(data, n, PyBUF_READ));
    const Owned r(view ? PyObject_CallOneArg(write_, view.get()) : nullptr);
    PyErr_Clear();
    return r != nullptr;
  }

  static constexpr Py_ssize_t kNone = 0, kOver = -1;
  // Decrypts into `room`, and returns the number of bytes. kNone means that more bytes must arrive
  // first. kOver means that TLS was closed, a record is forged, or there is no memory; a further
  // call returns kOver too, perhaps without the reason.
  Py_ssize_t take(char* room, std::size_t size) noexcept {
    const Owned view(view_of(room, size, PyBUF_WRITE));
    const Owned most(PyLong_FromSize_t(size));
    const Owned r(view && most ? called(read_, most.get(), view.get()) : nullptr);
    const Py_ssize_t n = r ? PyLong_AsSsize_t(r.get()) : -1;
    if (n > 0) return n;
    const bool waits = n < 0 && PyErr_ExceptionMatches(wants_);
    PyErr_Clear();
    return waits ? kNone : kOver;
  }

  // Returns whether take() can give more bytes before further bytes come over the connection.
  bool has_more() noexcept {
    Owned r(PyObject_CallNoArgs(left_));
    bool more = r && PyObject_IsTrue(r.get()) > 0;
    r.reset(more ? nullptr : PyObject_GetAttr(came_, pending_));
    more = more || (r && PyObject_IsTrue(r.get()) > 0);
    PyErr_Clear();
    return more;
  }

 private:
  static PyObject* view_of(char* p, std::size_t n, int how) noexcept {
    return PyMemoryView_FromMemory(p, static_cast<Py_ssize_t>(n), how);
  }

  PyObject *came_ = nullptr, *write_ = nullptr, *read_ = nullptr, *left_ = nullptr;
  PyObject *wants_ = nullptr, *pending_ = nullptr;
};

}  // namespace weft::py
