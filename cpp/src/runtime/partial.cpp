// The definitions of runtime/partial.hpp.
#include <algorithm>

#include <weft/runtime/function_info.hpp>
#include <weft/runtime/going_on.hpp>
#include <weft/runtime/limit.hpp>
#include <weft/runtime/names.hpp>
#include <weft/runtime/partial.hpp>
#include <weft/runtime/report.hpp>
#include <weft/runtime/text.hpp>

namespace weft::inline WEFT_ABI::runtime {

// Performs the search for stuck processes. Processes are identified by their indices in all_,
// places by their indices in spots_.
class Partial {
 public:
  Partial(const Executor* here, const OpKind& waits) : here_(here), waits_(waits) {}

  // Called under the lock of x's group.
  void add(ProcessBase& x) {
    by_id_.add(x.id, all_.size());
    One one;
    one.process = &x;
    one.id = x.id;
    one.family = x.group;
    if ((here_ && x.executor() != here_) || x.runs_on.load(std::memory_order_acquire) != 0) {
      one.process = nullptr;  // The pointer is not kept: the process can end at any moment.
      one.able = true;
    } else if (!x.op || x.cancel().load(std::memory_order_relaxed) != 0) {
      one.able = true;
    } else if (x.op == &waits_) {
      one.children = static_cast<const Group*>(x.place);
    } else {
      one.able = x.op->undecided == nullptr;
    }
    all_.push_back(one);
  }
  // Finds which process waits where, and which processes hold ends there.
  void look() {
    by_id_.sort();
    for (One& one : all_) {
      if (one.process && Limit::any_armed(*one.process, Limit::run_of(*one.process))) {
        // An armed limit counts like a timer in the process's select.
        one.able = true;
        one.children = nullptr;
      }
      one.places = {static_cast<std::uint32_t>(places_.size()), 0};
      one.silent = {static_cast<std::uint32_t>(silent_.size()), 0};
      ask(one, true);
      for (const Pair& p : of(one)) at_.add(p.key, 0);
    }
    at_.sort();
    spots_.resize(at_.size());
    for (const Pair& p : places_) {
      Spot& spot = spots_[spot_of(p)];
      spot.channel = kind(p) != barrier;
      if (kind(p) != end) continue;
      // A process that waits for the end of another process can be woken by that process alone
      // (rule 7.11).
      spot.known = true;
      if (const std::uint32_t i = by_id_.find(place(p).last_writer); i < by_id_.size())
        holders_.add(side(spot_of(p), true), by_id_[i].value);
    }
    Holding holding(*this);
    for (std::uint32_t i = 0; i < all_.size(); ++i) {
      const ProcessBase* const p = all_[i].process;
      if (!p || !p->about) continue;
      holding.process = i;
      for (const HeldAt& h : p->about->held)
        h.visit(reinterpret_cast<const char*>(p) + h.offset, holding);
    }
    ends_.sort();
    holders_.sort();
    for (One& one : all_)
      if (one.places.n > 0) ask(one, false);
  }
  // Called after look(): finds which processes can still continue.
  void solve() {
    GoingOn facts;
    for (One& one : all_) {
      facts.process(one.id, one.family);
      for (const Pair& p : of(one)) {
        one.able = one.able || open(p);
        if (kind(p) == barrier)
          facts.waits_at_barrier(one.id);
        else
          facts.waits_at(one.id, &place(p));
      }
      if (one.children) facts.waits_for(one.id, one.children);
      if (one.able) facts.able(one.id);
    }
    for (std::uint32_t i = 0; i < holders_.size(); ++i)
      facts.holds(all_[holders_[i].value].id,
                  reinterpret_cast<const void*>(at_[holders_[i].key / 2].key));
    facts.solve();
    for (One& one : all_) one.able = facts.is_able(one.id);
  }
  // Reports the stuck processes, and with `everybody` also the processes that might resume.
  Found report(bool everybody) {
    Numbers shown, partners;
    for (std::uint32_t i = 0; i < all_.size(); ++i) {
      const One& one = all_[i];
      if ((one.able && !everybody) || (one.places.n == 0 && !one.nowhere && !one.timed)) continue;
      shown.push_back(i);
    }
    paths_.resize(all_.size());
    by_path(shown);
    Found r;
    r.processes.resize(shown.size());
    for (std::uint32_t k = 0; k < shown.size(); ++k) {
      const One& one = all_[shown[k]];
      Waits& w = r.processes[k];
      r.ids.push_back(one.id);
      w.path = paths_[shown[k]];
      w.operation = one.process->op->verb;
      w.at = where(*one.process);
      partners.clear();
      for (const Pair& p : of(one)) {
        w.places.push_back(name_of(place(p)));
        if (open(p)) w.open.push_back(w.places.back());
        for (const Pair& h : holders_.of(side(spot_of(p), !writing(p))))
          partners.push_back(static_cast<std::uint32_t>(h.value));
      }
      for (std::uint32_t i = 0; i < one.silent.n; ++i)
        w.places.push_back(joined({name_of(place(silent_[one.silent.first + i])), " (ended)"}));
      sort_unique(partners);
      by_path(partners);
      for (const std::uint32_t partner : partners) w.waits_for.push_back(paths_[partner]);
    }
    return r;
  }
  Found at_rest() {
    for (const One& one : all_)
      if (one.able) return {};
    look();
    std::uint64_t where = 0;
    for (const One& one : all_) {
      if (one.moved) return {};
      // The hash is a sum, because the order of the places is arbitrary.
      for (const Pair& p : of(one)) where += (p.key * 2 + writing(p)) | 1;
    }
    Found r = report(true);
    r.places = where | !r.processes.empty();
    return r;
  }

