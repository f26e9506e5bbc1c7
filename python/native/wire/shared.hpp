// Arrays that many OS processes read but none changes: weft.processes.Shared, over the memory of
// wire::SharedArray (WIRE.md 9.3).
//
// Such an object is pickled as its index in the list that is sent beside the pickle, in the packed
// value (packed.cpp).
#pragma once
#include <memory>
#include <vector>

#ifdef __linux__
#include "weft/wire/shared.hpp"
#endif

namespace weft::py {

#ifdef __linux__
using Sealed = std::shared_ptr<const wire::Sealed>;
#else
struct Nothing {};
using Sealed = std::shared_ptr<const Nothing>;
#endif
using AllSealed = std::vector<Sealed>;

// In the scope of this object, the arrays that this thread pickles are collected in `a`, and the
// arrays that it unpickles are found there.
class Beside {
 public:
  explicit Beside(AllSealed& a) noexcept;
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  ~Beside();

 private:
  AllSealed* const outer_;
};

}  // namespace weft::py
