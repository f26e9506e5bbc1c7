// The deadlock report (rule 10.2): every blocked process, what it waits on and where, and the knot.
//
// An edge p → q: p waits for something that q, by the recorded holders, can give. A *knot* is a smallest non-empty set of processes whose
// edges all stay inside; a process that waits for nobody known is a knot by itself. (Knot in the sense of Holt, "Some deadlock properties
// of computer systems", 1972, section 3: with OR-waits a cycle is not enough, a knot is.)
#pragma once
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "group.hpp"

namespace weft::runtime {

// Rule 7.8. Of a process that is nested deeper than kPathLevels, the nearest of them: "…/inner/innermost".
inline std::string path_of(const ProcessBase& process) {
  constexpr int kPathLevels = 64;
  std::string r;
  int level = 0;
  for (const ProcessBase* p = &process; p; p = p->group ? p->group->parent : nullptr) {
    if (++level > kPathLevels) return "…/" + r;
    std::string step = p->group && p->group->name ? std::string(p->group->name) + "/" : std::string();
    step += p->function ? p->function : "process";
    if (p->group && p->group->started(p->function) > 1) step += "[" + std::to_string(p->index) + "]";
    r = level == 1 ? std::move(step) : step + "/" + r;
  }
  return r;
}

inline std::string name_of(const core::Place& c) {
  std::string r = c.name ? c.name : "?";
  if (c.line == 0) return "'" + r + "'";
  const std::size_t slash = r.rfind('/');
  return (slash == std::string::npos ? r : r.substr(slash + 1)) + ":" + std::to_string(c.line);
}

inline std::string where(const ProcessBase& p) {
  if (!p.file) return "?";
  const std::string f = p.file;
  const std::size_t slash = f.rfind('/');
  return (slash == std::string::npos ? f : f.substr(slash + 1)) + ":" + std::to_string(p.line);
}

// What a host language knows beyond the records: where its processes are, and all that hold an end.
struct ReportHooks {
  void (*begin)(Run&) = nullptr;  // bring file and line of every process up to date; nothing of the run changes until end()
  void (*holders)(const core::Place&, bool readers, std::set<std::uint32_t>& add) = nullptr;
  void (*end)(Run&) = nullptr;
  void (*deadlock)(Run&, const struct Report&) = nullptr;  // it is declared
};
inline ReportHooks report_hooks;

struct Report {
  struct Blocked {
    std::string path, verb, at;
    bool for_children = false;  // it waits for its group: no operation of its own, but part of the graph
    std::vector<std::string> places;
    std::set<std::uint32_t> waits_for;
    std::vector<std::string> unknown;  // places whose other side nobody is known to hold
  };
  std::map<std::uint32_t, Blocked> blocked;
  std::vector<std::uint32_t> order;  // the blocked, by their paths: ids depend on the order in which a compiler evaluates arguments
  std::vector<std::uint32_t> knot;   // in that order

  // Only while nothing can run.
  static Report of(Run& run) {
    Report r;
    if (report_hooks.begin) report_hooks.begin(run);
    std::vector<ProcessBase*> all;  // nothing can run, so they stay; paths take their groups' locks
    run.each_process([&](ProcessBase& p) { all.push_back(&p); });
    std::map<const ProcessBase*, std::uint32_t> alive;
    for (const ProcessBase* p : all) alive.emplace(p, p->id);
    Collect collect(r.blocked);
    for (const ProcessBase* p : all) collect.ids.insert(p->id);
    for (ProcessBase* p : all) {
      if (!p->op) continue;  // running
      Blocked& b = r.blocked[p->id];
      b.path = path_of(*p);
      b.verb = p->op->verb;
      b.at = where(*p);
      b.for_children = !p->op->visit;
      collect.b = &b;
      collect.self = p->id;
      if (p->op->visit) p->op->visit(*p, collect);
    }
    for (const ProcessBase* p : all)
      if (const auto parent = alive.find(p->group->parent); parent != alive.end())
        if (const auto b = r.blocked.find(parent->second); b != r.blocked.end() && b->second.for_children)
          b->second.waits_for.insert(p->id);
    collect.channels();
    collect.barriers();
    for (const auto& x : r.blocked) r.order.push_back(x.first);
    r.sort_by_path(r.order);
    for (const std::uint32_t id : r.order) {
      std::vector<std::uint32_t> inside = r.closure(id);
      if (r.knot.empty() || inside.size() < r.knot.size()) r.knot = std::move(inside);
    }
    r.sort_by_path(r.knot);
    if (report_hooks.end) report_hooks.end(run);
    return r;
  }