 private:
  using Pair = Pairs::Pair;
  // A place is described by a Kind and the bit `writes`, which are kept together with the place's
  // address.
  enum Kind : std::uint8_t { channel = 0, barrier = 1, end = 2, writes = 4 };
  static const core::SyncObject& place(const Pair& p) noexcept {
    return *reinterpret_cast<const core::SyncObject*>(p.key);
  }
  static bool writing(const Pair& p) noexcept { return (p.value & writes) != 0; }
  static unsigned kind(const Pair& p) noexcept { return static_cast<unsigned>(p.value) & 3; }
  struct Some {  // a range of places_ or of silent_
    std::uint32_t first, n;
  };
  struct One {
    ProcessBase* process = nullptr;
    const Group* family = nullptr;
    const Group* children = nullptr;  // the group for which the process waits
    std::uint32_t id = 0;
    Some places{};  // a range of places_
    // A range of silent_: channels that have ended, at which no party will arrive (rule 5.6).
    Some silent{};
    bool able = false;
    bool moved = false;    // the process no longer waits
    bool nowhere = false;  // the process waits for a time that is never reached
    bool timed = false;    // the process also waits for a time that will be reached
  };
  struct Spot {
    // `known`: one of the channel's ends is known, and so are the counts of its ends.
    bool channel = false, known = false;
    std::uint32_t readers = 0, writers = 0;
  };
  struct Waiting final : WaitVisitor {
    Partial& p;
    One& one;
    const bool first;  // whether the places are new, or only counted
    std::uint32_t n = 0;
    Waiting(Partial& to, One& of, bool new_ones) : p(to), one(of), first(new_ones) {}
    void add(const core::SyncObject& at, unsigned what) {
      ++n;
      if (!first) return;
      p.places_.push_back({Pairs::number(&at), what});
      ++one.places.n;
    }
    void channel(const core::SyncObject& c, bool writing) override {
      add(c, writing ? Partial::channel + writes : Partial::channel);
    }
    void ended(const core::SyncObject& c, std::uint32_t) override {
      if (!first) return;
      p.silent_.push_back({Pairs::number(&c), 0});
      ++one.silent.n;
    }
    void barrier(const core::SyncObject& b) override { add(b, Partial::barrier); }
    void nowhere() override { one.nowhere = true; }
    void timed() override { one.timed = true; }
    void end(const core::SyncObject& e) override { add(e, Partial::end); }
  };
  struct Holding final : Ends {
    Partial& p;
    std::uint32_t process = 0;
    explicit Holding(Partial& to) : p(to) {}
    void end(const core::SyncObject& c, bool writer, const void* at, std::uint32_t readers,
             std::uint32_t writers) override {
      const std::uint32_t spot = p.at_.find(Pairs::number(&c));
      if (spot == p.at_.size()) return;  // No process waits at this place.
      Spot& s = p.spots_[spot];
      s.known = true;
      if (s.readers < readers) s.readers = readers;
      if (s.writers < writers) s.writers = writers;
      p.ends_.add(side(spot, writer), Pairs::number(at));
      p.holders_.add(side(spot, writer), process);
    }
  };

