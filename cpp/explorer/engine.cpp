#include "engine.hpp"

#include "progress.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include <weft/check/fibre.hpp>

namespace weft::explorer {

// --- fibers --------------------------------------------------------------------------------------

namespace {
#if WEFT_FIBRE_ASAN
constexpr std::size_t kStack = 256 * 1024;
#else
constexpr std::size_t kStack = 64 * 1024;
#endif
}  // namespace

using checking::exchange_stacks;

Engine& make_engine() {
  static Engine e;
  made = &e;
  return e;
}

void Engine::entry() {
  Engine& e = engine();
#if WEFT_FIBRE_ASAN
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  const int me = e.current_;
  e.fibers_[static_cast<std::size_t>(me)].body();
  e.fibers_[static_cast<std::size_t>(me)].state = State::finished;
  ++e.version_;
  ++e.steps_;
  if (e.tracing_) e.line("finished");
  e.schedule();
  std::abort();  // A finished fiber is not resumed.
}

void Engine::switch_to(int next) {
  const int from = current_;
  void** save = from < 0 ? &main_sp_ : &fibers_[static_cast<std::size_t>(from)].sp;
  void* load = next < 0 ? main_sp_ : fibers_[static_cast<std::size_t>(next)].sp;
  current_ = next;
  if (switching) switching(from, next);
#if WEFT_FIBRE_ASAN
  void** fake = from < 0 ? &main_fake_ : &fibers_[static_cast<std::size_t>(from)].fake;
  static const void* main_bottom = nullptr;
  static std::size_t main_size = 0;
  const void* bottom = next < 0 ? main_bottom : fibers_[static_cast<std::size_t>(next)].stack;
  __sanitizer_start_switch_fiber(fake, bottom, next < 0 ? main_size : kStack);
  exchange_stacks(save, load);
  const void* old = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(*fake, &old, &size);
#else
  exchange_stacks(save, load);
#endif
}

// --- one execution -------------------------------------------------------------------------------

void Engine::spawn(const char* name, std::function<void()> body) {
  if (count_ == 8) fail("at most 8 threads");
  if (count_ == fibers_.size()) {
    fibers_.emplace_back();
    fibers_.back().stack = static_cast<char*>(std::aligned_alloc(4096, kStack));
  }
  Fiber& f = fibers_[count_++];
  f.body = std::move(body);
  f.name = name;
  f.state = State::runnable;
  f.timed = false;
  f.seen = 0;
  f.word = nullptr;
  f.fake = nullptr;
  f.priority = random();
  f.sp = checking::prepare(f.stack, kStack, &Engine::entry);
}

void Engine::run() {
  schedule();
  if (failed_) throw Abandoned{};
}

bool Engine::enabled(const Fiber& f) const noexcept {
  switch (f.state) {
    case State::runnable: return true;
    case State::pausing: return version_ > f.seen;
    case State::parked: return f.timed;
    default: return false;
  }
}

// Decides which fiber runs next. Called before an operation, and by fibers that cannot continue.
// Returns when the caller is to continue.
void Engine::schedule() {
  std::uint8_t options[8] = {};
  unsigned n = 0, early = 0;
  const bool can =
      current_ >= 0 && fibers_[static_cast<std::size_t>(current_)].state == State::runnable;
  if (can) options[n++] = static_cast<std::uint8_t>(current_);
  if (!can || mode_ != Mode::exhaust || preemptions_ < bound_) {
    std::size_t i = current_ < 0 ? count_ - 1 : static_cast<std::size_t>(current_);
    std::uint8_t late[8];
    unsigned m = 0;
    for (std::size_t k = 0; k < count_; ++k) {
      if (++i >= count_) i = 0;
      const Fiber& f = fibers_[i];
      if ((can && static_cast<int>(i) == current_) || !enabled(f)) continue;
      if (f.state == State::parked)
        // A fiber whose time limit expires is placed behind all other fibers.
        late[m++] = static_cast<std::uint8_t>(i);
      else
        options[n++] = static_cast<std::uint8_t>(i);
    }
    early = n;
    bool may_expire = n == 0 || !expiry_costs || mode_ == Mode::replay;
    if (!may_expire)
      may_expire = mode_ == Mode::exhaust ? preemptions_ < bound_ : random() % 8 == 0;
    if (may_expire)
      for (unsigned i = 0; i < m; ++i) options[n++] = late[i];
  }
  if (n == 0) {
    bool all = true;
    for (std::size_t i = 0; i < count_; ++i) all = all && fibers_[i].state == State::finished;
    if (!all) {
      failed_ = true;
      what_ = "deadlock: " + stuck();
      if (tracing_) line(what_);
    }
    if (current_ >= 0) switch_to(-1);
    return;
  }
  const unsigned k = n == 1 ? 0 : pick(options, n, can);
  const int next = options[k];
  if (k != 0) {
    departures_.emplace_back(steps_, next);
    if (can || (expiry_costs && early > 0 && k >= early)) ++preemptions_;
  }
  if (next == current_ && can) return;
  Fiber& f = fibers_[static_cast<std::size_t>(next)];
  if (f.state == State::parked) {
    if (now_ < f.until) now_ = f.until;
    f.timed = false;
    f.word = nullptr;
  }
  f.state = State::runnable;
  if (next != current_) switch_to(next);
}

unsigned Engine::pick(const std::uint8_t (&options)[8], unsigned count, bool preemptible) {
  switch (mode_) {
    case Mode::exhaust: {
      if (at_ == path_.size()) {
        Decision d{};
        std::memcpy(d.options, options, sizeof d.options);
        d.count = static_cast<std::uint8_t>(count);
        d.chosen = 0;
        path_.push_back(d);
      } else if (path_[at_].count != count ||
                 std::memcmp(path_[at_].options, options, sizeof path_[at_].options) != 0) {
        std::fprintf(stderr, "explorer: the scenario is not deterministic\n");
        std::abort();
      }
      return path_[at_++].chosen;
    }
    case Mode::replay:
      for (const auto& [step, who] : script_)
        if (step == steps_)
          for (unsigned i = 0; i < count; ++i)
            if (options[i] == who) return i;
      return 0;
    case Mode::walk: {
      const unsigned r = static_cast<unsigned>(random() % (preemptible ? count * 3 : count));
      return r < count ? r : 0;
    }
    case Mode::priorities: {
      for (const std::uint64_t p : change_points_)
        if (p == steps_ && current_ >= 0)
          fibers_[static_cast<std::size_t>(current_)].priority = change_points_.size() - (p % 7);
      unsigned best = 0;
      for (unsigned i = 1; i < count; ++i)
        if (fibers_[options[i]].priority > fibers_[options[best]].priority) best = i;
      return best;
    }
  }
  return 0;
}

std::uint32_t Engine::choose(std::uint32_t n) {
  std::uint8_t options[8] = {};
  if (n > 8) fail("choose: at most 8");
  for (std::uint32_t i = 0; i < n; ++i) options[i] = static_cast<std::uint8_t>(i);
  ++steps_;
  unsigned k = 0;
  if (mode_ == Mode::walk || mode_ == Mode::priorities)
    k = static_cast<unsigned>(random() % n);
  else
    k = pick(options, n, false);
  if (k != 0) departures_.emplace_back(steps_, static_cast<int>(k));
  if (tracing_) line("chooses " + std::to_string(k) + " of " + std::to_string(n));
  return k;
}

void Engine::point(Op op, const void* address, const char* file, int line_no) noexcept {
  if (current_ < 0) return;
  ++steps_;
  if (steps_ > step_limit_) fail("livelock: " + std::to_string(step_limit_) + " steps, " + stuck());
  schedule();
  op_ = op;
  address_ = address;
  file_ = file;
  line_ = line_no;
}

void Engine::did(std::uint64_t was, std::uint64_t is) noexcept {
  if (was != is) ++version_;
  if (current_ < 0) return;
  fibers_[static_cast<std::size_t>(current_)].seen = version_;
  if (tracing_) {
    static const char* const names[] = {"load", "store",  "exchange", "cas",  "rmw",
                                        "park", "unpark", "pause",    "begin"};
    std::string s = std::string(names[static_cast<int>(op_)]) + " " + where(address_) + " " +
                    std::to_string(was);
    if (was != is) s += " → " + std::to_string(is);
    const char* slash = std::strrchr(file_, '/');
    line(s + "   (" + (slash ? slash + 1 : file_) + ":" + std::to_string(line_) + ")");
  }
}

void Engine::pause() noexcept {
  if (current_ < 0) fail("a spin that cannot end: outside any thread");
  ++steps_;
  if (steps_ > step_limit_) fail("livelock: " + std::to_string(step_limit_) + " steps, " + stuck());
  Fiber& f = fibers_[static_cast<std::size_t>(current_)];
  if (tracing_) line("pauses");
  f.state = State::pausing;
  schedule();
}

void Engine::park(const void* word, std::int64_t until, bool forever) noexcept {
  if (current_ < 0) fail("park outside any thread");
  Fiber& f = fibers_[static_cast<std::size_t>(current_)];
  ++steps_;
  if (tracing_) line(forever ? "parks" : "parks with a time limit");
  f.state = State::parked;
  f.word = word;
  f.until = until;
  f.timed = !forever;
  schedule();
}

void Engine::unpark(const void* word) noexcept {
  did(0, 0);
  for (std::size_t i = 0; i < count_; ++i) {
    Fiber& f = fibers_[i];
    if (f.state == State::parked && f.word == word) {
      f.state = State::runnable;
      f.word = nullptr;
      f.timed = false;
      return;
    }
  }
}

void Engine::fail(const std::string& what) {
  if (!failed_) {
    failed_ = true;
    what_ = what;
    if (tracing_) line(what);
  }
  if (current_ < 0) throw Abandoned{};
  switch_to(-1);
  std::abort();
}

std::string Engine::stuck() const {
  std::string s;
  for (std::size_t i = 0; i < count_; ++i) {
    const Fiber& f = fibers_[i];
    if (f.state == State::finished) continue;
    if (!s.empty()) s += "; ";
    s += std::string(f.name) + (f.state == State::parked    ? " is parked at " + where(f.word)
                                : f.state == State::pausing ? " spins"
                                                            : " runs");
  }
  return s;
}

void Engine::name(const void* p, std::size_t size, std::string what) {
  if (!tracing_) return;
  const char* b = static_cast<const char*>(p);
  names_.push_back({b, b + size, std::move(what)});
}

std::string Engine::where(const void* p) const {
  const char* a = static_cast<const char*>(p);
  const Name* best = nullptr;  // the innermost name
  for (const Name& n : names_)
    if (a >= n.begin && a < n.end && (!best || n.end - n.begin < best->end - best->begin))
      best = &n;
  if (best) return best->what + "+" + std::to_string(a - best->begin);
  for (std::size_t i = 0; i < count_; ++i)
    if (a >= fibers_[i].stack && a < fibers_[i].stack + kStack)
      return std::string(fibers_[i].name) + "'s stack-" +
             std::to_string(fibers_[i].stack + kStack - a);
  char buf[32];
  std::snprintf(buf, sizeof buf, "%p", p);
  return buf;
}

void Engine::note(std::string text) {
  if (tracing_) line(std::move(text));
}

void Engine::line(std::string text) {
  char head[64];
  std::snprintf(head, sizeof head, "%6llu  %-10s ", static_cast<unsigned long long>(steps_),
                current_ < 0 ? "-" : fibers_[static_cast<std::size_t>(current_)].name);
  trace_ += head + std::move(text) + "\n";
}

std::uint64_t Engine::random() noexcept {  // splitmix64 (Steele, Lea, Flood 2014)
  std::uint64_t z = (rng_ += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// --- many executions -----------------------------------------------------------------------------

void Engine::reset() {
  count_ = 0;
  current_ = -1;
  at_ = 0;
  preemptions_ = 0;
  steps_ = 0;
  version_ = 1;
  now_ = 0;
  expiry_costs = false;
  failed_ = false;
  what_.clear();
  departures_.clear();
  names_.clear();
  trace_.clear();
}

// Runs one execution. Returns true if it failed.
bool Engine::execute(const std::function<void()>& body) {
  reset();
  try {
    body();
  } catch (const Abandoned&) {
  }
  for (std::size_t i = 0; i < count_; ++i) fibers_[i].body = nullptr;
  total_steps_ += steps_;
  return failed_;
}

void Engine::finish(Outcome& o, const std::function<void()>& body) {
  o.failed = true;
  o.what = what_;
  o.preemptions = preemptions_;
  std::string s;
  for (const auto& [step, who] : departures_)
    s += (s.empty() ? "" : ",") + std::to_string(step) + ":" + std::to_string(who);
  o.schedule = s.empty() ? "-" : s;
  o.trace = replay(body, o.schedule).trace;
}

Engine::Outcome Engine::exhaust(const std::function<void()>& body, Limits l) {
  Outcome o;
  step_limit_ = l.steps;
  total_steps_ = 0;
  for (unsigned b = 0; b <= l.bound; ++b) {
    if (l.samples && static_cast<int>(b) == l.sure + 1) l.executions = o.executions + l.samples;
    mode_ = Mode::exhaust;
    bound_ = b;
    path_.clear();
    for (;;) {
      ++o.executions;
      if (l.alive && o.executions % 65'536 == 0) l.alive();
      if (execute(body)) {
        o.steps = total_steps_;
        finish(o, body);
        return o;
      }
      while (!path_.empty() && path_.back().chosen + 1 == path_.back().count) path_.pop_back();
      if (path_.empty()) break;
      ++path_.back().chosen;
      if (o.executions >= l.executions) {
        o.steps = total_steps_;
        return o;
      }
    }
    o.exhausted = static_cast<int>(b);
  }
  o.steps = total_steps_;
  o.complete = true;
  return o;
}

Engine::Outcome Engine::sample(const std::function<void()>& body, Limits l, std::uint64_t seed) {
  Outcome o;
  o.seed = seed;
  step_limit_ = l.steps;
  total_steps_ = 0;
  std::uint64_t typical = 100;
  for (std::uint64_t i = 0; i < l.executions; ++i) {
    rng_ = seed + i * 0x632BE59BD9B4E019ull;
    mode_ = i % 2 ? Mode::walk : Mode::priorities;
    change_points_.clear();
    for (unsigned k = 0; k < 3; ++k) change_points_.push_back(random() % (typical + 1));
    ++o.executions;
    if (l.alive && o.executions % 65'536 == 0) l.alive();
    if (execute(body)) {
      o.steps = total_steps_;
      finish(o, body);
      return o;
    }
    typical = (typical * 7 + steps_) / 8;
  }
  o.steps = total_steps_;
  o.complete = true;
  return o;
}

Engine::Outcome Engine::replay(const std::function<void()>& body, const std::string& schedule) {
  Outcome o;
  script_.clear();
  if (schedule != "-") {
    std::istringstream in(schedule);
    for (std::string part; std::getline(in, part, ',');) {
      const auto colon = part.find(':');
      if (colon == std::string::npos) continue;
      script_.emplace_back(std::stoull(part.substr(0, colon)), std::stoi(part.substr(colon + 1)));
    }
  }
  mode_ = Mode::replay;
  if (step_limit_ == 0) step_limit_ = 20'000;
  tracing_ = true;
  o.executions = 1;
  o.failed = execute(body);
  tracing_ = false;
  o.what = what_;
  o.trace = trace_;
  o.schedule = schedule;
  return o;
}

// --- driver --------------------------------------------------------------------------------------

namespace {
std::vector<Scenario>& scenarios() {
  static std::vector<Scenario> s;
  return s;
}
// Returns the last 150 lines of a trace, and a note that the replay prints the rest.
std::string tail(const std::string& trace) {
  std::size_t at = trace.size();
  for (int lines = 0; lines <= 150 && at != std::string::npos && at != 0; ++lines)
    at = trace.rfind('\n', at - 1);
  return at == 0 || at == std::string::npos ? trace : "      …" + trace.substr(at);
}
constexpr const char* kUsage = R"(usage: explore [options]
  --list                 names of the scenarios
  --sampled              the list of those that are only sampled, as it stands in CAVEATS.md
  --only TEXT            those whose name contains TEXT
  --except TEXT          without those whose name contains TEXT; may be given several times
  --bound N              preemptions (default: as each scenario says)
  --more N               N preemptions more than each scenario says
  --executions N         at most N executions of a scenario, whatever it says of itself
  --limit N              at most N executions of a scenario that says it is exhausted (default: 4000000); more is a failure
  --samples N            N executions at least of one that says it is only sampled (default: 50000)
  --random N --seed S    N random executions of each scenario in place of the exhaustive search
  --schedule S           replay one schedule of the scenario chosen by --only, with its trace
  --first                stop at the first failure
  --mutant N             with the defect of that number (tests/MUTANTS.md)
  --killers              print only the names of scenarios that fail (for mutants); the exit status is 0 if there is one
  --quiet                no line for a scenario that passes
A scenario whose schedules within the bound were not all run is said to be cut, and counts as neither passed nor failed.
)";
}  // namespace

bool enrol(const char* name, int exhausted, unsigned bound, void (*body)()) {
  scenarios().push_back({name, body, exhausted, bound});
  return true;
}

int explore_main(int argc, char** argv) {
  std::string only, schedule;
  std::vector<std::string> except;
  bool list = false, sampled = false, first = false, killers = false, quiet = false;
  int bound = -1;
  unsigned more = 0;
  std::uint64_t executions = 0, limit = 4'000'000, samples = 50'000, random = 0, seed = 0x5EED;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) {
        std::fprintf(stderr, "explore: %s needs a value\n%s", a.c_str(), kUsage);
        std::exit(2);
      }
      return argv[++i];
    };
    if (a == "--list")
      list = true;
    else if (a == "--sampled")
      list = sampled = true;
    else if (a == "--limit")
      limit = std::strtoull(value().c_str(), nullptr, 0);
    else if (a == "--samples")
      samples = std::strtoull(value().c_str(), nullptr, 0);
    else if (a == "--only")
      only = value();
    else if (a == "--except")
      except.push_back(value());
    else if (a == "--bound")
      bound = std::atoi(value().c_str());
    else if (a == "--more")
      more = static_cast<unsigned>(std::atoi(value().c_str()));
    else if (a == "--executions")
      executions = std::strtoull(value().c_str(), nullptr, 0);
    else if (a == "--random")
      random = std::strtoull(value().c_str(), nullptr, 0);
    else if (a == "--seed")
      seed = std::strtoull(value().c_str(), nullptr, 0);
    else if (a == "--schedule")
      schedule = value();
    else if (a == "--first")
      first = true;
    else if (a == "--mutant")
      mutant = std::atoi(value().c_str());
    else if (a == "--killers")
      killers = true;
    else if (a == "--quiet")
      quiet = true;
    else {
      std::fprintf(stderr, "explore: unknown option %s\n%s", a.c_str(), kUsage);
      return 2;
    }
  }
  int passed = 0, failed = 0, cut = 0;
  std::uint64_t all_executions = 0, all_steps = 0;
  for (const Scenario& s : scenarios()) {
    const auto named = [&](const std::string& text) {
      return std::string_view(s.name).find(text) != std::string_view::npos;
    };
    if (!named(only) || std::ranges::any_of(except, named)) continue;
    const bool exhaustible = s.exhausted == static_cast<int>(s.bound);
    if (list) {
      if (!sampled)
        std::printf("%s\n", s.name);
      else if (!exhaustible)
        std::printf("- %s: %d of %u\n", s.name, s.exhausted, s.bound);
      continue;
    }
    if (!schedule.empty()) {
      const Engine::Outcome o = engine().replay(s.body, schedule);
      std::printf("%s\n%s%s\n", s.name, o.trace.c_str(),
                  o.failed ? o.what.c_str() : "no failure with this schedule");
      return o.failed ? 1 : 0;
    }
    // The scenario says up to which bound all its schedules can be run. The engine checks this
    // bound unless the options ask for another search.
    const bool held = !random && !executions && !killers && bound < 0 && more == 0 && mutant == 0;
    progress::begin(s.name);
    Engine::Limits l;
    l.alive = [&s] { progress::begin(s.name); };
    l.bound = (bound >= 0 ? static_cast<unsigned>(bound) : s.bound) + more;
    if (held) l.executions = limit;
    if (held && !exhaustible) l.sure = s.exhausted, l.samples = samples;
    if (executions) l.executions = executions;
    if (random) l.executions = random;
    const auto begin = std::chrono::steady_clock::now();
    const Engine::Outcome o =
        random ? engine().sample(s.body, l, seed) : engine().exhaust(s.body, l);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    all_executions += o.executions;
    all_steps += o.steps;
    const char* untrue = nullptr;
    if (held && !o.failed && o.exhausted < s.exhausted)
      untrue = "it is not exhausted within --limit: lower its bound, or say SAMPLED";
    else if (held && !o.failed && !exhaustible && o.exhausted > s.exhausted)
      untrue = "it can be exhausted further than it says: say so, or SCENARIO";
    const bool bad = o.failed || untrue;
    progress::end(s.name, bad          ? progress::failed
                          : o.complete ? progress::passed
                                       : progress::neither);
    if (bad) {
      ++failed;
      if (killers) {
        std::printf("%s\n", s.name);
      } else if (untrue) {
        std::printf("FAIL  %s\n      %s (exhausted: %d, after %llu executions)\n", s.name, untrue,
                    o.exhausted, static_cast<unsigned long long>(o.executions));
      } else {
        std::printf("FAIL  %s\n      %s\n      after %llu executions, %u preemptions", s.name,
                    o.what.c_str(), static_cast<unsigned long long>(o.executions), o.preemptions);
        if (random) std::printf(", seed %llu", static_cast<unsigned long long>(o.seed));
        std::printf("\n      replay: explore --only '%s' --schedule %s\n%s", s.name,
                    o.schedule.c_str(), tail(o.trace).c_str());
      }
      std::fflush(stdout);
      if (first) break;
    } else {
      ++(o.complete ? passed : cut);
      if (!killers && (!quiet || !o.complete))
        std::printf("%s   %-66s %s%s %llu, %.2f s\n", o.complete ? "ok " : "cut", s.name,
                    random ? "random" : ("bound " + std::to_string(l.bound)).c_str(),
                    o.complete ? "" : (", exhausted: " + std::to_string(o.exhausted) + ",").c_str(),
                    static_cast<unsigned long long>(o.executions), seconds);
      std::fflush(stdout);
    }
  }
  if (list) return 0;
  if (killers) return failed ? 0 : 1;
  if (random) std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::printf("%llu executions, %llu steps\n", static_cast<unsigned long long>(all_executions),
              static_cast<unsigned long long>(all_steps));
  if (cut) std::printf("%d cut: sampled within their bounds, neither passed nor failed\n", cut);
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed ? 1 : 0;
}

}  // namespace weft::explorer
