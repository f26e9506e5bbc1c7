// An operation of Python on a descriptor (rules 18.1, 18.11). It is a Work of weft::io. The process
// that awaits the operation, or that blocks in it, makes the attempts itself.
//
//   go(): attempt() ──over──► outcome() ──► done
//           │ ▲ └──would block, or pauses──► waiting ──woken: end()──► go()
//           └─┘ the descriptor is ready again    └──cancelled, left──► done: nothing was read
//
// Only attempt() reads or writes, on the process's own thread and with the GIL held, and it never
// blocks. Therefore a wait that ends early has taken no bytes. In a coroutine the operation is an
// awaitable; awaited.hpp describes the states of an awaitable.
#pragma once
#include "channels/operations.hpp"
#include "owned.hpp"
#include "weft/io.hpp"

namespace weft::py {

class SocketWork : public io::detail::Waiting {
 public:
  using Tried = io::detail::Tried;
  SocketWork(const char* operation, const runtime::OpKind& op_kind, io::detail::Side s, bool hint)
      : verb(operation), kind(op_kind), by_hint(hint), side(s) {}
  SocketWork(const SocketWork&) = delete;
  SocketWork& operator=(const SocketWork&) = delete;
  virtual ~SocketWork() = default;

  // The functions of a Work (io/operation.hpp). attempt() and outcome() may throw.
  virtual io::detail::Watched& watched() = 0;
  virtual Tried attempt() = 0;
  virtual std::int64_t pause_ns() const = 0;
  // Returns the result of the operation; null if it sets an exception of Python.
  virtual PyObject* outcome() = 0;

  const char* const verb;  // for messages
  const runtime::OpKind& kind;
  const bool by_hint;
  io::detail::Side side;  // the side of watched() on which the process waits
};

// Sets the exception of Python that corresponds to the C++ exception being handled. Returns null.
PyObject* raise_from_io() noexcept;

// Begins the operation. In a coroutine process, and in a task of asyncio, returns an awaitable.
// Elsewhere blocks until the operation has ended, and returns its result.
PyObject* socket_operation(std::unique_ptr<SocketWork> work);

}  // namespace weft::py
