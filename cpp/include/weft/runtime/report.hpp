// The deadlock report (rule 10.2): every blocked process, what it waits on and where, and the knot.
//
// An edge p → q: p waits for something that q, by the recorded holders, can give. A *knot* is a smallest non-empty set of processes whose
// edges all stay inside; a process that waits for nobody known is a knot by itself (knot.hpp finds it). (Knot in the sense of Holt, "Some
// deadlock properties of computer systems", 1972, section 3: with OR-waits a cycle is not enough, a knot is.)
#pragma once
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "about.hpp"
#include "group.hpp"
#include "knot.hpp"

namespace weft::runtime {

// Rule 7.8. Of a process that is nested deeper than kPathLevels, the nearest of them: "…/inner/innermost". The process stays meanwhile;
// those above it stay by themselves, unless their group is left by an exception (Group::abandon).
inline std::string path_of(const ProcessBase& process) {
  constexpr int kPathLevels = 64;
  std::string r;
  const auto walk = [&] {
    int level = 0;
    for (const ProcessBase* p = &process; p; p = p->group ? p->group->owner() : nullptr) {
      if (++level > kPathLevels) {
        r.insert(0, "…/");
        return;
      }
      std::string step = p->group && p->group->name ? std::string(p->group->name) + "/" : std::string();
      step += p->function ? p->function : "process";
      if (p->group && p->group->started(p->function) > 1) step.append("[").append(std::to_string(p->index)).append("]");
      if (level > 1) step.append("/").append(r);
      r = std::move(step);
    }
  };
  if (process.group)
    process.group->run.still(walk);
  else
    walk();
  return r;
}

inline std::string name_of(const core::Place& c) {
  std::string r = c.name ? c.name : "?";
  if (c.line == 0) return "'" + r + "'";
  const std::size_t slash = r.rfind('/');
  return (slash == std::string::npos ? r : r.substr(slash + 1)) + ":" + std::to_string(c.line);
}

inline std::string where(const ProcessBase& p) {
  if (!p.about || !p.about->file) return "?";
  const std::string f = p.about->file;
  const std::size_t slash = f.rfind('/');
  return (slash == std::string::npos ? f : f.substr(slash + 1)) + ":" + std::to_string(p.line);
}

// What a host language knows beyond the records: where its processes are, and all that hold an end.
struct ReportHooks {
  void (*begin)(Run&) = nullptr;  // bring file and line of every process up to date; nothing of the run changes until end()
  void (*holders)(const core::Place&, bool readers, std::set<std::uint32_t>& add) = nullptr;
  void (*end)(Run&) = nullptr;
  void (*deadlock)(Run&, const struct Report&) = nullptr;              // it is declared
  const char* ends = "say .ends() of that guard, weft::in(…).ends()";  // how a program makes a retirement an outcome
};
inline ReportHooks report_hooks;

struct Report {
  struct Blocked {
    std::string path, verb, at;
    bool for_children = false;  // it waits for its group: no operation of its own, but part of the graph
    std::vector<std::string> places;
    std::vector<std::pair<std::uint32_t, std::string>> silent;  // guards of its select whose channels have ended (rule 5.6)
    std::vector<std::string> unknown;                           // places whose other side nobody is known to hold
  };
  static constexpr std::size_t kLines = 40;  // of processes, in a text
  static constexpr std::size_t kNames = 8;   // in a line

  std::map<std::uint32_t, Blocked> blocked;
  std::vector<std::uint32_t> order;  // the blocked, by their paths: ids depend on the order in which a compiler evaluates arguments
  std::vector<std::uint32_t> knot;   // in that order

