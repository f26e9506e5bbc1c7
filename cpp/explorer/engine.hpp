// A schedule explorer: the threads of a test are fibers, and before every operation on an atomic
// the explorer decides which of them runs.
//
//   scenario(name, body)   registers a test; body sets up its objects, spawns threads, calls run(),
//                          and then checks the result
//   exhaust                depth-first over all schedules with at most `bound` preemptions
//                          (iterative context bounding: Musuvathi and Qadeer, PLDI 2007); bounds 0,
//                          1, … in turn, so that the first failure found is a short one
//   sample                 random schedules from a seed: half of them by priorities with few change
//                          points (PCT: Burckhardt et al., ASPLOS 2010), half of them a random walk
//   replay                 one schedule, given as "step:thread,…": the steps at which the running
//                          thread does not continue, and those that run instead; then round-robin
//
//   runnable ──pause()──► pausing ──another thread changed an atomic──► runnable
//      │  ▲
//      │  └──unpark() or time limit── parked ◄──park()── runnable
//      └──body returns──► finished
//
// The explorer finds, and reports with a trace: a failed check; a deadlock (no thread can run, and
// some thread has not finished: a lost wake-up); a livelock (the limit of steps is reached); the
// use of an atomic outside its lifetime. An execution is deterministic: bodies must not read
// clocks, addresses or random devices.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weft::explorer {

// The number given by explore --mutant N: the defect of the code under exploration, or 0 for none.
inline int mutant = 0;

enum class Op : std::uint8_t { load, store, exchange, cas, rmw, park, unpark, pause, begin };

struct Failure {
  std::string what;
};

// Thrown to unwind a body whose execution is abandoned because a thread has failed.
struct Abandoned {};

class Engine {
 public:
  // --- for the body of a test ---
  void spawn(const char* name, std::function<void()> body);
  void run();
  // Gives the objects in [p, p + size) a readable name for traces.
  void name(const void* p, std::size_t size, std::string what);
  // Returns a number below n. The choice is explored like a schedule decision. The function is
  // meant for inputs: which thread cancels, in which order.
  std::uint32_t choose(std::uint32_t n);
  void note(std::string text);  // adds a line to the trace
  // Set by a body. If the flag is true, the expiry of a time limit while another thread could run
  // counts as a preemption. The flag is meant for bodies in which a thread checks for work at
  // intervals, and that could otherwise run forever.
  bool expiry_costs = false;
  // Called when one thread is left and another resumes, with their numbers (-1 for
  // none), to keep thread-local data apart. May be null.
  void (*switching)(int from, int to) = nullptr;

  // --- for the primitives ---
  void point(Op op, const void* address, const char* file, int line) noexcept;
  void did(std::uint64_t was, std::uint64_t is) noexcept;
  void pause() noexcept;
  void park(const void* word, std::int64_t until, bool forever) noexcept;
  void unpark(const void* word) noexcept;
  std::int64_t now() const noexcept { return now_; }
  int current() const noexcept { return current_; }  // the fiber that runs
  [[noreturn]] void fail(const std::string& what);

  // --- for the driver ---
  struct Limits {
    unsigned bound = 2;
    std::uint64_t executions = 2'000'000;
    // With `samples`: only schedules with more than this number of preemptions are sampled.
    int sure = -1;
    std::uint64_t samples = 0;  // the largest number of further executions; 0 means no such limit
    std::uint64_t steps = 20'000;
    std::function<void()> alive;  // called from time to time, as a sign of life
  };
  struct Outcome {
    std::uint64_t executions = 0;
    std::uint64_t steps = 0;
    bool complete = false;  // every schedule within the bound was run
    int exhausted = -1;     // every schedule with at most this many preemptions was run
    bool failed = false;
    std::string what, schedule, trace;
    unsigned preemptions = 0;
    std::uint64_t seed = 0;
  };
  Outcome exhaust(const std::function<void()>& body, Limits l);
  Outcome sample(const std::function<void()>& body, Limits l, std::uint64_t seed);
  Outcome replay(const std::function<void()>& body, const std::string& schedule);

