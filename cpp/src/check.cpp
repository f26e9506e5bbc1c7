// The definitions of check.hpp: the search through the schedules, how a failure is shortened, and
// how it is reported.
//
//   first run ──runs no network, or cannot be checked──► BadUse
//     └► tokens, each replayed ──► the search ──a schedule fails──► made short ──► reported
#include <weft/config.hpp>

#if WEFT_CHECKED
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <typeinfo>
#include <weft/check.hpp>

#include <weft/check/reduced.hpp>
#include <weft/check/strategies.hpp>
#include <weft/checker.hpp>
#include <weft/tokens.hpp>

namespace weft::inline WEFT_ABI::detail {
namespace {

using checking::Kind;
using checking::Replay;
using checking::Stopped;
using Deviations = std::vector<Replay::Deviation>;

// The outcome of one run.
struct Outcome {
  std::string kind;  // the kind of failure; empty if there was none
  std::string what, type;
  Stopped why = Stopped::no;
  Deviations deviations;
  std::vector<Replay::ByNumber> numbers;
  bool any_time = false;  // Settings::any_time of the run
  bool failed() const noexcept { return !kind.empty(); }
  bool alike(const Outcome& o) const noexcept { return kind == o.kind && type == o.type; }
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
std::string counted(std::size_t n, const char* noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

class Check {
 public:
  Check(const std::function<void()>& f, const CheckOptions& o) : f_(f), o_(o) {
    checker_.run.settings.park = o.only_where_parked;
    checker_.run.settings.any_time = o.any_time;
  }
  CheckReport go();

 private:
  Outcome run(checking::Strategy&);
  Outcome run_again(const Outcome&);
  Outcome follow(const Deviations&, bool any_time);
  void search();
  void one_way(Search way, double end, std::size_t most, unsigned turn);
  bool over(double end);
  void found(const Outcome&);
  Outcome shortened(const Outcome&, bool& least);
  void tell(CheckFailure, const Outcome&);
  std::string lines(bool deadlock) const;
  void conclude();

  const std::function<void()>& f_;
  const CheckOptions& o_;
  runtime::Checker checker_;
  CheckReport report_;
  checking::Replay replay_;
  checking::Walk walk_;
  checking::Priorities priorities_;
  checking::Bounded bounded_;
  checking::Reduced reduced_;
  bool ends_ = false;   // whether the search has ended
  bool timed_ = false;  // whether a timer was set in any schedule
  double chances_ = 0;  // the sum of Run::chances over the random walks, for the estimate
  std::size_t walks_ = 0, reduced_runs_ = 0;
  unsigned longest_ = 100;
  double begun_ = seconds_now();
};

// --- one run ------------------------------------------------------------------------------------

Outcome Check::run(checking::Strategy& strategy) {
  Outcome o;
  std::string report;
  checker_.begin(strategy);
  try {
    f_();
  } catch (const Deadlock& e) {
    o.kind = "deadlock";
    report = e.what();
  } catch (const std::exception& e) {
    o.kind = "exception";
    o.what = e.what();
    o.type = typeid(e).name();
  } catch (...) {
    o.kind = "exception";
    o.what = "an exception that is no std::exception";
  }
  checker_.end();
  const checking::Run& r = checker_.run;
  if (!checker_.refused.empty())
    bad_use(runtime::joined({o_.name, " cannot be checked: it uses ", checker_.refused,
                             "; all processes of a checked network are coroutines or threads of "
                             "weft::run, and share nothing (cpp/docs/checking.md, Limits)"}));
  o.why = r.why();
  o.any_time = r.settings.any_time;
  if (o.why != Stopped::no) o = {"", "", "", o.why, {}, {}, o.any_time};
  if (o.why == Stopped::deadlock) o.kind = "deadlock", o.what = report;
  if (o.why == Stopped::limit)
    o.kind = "no end", o.what = "not over after " + counted(r.steps - 1, "step");
  if (o.why == Stopped::different) o.kind = "not the same", o.what = r.difference;
  if (!o.failed() && o.why == Stopped::no && checker_.lost > 0)
    o.kind = "lost values", o.what = counted(checker_.lost, "value") + " that nobody took";
  if (!o.failed()) return o;
  const std::span<const checking::Decision> decisions = r.decisions();
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const checking::Decision& d = decisions[i];
    if (d.index == 0) continue;
    o.numbers.push_back({i, d.index});
    const bool goes = d.kind == Kind::go;
    o.deviations.push_back(
        {r.record.path(d.process), d.step, d.kind, goes ? r.record.path(d.choice) : "",
         goes || d.kind == Kind::time ? 0 : static_cast<unsigned>(d.choice), d.nth});
  }
  return o;
}

Outcome Check::run_again(const Outcome& o) {
  checker_.run.settings.any_time = o.any_time;
  replay_.deviations.clear();
  replay_.numbers = o.numbers;
  return run(replay_);
}
Outcome Check::follow(const Deviations& deviations, bool any_time) {
  checker_.run.settings.any_time = any_time;
  replay_.deviations = deviations;
  replay_.numbers.clear();
  return run(replay_);
}

// --- the search ---------------------------------------------------------------------------------

bool Check::over(double end) {
  return (!o_.keep_going && !report_.failures.empty()) ||
         (o_.schedules != 0 && report_.schedules >= o_.schedules) || seconds_now() >= end;
}

void Check::search() {
  const double end = begun_ + o_.seconds;
  const auto any = static_cast<std::size_t>(-1);
  if (o_.search != Search::automatic) return one_way(o_.search, end, any, 0);
  one_way(Search::reduced, begun_ + 0.4 * o_.seconds, any, 0);
  constexpr Search ways[] = {Search::walk, Search::priorities, Search::few};
  for (unsigned turn = 0; !ends_ && !over(end); ++turn) one_way(ways[turn % 3], end, 200, turn);
}

// Runs at most `most` schedules by one method of searching. In every second round timers can also
// fire early.
void Check::one_way(Search way, double end, std::size_t most, unsigned turn) {
  const bool any_time = o_.any_time || (turn % 2 == 1);
  checking::Strategy* strategy = &reduced_;
  priorities_.depth = 2 + turn % 3;
  bounded_.bound = way == Search::all ? ~0u : 2;
  bounded_.forget();
  if (way == Search::walk) strategy = &walk_;
  if (way == Search::priorities) strategy = &priorities_;
  if (way == Search::all || way == Search::few) strategy = &bounded_;
  bool cut = false, more = true;
  for (std::size_t i = 0; more && i < most; ++i) {
    if (over(end)) return;
    walk_.seed = priorities_.seed = o_.seed + 1000 * turn + i;
    priorities_.longest = longest_;
    checker_.run.settings.any_time = any_time;
    const Outcome o = run(*strategy);
    // The search repeats the run, because it must know more about each step.
    if (strategy->restarts(checker_.run)) continue;
    const checking::Run& r = checker_.run;
    timed_ = timed_ || r.record.timed;
    cut = cut || r.why() == Stopped::limit || r.too_large || r.early_cut || r.polls_cut;
    longest_ = std::max(longest_, r.steps);
    if (way == Search::walk) chances_ += r.chances, ++walks_;
    if (way != Search::walk && way != Search::priorities) more = strategy->advance();
    if (o.why == Stopped::blocked) continue;
    ++report_.schedules;
    reduced_runs_ += way == Search::reduced;
    if (o.failed()) found(o);
    if (o.why == Stopped::different) return;
  }
  if (more || way == Search::walk || way == Search::priorities) return;
  if (way == Search::few && o_.search != Search::few) return;
  ends_ = true;
  report_.complete = !cut && way != Search::few;
}

// --- a failure ----------------------------------------------------------------------------------

void Check::found(const Outcome& o) {
  for (const CheckFailure& f : report_.failures)
    if (f.kind == o.kind && (o.kind != "exception" || f.what == o.what)) return;
  CheckFailure f;
  f.schedule = report_.schedules;
  f.kind = o.kind;
  f.what = o.what;
  if (o.why == Stopped::different) {
    f.text = "the program is not the same twice, so nothing can be concluded: " + o.what +
             "; what differs from run to run is often a clock, a random number, or state that "
             "outlives the run";
    report_.failures.push_back(std::move(f));
    return;
  }
  const Outcome shorter = shortened(o, f.least);  // must be computed before `f` is moved
  tell(std::move(f), shorter);
}

// Returns the same failure with as few deviations as possible: first some deviations are left out,
// then all schedules with fewer deviations are searched.
Outcome Check::shortened(const Outcome& failed, bool& least) {
  const double end = seconds_now() + 2;
  const auto fails = [&](const Deviations& d) -> std::optional<Outcome> {
    Outcome o = follow(d, failed.any_time);
    if (!o.alike(failed)) return {};
    return o;
  };
  Outcome best = run_again(failed);
  if (!best.alike(failed)) return failed;
  for (std::size_t size = std::max<std::size_t>(1, best.deviations.size() / 2);
       size > 0 && !best.deviations.empty() && seconds_now() < end;) {
    bool smaller = false;
    for (std::size_t i = 0; i < best.deviations.size();) {
      Deviations kept = best.deviations;
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i),
                 kept.begin() + static_cast<std::ptrdiff_t>(std::min(i + size, kept.size())));
      const auto o = fails(kept);
      if (o && o->deviations.size() < best.deviations.size())
        best = *o, smaller = true;
      else
        i += size;
    }
    if (!smaller) size /= 2;
  }
  for (unsigned bound = 0; bound < best.deviations.size(); ++bound) {
    checking::Bounded fewer;
    fewer.bound = bound;
    checker_.run.settings.any_time = failed.any_time;
    do {
      const Outcome o = run(fewer);
      if (o.alike(failed)) {
        least = true;
        return o;
      }
      if (seconds_now() >= end) return best;
    } while (fewer.advance());
  }
  least = true;
  return best;
}

// Replays the failure, and adds it to the report line by line.
void Check::tell(CheckFailure f, const Outcome& o) {
  checker_.telling = true;
  const Outcome again = run_again(o);
  checker_.telling = false;
  f.deviations = o.deviations.size();
  f.token = token_of(o.deviations);
  const bool deadlock = again.kind == "deadlock";
  std::string& s = f.text;
  s = f.kind + (f.what.empty() ? "" : ": " + f.what);
  if (f.schedule > 0) s += ", in schedule " + std::to_string(f.schedule);
  if (f.schedule > 0)
    s += f.deviations == 0 ? "; in the usual order"
                           : "; made short: " + counted(f.deviations, "deviation");
  if (f.least && f.deviations > 0) s += "; no schedule with fewer fails";
  s += "\n\n" + lines(deadlock);
  if (deadlock) s += "\n" + again.what + "\n";
  if (f.kind == "lost values")
    s += "if nobody needs these values: poison the channel, or let its reader read to the end\n";
  for (const Replay::Deviation& d : o.deviations) s += "deviation: " + said(d) + "\n";
  s += "replay: weft::check(…, {.replay = {\"" + f.token + "\"}})";
  if (o.any_time && !o_.any_time) s += " with .any_time = true";
  report_.failures.push_back(std::move(f));
}

// Returns the story of the last run: its last 200 operations.
std::string Check::lines(bool deadlock) const {
  const auto& story = checker_.story;
  const std::size_t first = story.size() > 200 ? story.size() - 200 : 0;
  std::vector<std::string> paths;
  std::size_t path = 0, what = 0, at = 0;
  for (const auto& t : story) {
    paths.push_back(checker_.run.record.path(t.process));
    path = std::max(path, paths.back().size());
    what = std::max(what, std::min<std::size_t>(40, t.what.size()));
    at = std::max(at, t.at.size());
  }
  const auto column = [](std::string s, std::size_t width) {
    if (s.size() < width) s.append(width - s.size(), ' ');
    return s + "  ";
  };
  std::string all = first > 0 ? "      (" + counted(first, "line") + " before)\n" : "";
  for (std::size_t i = first; i < story.size(); ++i) {
    const runtime::Checker::StoryEntry& t = story[i];
    char number[32];
    std::snprintf(number, sizeof number, "%4zu  ", i + 1);
    std::string line = number + column(paths[i], path) + column(t.what, what) + column(t.at, at);
    if (!t.at.empty()) {
      if (t.until > 0)
        line += "waits, until " + std::to_string(t.until);
      else
        line += t.how == runtime::Begun::done     ? "done"
                : t.how == runtime::Begun::raised ? "its channel has ended"
                : deadlock                        ? "waits for ever"
                                                  : "waits";
      if (t.guard >= 0) line += ": guard " + std::to_string(t.guard);
    }
    all += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return all;
}

// --- the whole ----------------------------------------------------------------------------------

CheckReport Check::go() {
  checking::Plain plain;
  checker_.telling = true;
  Outcome o = run(plain);
  if (checker_.run.record.count == 1 && !o.failed())
    bad_use(runtime::joined({o_.name,
                             " runs no network, so there is nothing to decide: check a "
                             "function that calls weft::run, or returns a process"}));
  const std::vector<runtime::Checker::StoryEntry> first = std::move(checker_.story);
  o = run(plain);
  checker_.telling = false;
  const auto differs = std::mismatch(
      first.begin(), first.end(), checker_.story.begin(), checker_.story.end(),
      [](const auto& a, const auto& b) { return a.process == b.process && a.what == b.what; });
  if (differs.first != first.end() || differs.second != checker_.story.end()) {
    o.kind = "not the same";
    o.why = Stopped::different;
    o.what = "its operation " + std::to_string(differs.first - first.begin() + 1) +
             " is another in the second of two plain runs";
    found(o);
  }
  for (const std::string& token : o_.replay) {
    Replay asked;
    asked.deviations = deviations_of(token, asked.numbers);
    o = run(asked);
    if (!checker_.run.difference.empty()) {
      report_.text += "the token " + token +
                      " does not fit this program any more: " + checker_.run.difference + "\n";
    } else if (o.failed()) {
      CheckFailure f;
      f.kind = o.kind;
      f.what = o.what;
      tell(std::move(f), o);
    }
  }
  if (!over(begun_ + o_.seconds)) search();
  conclude();
  return std::move(report_);
}

void Check::conclude() {
  std::string& s = report_.text;
  if (walks_ > 0) report_.estimate = chances_ / static_cast<double>(walks_);
  for (const CheckFailure& f : report_.failures) s += o_.name + ": " + f.text + "\n";
  if (!report_.passed()) return;
  s += o_.name + ": nothing found";
  if (report_.complete) {
    const std::size_t runs = reduced_runs_ > 0 ? reduced_runs_ : report_.schedules;
    s += ". Every schedule: " + counted(runs, "run") + (runs == 1 ? " stands" : " stand") +
         " for all of them. " +
         (o_.any_time ? "At most 2 early times in a schedule."
          : timed_    ? "Times come when nobody can run; with .any_time they may also come earlier."
                      : "Times come when nobody can run.");
  } else {
    s += ", but not every schedule was run. " + counted(report_.schedules, "schedule");
    if (const checking::Reduced::Races r = reduced_.races(); r.all > 0)
      s += "; " + std::to_string(r.both) + " of " + counted(r.all, "race") + " seen in both orders";
    if (report_.estimate > static_cast<double>(report_.schedules))
      s += "; some 10^" + std::to_string(static_cast<int>(std::log10(report_.estimate) + 0.5)) +
           " orders in all";
  }
}

}  // namespace

CheckReport check(const std::function<void()>& f, const CheckOptions& options) {
  if (runtime::points) runtime::points->refuses("weft::check within a checked function");
  if (runtime::this_process()) bad_use("weft::check inside a process: call it in ordinary code");
  return Check(f, options).go();
}

}  // namespace weft::inline WEFT_ABI::detail
#endif