  std::vector<std::string> knot_paths() const {
    std::vector<std::string> r;
    for (const std::uint32_t id : knot)
      if (auto it = blocked.find(id); it != blocked.end()) r.push_back(it->second.path);
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
      if (++shown > 40) {
        s += "\n  … and " + std::to_string(n - 40) + " more";
        break;
      }
      s += "\n  " + line(b);
    }
    s += "\nknot:";
    for (const std::uint32_t id : knot) {
      const auto it = blocked.find(id);
      if (it == blocked.end()) continue;
      s += "\n  " + it->second.path + " waits for ";
      const char* const between = it->second.for_children ? " and " : " or ";
      bool first = true;
      for (const std::uint32_t q : it->second.waits_for) {
        const auto w = blocked.find(q);
        s += (first ? "" : between) + (w == blocked.end() ? "process #" + std::to_string(q) : w->second.path);
        first = false;
      }
      for (const std::string& u : it->second.unknown) {
        s += std::string(first ? "" : " or ") + "whoever is on the other side of " + u + " (nobody that is known)";
        first = false;
      }
    }
    return s;
  }

 private:
  // Receives the places at which a process waits, and notes for whom it waits there.
  struct Collect final : Places {
    std::map<std::uint32_t, Blocked>& blocked;
    Blocked* b = nullptr;
    std::uint32_t self = 0;
    std::set<std::uint32_t> ids;  // of all processes
    // Who waits there; at a channel: to read, to write.
    std::map<const core::Place*, std::array<std::set<std::uint32_t>, 2>> at_channel;
    std::map<const core::Place*, std::set<std::uint32_t>> at_barrier;

    explicit Collect(std::map<std::uint32_t, Blocked>& to) : blocked(to) {}
    void channel(const core::Place& c, bool writing) override {
      b->places.push_back(name_of(c));
      at_channel[&c][writing].insert(self);
    }
    // Who waits at a channel waits for those that hold its other side: who was given or last used an end of it, and who waits there.
    void channels() {
      for (const auto& [place, there] : at_channel)
        for (const bool writing : {false, true})
          for (const std::uint32_t p : there[writing]) {
            std::set<std::uint32_t> others;
            if (report_hooks.holders) report_hooks.holders(*place, writing, others);
            if (others.empty()) {
              others = there[!writing];
              others.insert(writing ? place->last_reader : place->last_writer);
            }
            bool any = false;
            for (const std::uint32_t other : others)
              if (ids.count(other)) any = true, blocked[p].waits_for.insert(other);
            if (!any) blocked[p].unknown.push_back(name_of(*place));
          }
    }
    void barrier(const core::Place& c) override {
      b->places.push_back(name_of(c));
      at_barrier[&c].insert(self);
    }
    // Who is enrolled is not recorded: whoever is not there may be the one that is missing.
    void barriers() {
      for (const auto& [place, there] : at_barrier)
        for (const std::uint32_t p : there) {
          Blocked& w = blocked[p];
          for (const std::uint32_t q : ids)
            if (!there.count(q)) w.waits_for.insert(q);
          if (w.waits_for.empty()) w.unknown.push_back(name_of(*place));
        }
    }
  };

  void sort_by_path(std::vector<std::uint32_t>& ids) const {
    static const std::string none;
    auto path = [this](std::uint32_t id) -> const std::string& {
      const auto b = blocked.find(id);
      return b == blocked.end() ? none : b->second.path;
    };
    std::sort(ids.begin(), ids.end(), [&](std::uint32_t a, std::uint32_t b) { return path(a) != path(b) ? path(a) < path(b) : a < b; });
  }

  // Everybody for whom a process waits, directly or through others, and itself.
  std::vector<std::uint32_t> closure(std::uint32_t of) const {
    std::set<std::uint32_t> inside{of};
    std::vector<std::uint32_t> todo{of};
    while (!todo.empty()) {
      const auto it = blocked.find(todo.back());
      todo.pop_back();
      if (it == blocked.end()) continue;
      for (const std::uint32_t q : it->second.waits_for)
        if (inside.insert(q).second) todo.push_back(q);
    }
    return {inside.begin(), inside.end()};
  }

  static std::string line(const Blocked& b) {
    std::string s = b.path + ": " + b.verb;
    for (std::size_t i = 0; i < b.places.size() && i < 8; ++i) s += (i ? ", " : " ") + b.places[i];
    if (b.places.size() > 8) s += ", …";
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
