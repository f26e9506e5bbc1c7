// The deadlock report (rule 10.2): every blocked process, what it waits on and where, and the knot.
//
// An edge p → q: p waits for something that q, by the recorded holders, can give. A *knot* is a smallest non-empty set of processes whose
// edges all stay inside; a process that waits for nobody known is a knot by itself. (Knot in the sense of Holt, "Some deadlock properties
// of computer systems", 1972, section 3: with OR-waits a cycle is not enough, a knot is.)
#pragma once
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "group.hpp"

namespace weft::runtime {

inline std::string path_of(const ProcessBase& p) {
  std::string r;
  if (p.group && p.group->parent) r = path_of(*p.group->parent) + "/";
  if (p.group && p.group->name) r += std::string(p.group->name) + "/";
  r += p.function ? p.function : "process";
  if (p.group && p.group->started(p.function) > 1) r += "[" + std::to_string(p.index) + "]";
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
    std::vector<std::string> places;
    std::set<std::uint32_t> waits_for;
    std::vector<std::string> unknown;  // places whose other side nobody is known to hold
  };
  std::map<std::uint32_t, Blocked> blocked;
  std::vector<std::uint32_t> knot;

  // Only while nothing can run (or, as a snapshot, knowing that it is one).
  static Report of(Run& run) {
    Report r;
    if (report_hooks.begin) report_hooks.begin(run);
    std::set<std::uint32_t> alive;
    run.each_process([&](ProcessBase& p) { alive.insert(p.id); });
    struct Collect final : Places {
      Blocked* b;
      std::uint32_t self;
      std::set<std::uint32_t>* alive;
      void channel(const core::Place& c, bool writing) override {
        b->places.push_back(name_of(c));
        std::set<std::uint32_t> others;
        if (report_hooks.holders) report_hooks.holders(c, writing, others);
        // Without a full record, who was given or last used the other end.
        if (others.empty()) others.insert(writing ? c.last_reader : c.last_writer);
        bool any = false;
        for (const std::uint32_t other : others) {
          if (!other || !alive->count(other)) continue;
          b->waits_for.insert(other);
          any = true;
        }
        if (!any) b->unknown.push_back(name_of(c));
      }
      void barrier(const core::Place& c) override {
        b->places.push_back(name_of(c));
        b->unknown.push_back(name_of(c));
      }
    } collect;
    run.each_process([&](ProcessBase& p) {
      if (!p.op || !p.op->visit) return;  // running, or waiting for its own children
      Blocked& b = r.blocked[p.id];
      b.path = path_of(p);
      b.verb = p.op->verb;
      b.at = where(p);
      collect.b = &b;
      collect.self = p.id;
      collect.alive = &alive;
      p.op->visit(p, collect);
    });
    // A process waited for that itself only waits for its children stands for them; the report says so by leaving it out of the knot.
    for (auto& [id, b] : r.blocked) {
      std::set<std::uint32_t> inside{id};
      std::vector<std::uint32_t> todo{id};
      while (!todo.empty()) {
        const std::uint32_t p = todo.back();
        todo.pop_back();
        const auto it = r.blocked.find(p);
        if (it == r.blocked.end()) continue;
        for (const std::uint32_t q : it->second.waits_for)
          if (inside.insert(q).second) todo.push_back(q);
      }
      if (r.knot.empty() || inside.size() < r.knot.size()) r.knot.assign(inside.begin(), inside.end());
    }
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
    std::string s = "deadlock: " + std::to_string(blocked.size()) + (blocked.size() == 1 ? " process is" : " processes are") +
                    " blocked and nothing outside can wake any";
    std::size_t shown = 0;
    for (const auto& [id, b] : blocked) {
      if (++shown > 40) {
        s += "\n  … and " + std::to_string(blocked.size() - 40) + " more";
        break;
      }
      s += "\n  " + line(b);
    }
    s += "\nknot:";
    for (const std::uint32_t id : knot) {
      const auto it = blocked.find(id);
      if (it == blocked.end()) continue;
      s += "\n  " + it->second.path + " waits for ";
      bool first = true;
      for (const std::uint32_t q : it->second.waits_for) {
        const auto w = blocked.find(q);
        s += (first ? "" : " or ") + (w == blocked.end() ? "process #" + std::to_string(q) : w->second.path);
        first = false;
      }
      for (const std::string& u : it->second.unknown) {
        s += std::string(first ? "" : " or ") + "whoever holds the other end of " + u + " (nobody that is known)";
        first = false;
      }
    }
    return s;
  }

 private:
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
