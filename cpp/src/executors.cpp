// The definitions of executors.hpp.
#include <mutex>

#include <weft/executors.hpp>
#include <weft/runtime/cores.hpp>
#include <weft/runtime/own_thread.hpp>

namespace weft::inline WEFT_ABI {

void detail::check_cpu(int cpu) {
  const std::string why = runtime::cpu_refused(cpu);
  if (!why.empty()) throw BadUse(why);
}

Executor::Executor(detail::Where w) : where_(std::make_shared<const detail::Where>(std::move(w))) {
  for (const int cpu : where_->cpus) detail::check_cpu(cpu);
}

detail::Where Cores::checked(unsigned n, std::vector<int> cpus) {
  constexpr unsigned most = 64;
  if (n < 1 || n > most)
    detail::bad_use("Cores: " + std::to_string(n) + " cores; their number must be from 1 to " +
                    std::to_string(most));
  if (!cpus.empty() && cpus.size() != n)
    detail::bad_use("Cores: " + std::to_string(cpus.size()) + " CPUs for " + std::to_string(n) +
                    " cores; name one for each, or none");
  return {true, n, std::move(cpus)};
}

namespace detail {

std::shared_ptr<const Where> pinned_to(int cpu) {
  detail::check_cpu(cpu);
  static std::mutex m;
  static std::vector<std::shared_ptr<const Where>> all;
  const std::lock_guard g(m);
  for (const std::shared_ptr<const Where>& w : all)
    if (w->cpus[0] == cpu) return w;
  return all.emplace_back(std::make_shared<const Where>(Where{false, 1, {cpu}}));
}

static std::unique_ptr<runtime::RunExecutor> hired(runtime::Run& run, const Where& w) {
  if (!w.multi) return std::make_unique<runtime::OwnThread>(run, w.cpus.empty() ? -1 : w.cpus[0]);
  auto cores = std::make_unique<runtime::Cores>(run, w.threads, w.cpus);
  cores->start(0);
  return cores;
}
runtime::RunsAt hire(runtime::Run& run, const std::shared_ptr<const Where>& w) {
  WEFT_POINT(refuses("a process on another executor, p.on(…) or p.pinned(…)"));
  if (!w) bad_use("this executor was moved away: use the one to which it was moved");
  const runtime::RunsAt at = run.hire(w, [&] { return hired(run, *w); });
  if (at == runtime::RunsAt::group)
    bad_use("a run uses at most 64 executors: share them between processes");
  return at;
}

}  // namespace detail
}  // namespace weft::inline WEFT_ABI
