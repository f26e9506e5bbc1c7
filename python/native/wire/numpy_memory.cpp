// The memory of numpy's arrays: in the blocks of weft.processes.arrays_in_shared_memory numpy makes
// large arrays in places (places.hpp), so that an array goes to another OS process without a copy.
//
//   numpy: take_memory() ──large, and there is a place──► a place │ else──► malloc
//   give_back(), take_other() ──whose memory is it?──► drop_place() │ free
//
// numpy keeps the allocator with each array, so an array is freed by the functions that allocated
// it, even after the block. numpy's functions for this are in a table of pointers, which it exports
// as a capsule; their indexes in the table do not change between versions of numpy.
#include <cstdlib>
#include <cstring>

#include "declare.hpp"
#include "owned.hpp"
#include "wire/places.hpp"

namespace weft::py {

namespace {

// A smaller array is not worth a place, which has a descriptor and 4 KiB for its table.
constexpr std::size_t kMinPlace = std::size_t{64} << 10;

void* take_memory(void*, std::size_t size) {
  void* const place = size >= kMinPlace ? take_place(size) : nullptr;
  return place ? place : std::malloc(size);
}
void* take_zeros(void*, std::size_t n, std::size_t each) {
  if (each != 0 && n > SIZE_MAX / each) return nullptr;
  void* const place = n * each >= kMinPlace ? take_place(n * each) : nullptr;
  return place ? std::memset(place, 0, n * each) : std::calloc(n, each);
}
void give_back(void*, void* at, std::size_t) {
  if (!drop_place(at)) std::free(at);
}
void* take_other(void* context, void* at, std::size_t size) {
  const std::size_t before = place_size(at);
  if (before == 0) return std::realloc(at, size);
  void* const to = take_memory(context, size);
  if (!to) return nullptr;
  std::memcpy(to, at, before < size ? before : size);
  drop_place(at);
  return to;
}

// The struct PyDataMem_Handler of numpy, version 1.
struct Handler {
  char name[127];
  std::uint8_t version;
  void* context;
  void* (*malloc)(void*, std::size_t);
  void* (*calloc)(void*, std::size_t, std::size_t);
  void* (*realloc)(void*, void*, std::size_t);
  void (*free)(void*, void*, std::size_t);
};
Handler memory_handler{"weft", 1, nullptr, &take_memory, &take_zeros, &take_other, &give_back};

constexpr std::size_t kFeatureVersion = 211, kSetHandler = 304;  // indexes in numpy's table
constexpr unsigned kWithHandlers = 0xf;                          // numpy 1.22

// _set_numpy_memory(api, before): makes numpy allocate in places in this context, or with `before`
// as it did earlier. Returns the value to be passed as `before`; None if numpy is too old.
PyObject* f_set_numpy_memory(PyObject*, PyObject* args) {
  PyObject *api, *before;
  if (!PyArg_ParseTuple(args, "OO", &api, &before)) return nullptr;
  auto* const table = static_cast<void**>(PyCapsule_GetPointer(api, nullptr));
  if (!table) return nullptr;
  if (reinterpret_cast<unsigned (*)()>(table[kFeatureVersion])() < kWithHandlers) Py_RETURN_NONE;
  const auto set = reinterpret_cast<PyObject* (*)(PyObject*)>(table[kSetHandler]);
  if (before != Py_None) return set(before);
  const Owned ours(PyCapsule_New(&memory_handler, "mem_handler", nullptr));
  return ours ? set(ours.get()) : nullptr;
}
PyMethodDef numpy_memory_functions[] = {
    {"_set_numpy_memory", gated<f_set_numpy_memory>, METH_VARARGS, nullptr}, {}};

}  // namespace

int init_numpy_memory(PyObject* m) { return PyModule_AddFunctions(m, numpy_memory_functions); }

}  // namespace weft::py
