// The registry of what may wake a run from outside (rule 10.3): the tokens of ../outside.hpp.
//
// State under the registry's lock: the runs that are going on, the number of tokens, and the
// function that looks at standstills. A run looks at the number when it is quiescent; the last
// token that goes lets every run look again.
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
  // Sets the function that looks at the standstills of runs that have none (rule 10.6).
  void look_by(Run::Look f) noexcept;
  void enter(bool due, bool link = false) noexcept;
  void exit(bool due, bool link = false) noexcept;
  unsigned strangers() noexcept;
  // Called in the child of a fork: the tokens are the parent's, and wake nothing in the child. No
  // run goes on in the child either.
  void forget() noexcept;
  // The runs that go on now; none of them ends until unpin().
  std::vector<Run*> pin();
  void unpin() noexcept;

 private:
  std::mutex mutex_;
  std::condition_variable unpinned_;
  unsigned pins_ = 0;       // a thread that leaves waits until there are none
  std::vector<Run*> runs_;  // the oldest first
  Run::Look look_ = nullptr;
  unsigned tokens_ = 0;     // tokens whose threads wait for something that is due
  unsigned strangers_ = 0;  // tokens of whose threads nothing is known
};

}  // namespace weft::inline WEFT_ABI::runtime