  // Only while nothing can run. Its time and memory grow with the number of processes and of records, not with their product.
  static Report of(Run& run) {
    Report r;
    if (report_hooks.begin) report_hooks.begin(run);
    std::vector<ProcessBase*> all;  // nothing can run, so they stay; paths take their groups' locks
    run.each_process([&](ProcessBase& p) { all.push_back(&p); });
    for (ProcessBase* p : all) {
      if (!p->op) continue;  // running
      Blocked& b = r.blocked[p->id];
      b.path = path_of(*p);
      b.verb = p->op->verb;
      b.at = where(*p);
      b.for_children = !p->op->visit;
    }
    for (const auto& x : r.blocked) r.order.push_back(x.first);
    r.sort_by_path();
    Collect collect(r, all);
    for (ProcessBase* p : all) {
      if (!p->op) continue;
      collect.begin(p->id);
      if (p->op->visit) p->op->visit(*p, collect);
    }
    for (const ProcessBase* p : all)
      if (const ProcessBase* const parent = p->group->owner())
        if (const auto b = r.blocked.find(parent->id); b != r.blocked.end() && b->second.for_children)
          r.to_[r.node_.at(parent->id)].push_back(collect.node(p->id));
    collect.channels();
    collect.barriers();
    collect.ends();
    for (const std::uint32_t n : smallest_knot(r.to_, static_cast<std::uint32_t>(r.order.size()), r.running()))
      r.knot.push_back(r.order[n]);
    if (report_hooks.end) report_hooks.end(run);
    return r;
  }

  std::vector<std::string> knot_paths() const {
    std::vector<std::string> r;
    for (const std::uint32_t id : knot) r.push_back(blocked.at(id).path);
    return r;
  }

  std::string text() const {
    std::size_t n = 0;
    for (const auto& x : blocked) n += !x.second.for_children;
    std::string s =
        "deadlock: " + std::to_string(n) + (n == 1 ? " process is" : " processes are") + " blocked and nothing outside can wake any";
    std::size_t shown = 0;
    for (const std::uint32_t id : order) {
      const Blocked& b = blocked.at(id);
      if (b.for_children) continue;
      if (++shown > kLines) {
        s += more(n - kLines);
        break;
      }
      s += "\n  " + line(b);
    }
    s += "\nknot:";
    for (std::size_t i = 0; i < knot.size(); ++i) {
      if (i == kLines) return s + more(knot.size() - kLines);
      s += "\n  " + waiting(knot[i]);
    }
    return s + ended();
  }

 private:
  // It may be that the program took the end of one channel for the end of a process: say how it says so.
  std::string ended() const {
    std::string s;
    std::size_t n = 0;
    for (const std::uint32_t id : order)
      for (const auto& [guard, place] : blocked.at(id).silent)
        if (++n <= kLines)
          s += "\n" + blocked.at(id).path + ": guard " + std::to_string(guard) + " " + place +
               " has ended; if that should end the process: " + report_hooks.ends;
    return n > kLines ? s + more(n - kLines) : s;
  }
  static std::string more(std::size_t n) { return "\n  … and " + std::to_string(n) + " more"; }

  // The graph. Nodes: the blocked, in `order`; one for all that run; then, for each side of a channel and each barrier, one that leads to
  // all that could come there: n who wait for the same m cost n + m edges.
  std::vector<std::vector<std::uint32_t>> to_;
  std::unordered_map<std::uint32_t, std::uint32_t> node_;  // of a blocked process
  std::uint32_t running() const noexcept { return static_cast<std::uint32_t>(order.size()); }

  // Receives the places at which processes wait, and notes for whom they wait there.
  struct Collect final : Places {
    Report& r;
    std::uint32_t self = 0;
    std::set<std::uint32_t> ids;  // of all processes
    // Who waits there; at a channel: to read, to write.
    std::map<const core::Place*, std::array<std::set<std::uint32_t>, 2>> at_channel;
    std::map<const core::Place*, std::set<std::uint32_t>> at_barrier, at_end;

