// The definitions of runtime/partial.hpp; see config.hpp.
#pragma once
#include <algorithm>

#include "../runtime/function_info.hpp"
#include "../runtime/going_on.hpp"
#include "../runtime/limit.hpp"
#include "../runtime/names.hpp"
#include "../runtime/partial.hpp"
#include "../runtime/text.hpp"

namespace weft::inline WEFT_ABI::runtime {

// Processes are named by their indices in all_, places by their indices in places_ and spots_.
class Partial {
 public:
  Partial(const Executor* here, const OpKind& waits) : here_(here), waits_(waits) {}

  // Under the lock of its group.
  void add(ProcessBase& x) {
    by_id_.add(x.id, all_.size());
    going_on_.process(x.id, x.group);
    One one;
    one.process = &x;
    one.id = x.id;
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
    all_.push_back(std::move(one));
  }
  void find() {
    by_id_.sort();
    for (One& one : all_) {
      if (one.process && Limit::any_armed(*one.process, Limit::run_of(*one.process))) {
        // as a timer in its select
        one.able = true;
        one.children = nullptr;
      }
      ask(one);
      for (const Place& p : one.places) {
        places_.add(Pairs::number(p.at), 0);
        if (p.kind == barrier)
          going_on_.waits_at_barrier(one.id);
        else
          going_on_.waits_at(one.id, p.at);
      }
    }
    places_.sort();
    spots_.resize(places_.size());
    for (const One& one : all_)
      for (const Place& p : one.places) {
        const std::uint32_t spot = spot_of(*p.at);
        spots_[spot].channel = p.kind != barrier;
        if (p.kind != end) continue;
        // who waits for an end waits for that process (rule 7.11)
        spots_[spot].known = true;
        if (const std::uint32_t i = by_id_.find(p.at->last_writer); i < by_id_.size())
          holds(static_cast<std::uint32_t>(by_id_[i].value), spot, true);
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
    for (One& one : all_) {
      if (one.places.empty()) continue;
      std::vector<Place> before;
      std::swap(before, one.places);
      ask(one);
      one.places = std::move(before);
    }
    for (One& one : all_) {
      for (const Place& p : one.places) one.able = one.able || open(p);
      if (one.children) going_on_.waits_for(one.id, one.children);
      if (one.able) going_on_.able(one.id);
    }
    going_on_.solve();
    for (One& one : all_) one.able = going_on_.is_able(one.id);
  }
  // `everybody`: also those that may go on.
  std::vector<StuckProcess> report(bool everybody) {
    std::vector<std::uint32_t> told;
    for (std::uint32_t i = 0; i < all_.size(); ++i) {
      const One& one = all_[i];
      if ((one.able && !everybody) || (one.places.empty() && !one.nowhere && !one.timed)) continue;
      told.push_back(i);
    }
    std::vector<StuckProcess> r;
    for (const std::uint32_t i : by_path(told)) {
      const One& one = all_[i];
      StuckProcess s;
      s.id = one.id;
      s.path = one.path;
      s.operation = one.process->op->verb;
      s.at = where(*one.process);
      std::vector<std::uint32_t> others;
      for (const Place& p : one.places) {
        s.places.push_back(name_of(*p.at));
        if (open(p)) s.open.push_back(s.places.back());
        for (const Pairs::Pair& h : holders_.of(side(spot_of(*p.at), !p.writing)))
          others.push_back(static_cast<std::uint32_t>(h.value));
      }
      for (const std::string& ended : one.silent) s.places.push_back(ended);
      sort_unique(others);
      for (const std::uint32_t other : by_path(others)) s.waits_for.push_back(all_[other].path);
      r.push_back(std::move(s));
    }
    return r;
  }
  AtRest at_rest() {
    AtRest r;
    for (const One& one : all_)
      if (one.able) return r;
    find();
    for (const One& one : all_) {
      if (one.moved) return r;
      // any order
      for (const Place& p : one.places) r.places += (Pairs::number(p.at) * 2 + p.writing) | 1;
    }
    r.processes = report(true);
    r.places |= !r.processes.empty();
    return r;
  }

 private:
  enum Kind : std::uint8_t { channel, barrier, end };
  struct Place {
    const core::SyncObject* at;
    Kind kind;
    bool writing;
  };
  struct One {
    ProcessBase* process = nullptr;
    std::uint32_t id = 0;
    bool able = false;
    bool moved = false;    // it waits no longer
    bool nowhere = false;  // it waits for a time that never comes
    bool timed = false;    // it waits for a time, too
    std::vector<Place> places;
    // names of channels that have ended, where nobody will come (rule 5.6)
    std::vector<std::string> silent;
    const Group* children = nullptr;  // for which it waits
    std::string path;                 // empty: not asked for yet
  };
  struct Spot {
    bool channel = false, known = false;  // known: an end is, so the counts are
    std::uint32_t readers = 0, writers = 0;
  };
  struct Waiting final : WaitVisitor {
    One& one;
    explicit Waiting(One& of) : one(of) {}
    void add(const core::SyncObject& at, Kind kind, bool writing) {
      one.places.push_back({&at, kind, writing});
    }
    void channel(const core::SyncObject& c, bool writing) override {
      add(c, Partial::channel, writing);
    }
    void ended(const core::SyncObject& c, std::uint32_t) override {
      one.silent.push_back(joined({name_of(c), " (ended)"}));
    }
    void barrier(const core::SyncObject& b) override { add(b, Partial::barrier, false); }
    void nowhere() override { one.nowhere = true; }
    void timed() override { one.timed = true; }
    void end(const core::SyncObject& e) override { add(e, Partial::end, false); }
  };
  struct Holding final : Ends {
    Partial& p;
    std::uint32_t process = 0;
    explicit Holding(Partial& to) : p(to) {}
    void end(const core::SyncObject& c, bool writer, const void* at, std::uint32_t readers,
             std::uint32_t writers) override {
      const std::uint32_t spot = p.spot_of(c);
      if (spot == p.spots_.size()) return;  // nobody waits there
      Spot& s = p.spots_[spot];
      s.known = true;
      s.readers = std::max(s.readers, readers);
      s.writers = std::max(s.writers, writers);
      p.ends_.add(side(spot, writer), Pairs::number(at));
      p.holds(process, spot, writer);
    }
  };

  std::uint32_t spot_of(const core::SyncObject& at) const noexcept {
    return places_.find(Pairs::number(&at));
  }
  static std::uintptr_t side(std::uintptr_t spot, bool writers) noexcept {
    return spot * 2 + writers;
  }
  void holds(std::uint32_t process, std::uint32_t spot, bool writer) {
    holders_.add(side(spot, writer), process);
    going_on_.holds(all_[process].id, reinterpret_cast<const void*>(places_[spot].key));
  }
  // Somebody may come there whom we do not know.
  bool open(const Place& p) const {
    const std::uint32_t spot = spot_of(*p.at);
    const Spot& s = spots_[spot];
    if (!s.channel) return false;
    return !s.known || s.readers > ends_.of(side(spot, false)).size() ||
           s.writers > ends_.of(side(spot, true)).size() ||
           holders_.of(side(spot, !p.writing)).empty();
  }
  // Where it waits at this moment; nowhere: it is able.
  void ask(One& one) {
    if (one.able || one.children) return;
    one.places.clear();
    one.silent.clear();
    Waiting waiting(one);
    one.process->op->undecided(*one.process, waiting);
    one.able = one.places.empty() && !one.nowhere;
    one.moved = one.able && !one.timed;
  }
  std::vector<std::uint32_t>& by_path(std::vector<std::uint32_t>& those) {
    for (const std::uint32_t i : those)
      if (all_[i].path.empty()) all_[i].path = path_of(*all_[i].process);
    sort_numbers(those, {[](const void* x, std::uint32_t a, std::uint32_t b) {
                           const auto& all = *static_cast<const std::vector<One>*>(x);
                           const int c = all[a].path.compare(all[b].path);
                           return c != 0 ? c < 0 : all[a].id < all[b].id;
                         },
                         &all_});
    return those;
  }

  const Executor* const here_;  // null: all
  const OpKind& waits_;
  std::vector<One> all_;
  Pairs by_id_;   // the process of each id
  Pairs places_;  // the addresses of the places where somebody waits
  std::vector<Spot> spots_;
  Pairs ends_, holders_;  // of each side of a place: the addresses of the ends; the processes
  GoingOn going_on_;
};

WEFT_IMPL std::vector<StuckProcess> look_for_stuck(Run& run, Executor& here, const OpKind& waits) {
  struct Look {
    Run& run;
    Partial p;
    std::vector<StuckProcess> stuck;
  } look{run, Partial(&here, waits), {}};
  const auto takes = [](void* x) {
    Look& l = *static_cast<Look*>(x);
    l.run.each_process([&](ProcessBase& one) { l.p.add(one); });
    l.p.find();
    l.stuck = l.p.report(false);
  };
  here.held(takes, &look);
  return std::move(look.stuck);
}

WEFT_IMPL AtRest look_at_rest(Run& run, const OpKind& waits) {
  Partial p(nullptr, waits);
  run.each_process([&](ProcessBase& one) { p.add(one); });
  return p.at_rest();
}

}  // namespace weft::inline WEFT_ABI::runtime
