// An operation on a descriptor, for Python (rules 18.1, 18.11): a Work of weft::io, tried by the
// process that awaits it, or that blocks in it.
//
//   go(): attempt() ──over──► outcome() ──► done
//           │ ▲ └──would block, or pauses──► waiting ──woken: end()──► go()
//           └─┘ it may not block any more        └──cancelled, left──► done: nothing was read
//
// Only attempt() reads or writes, on the process's own thread and under the GIL, and it never
// blocks. So a wait that ends early has taken nothing. In a coroutine the operation is an awaitable,
// whose life awaited.hpp describes.
#pragma once
#include "channels/operations.hpp"
#include "owned.hpp"
#include "weft/io.hpp"

namespace weft::py {

class SocketWork : public io::detail::Waiting {
 public:
  using Tried = io::detail::Tried;
  SocketWork(const char* operation, const runtime::OpKind& op_kind, io::detail::Side s, bool hint)
      : verb(operation), kind(op_kind), side(s), by_hint(hint) {}
  SocketWork(const SocketWork&) = delete;
  SocketWork& operator=(const SocketWork&) = delete;
  virtual ~SocketWork() = default;

  // The functions of a Work (io/operation.hpp). attempt() and outcome() may throw.
  virtual io::detail::Watched& watched() = 0;
  virtual Tried attempt() = 0;
  virtual std::int64_t pause_ns() const = 0;
  // Returns the result; null with an exception.
  virtual PyObject* outcome() = 0;

  const char* const verb;  // for messages
  const runtime::OpKind& kind;
  const io::detail::Side side;
  const bool by_hint;
};

// Makes an exception of Python of the C++ exception that is being handled. Returns null.
PyObject* raise_from_io() noexcept;

// Begins the operation: returns an awaitable in a coroutine process, and elsewhere blocks until the
// operation is over, and returns its result.
PyObject* socket_operation(std::unique_ptr<SocketWork> work);

}  // namespace weft::py
