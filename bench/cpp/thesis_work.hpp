// The work that a worker of the thesis on compiled components does for each message, in unsigned
// 64-bit integers, which wrap around. Weft's program and the thesis's design both include this
// file; thesis_work.py does the same work in Python.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace thesis {

using Number = std::uint64_t;

inline Number fibonacci(Number n) {
  Number a = 0, b = 1;
  for (; n > 0; --n) {
    const Number c = a + b;
    a = b;
    b = c;
  }
  return a;
}
// NOLINTNEXTLINE(misc-no-recursion)
inline Number recursive(Number n) { return n < 2 ? n : recursive(n - 1) + recursive(n - 2); }

// Allocates a hundred structures of 4 KB, none of which the compiler can leave out.
inline Number allocate(Number n) {
  void* all[100];
  for (void*& p : all) {
    p = std::malloc(4096);
    static_cast<volatile char*>(p)[n % 4096] = 1;
  }
  for (void* p : all) std::free(p);
  return n;
}

using Work = Number (*)(Number);
inline Work work_of(const std::string& name) {
  if (name == "messaging") return [](Number n) { return n; };
  if (name == "light")
    return
        [](Number n) { return fibonacci(static_cast<Number>(std::sqrt(static_cast<double>(n)))); };
  if (name == "heavy") return fibonacci;
  if (name == "recursive") return recursive;
  if (name == "alloc") return allocate;
  throw std::invalid_argument("no such workload: " + name);
}

}  // namespace thesis
