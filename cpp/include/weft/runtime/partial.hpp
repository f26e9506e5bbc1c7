// Partial deadlock: the processes that nothing that can still run will ever wake (rules 10.5,
// 14.3).
//
// A look is taken by a process of one executor, while no other of its processes starts to run: so
// those that do not run cannot change state. Those that run, and all others of the run (threads, other
// executors), count as able to go on, and what they hold as held by nobody that is known. They may
// commit and drop ends meanwhile: so first who waits where, then the ends, then again who waits.
// Whoever is still waiting at the second look was not woken by an end that was dropped in between.
//
//   able: runs, is ready, sleeps, was cancelled, is elsewhere ──solve() (going_on.hpp)──► also whom they may wake; the rest are stuck
//
// At a standstill (rule 10.6) all executors sleep, so all their processes stand still: everybody is
// looked at, and told where he waits.
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "function_info.hpp"
#include "going_on.hpp"
#include "limit.hpp"
#include "names.hpp"
#include "report.hpp"

namespace weft::inline WEFT_ABI::runtime {

struct StuckProcess {
  std::uint32_t id;
  std::string path, operation, at;
  std::vector<std::string> places, waits_for;
  // of the places, those to which somebody may come who is not known
  std::vector<std::string> open;
};

// Everybody, at a standstill.
struct AtRest {
  std::vector<StuckProcess> processes;  // those that wait for an operation of their own, by path
  std::uint64_t places = 0;             // where they wait, as one number; 0: somebody can go on
};

class Partial {
 public:
  // By a process that runs on `here`, or on its thread. `waits`: the operation of one that waits
  // for a group, its place.
  static std::vector<StuckProcess> look(Run& run, Executor& here, const OpKind& waits) {
    struct Look {
      Run& run;
      Partial p;
      std::vector<StuckProcess> stuck;
    } look{run, Partial(&here, waits), {}};
    const auto takes = [](void* x) {
      Look& l = *static_cast<Look*>(x);
      l.run.each_process([&](ProcessBase& one) { l.p.add(one); });
      l.stuck = l.p.found();
    };
    here.held(takes, &look);
    return std::move(look.stuck);
  }
  // While all executors sleep.
  static AtRest at_rest(Run& run, const OpKind& waits) {
    Partial p(nullptr, waits);
    run.each_process([&](ProcessBase& one) { p.add(one); });
    AtRest r;
    for (const auto& [id, one] : p.all_)
      if (one.able) return r;
    p.find();
    for (const auto& [id, one] : p.all_) {
      if (one.moved) return r;
      // any order
      for (const auto& [place, writing] : one.places)
        r.places += (reinterpret_cast<std::uintptr_t>(place) * 2 + writing) | 1;
    }
    r.processes = p.report(true);
    r.places |= !r.processes.empty();
    return r;
  }

 private:
  struct Spot {
    bool channel = false, known = false;  // known: an end is, so the counts are
    std::uint32_t readers = 0, writers = 0;
    std::set<const void*> reader_ends, writer_ends;
    std::set<std::uint32_t> read_by, written_by;

    // Somebody may come whom we do not know.
    bool open(bool to_read, bool to_write) const {
      if (!channel) return false;
      if (!known || readers > reader_ends.size() || writers > writer_ends.size()) return true;
      return (to_read && written_by.empty()) || (to_write && read_by.empty());
    }
  };
  struct One {
    ProcessBase* process;
    bool able = false;
    std::vector<std::pair<const core::SyncObject*, bool>> places;  // and whether it writes
    // names of channels that have ended, where nobody will come (rule 5.6)
    std::vector<std::string> silent;
    bool moved = false;  // it waits no longer
    // it waits for a time that never comes
    bool nowhere = false;
    bool timed = false;               // it waits for a time, too
    const Group* children = nullptr;  // for which it waits
  };
  struct Waiting final : WaitVisitor {
    One* one = nullptr;
    void channel(const core::SyncObject& c, bool writing) override {
      one->places.emplace_back(&c, writing);
    }
    void ended(const core::SyncObject& c, std::uint32_t) override {
      one->silent.push_back(name_of(c) + " (ended)");
    }
    void barrier(const core::SyncObject& b) override {
      one->places.emplace_back(&b, false), barriers.insert(&b);
    }
    void nowhere() override { one->nowhere = true; }
    void timed() override { one->timed = true; }
    void end(const core::SyncObject& e) override {
      one->places.emplace_back(&e, false), ends.insert(&e);
    }
    std::unordered_set<const core::SyncObject*> barriers, ends;
  };
  struct Holding final : Ends {
    Partial& p;
    One* one = nullptr;
    explicit Holding(Partial& to) : p(to) {}
    void end(const core::SyncObject& c, bool writer, const void* at, std::uint32_t readers,
             std::uint32_t writers) override {
      const auto spot = p.spots_.find(&c);
      if (spot == p.spots_.end()) return;  // nobody waits there
      Spot& s = spot->second;
      s.known = true;
      s.readers = std::max(s.readers, readers);
      s.writers = std::max(s.writers, writers);
      (writer ? s.writer_ends : s.reader_ends).insert(at);
      (writer ? s.written_by : s.read_by).insert(one->process->id);
      p.going_on_.holds(one->process->id, &c);
    }
  };

