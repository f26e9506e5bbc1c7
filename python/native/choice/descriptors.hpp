// The descriptors that a choice waits for (rule 18.3), by the engine of weft::io (Linux).
#pragma once
#include <memory>
#include <vector>

#include "weft/core/guard.hpp"

namespace weft::inline WEFT_ABI::io::detail {
class Watched;
}

namespace weft::py {

class Descriptors {
 public:
  bool any() const noexcept { return !all_.empty(); }
  // Makes `g` the guard that the descriptor is ready to be read, or to be written.
  void add(core::Guard& g, int fd, bool writes);
  // Called before each select with a descriptor. Raises BadUse where nothing says when the
  // descriptor is ready (rule 18.7), OSError if the system has none left for the engine. Returns -1
  // then, otherwise 0.
  static int check(const char* verb);

 private:
  std::vector<std::shared_ptr<io::detail::Watched>> all_;  // kept while the choice has the guards
};

}  // namespace weft::py
