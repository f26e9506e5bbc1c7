// What values of native channels are: types, by their text in component_abi.h; conversion from
// Python and to Python; blocks.
//
// An array crosses as it lies: Python's buffer is exported for as long as the component has it
// (Lent), a component's memory is a buffer of Python's for as long as somebody looks at it. What a
// component gives back of Python's waits in a queue for a thread that has the GIL.
//
// Invariant: a type, once parsed, is kept for ever, so that the same text is the same object.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>
#include <utility>

#include "weft/component_abi.h"

namespace weft::py {

class NativeType;  // what a channel carries: parsed from the text of component_abi.h, kept for ever

// By its text; null with an exception: it is none.
const NativeType* native_type(const char* text);
// Of a type of Python (weft._components.types).
const NativeType* native_type_of(PyObject* type);
// "list[float]", for messages; not `whole`: as an annotation, aggregates by their name.
std::string describe(const NativeType* t, bool whole = true);
// The repr of a value, shortened. If repr() fails, this is `otherwise`, which may show the value's
// type (%.100s).
PyObject* shown(PyObject* value, const char* otherwise);

// `value` as the type says: 0; -1 with BadUse, or what the conversion raised. The block is
// allocate_block()'s, or lends a buffer.
int to_native(const NativeType* t, PyObject* value, weft_value& to);
// Does the exception of a conversion say that the value does not convert (rule 16.4)? Then the
// caller gets a BadUse; any other exception is left as it is.
bool says_no_value(PyObject* raised);
// takes nothing over but the arrays in it
PyObject* from_native(const NativeType* t, const weft_value& v);

// The block of a value: null without memory; given back by any thread, also without the GIL, and
// under locks of the core.
void* allocate_block(std::size_t bytes) noexcept;
void release_block(void* block) noexcept;
void keep_part(void* block, void* part) noexcept;  // which is released with the block
void take_part(void* block, void* part) noexcept;  // and is no part any longer
void release_lent() noexcept;                      // with the GIL: what components have given back
// In the debug mode: this thread lends arrays to this channel; a process of a component has taken
// what is in the block, or gives it on.
inline constinit thread_local PyObject* lending_to = nullptr;
void loan_moves(void* block, const char* process, const char* component, bool taken);
// For write(move=True): -1 with BadUse, if somebody else may have the memory.
int check_only(PyObject* value);
bool is_array(const NativeType* t) noexcept;
inline void drop_native(weft_value& v) noexcept { release_block(std::exchange(v.block, nullptr)); }
// the same; of an array, which it takes over, a view
PyObject* to_python(const NativeType* t, weft_value& v);

}  // namespace weft::py
