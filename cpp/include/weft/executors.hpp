// Executors that a program asks for (rules 15.5 to 15.8): weft::Cores and weft::Core describe an
// executor; a run makes the executor when it is first used.
//
//   weft::Cores pool(2);
//   weft::Core io;
//   weft::run(weft::on(pool), p(), q());
//   weft::par(p().on(pool), q().on(io), r().pinned(1))
#pragma once
#include "config.hpp"
#include "coroutine.hpp"
#include "runtime/affinity.hpp"

namespace weft::inline WEFT_ABI {

struct RunOptions;
namespace runtime {
class Cores;
class ThreadProcess;
}  // namespace runtime

namespace detail {
struct Where;
struct StartOf;
struct Where {
  bool multi;  // true for a Cores, false for a Core
  unsigned threads;
  // The CPU of each thread; the list is empty if the threads are not pinned.
  std::vector<int> cpus;
};
// Runs a network with this thread as worker 0 of `cores`, whose other workers have been started.
void execute_on(runtime::Cores& cores, const RunOptions& o, runtime::Run& run,
                runtime::ThreadProcess& self, const Where* where, const StartOf& start);
// Throws BadUse if this program may not use that CPU.
void check_cpu(int cpu);

}  // namespace detail

// The base of Cores and Core. A copy stands for the same executor.
class Executor {
 public:
  const std::shared_ptr<const detail::Where>& where() const noexcept { return where_; }

 protected:
  explicit Executor(detail::Where w);

 private:
  std::shared_ptr<const detail::Where> where_;
};

// A multi-core executor of n threads (1 to 64), between which its processes move. `cpus` lists the
// CPU to which each thread is pinned (a CPU can be listed twice); if it is left out, the system
// places the threads. Throws BadUse for other numbers of threads, and for CPUs that this program
// may not use.
class Cores : public Executor {
 public:
  explicit Cores(detail::Count n, std::vector<int> cpus = {})
      : Executor(checked(n.up_to_32_bits("Cores: the number of cores"), std::move(cpus))) {}

 private:
  static detail::Where checked(unsigned n, std::vector<int> cpus);
};

// A single-core executor: a thread of its own, on which local channels work. The thread is pinned
// to `cpu` if that is given. Throws BadUse if this program may not use that CPU.
class Core : public Executor {
 public:
  Core() : Executor(detail::Where{false, 1, {}}) {}
  explicit Core(int cpu) : Executor(detail::Where{false, 1, {cpu}}) {}
};

namespace detail {

// Returns the executor of a CPU. All processes that are pinned to that CPU share it.
std::shared_ptr<const Where> pinned_to(int cpu);
// Returns the place of executor `w` in the run. The executor is made when it is first used.
runtime::RunsAt hire(runtime::Run& run, const std::shared_ptr<const Where>& w);

}  // namespace detail

// A process together with the executor on which it is to run.
template <class R>
class Placed {
 public:
  using result_type = R;
  Placed(BasicProcess<R>&& p, std::shared_ptr<const detail::Where> w) noexcept
      : p_(std::move(p)), where_(std::move(w)) {}

  Placed&& named(const char* name) && {
    p_ = std::move(p_).named(name);
    return std::move(*this);
  }
  bool startable() const noexcept { return p_.startable(); }
  const char* called() const noexcept { return p_.called(); }
  void check(runtime::Group& g) const { p_.check(g.run.executor_at(detail::hire(g.run, where_))); }
  template <class Slot>
  void start(runtime::Group& g, Slot* result) {
    const runtime::RunsAt at = detail::hire(g.run, where_);
    p_.start(g, result, at, g.run.executor_at(at));
  }
  // Makes co_await run the placed process as a process of its own.
  auto bind(runtime::ProcessBase* p) &&;

 private:
  BasicProcess<R> p_;
  std::shared_ptr<const detail::Where> where_;
};

template <class R>
Placed<R> BasicProcess<R>::on(const Executor& e) && {
  return {std::move(*this), e.where()};
}
template <class R>
Placed<R> BasicProcess<R>::pinned(int cpu) && {
  return {std::move(*this), detail::pinned_to(cpu)};
}

}  // namespace weft::inline WEFT_ABI