  std::span<const Pair> of(const One& one) const noexcept {
    return {places_.data() + one.places.first, one.places.n};
  }
  std::uint32_t spot_of(const Pair& p) const noexcept { return at_.find(p.key); }
  static std::uintptr_t side(std::uintptr_t spot, bool writers) noexcept {
    return spot * 2 + writers;
  }
  // Returns whether a party that is not known might arrive at the place.
  bool open(const Pair& p) const {
    const std::uint32_t spot = spot_of(p);
    const Spot& s = spots_[spot];
    if (!s.channel) return false;
    return !s.known || s.readers > ends_.of(side(spot, false)).size() ||
           s.writers > ends_.of(side(spot, true)).size() ||
           holders_.of(side(spot, !writing(p))).empty();
  }
  // Finds where the process waits at this moment. If it waits nowhere, it is able to continue.
  void ask(One& one, bool first) {
    if (one.able || one.children) return;
    Waiting waiting(*this, one, first);
    one.process->op->undecided(*one.process, waiting);
    one.able = waiting.n == 0 && !one.nowhere;
    one.moved = one.able && !one.timed;
  }
  void by_path(Numbers& those) {
    for (const std::uint32_t i : those)
      if (paths_[i].empty()) paths_[i] = path_of(*all_[i].process);
    std::ranges::sort(those, {}, [this](std::uint32_t i) {
      return std::pair<std::string_view, std::uint32_t>(paths_[i], all_[i].id);
    });
  }

  const Executor* const here_;  // the executor that is examined; null means all executors
  const OpKind& waits_;
  std::vector<One> all_;
  // The paths of the reported processes. The list is empty until the paths are needed.
  std::vector<std::string> paths_;
  // The places of all processes. The places of one process are adjacent.
  std::vector<Pair> places_, silent_;
  Pairs by_id_;              // the process of each id
  Pairs at_;                 // the addresses of the places where a process waits
  std::vector<Spot> spots_;  // the facts about each place
  // For each side of a place: the addresses of its ends, and the processes that hold these ends.
  Pairs ends_, holders_;
};

Found look_for_stuck_held(Run& run, Executor& here, const OpKind& waits) {
  Partial p(&here, waits);
  run.each_process([&](ProcessBase& one) { p.add(one); });
  p.look();
  p.solve();
  return p.report(false);
}
Found look_for_stuck(Run& run, Executor& here, const OpKind& waits) {
  struct Call {
    Run& run;
    Executor& here;
    const OpKind& waits;
    Found stuck;
  } call{run, here, waits, {}};
  const auto takes = [](void* x) {
    Call& c = *static_cast<Call*>(x);
    c.stuck = look_for_stuck_held(c.run, c.here, c.waits);
  };
  here.held(takes, &call);
  return std::move(call.stuck);
}

Found look_at_rest(Run& run, const OpKind& waits) {
  Partial p(nullptr, waits);
  run.each_process([&](ProcessBase& one) { p.add(one); });
  return p.at_rest();
}

std::string listed(const std::vector<std::string>& names, const char* between) {
  std::string s;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == Report::kNames) {
      put(s, {between, std::to_string(names.size() - i), " more"});
      break;
    }
    put(s, {i ? between : "", names[i]});
  }
  return s;
}
std::string line_of(const Waits& w) {
  return joined({w.path, ": ", w.operation, w.places.empty() ? "" : " ", listed(w.places, ", "),
                 " at ", w.at});
}

}  // namespace weft::inline WEFT_ABI::runtime