 private:
  enum class State : std::uint8_t { runnable, pausing, parked, finished };
  struct Fiber {
    void* sp = nullptr;
    char* stack = nullptr;
    void* fake = nullptr;  // used by AddressSanitizer
    std::function<void()> body;
    const char* name = "";
    State state = State::runnable;
    bool timed = false;
    std::uint64_t seen = 0;  // the version of memory at the fiber's last operation
    const void* word = nullptr;
    std::int64_t until = 0;
    std::uint64_t priority = 0;
  };
  struct Decision {
    std::uint8_t options[8];
    std::uint8_t count;
    std::uint8_t chosen;
  };
  enum class Mode : std::uint8_t { exhaust, walk, priorities, replay };

  static void entry();
  void reset();
  bool execute(const std::function<void()>& body);
  void finish(Outcome& o, const std::function<void()>& body);
  void schedule();
  bool enabled(const Fiber& f) const noexcept;
  unsigned pick(const std::uint8_t (&options)[8], unsigned count, bool preemptible);
  void switch_to(int next);
  void line(std::string text);
  std::string where(const void* p) const;
  std::string stuck() const;
  std::uint64_t random() noexcept;

  std::vector<Fiber> fibers_;
  std::vector<char*> stacks_;
  std::size_t count_ = 0;
  int current_ = -1;
  void* main_sp_ = nullptr;
  void* main_fake_ = nullptr;
  Mode mode_ = Mode::exhaust;
  std::vector<Decision> path_;
  std::size_t at_ = 0;
  unsigned bound_ = 0, preemptions_ = 0;
  std::uint64_t steps_ = 0, step_limit_ = 0, version_ = 0, rng_ = 1, total_steps_ = 0;
  std::vector<std::uint64_t> change_points_;
  std::int64_t now_ = 0;
  bool failed_ = false;
  std::string what_;
  // the steps of this execution at which another thread than the running one continued, and the
  // thread that continued
  std::vector<std::pair<std::uint64_t, int>> departures_;
  std::vector<std::pair<std::uint64_t, int>> script_;  // the same, for an execution to replay
  bool tracing_ = false;
  std::string trace_;
  struct Name {
    const char *begin, *end;
    std::string what;
  };
  std::vector<Name> names_;
  Op op_ = Op::begin;
  const void* address_ = nullptr;
  const char* file_ = "";
  int line_ = 0;
};

// Returns the engine, which is made at the first call.
Engine& make_engine();
inline Engine* made = nullptr;
inline Engine& engine() { return made ? *made : make_engine(); }

// --- registry and driver -------------------------------------------------------------------------

struct Scenario {
  const char* name;
  std::function<void()> body;
  int exhausted;  // the bound up to which the tests run all schedules
  // The bound up to which the tests explore the scenario: `exhausted`, or a greater one, at which
  // there are too many schedules to run them all.
  unsigned bound;
};
bool enrol(const char* name, int exhausted, unsigned bound, void (*body)());

#define WEFT_CAT_(a, b) a##b
#define WEFT_CAT(a, b) WEFT_CAT_(a, b)
// SCENARIO("name (rule)", bound) { … }   runs all schedules with at most `bound` preemptions, and
//                                        fails if they are too many to run
// SAMPLED("name (rule)", bound) { … }    runs all schedules with at most `bound` preemptions (-1:
//                                        none, since there are too many even without a preemption),
//                                        and a sample of the schedules with one more. Fails if all
//                                        of the latter could have been run. CAVEATS.md lists these
//                                        scenarios.
#define SCENARIO(NAME, BOUND) WEFT_SCENARIO(NAME, BOUND, BOUND, __COUNTER__)
#define SAMPLED(NAME, BOUND) WEFT_SCENARIO(NAME, BOUND, (BOUND) + 1, __COUNTER__)
#define WEFT_SCENARIO(NAME, EXHAUSTED, BOUND, ID)                                \
  static void WEFT_CAT(scenario_, ID)();                                         \
  static const bool WEFT_CAT(enrolled_, ID) =                                    \
      ::weft::explorer::enrol(NAME, EXHAUSTED, BOUND, &WEFT_CAT(scenario_, ID)); \
  static void WEFT_CAT(scenario_, ID)()

#define WEFT_STR_(x) #x
#define WEFT_STR(x) WEFT_STR_(x)
#define REQUIRE_THAT(COND)                                                                        \
  do {                                                                                            \
    if (!(COND))                                                                                  \
      ::weft::explorer::engine().fail("not so: " #COND " (" __FILE__ ":" WEFT_STR(__LINE__) ")"); \
  } while (0)

int explore_main(int argc, char** argv);

}  // namespace weft::explorer
