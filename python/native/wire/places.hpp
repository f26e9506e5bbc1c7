// Memory from which an array can be sent to another OS process without a copy: a slot (slot.hpp) of
// which the array is the last part.
//
//   a place, which this program has made: place() ──written to──► its array is sent: of_array()
//   a part of a value that came: part_of() ──its array is sent on──► of_array()
//
// A *place* is a slot that is made before its value, with kFront bytes for the table and the head
// of the value. The array of weft.processes.empty is given away by its first write. An array that
// numpy has made in a place (numpy_memory.cpp), or that came from another OS process, is given away
// by a write that has the only reference to it (rule 9.7).
//
// Invariants
//  1 A slot is sent from here only while no other object of this program, and no other program,
//    refers to it.
//  2 In the child of a fork the places belong to the parent: a child sends copies.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memory>

#include "weft/wire/slot.hpp"

namespace weft::py {

// Returns a memoryview of a part of the slot.
PyObject* part_of(const std::shared_ptr<wire::Slot>& s, std::size_t at, std::size_t size);
// Returns whether a write has the only reference to the array, so that the write gives it away.
// `by_writer`: how many references the write and its caller hold.
bool is_given_away(PyObject* value, int by_writer) noexcept;
// Returns the slot of which this array is the last part, and writes `head`, a bytes object, into
// it. Returns null if there is no such slot, or if the array is not given away.
std::shared_ptr<wire::Slot> of_array(PyObject* head, PyObject* array, bool given_away);

// Makes a place for `size` bytes, and returns its memory. Returns null if there is none.
void* take_place(std::size_t size) noexcept;
// Returns the size of such a place; 0 if `at` is not one.
std::size_t place_size(void* at) noexcept;
// Frees such a place. Returns false if `at` is not one.
bool drop_place(void* at) noexcept;

// Called in the child of a fork, where the places belong to the parent. The child sends copies of
// arrays in places.
void forget_places() noexcept;

int init_places(PyObject* m);

}  // namespace weft::py
