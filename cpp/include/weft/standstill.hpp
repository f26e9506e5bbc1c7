// A standstill (rule 10.6): nothing can run, nothing is due, and yet no deadlock is proven, since somebody who is no process of the run may
// hold an end: a thread with a weft::Outside. Once nothing has run for two seconds it is told, once a run for the same places.
//
//   weft::on_standstill([](const weft::Standstill& s) { log(s.text()); });     in place of a message on stderr
//
// runtime/run.hpp says who notices it.
#pragma once
#include <chrono>
#include <functional>
#include <mutex>

#include "runtime/outside.hpp"
#include "runtime/partial.hpp"

namespace weft::inline WEFT_ABI {

// One process that waits.
struct Waits {
  std::string path;
  std::string operation;
  std::string at;                      // file:line
  std::vector<std::string> places;     // channels and barriers
  std::vector<std::string> waits_for;  // paths of the processes that hold ends there
  std::vector<std::string> open;       // of the places, those to which somebody may come who is no process
};

class Standstill {
 public:
  std::vector<Waits> processes;       // by path
  std::chrono::nanoseconds waited{};  // nothing has run for so long
  unsigned outside = 0;               // weft::Outside tokens that may still act

  std::string text() const {
    const std::size_t n = processes.size();
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%g", static_cast<double>(waited.count()) * 1e-9);
    std::string s = "standstill: nothing has run for " + std::string(seconds) + " s, and no timer or blocking call is due; " +
                    std::to_string(n) + (n == 1 ? " process waits" : " processes wait");
    for (std::size_t i = 0; i < n; ++i) {
      if (i == runtime::Report::kLines) {
        s += "\n  … and " + std::to_string(n - i) + " more";
        break;
      }
      const Waits& p = processes[i];
      s += "\n  " + p.path + ": " + p.operation;
      if (!p.places.empty()) s += " " + list(p.places, ", ");
      s += " at " + p.at;
      if (!p.waits_for.empty()) s += "; held by " + list(p.waits_for, " and ");
      if (!p.open.empty()) s += "; who has the other end of " + list(p.open, ", ") + " is not known";
    }
    return s + "\nwhat may still wake them: " + std::to_string(outside) + " weft::Outside token" + (outside == 1 ? "" : "s") +
           " (say weft::Outside(weft::Outside::due) where its thread waits for something that takes its time)";
  }

 private:
  static std::string list(const std::vector<std::string>& names, const char* between) {
    std::string s;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i == runtime::Report::kNames) return s + between + std::to_string(names.size() - i) + " more";
      s += (i ? between : "") + names[i];
    }
    return s;
  }
};

namespace detail {

struct StandstillTeller {
  std::mutex mutex;
  std::function<void(const Standstill&)> tell;
};
inline StandstillTeller& standstill_teller() {
  static auto& t = *new StandstillTeller;  // runs may stand still until the very end
  return t;
}

class FoundStandstill final : public runtime::Run::Standstill {
 public:
  explicit FoundStandstill(runtime::AtRest&& r) {
    for (runtime::StuckProcess& p : r.processes)
      s_.processes.push_back(
          {std::move(p.path), std::move(p.operation), std::move(p.at), std::move(p.places), std::move(p.waits_for), std::move(p.open)});
    s_.waited = std::chrono::nanoseconds(runtime::patience().load(std::memory_order_relaxed));
    s_.outside = runtime::Outsiders::all().strangers();
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

inline std::unique_ptr<runtime::Run::Standstill> find_standstill(runtime::Run& run, const runtime::OpKind& waits) noexcept {
  runtime::AtRest r;
  run.while_all_sleep([&] { r = runtime::Partial::at_rest(run, waits); });
  if (r.places == 0 || !run.first_of(r.places)) return nullptr;
  return std::make_unique<FoundStandstill>(std::move(r));
}

}  // namespace detail

// From now on this is called, in place of a message on stderr; nothing: stderr again. By a thread that sleeps for Weft, of which it must
// not use anything; it must not throw. `after`: how long nothing has run before; 0: never. Left out: as before, which is as the environment
// variable WEFT_STANDSTILL says, in seconds (0: never), or 2 s.
inline void on_standstill(std::function<void(const Standstill&)> tell, std::chrono::nanoseconds after = std::chrono::nanoseconds(-1)) {
  if (after.count() >= 0) runtime::patience().store(after.count(), std::memory_order_relaxed);
  const std::lock_guard g(detail::standstill_teller().mutex);
  detail::standstill_teller().tell = std::move(tell);
}

}  // namespace weft::inline WEFT_ABI
