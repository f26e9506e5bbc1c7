// What packed.cpp shares with the files of the wire. values.hpp has the rest.
#pragma once
#include "weft/wire/moving.hpp"
#include "weft/wire/slot.hpp"
#include "wire/carries.hpp"

namespace weft::py {

// Makes the packed value that came in a frame. Null: it is no value.
PyObject* packed_from(const wire::Payload& p, wire::Carrier& by) noexcept;
// Makes the packed value that came from a board. Null: it is no value, or there is no memory.
PyObject* cbor_from(const wire::Payload& p, Carries what) noexcept;
// Returns a packed value in the form for a frame; `keep` holds the memory to which it refers.
wire::Payload packed_out(PyObject* packed, wire::Buffer& keep, wire::Carrier& by);
// Whether ends go with the packed value, which then keeps them open.
bool has_ends(PyObject* packed) noexcept;
// Returns the keeper of the bytes of such a payload, if the payload outlives its frame.
wire::Keeper packed_keeper(PyObject* packed);

// A large value of a program on another machine. Its pieces are stored in their final place as they
// come.
class Coming {
 public:
  Coming() = default;
  Coming(const Coming&) = delete;
  Coming& operator=(const Coming&) = delete;
  ~Coming();
  bool will_come(Carries what, std::size_t bytes) noexcept;
  void more(wire::Bytes piece) noexcept;
  PyObject* last(wire::Bytes piece) noexcept;  // returns it packed; null: it is no value

 private:
  PyObject* bytes_ = nullptr;  // a bytearray
  std::size_t had_ = 0;
};
// In the child of a fork: the places are the parent's, and are copied when they are sent.
void forget_places() noexcept;

}  // namespace weft::py
