// The functions of packed.cpp that the other files of the wire use. values.hpp declares the others.
#pragma once
#include "weft/wire/moving.hpp"
#include "weft/wire/slot.hpp"
#include "wire/carries.hpp"

namespace weft::py {

// Makes the packed value of a frame. Null if the payload is not a value.
PyObject* packed_from(const wire::Payload& p, wire::Carrier& by) noexcept;
// Makes the packed value of a payload in the form `what` of CBOR. Null if the payload is not a
// value, or there is no memory.
PyObject* cbor_from(const wire::Payload& p, Carries what) noexcept;
// Returns a packed value in the form in which a frame contains it. `keep` owns the memory to which
// the payload refers.
wire::Payload packed_out(PyObject* packed, wire::Buffer& keep, wire::Carrier& by);
// Returns whether ends of channels travel with the packed value, which then keeps them open.
bool has_ends(PyObject* packed) noexcept;
// Returns the keeper of the bytes to which such a payload refers, if the payload outlives its
// frame.
wire::Keeper packed_keeper(PyObject* packed);

// A large value that arrives in pieces from a program on another machine. Each piece is stored in
// its final place on arrival.
class Coming {
 public:
  Coming() = default;
  Coming(const Coming&) = delete;
  Coming& operator=(const Coming&) = delete;
  ~Coming();
  bool will_come(Carries what, std::size_t bytes) noexcept;
  void more(wire::Bytes piece) noexcept;
  // returns the packed value, or null if the pieces are not a value
  PyObject* last(wire::Bytes piece) noexcept;

 private:
  PyObject* bytes_ = nullptr;  // a bytearray
  std::size_t had_ = 0;
};

}  // namespace weft::py