    Collect(Report& to, const std::vector<ProcessBase*>& all) : r(to) {
      for (const ProcessBase* p : all) ids.insert(p->id);
      for (std::uint32_t n = 0; n < r.order.size(); ++n) r.node_.emplace(r.order[n], n);
      r.to_.resize(r.order.size() + 1);
    }
    void begin(std::uint32_t id) { self = id; }
    std::uint32_t node(std::uint32_t id) const {
      const auto n = r.node_.find(id);
      return n == r.node_.end() ? r.running() : n->second;
    }
    void channel(const core::Place& c, bool writing) override {
      r.blocked[self].places.push_back(name_of(c));
      at_channel[&c][writing].insert(self);
    }
    // Who waits at a channel waits for those that hold its other side: who was given or last used an end of it, and who waits there.
    void channels() {
      for (const auto& [place, there] : at_channel)
        for (const bool writing : {false, true}) {
          if (there[writing].empty()) continue;
          std::set<std::uint32_t> others;
          if (report_hooks.holders) report_hooks.holders(*place, writing, others);
          if (others.empty()) {
            others = there[!writing];
            others.insert(writing ? place->last_reader : place->last_writer);
          }
          wait(*place, there[writing], others);
        }
    }
    void ended(const core::Place& c, std::uint32_t guard) override {
      Blocked& b = r.blocked[self];
      b.places.push_back(name_of(c) + " (ended)");
      b.silent.emplace_back(guard, name_of(c));
    }
    void barrier(const core::Place& c) override {
      r.blocked[self].places.push_back(name_of(c));
      at_barrier[&c].insert(self);
    }
    void end(const core::Place& c) override {
      r.blocked[self].places.push_back(name_of(c));
      at_end[&c].insert(self);
    }
    void ends() {
      for (const auto& [place, there] : at_end) wait(*place, there, {place->last_writer});
    }
    // Who is enrolled is not recorded: whoever is not there may be the one that is missing.
    void barriers() {
      for (const auto& [place, there] : at_barrier) {
        std::set<std::uint32_t> others;
        std::set_difference(ids.begin(), ids.end(), there.begin(), there.end(), std::inserter(others, others.end()));
        wait(*place, there, others);
      }
    }
    void wait(const core::Place& place, const std::set<std::uint32_t>& those, const std::set<std::uint32_t>& others) {
      std::vector<std::uint32_t> to;
      for (const std::uint32_t other : others)
        if (ids.count(other)) to.push_back(node(other));
      for (const std::uint32_t p : those) {
        if (to.empty())
          r.blocked[p].unknown.push_back(name_of(place));
        else
          r.to_[r.node_.at(p)].push_back(static_cast<std::uint32_t>(r.to_.size()));
      }
      if (!to.empty()) r.to_.push_back(std::move(to));
    }
  };

  void sort_by_path() {
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const std::string &x = blocked.at(a).path, &y = blocked.at(b).path;
      return x != y ? x < y : a < b;
    });
  }

  std::string waiting(std::uint32_t id) const {
    const Blocked& b = blocked.at(id);
    std::set<std::uint32_t> others;  // in the order of `order`
    for (const std::uint32_t n : to_[node_.at(id)]) {
      if (n <= running())
        others.insert(n);
      else
        others.insert(to_[n].begin(), to_[n].end());
    }
    const std::string between = b.for_children ? " and " : " or ";
    std::string s = b.path + " waits for ";
    std::size_t shown = 0;
    for (const std::uint32_t n : others) {
      if (shown++) s += between;
      if (shown > kNames) {
        s += std::to_string(others.size() - kNames) + " more";
        break;
      }
      s += n == running() ? "one that runs" : blocked.at(order[n]).path;
    }
    for (const std::string& u : b.unknown)
      s += (shown++ ? " or whoever is on the other side of " : "whoever is on the other side of ") + u + " (nobody that is known)";
    if (shown == 0) s += "nobody";
    return s;
  }

  static std::string line(const Blocked& b) {
    std::string s = b.path + ": " + b.verb;
    for (std::size_t i = 0; i < b.places.size() && i < kNames; ++i) s += (i ? ", " : " ") + b.places[i];
    if (b.places.size() > kNames) s += ", …";
    return s + " at " + b.at;
  }
};

inline bool Run::anybody_blocked() noexcept {
  bool any = false;
  each_process([&](ProcessBase& p) { any = any || (p.op && p.op->visit); });
  return any;
}
inline void Run::describe() noexcept {
  const Report r = Report::of(*this);
  report_ = r.text();
  knot_ = r.knot_paths();
  if (report_hooks.deadlock) report_hooks.deadlock(*this, r);
}

}  // namespace weft::runtime
