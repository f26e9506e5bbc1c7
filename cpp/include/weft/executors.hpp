// Executors to be asked for (rules 15.5 to 15.8): weft::Cores and weft::Core say what is wanted; a run makes it at its first use.
//
//   weft::Cores pool(2);   p().on(pool)      weft::Core io;   p().on(io)      p().pinned(1)      weft::run(weft::on(pool), p(), q())
#pragma once
#include <map>

#include "coroutine.hpp"
#include "runtime/cores.hpp"
#include "runtime/solo.hpp"

namespace weft {

namespace detail {
struct Where {
  unsigned threads;
  bool multi;
  std::vector<int> cpus;  // where to hold them, one for each; empty: nowhere
};
}  // namespace detail

// Cores or Core. A copy means the same executor.
class Executor {
 public:
  const std::shared_ptr<const detail::Where>& where() const noexcept { return where_; }

 protected:
  explicit Executor(detail::Where w) : where_(std::make_shared<const detail::Where>(std::move(w))) {
    for (const int cpu : where_->cpus) runtime::check_cpu(cpu);
  }

 private:
  std::shared_ptr<const detail::Where> where_;
};

// A multi-core executor of n threads (1 to 64), between which its processes move. `cpus`: where to hold them, one for each (a CPU may come
// twice); left out: wherever the system puts them. BadUse for other numbers, and for CPUs that this program may not use.
class Cores : public Executor {
 public:
  explicit Cores(unsigned n, std::vector<int> cpus = {}) : Executor(checked(n, std::move(cpus))) {}

 private:
  static detail::Where checked(unsigned n, std::vector<int> cpus) {
    constexpr unsigned most = 64;
    if (n < 1 || n > most) detail::bad_use("Cores: " + std::to_string(n) + " cores; it takes 1 to " + std::to_string(most));
    if (!cpus.empty() && cpus.size() != n)
      detail::bad_use("Cores: " + std::to_string(cpus.size()) + " CPUs for " + std::to_string(n) + " cores; name one for each, or none");
    return {n, true, std::move(cpus)};
  }
};

// A single-core executor: a thread of its own, on which local channels work; held on `cpu` if one is given.
class Core : public Executor {
 public:
  Core() : Executor(detail::Where{1, false, {}}) {}
  explicit Core(int cpu) : Executor(detail::Where{1, false, {cpu}}) {}
};

namespace detail {

// The executor of a CPU, for all that are pinned to it.
inline std::shared_ptr<const Where> pinned_to(int cpu) {
  runtime::check_cpu(cpu);
  static std::mutex m;
  static std::map<int, std::shared_ptr<const Where>> all;
  const std::lock_guard g(m);
  std::shared_ptr<const Where>& w = all[cpu];
  if (!w) w = std::make_shared<const Where>(Where{1, false, {cpu}});
  return w;
}

inline runtime::At hire(runtime::Run& run, const std::shared_ptr<const Where>& w) {
  const runtime::At at = run.hire(w, [&]() -> std::unique_ptr<runtime::Hired> {
    if (!w->multi) return std::make_unique<runtime::Solo>(run, w->cpus.empty() ? -1 : w->cpus[0]);
    auto cores = std::make_unique<runtime::Cores>(run, w->threads, w->cpus);
    cores->start(0);
    return cores;
  });
  if (at == runtime::At::group) bad_use("a run uses at most 64 executors: share them between processes");
  return at;
}

}  // namespace detail

// A process that was told where to run.
template <class R>
class Placed {
 public:
  using result_type = R;
  Placed(BasicProcess<R>&& p, std::shared_ptr<const detail::Where> w) noexcept : p_(std::move(p)), where_(std::move(w)) {}

  Placed&& named(const char* name) && {
    p_ = std::move(p_).named(name);
    return std::move(*this);
  }
  bool startable() const noexcept { return p_.startable(); }
  void check(runtime::Group& g) const { p_.check(g.run.executor_at(detail::hire(g.run, where_))); }
  template <class Slot>
  void start(runtime::Group& g, Slot* result) {
    const runtime::At at = detail::hire(g.run, where_);
    p_.start(g, result, at, g.run.executor_at(at));
  }
  auto bind(runtime::ProcessBase* p) &&;  // co_await it, as a process

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

}  // namespace weft
