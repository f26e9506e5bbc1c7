// What packed.cpp shares with the wire: see there, and values.hpp.
#pragma once
#include "weft/wire/moving.hpp"
#include "weft/wire/slot.hpp"
#include "wire/carries.hpp"

namespace weft::py {

// What came in a frame. Null: it is no value.
PyObject* packed_from(const wire::Payload& p, wire::Carrier& by) noexcept;
// What came from a board. Null: it is no value, or there is no memory.
PyObject* cbor_from(const wire::Payload& p, Carries what) noexcept;
// A packed value as a frame takes it; `keep` holds what it refers to.
wire::Payload packed_out(PyObject* packed, wire::Buffer& keep, wire::Carrier& by);
// What keeps the bytes of such a payload that lasts.
wire::Keeper packed_keeper(PyObject* packed);

// A large value of a program elsewhere, whose pieces go to where it will lie.
class Coming {
 public:
  Coming() = default;
  Coming(const Coming&) = delete;
  Coming& operator=(const Coming&) = delete;
  ~Coming();
  bool will_come(Carries what, std::size_t bytes) noexcept;
  void more(wire::Bytes piece) noexcept;
  PyObject* last(wire::Bytes piece) noexcept;  // packed; null: it is no value

 private:
  PyObject* bytes_ = nullptr;  // a bytearray
  std::size_t had_ = 0;
};
// In the child of a fork: they are the parent's, and are copied when they are sent.
void forget_places() noexcept;

}  // namespace weft::py
