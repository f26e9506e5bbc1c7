// The descriptors that a choice waits for (rule 18.3). On Linux, the engine of weft::io watches
// them.
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
  // Makes `g` a guard that is ready when the descriptor can be read or, if `writes`, written.
  void add(core::Guard& g, int fd, bool writes);
  // Called before each select with a descriptor. Raises BadUse where nothing reports that the
  // descriptor is ready (rule 18.7), and OSError if the system has no descriptor left for the
  // engine. Returns -1 if it has raised an error, otherwise 0.
  static int check(const char* verb);

 private:
  std::vector<std::shared_ptr<io::detail::Watched>> all_;  // kept while the choice has the guards
};

}  // namespace weft::py
