// The definitions of runtime/look.hpp.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <unordered_set>

#include <weft/runtime/affinity.hpp>
#include <weft/runtime/function_info.hpp>
#include <weft/runtime/group.hpp>
#include <weft/runtime/look.hpp>
#include <weft/runtime/names.hpp>
#include <weft/runtime/observer.hpp>
#include <weft/runtime/outside.hpp>
#include <weft/runtime/text.hpp>
#include <weft/runtime/thread.hpp>

namespace weft::inline WEFT_ABI::runtime {

namespace {

constexpr std::size_t kPiece = 2'000;
// The approximate maximum number of processes that a sample examines.
constexpr std::size_t kInASample = 30'000;
// How long a look waits for a busy executor to serve it, at the beginning of an interval and at its
// end.
constexpr std::chrono::milliseconds kSoon{50}, kPatience{300};

// The runs that exist now. None of them ends while this object exists.
struct PinnedRuns {
  std::vector<Run*> runs = Outsiders::all().pin();
  PinnedRuns() = default;
  PinnedRuns(const PinnedRuns&) = delete;
  PinnedRuns& operator=(const PinnedRuns&) = delete;
  ~PinnedRuns() { Outsiders::all().unpin(); }
};

Look::Now by_verb(const char* verb) noexcept {
  struct Verb {
    const char* verb;
    Look::Now now;
  };
  static constexpr Verb verbs[] = {{"read", Look::reads},
                                   {"write", Look::writes},
                                   {"select", Look::either},
                                   {"extended read", Look::reads},
                                   {"sleep", Look::timed},
                                   {"wait for", Look::waits},
                                   {"sync", Look::barrier},
                                   {"blocking call", Look::io},
                                   {"yield", Look::due},
                                   {"read from a descriptor", Look::io},
                                   {"write to a descriptor", Look::io},
                                   {"accept a connection", Look::io},
                                   {"connect", Look::io}};
  for (const auto& [v, now] : verbs)
    if (std::strcmp(v, verb) == 0) return now;
  return Look::waits;
}
// Returns whether the operation is a read or write of one channel. The process keeps that channel
// as its `place` until it continues.
bool is_plain(const OpKind& op, Look::Now now) noexcept {
  return (now == Look::reads || now == Look::writes) && op.passed;
}
const core::SyncObject* place_of(const ProcessBase& p) noexcept {
  return static_cast<const core::SyncObject*>(prim::load_from(p.place, std::memory_order_relaxed));
}

// Returns what the process does; a process that was woken counts as waiting until it continues. Any
// thread can call this function, under the lock of the process's group.
Look::Now state_of(ProcessBase& p) noexcept {
  const OpKind* const op = p.operation();
  if (!op) {
    if (p.runs_on.load(std::memory_order_relaxed) != 0) return Look::runs;
    const Executor* const e = p.executor();
    return e->runs_now() == &p || dynamic_cast<const ThreadProcess*>(e) ? Look::runs : Look::due;
  }
  return by_verb(op->verb);
}

// Notes the places at which a process that is at rest waits.
struct Places final : WaitVisitor {
  std::vector<Look::Place>& at;
  bool others = false;
  explicit Places(std::vector<Look::Place>& to) : at(to) {}
  void channel(const core::SyncObject& c, bool writing) override { at.emplace_back(&c, writing); }
  void barrier(const core::SyncObject&) override { others = true; }
  void end(const core::SyncObject&) override { others = true; }
};
// Notes whether a process waits for anything.
struct Anywhere final : WaitVisitor {
  bool any = false;
  void channel(const core::SyncObject&, bool) override { any = true; }
  void barrier(const core::SyncObject&) override { any = true; }
  void end(const core::SyncObject&) override { any = true; }
  void nowhere() override { any = true; }
  void timed() override { any = true; }
};

}  // namespace

// --- what is read of processes at rest -----------------------------------------------------------

// One reading of the processes of all runs: where each process waits, which ends it holds, and how
// many values have passed through each of those channels.
class Look::Gather {
 public:
  struct Facts {
    std::vector<Place> holds, waits;
    Now chooses = either;  // what the process's select waits for
    bool woken = false;    // whether the operation has ended and the process has not continued
  };
  using Ids = std::unordered_set<std::uint32_t>;
  // `wanted`: the processes whose facts are read. If it is null, only the numbers of the channels
  // of all processes are read.
  explicit Gather(const Ids* wanted) : wanted_(wanted) {}
  // Makes a reading without `wanted`, which searches for the processes that are stuck.
  explicit Gather(const OpKind& wait) : wanted_(nullptr), wait_(&wait) {}

