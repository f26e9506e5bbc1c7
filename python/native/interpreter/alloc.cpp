// Counts the requests to Python's allocators, so that tests can check that an operation allocates
// nothing.
//
// Invariant: from allocations(True) to allocations(False) every request of the three domains passes
// through count(). Requests of the raw domain may come from threads without the GIL.
#include <atomic>

#include "gate.hpp"

namespace weft::py {

namespace {

constexpr PyMemAllocatorDomain domains[] = {PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
PyMemAllocatorEx original[3];
bool counting = false;
std::atomic<long> requests{0};

const PyMemAllocatorEx& count(void* which) noexcept {
  requests.fetch_add(1, std::memory_order_relaxed);
  return *static_cast<PyMemAllocatorEx*>(which);
}
void* counted_malloc(void* w, std::size_t n) {
  const PyMemAllocatorEx& a = count(w);
  return a.malloc(a.ctx, n);
}
void* counted_calloc(void* w, std::size_t n, std::size_t size) {
  const PyMemAllocatorEx& a = count(w);
  return a.calloc(a.ctx, n, size);
}
void* counted_realloc(void* w, void* p, std::size_t n) {
  const PyMemAllocatorEx& a = count(w);
  return a.realloc(a.ctx, p, n);
}
void plain_free(void* w, void* p) {
  const auto& a = *static_cast<PyMemAllocatorEx*>(w);
  a.free(a.ctx, p);
}

// allocations(on): begins or ends the count. Returns the number of requests since the count began,
// not counting those of this call.
PyObject* f_allocations(PyObject*, PyObject* on) {
  const long so_far = requests.load();
  const bool wanted = on == Py_True;
  if (wanted && !counting) requests.store(0);
  for (int i = 0; i < 3 && wanted != counting; ++i) {
    if (wanted) {
      PyMem_GetAllocator(domains[i], &original[i]);
      PyMemAllocatorEx mine{&original[i], counted_malloc, counted_calloc, counted_realloc,
                            plain_free};
      PyMem_SetAllocator(domains[i], &mine);
    } else {
      PyMem_SetAllocator(domains[i], &original[i]);
    }
  }
  counting = wanted;
  return PyLong_FromLong(so_far);
}
PyMethodDef alloc_functions[] = {{"_allocations", gated<f_allocations>, METH_O, nullptr}, {}};

}  // namespace

int init_alloc(PyObject* m) { return PyModule_AddFunctions(m, alloc_functions); }

}  // namespace weft::py
