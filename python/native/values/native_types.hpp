// Values of native channels: their types, which are made from the texts that component_abi.h
// defines; their conversion from and to Python; and blocks.
//
// Arrays are not copied. A Python buffer is exported while the component holds the array (Lent); a
// component's memory is a buffer for Python while a view of it exists. A Python array that a
// component gives back waits in a queue for a thread that has the GIL.
//
// Invariant: a type, once parsed, is kept forever, so the same text always gives the same object.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>
#include <utility>

#include "weft/component_abi.h"

namespace weft::py {

// The type of a native channel. It is parsed from its text (component_abi.h), and kept forever.
class NativeType;

// Returns the type with this text; null, with an exception, if the text names no type.
const NativeType* native_type(const char* text);
// Returns the native type for a Python type (weft._components.types).
const NativeType* native_type_of(PyObject* type);
// Describes the type for messages: "list[float]". If `whole` is false, describes it as an
// annotation, with aggregates by their names.
std::string describe(const NativeType* t, bool whole = true);
// Returns the repr of a value, shortened. If repr() fails, returns `otherwise`, which can show the
// value's type (%.100s).
PyObject* shown(PyObject* value, const char* otherwise);

// Converts `value` to the type. Returns 0; -1 with BadUse, or with the exception of the conversion.
// The block comes from allocate_block(), or lends a buffer.
int to_native(const NativeType* t, PyObject* value, weft_value& to);
// Returns whether the exception of a conversion means that the value does not convert (rule 16.4).
// Such an exception is replaced by a BadUse; any other exception is left as it is.
bool says_no_value(PyObject* raised);
// Converts a native value to an object. Takes ownership only of the arrays in the value.
PyObject* from_native(const NativeType* t, const weft_value& v);

// Makes the block of a value; null if there is no memory. Any thread can release the block, without
// the GIL and under locks of the core.
void* allocate_block(std::size_t bytes) noexcept;
void release_block(void* block) noexcept;
void keep_part(void* block, void* part) noexcept;  // from now on `part` is released with the block
// From now on `part` is not released with the block.
void take_part(void* block, void* part) noexcept;
// Releases the arrays that components have given back. The caller must hold the GIL.
void release_lent() noexcept;
// For the debug mode. `lending_to` is the channel to which this thread lends arrays. loan_moves()
// records that a component's process has taken the arrays in the block, or has passed them on.
inline constinit thread_local PyObject* lending_to = nullptr;
void loan_moves(void* block, const char* process, const char* component, bool taken);
// For write(move=True): returns -1 with BadUse if other code can use the memory.
int check_only(PyObject* value);
bool is_array(const NativeType* t) noexcept;
inline void drop_native(weft_value& v) noexcept { release_block(std::exchange(v.block, nullptr)); }
// Like from_native(), except that an array becomes a view, which takes ownership of the array.
PyObject* to_python(const NativeType* t, weft_value& v);

}  // namespace weft::py