  void take(std::chrono::milliseconds patience);

  std::unordered_map<std::uint32_t, Facts> facts;
  struct Known {
    std::string name;
    Passed numbers;                        // not known if numbers.place is null
    std::uint32_t reader = 0, writer = 0;  // the processes that last used the channel's ends
  };
  std::unordered_map<const core::SyncObject*, Known> channels;
  runtime::Found stuck;

  struct Shared {
    std::mutex mutex;  // protects `all`, and the members of each Gather in it
    std::vector<Gather*> all;
  };
  static Shared& shared() noexcept {
    static Shared& s = *new Shared;  // never destroyed: schedulers may use it until the very end
    return s;
  }

 private:
  struct Awaited {
    Run* run;
    Executor* executor;
    bool operator==(const Awaited&) const = default;
  };
  enum class Way : std::uint8_t { asleep, busy };

  struct HeldEnds final : Ends {
    Gather& g;
    Facts* facts = nullptr;
    explicit HeldEnds(Gather& of) : g(of) {}
    void end(const core::SyncObject& c, bool writer, const void*, std::uint32_t,
             std::uint32_t) override {
      if (facts) facts->holds.emplace_back(&c, writer);
    }
    bool wants_figures() const noexcept override { return true; }
    void figures(const Passed& at) override { g.channel(*at.place).numbers = at; }
  };

  Known& channel(const core::SyncObject& c) {
    Known& k = channels[&c];
    if (k.name.empty()) k.name = name_of(c);
    k.reader = c.last_reader;
    k.writer = c.last_writer;
    return k;
  }
  // Notes where a select waits.
  void choice(ProcessBase& p, const OpKind& op, Facts& f) {
    Places places(f.waits);
    op.visit(p, places);
    bool in = false, out = false;
    for (const Place& at : f.waits) {
      channel(*at.first);
      (at.second ? out : in) = true;
    }
    f.chooses = in && out       ? either
                : in            ? reads
                : out           ? writes
                : places.others ? Look::waits
                                : timed;
  }
  // Called while the process is at rest.
  void visit(ProcessBase& p) {
    Facts none, *const f = wanted_ ? &facts[p.id] : &none;
    if (const OpKind* const op = p.op; op && op->visit) {
      const Now now = by_verb(op->verb);
      if (is_plain(*op, now)) {
        Passed at;
        at.glances = true;
        at.who = &p;
        op->passed(p, at);
        channel(*at.place).numbers = at;
        f->woken = !at.waits;
        if (at.waits) f->waits.emplace_back(at.place, at.writing);
      } else if (now == either && op->undecided) {
        Anywhere open;
        op->undecided(p, open);
        f->woken = !open.any;
        if (open.any) choice(p, *op, *f);
      }
    }
    if (p.about) {
      HeldEnds ends(*this);
      ends.facts = f;
      for (const HeldAt& h : p.about->held)
        h.visit(reinterpret_cast<const char*>(&p) + h.offset, ends);
    }
  }
  bool wants(std::uint32_t id) const {
    return (!wanted_ || wanted_->contains(id)) && !visited_.contains(id);
  }
  // Visits at most kPiece processes for which `at_rest(executor, process)` is true. Returns whether
  // it has visited all of them. Called within Run::still().
  template <class F>
  bool visit_some(Run& run, F&& at_rest) {
    std::size_t n = 0;
    run.each_group_still([&](Group& g) {
      g.each_child([&](ProcessBase& p) {
        if (n == kPiece || !wants(p.id)) return;
        Executor* const e = p.executor();
        if (p.runs_on.load(std::memory_order_acquire) != 0 || !at_rest(e, p)) return;
        visit(p);
        visited_.insert(p.id);
        ++n;
      });
    });
    return n < kPiece;
  }
  void look_for_stuck_at(Run& run, Executor& e) {
    runtime::Found f = look_for_stuck_held(run, e, *wait_);
    std::move(f.processes.begin(), f.processes.end(), std::back_inserter(stuck.processes));
  }

  bool take_sleeping(Run& run);
  void hurry_all();
  void serve(Run& run, Executor& e);
  static void serve_all(Run& run, Executor& e) noexcept;

