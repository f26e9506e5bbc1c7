// The definitions of standstill.hpp.
#include <cstdio>
#include <mutex>

#include <memory>
#include <weft/compose.hpp>
#include <weft/runtime/outside.hpp>
#include <weft/runtime/partial.hpp>
#include <weft/runtime/report.hpp>
#include <weft/runtime/text.hpp>
#include <weft/standstill.hpp>

namespace weft::inline WEFT_ABI {

namespace detail {

struct StandstillTeller {
  std::mutex mutex;
  std::function<void(const Standstill&)> tell;
};
static StandstillTeller& standstill_teller() {
  static auto& t = *new StandstillTeller;  // never destroyed: runs can use it until the very end
  return t;
}

class FoundStandstill final : public runtime::Run::Standstill {
 public:
  explicit FoundStandstill(runtime::Found&& r) {
    s_.processes = std::move(r.processes);
    s_.waited = std::chrono::nanoseconds(runtime::patience().load(std::memory_order_relaxed));
    s_.outside = runtime::Outsiders::all().foreign_threads();
  }
  void tell() noexcept override {
    std::function<void(const weft::Standstill&)> f;
    {
      const std::lock_guard g(standstill_teller().mutex);
      f = standstill_teller().tell;
    }
    if (f)
      f(s_);
    else
      std::fprintf(stderr, "weft: %s\n", s_.text().c_str());
  }

 private:
  weft::Standstill s_;
};

static runtime::Run::Standstill* find_standstill(runtime::Run& run,
                                                 const runtime::OpKind& waits) noexcept {
  runtime::Found r;
  run.while_all_sleep([&] { r = runtime::look_at_rest(run, waits); });
  if (r.places == 0 || !run.first_of(r.places)) return nullptr;
  return new FoundStandstill(std::move(r));
}

void look_at_standstills() noexcept {
  runtime::Outsiders::all().look_by(
      [](runtime::Run& r) noexcept { return find_standstill(r, wait_op); });
}

}  // namespace detail

std::string Standstill::text() const {
  using runtime::line_of;
  using runtime::listed;
  using runtime::put;
  const std::size_t n = processes.size();
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", static_cast<double>(waited.count()) * 1e-9);
  std::string s = runtime::joined({"standstill: nothing has run for ", seconds,
                                   " s, and no timer or blocking call is due; ", std::to_string(n),
                                   n == 1 ? " process waits" : " processes wait"});
  for (std::size_t i = 0; i < n; ++i) {
    if (i == runtime::Report::kLines) {
      put(s, {"\n  … and ", std::to_string(n - i), " more"});
      break;
    }
    const Waits& p = processes[i];
    put(s, {"\n  ", line_of(p)});
    if (!p.waits_for.empty()) put(s, {"; held by ", listed(p.waits_for, " and ")});
    if (!p.open.empty())
      put(s, {"; the holder of the other end of ", listed(p.open, ", "), " is not known"});
  }
  put(s, {"\nwhat may still wake them: ", std::to_string(outside), " weft::Outside token",
          outside == 1 ? "" : "s",
          " (say weft::Outside(weft::Outside::due) where its thread waits for something that takes "
          "its time)"});
  return s;
}

void on_standstill(std::function<void(const Standstill&)> tell, std::chrono::nanoseconds after) {
  if (after.count() >= 0) runtime::patience().store(after.count(), std::memory_order_relaxed);
  const std::lock_guard g(detail::standstill_teller().mutex);
  detail::standstill_teller().tell = std::move(tell);
}

}  // namespace weft::inline WEFT_ABI