  Partial(const Executor* here, const OpKind& waits) : here_(here), waits_(waits) {}

  // Under the lock of its group.
  void add(ProcessBase& x) {
    One& one = all_[x.id];
    one.process = &x;
    going_on_.process(x.id, x.group);
    if ((here_ && x.executor() != here_) || x.runs_on.load(std::memory_order_acquire) != 0) {
      one.process = nullptr;  // it may end at any moment
      one.able = true;
    } else if (!x.op || x.cancel().load(std::memory_order_relaxed) != 0) {
      one.able = true;
    } else if (x.op == &waits_) {
      one.children = static_cast<const Group*>(x.place);
    } else {
      one.able = x.op->undecided == nullptr;
    }
  }

  std::vector<StuckProcess> found() {
    find();
    return report(false);
  }
  void find() {
    Waiting waiting;
    for (auto& [id, one] : all_) {
      if (one.process && Limit::any_armed(*one.process, Limit::run_of(*one.process))) {
        // as a timer in its select
        one.able = true;
        one.children = nullptr;
      }
      ask(waiting, one);
    }
    for (auto& [id, one] : all_)
      for (const auto& [place, writing] : one.places) {
        Spot& s = spots_[place];
        s.channel = waiting.barriers.count(place) == 0;
        if (s.channel)
          going_on_.waits_at(id, place);
        else
          going_on_.waits_at_barrier(id);
      }
    for (const core::SyncObject* const e : waiting.ends) {
      // who waits for an end waits for that process (rule 7.11)
      spots_.at(e).known = true;
      if (const auto it = all_.find(e->last_writer); it != all_.end()) {
        spots_.at(e).written_by.insert(it->first);
        going_on_.holds(it->first, e);
      }
    }
    Holding holding(*this);
    for (auto& [id, one] : all_) {
      if (!one.process || !one.process->about) continue;
      holding.one = &one;
      for (const HeldAt& h : one.process->about->held)
        h.visit(reinterpret_cast<const char*>(one.process) + h.offset, holding);
    }
    for (auto& [id, one] : all_) {
      if (one.places.empty()) continue;
      std::vector<std::pair<const core::SyncObject*, bool>> before;
      std::swap(before, one.places);
      ask(waiting, one);
      one.places = std::move(before);
    }
    for (auto& [id, one] : all_) {
      for (const auto& [place, writing] : one.places)
        one.able = one.able || spots_[place].open(!writing, writing);
      if (one.children) going_on_.waits_for(id, one.children);
      if (one.able) going_on_.able(id);
    }
    going_on_.solve();
    for (auto& [id, one] : all_) one.able = going_on_.is_able(id);
  }
  // Where it waits at this moment; nowhere: it is able.
  void ask(Waiting& waiting, One& one) {
    if (one.able || one.children) return;
    one.places.clear();
    one.silent.clear();
    waiting.one = &one;
    one.process->op->undecided(*one.process, waiting);
    one.able = one.places.empty() && !one.nowhere;
    one.moved = one.able && !one.timed;
  }

  // `all`: also those that may go on.
  std::vector<StuckProcess> report(bool all) {
    std::vector<StuckProcess> r;
    for (const auto& [id, one] : all_) {
      if ((one.able && !all) || (one.places.empty() && !one.nowhere && !one.timed)) continue;
      StuckProcess s{id, path_of(*one.process), one.process->op->verb, where(*one.process), {}, {},
                     {}};
      std::set<std::uint32_t> others;
      for (const auto& [place, writing] : one.places) {
        s.places.push_back(name_of(*place));
        const Spot& spot = spots_.at(place);
        if (spot.open(!writing, writing)) s.open.push_back(name_of(*place));
        const std::set<std::uint32_t>& held = writing ? spot.read_by : spot.written_by;
        others.insert(held.begin(), held.end());
      }
      s.places.insert(s.places.end(), one.silent.begin(), one.silent.end());
      for (const std::uint32_t other : others)
        s.waits_for.push_back(path_of(*all_.at(other).process));
      std::sort(s.waits_for.begin(), s.waits_for.end());
      r.push_back(std::move(s));
    }
    std::sort(r.begin(), r.end(),
              [](auto& a, auto& b) { return a.path != b.path ? a.path < b.path : a.id < b.id; });
    return r;
  }

  const Executor* const here_;  // null: all
  const OpKind& waits_;
  std::map<std::uint32_t, One> all_;
  GoingOn going_on_;
  std::unordered_map<const core::SyncObject*, Spot> spots_;
};

}  // namespace weft::inline WEFT_ABI::runtime