  const Ids* const wanted_;
  const OpKind* const wait_ = nullptr;
  Ids visited_;
  std::vector<Awaited> awaited_;  // busy executors that have not served this reading yet
  std::condition_variable came_;
};

// Reads the processes whose executors sleep, and notes the executors that are busy. Returns whether
// it has visited all of these processes.
bool Look::Gather::take_sleeping(Run& run) {
  std::vector<std::pair<Executor*, Way>> ways;
  const auto sleeps = [&](Executor* e) {
    for (const auto& [of, way] : ways)
      if (of == e) return way == Way::asleep;
    const bool so = e->sleeps();
    ways.emplace_back(e, so ? Way::asleep : Way::busy);
    if (!so && std::ranges::find(awaited_, Awaited{&run, e}) == awaited_.end())
      awaited_.push_back({&run, e});
    return so;
  };
  bool all = false;
  run.while_door_closed([&] {
    run.still([&] {
      all = visit_some(run, [&](Executor* e, ProcessBase& p) {
        // A thread process is its own executor. A busy thread process does not serve a reading.
        return dynamic_cast<ThreadProcess*>(e) == &p ? e->sleeps() : sleeps(e);
      });
    });
  });
  return all;
}

void Look::Gather::hurry_all() {
  std::vector<Awaited> hurried;
  const PinnedRuns pinned;
  for (Run* const run : pinned.runs)
    run->still([&] {
      run->each_group_still([&](Group& g) {
        g.each_child([&](ProcessBase& p) {
          const Awaited one{run, p.executor()};
          if (std::ranges::find(awaited_, one) == awaited_.end() ||
              std::ranges::find(hurried, one) != hurried.end())
            return;
          hurried.push_back(one);
          one.executor->hurry();
        });
      });
    });
  awaited_.swap(hurried);  // executors that are not in `hurried` have no process any more
}

void Look::Gather::serve(Run& run, Executor& e) {
  const auto at = std::ranges::find(awaited_, Awaited{&run, &e});
  if (at == awaited_.end()) return;
  bool all = true;
  if (wait_)
    look_for_stuck_at(run, e);
  else
    run.still([&] { all = visit_some(run, [&](Executor* of, ProcessBase&) { return of == &e; }); });
  if (!all) return e.hurry();  // the executor calls this function again, for the next piece
  awaited_.erase(at);
  came_.notify_all();
}

void Look::Gather::serve_all(Run& run, Executor& e) noexcept {
  Shared& s = shared();
  const std::lock_guard g(s.mutex);
  for (Gather* const one : s.all) one->serve(run, e);
}

void Look::Gather::take(std::chrono::milliseconds patience) {
  Shared& s = shared();
  std::unique_lock work(at_work());
  if (wait_) {
    const PinnedRuns pinned;
    for (Run* const run : pinned.runs)
      run->while_door_closed([&] {
        std::vector<Executor*> asleep;
        run->still([&] {
          run->each_process_still([&](ProcessBase& p) {
            Executor* const e = p.executor();
            if (dynamic_cast<ThreadProcess*>(e)) return;
            if (std::ranges::find(asleep, e) != asleep.end()) return;
            if (e->sleeps())
              asleep.push_back(e);
            else if (std::ranges::find(awaited_, Awaited{run, e}) == awaited_.end())
              awaited_.push_back({run, e});
          });
        });
        for (Executor* const e : asleep) look_for_stuck_at(*run, *e);
      });
  } else {
    for (bool all = false; !all;) {
      {
        const PinnedRuns pinned;
        all = true;
        for (Run* const run : pinned.runs) all = take_sleeping(*run) && all;
      }
      if (!all) prim::yield();
    }
  }
  if (awaited_.empty()) return;
  std::unique_lock g(s.mutex);
  serve_looks.store(&Gather::serve_all, std::memory_order_release);
  s.all.push_back(this);
  hurry_all();
  work.unlock();
  came_.wait_for(g, patience, [&] { return awaited_.empty(); });
  std::erase(s.all, this);
}

// --- samples -------------------------------------------------------------------------------------

std::mutex& Look::at_work() noexcept {
  static std::mutex& m = *new std::mutex;
  return m;
}
void Look::forget() noexcept {
  new (&at_work()) std::mutex;
  new (&Gather::shared()) Gather::Shared;
}

void Look::wait_at(const core::SyncObject* place, bool writing, std::uint32_t samples) {
  Flow& f = flows_[place];
  if (f.sample != samples_) {
    f.sample = samples_;
    f.line = {};
  }
  if (f.line[writing]++ == 0) f.waits[writing] += samples;
}

// Called under the lock of the process's group.
void Look::note(ProcessBase& p, std::int64_t at) {
  const Now now = state_of(p);
  auto [it, fresh] = seen_.try_emplace(p.id);
  Seen& s = it->second;
  if (fresh || s.now != now) {
    s.now = now;
    s.since = at;
    s.before = fresh && samples_ <= stride_ + 1;
  }
  s.sample = samples_;
  if (now == either)
    ++s.selects;
  else
    ++s.found[now];
  const OpKind* const op = p.operation();
  if (op && (now == reads || now == writes) && is_plain(*op, now))
    wait_at(place_of(p), now == writes);
}

void Look::sample() {
  const std::lock_guard work(at_work());
  const PinnedRuns pinned;
  const std::int64_t at = prim::now();
  ++samples_;
  ++in_round_;
  stride_ = count_ / kInASample + 1;
  std::size_t n = 0;
  for (Run* const run : pinned.runs)
    run->each_process([&](ProcessBase& p) {
      ++n;
      if ((p.id + samples_) % stride_ == 0) note(p, at);
    });
  count_ = n;
}

// Stores the numbers that a reading has found.
void Look::take_over(Gather& g) {
  for (auto& [place, k] : g.channels) {
    Flow& f = flows_[place];
    if (k.numbers.place && k.numbers.transfers < f.transfers)
      f = Flow();  // another channel is at this address
    f.seen = round_;
    f.name = std::move(k.name);
    f.reader = k.reader;
    f.writer = k.writer;
    if (!k.numbers.place) continue;
    if (!std::exchange(f.known, true)) {
      f.transfers_before = k.numbers.transfers;
      f.dropped_before = k.numbers.dropped;
    }
    f.transfers = k.numbers.transfers;
    f.dropped = k.numbers.dropped;
    f.depth = k.numbers.depth;
    f.capacity = k.numbers.capacity;
  }
}

void Look::begin() {
  Gather g(nullptr);
  g.take(kSoon);
  take_over(g);
  for (auto& [place, f] : flows_) {
    f.transfers_before = f.transfers;
    f.dropped_before = f.dropped;
    f.waits = {};
  }
  for (auto& [id, s] : seen_) {
    s.found = {};
    s.selects = 0;
  }
  in_round_ = 0;
}

namespace {

// Returns what a process does, in words. `at` is file:line of its last operation, from where().
std::string doing(const OpKind* op, const std::string& places, const std::string& at) {
  if (!op) return at == "?" ? "running" : joined({"running after ", at});
  if (!op->visit) return joined({"waits for its processes at ", at});
  return joined({op->verb, places, " at ", at});
}

}  // namespace

Look::Found Look::end(std::size_t most) {
  // The processes that have a row.
  std::vector<std::uint32_t> ids;
  for (const auto& [id, s] : seen_)
    if (s.sample + stride_ > samples_) ids.push_back(id);
  if (ids.size() > most) {
    std::ranges::sort(ids);
    std::stable_partition(ids.begin(), ids.end(),
                          [&](std::uint32_t id) { return seen_[id].has_weight(); });
    ids.resize(most);
  }
  const Gather::Ids chosen(ids.begin(), ids.end());
  Gather g(&chosen);
  g.take(kPatience);
  take_over(g);
  for (auto& [id, s] : seen_) s.woken = false;
  for (auto& [id, facts] : g.facts) {
    Seen& s = seen_[id];
    s.holds = std::move(facts.holds);
    s.waits = std::move(facts.waits);
    s.chooses = facts.chooses;
    s.woken = facts.woken;
  }
  // A process that was the last to use an end holds it, even if the end was not among its
  // arguments.
  std::unordered_map<std::uint32_t, std::vector<Place>> used;
  for (const auto& [place, f] : flows_) {
    if (f.name.empty()) continue;
    if (f.reader) used[f.reader].emplace_back(place, false);
    if (f.writer) used[f.writer].emplace_back(place, true);
  }
  Found found;
  std::size_t n = 0;
  const std::unique_lock work(at_work());
  const std::int64_t at = prim::now();
  const PinnedRuns pinned;
  for (Run* const run : pinned.runs)
    run->still([&] {
      run->each_group_still([&](Group& group) {
        const std::size_t first = found.rows.size();
        const ProcessBase* const owner = group.owner();
        std::vector<std::uint32_t> index;
        group.each_child([&](ProcessBase& p) {
          ++n;
          if (!chosen.contains(p.id)) return;
          Seen& s = seen_[p.id];
          Executor* const e = p.executor();
          const auto* const thread = dynamic_cast<const ThreadProcess*>(e);
          const Now now = state_of(p);
          if (s.function.empty()) s.function = p.function ? p.function : "process";
          if (!s.kind) s.kind = thread ? "thread" : "coroutine";
          std::vector<Place> ends = s.holds;
          for (const Place& one : used[p.id])
            if (std::ranges::find(ends, one) == ends.end()) ends.push_back(one);
          bool passed = false;
          for (const auto& [place, writes] : ends)
            if (const auto f = flows_.find(place); f != flows_.end())
              passed = passed || f->second.has_moved();
          // If something has passed at the ends of the process, the process might have continued
          // and returned to this state since the last sample.
          if (s.now != now || passed) {
            s.since = at;
            s.before = false;
          }
          s.now = now;
          Row& r = found.rows.emplace_back();
          index.push_back(p.index);
          r.id = p.id;
          r.parent = owner ? std::uint32_t(owner->id) : 0;
          r.kind = s.kind;
          const OpKind* const op = p.operation();
          std::vector<Place> at_places;
          if (op && is_plain(*op, by_verb(op->verb)))
            at_places.emplace_back(place_of(p), by_verb(op->verb) == writes);
          else if (now == either)
            at_places = s.waits;
          std::string names;
          for (const auto& [place, writing] : at_places)
            if (const auto f = flows_.find(place); f != flows_.end() && !f->second.name.empty()) {
              put(names, {names.empty() ? " " : ", ", f->second.name});
              if (!s.woken) r.waits.emplace_back(place, writing);
            }
          r.now = s.woken && op ? due : now == either ? s.chooses : now;
          r.ns = at - s.since;
          r.before = s.before;
          r.does = doing(op, names, where(p));
          r.found = std::exchange(s.found, {});
          r.found[s.chooses] += s.selects;
          for (const auto& [place, writing] : s.waits)
            if (s.selects && now == either) wait_at(place, writing, s.selects);
          s.selects = 0;
          if (thread && thread == &p) {
            const std::int64_t cpu = cpu_time(thread->cpu_clock.load(std::memory_order_relaxed));
            if (cpu >= 0 && s.cpu >= 0) r.cpu = cpu - s.cpu;
            s.cpu = cpu;
          }
          r.holds = std::move(ends);
        });
        if (found.rows.size() == first) return;
        std::string above = owner ? path_while_still(*owner) + "/" : std::string();
        if (group.name) put(above, {group.name, "/"});
        for (std::size_t i = first; i < found.rows.size(); ++i) {
          Row& r = found.rows[i];
          const std::string& function = seen_[r.id].function;
          r.path = joined({above, function});
          if (group.started(function.c_str()) > 1)
            put(r.path, {"[", std::to_string(index[i - first]), "]"});
        }
      });
    });
  found.left_out = n - std::min(n, found.rows.size());
  std::unordered_set<const core::SyncObject*> there;
  for (const Row& r : found.rows)
    for (const auto* places : {&r.holds, &r.waits})
      for (const Place& one : *places) there.insert(one.first);
  for (auto it = flows_.begin(); it != flows_.end();) {
    Flow& f = it->second;
    if (f.name.empty() || (f.seen + 1 < round_ && !there.contains(it->first))) {
      it = flows_.erase(it);
      continue;
    }
    if (there.contains(it->first)) {
      Channel& c = found.channels.emplace_back();
      c.key = it->first;
      c.name = f.name;
      c.passed = f.transfers - f.transfers_before;
      c.dropped = f.dropped - f.dropped_before;
      c.depth = f.depth;
      c.capacity = f.capacity;
      for (const int side : {0, 1}) {
        c.waits[side] = std::min(f.waits[side], in_round_);
        c.line[side] = f.sample == samples_ ? f.line[side] : 0;
      }
    }
    ++it;
  }
  std::erase_if(seen_, [&](const auto& one) { return one.second.sample + stride_ <= samples_; });
  ++round_;
  found.samples = std::exchange(in_round_, 0);
  return found;
}

runtime::Found Look::stuck(const OpKind& wait) {
  Gather g(wait);
  g.take(kPatience);
  return std::move(g.stuck);
}

}  // namespace weft::inline WEFT_ABI::runtime
