// Exploration of the core: each file that is included below is a group of scenarios. The program
// explores the code as it is or, with --mutant N, the code with a defect.
#include "engine.hpp"
#include "parties.hpp"

namespace weft::test {
using explorer::engine;

inline void spawn(const char* name, std::function<void()> f) { engine().spawn(name, std::move(f)); }
inline void run() { engine().run(); }
template <class T>
void name(T& x, const char* n) {
  engine().name(&x, sizeof x, n);
}
inline std::uint32_t choose(std::uint32_t n) { return engine().choose(n); }

// Checks, when it is destroyed, that every value has been destroyed exactly once.
struct Balance {
  Balance() { Item::alive = 0; }
  void check() const {
    if (Item::alive != 0)
      engine().fail("values leaked or destroyed twice: " + std::to_string(Item::alive.load()));
  }
};
}  // namespace weft::test

#include "explore_asymmetric.hpp"
#include "explore_barrier.hpp"
#include "explore_biased.hpp"
#include "explore_buffer.hpp"
#include "explore_choice.hpp"
#include "explore_crew.hpp"
#include "explore_ended.hpp"
#include "explore_foreign.hpp"
#include "explore_latch.hpp"
#include "explore_one2one.hpp"
#include "explore_rendezvous.hpp"
#include "explore_standing.hpp"
#include "explore_together.hpp"

int main(int argc, char** argv) { return weft::explorer::explore_main(argc, argv); }
