// The registry of the tokens of ../outside.hpp, which represent what may wake a run from outside
// (rule 10.3).
//
// State under the registry's lock: the existing runs, the number of tokens, and the function that
// examines standstills. A run reads the number of tokens when nothing in it can continue. When the
// last token is destroyed, every run reads it again.
#pragma once
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include <thread>
#include "run.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Outsiders {
 public:
  static Outsiders& all();
  void join(Run& r);
  void leave(Run& r) noexcept;
  // Sets the function that examines standstills, for the runs that have none (rule 10.6).
  void look_by(Run::Look f) noexcept;
  void enter(bool due, bool link = false) noexcept;
  void exit(bool due, bool link = false) noexcept;
  unsigned foreign_threads() noexcept;
  // Called in the child of a fork. The tokens and runs belong to the parent, so the child has none.
  void forget() noexcept;
  // Returns the runs that exist now. None of these runs ends until unpin().
  std::vector<Run*> pin();
  void unpin() noexcept;

 private:
  std::mutex mutex_;
  std::condition_variable unpinned_;
  // How often pin() was called without unpin(). A run that ends waits until pins_ is 0.
  unsigned pins_ = 0;
  std::vector<Run*> runs_;  // oldest run first
  Run::Look look_ = nullptr;
  unsigned tokens_ = 0;  // the number of tokens whose threads wait for something that is due
  unsigned unknown_tokens_ = 0;  // the number of tokens of threads about which nothing is known
};

}  // namespace weft::inline WEFT_ABI::runtime
