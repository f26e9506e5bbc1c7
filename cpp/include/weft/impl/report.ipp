// The definitions of runtime/report.hpp; see config.hpp.
#pragma once
#include <cstdint>

#include "../runtime/group.hpp"
#include "../runtime/knot.hpp"
#include "../runtime/names.hpp"
#include "../runtime/report.hpp"
#include "../runtime/text.hpp"

namespace weft::inline WEFT_ABI::runtime {

// Receives the places at which processes wait, and notes for whom they wait there.
struct Report::Collect final : WaitVisitor {
  using Ids = std::vector<std::uint32_t>;  // ascending, each once
  enum How : std::uint8_t { to_read, to_write, to_sync, for_end };
  struct Waiting {
    const core::SyncObject* place;
    How how;
    std::uint32_t id;
  };
  Report& r;
  std::uint32_t self = 0;
  Ids ids;  // of all processes
  std::vector<Waiting> waits;

  Collect(Report& to, const std::vector<ProcessBase*>& all) : r(to) {
    for (const ProcessBase* p : all) ids.push_back(p->id);
    sort_unique(ids);
    r.to_.resize(r.order.size() + 1);
  }
  void begin(std::uint32_t id) { self = id; }
  std::uint32_t node(std::uint32_t id) const {
    const Blocked* const b = r.find(id);
    return b ? b->node : r.running();
  }
  void at(const core::SyncObject& c, How how) {
    r.find(self)->places.push_back(name_of(c));
    waits.push_back({&c, how, self});
  }
  void channel(const core::SyncObject& c, bool writing) override {
    at(c, writing ? to_write : to_read);
  }
  void barrier(const core::SyncObject& c) override { at(c, to_sync); }
  void end(const core::SyncObject& c) override { at(c, for_end); }
  void ended(const core::SyncObject& c, std::uint32_t guard) override {
    Blocked& b = *r.find(self);
    b.places.push_back(joined({name_of(c), " (ended)"}));
    b.silent.emplace_back(guard, name_of(c));
  }

  static bool before(const void* x, std::uint32_t a, std::uint32_t b) {
    const auto& all = *static_cast<const std::vector<Waiting>*>(x);
    const Waiting &v = all[a], &w = all[b];
    return v.place != w.place ? reinterpret_cast<std::uintptr_t>(v.place) <
                                    reinterpret_cast<std::uintptr_t>(w.place)
           : v.how != w.how ? v.how < w.how
                            : v.id < w.id;
  }
  void edges() {
    std::vector<std::uint32_t> sorted(waits.size());
    for (std::uint32_t i = 0; i < sorted.size(); ++i) sorted[i] = i;
    sort_numbers(sorted, {&before, &waits});
    for (std::size_t i = 0; i < sorted.size();) {
      const core::SyncObject* const place = waits[sorted[i]].place;
      Ids there[4];
      for (; i < sorted.size() && waits[sorted[i]].place == place; ++i) {
        const Waiting& w = waits[sorted[i]];
        if (there[w.how].empty() || there[w.how].back() != w.id) there[w.how].push_back(w.id);
      }
      channel(*place, there[to_read], there[to_write], false);
      channel(*place, there[to_write], there[to_read], true);
      // Who is enrolled is not recorded: whoever is not there may be the one that is missing.
      if (!there[to_sync].empty()) {
        Ids others;
        for (const std::uint32_t id : ids)
          if (!has(there[to_sync], id)) others.push_back(id);
        wait(*place, there[to_sync], others);
      }
      if (!there[for_end].empty()) wait(*place, there[for_end], {place->last_writer});
    }
  }
  // Who waits at a channel waits for those that hold its other side: who was given or last used an
  // end of it, and who waits there.
  void channel(const core::SyncObject& place, const Ids& those, const Ids& opposite, bool writing) {
    if (those.empty()) return;
    Ids others;
    if (report_hooks.holders) report_hooks.holders(place, writing, others);
    if (others.empty()) {
      others = opposite;
      others.push_back(writing ? place.last_reader : place.last_writer);
    }
    sort_unique(others);
    wait(place, those, others);
  }
  void wait(const core::SyncObject& place, const Ids& those, const Ids& others) {
    std::vector<std::uint32_t> to;
    for (const std::uint32_t other : others)
      if (has(ids, other)) to.push_back(node(other));
    for (const std::uint32_t p : those) {
      Blocked& b = *r.find(p);
      if (to.empty())
        b.unknown.push_back(name_of(place));
      else
        r.to_[b.node].push_back(static_cast<std::uint32_t>(r.to_.size()));
    }
    if (!to.empty()) r.to_.push_back(std::move(to));
  }
};

WEFT_IMPL Report::Blocked* Report::find(std::uint32_t id) noexcept {
  std::size_t low = 0, high = blocked.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (blocked[middle].first < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < blocked.size() && blocked[low].first == id ? &blocked[low].second : nullptr;
}

WEFT_IMPL Report Report::of(Run& run) {
  Report r;
  if (report_hooks.begin) report_hooks.begin(run);
  std::vector<ProcessBase*> all;  // nothing can run, so they stay; paths take their groups' locks
  run.each_process([&](ProcessBase& p) { all.push_back(&p); });
  std::vector<std::uint32_t> parked;  // indices in `all`
  for (std::uint32_t i = 0; i < all.size(); ++i)
    if (all[i]->op) parked.push_back(i);
  sort_numbers(parked, {[](const void* x, std::uint32_t a, std::uint32_t b) {
                          const auto& of = *static_cast<const std::vector<ProcessBase*>*>(x);
                          return of[a]->id < of[b]->id;
                        },
                        &all});
  for (const std::uint32_t i : parked) {
    const ProcessBase& p = *all[i];
    Blocked b;
    b.path = path_of(p);
    b.verb = p.op->verb;
    b.at = where(p);
    b.for_children = !p.op->visit;
    r.blocked.emplace_back(p.id, std::move(b));
    r.order.push_back(p.id);
  }
  r.sort_by_path();
  Collect collect(r, all);
  for (ProcessBase* p : all) {
    if (!p->op) continue;
    collect.begin(p->id);
    if (p->op->visit) p->op->visit(*p, collect);
  }
  for (const ProcessBase* p : all)
    if (const ProcessBase* const parent = p->group->owner())
      if (const Blocked* const b = r.find(parent->id); b && b->for_children)
        r.to_[b->node].push_back(collect.node(p->id));
  collect.edges();
  for (const std::uint32_t n :
       smallest_knot(r.to_, static_cast<std::uint32_t>(r.order.size()), r.running()))
    r.knot.push_back(r.order[n]);
  if (report_hooks.end) report_hooks.end(run);
  return r;
}

WEFT_IMPL std::vector<std::string> Report::knot_paths() const {
  std::vector<std::string> r;
  for (const std::uint32_t id : knot) r.push_back(of(id).path);
  return r;
}

inline std::string and_more(std::size_t n) { return joined({"\n  … and ", digits(n), " more"}); }

WEFT_IMPL std::string Report::text() const {
  std::size_t n = 0;
  for (const auto& x : blocked) n += !x.second.for_children;
  std::string s = joined({"deadlock: ", digits(n), n == 1 ? " process is" : " processes are",
                          " blocked and nothing outside can wake any"});
  std::size_t shown = 0;
  for (const std::uint32_t id : order) {
    const Blocked& b = of(id);
    if (b.for_children) continue;
    if (++shown > kLines) {
      put(s, {and_more(n - kLines)});
      break;
    }
    put(s, {"\n  ", line(b)});
  }
  put(s, {"\nknot:"});
  for (std::size_t i = 0; i < knot.size(); ++i) {
    if (i == kLines) return joined({s, and_more(knot.size() - kLines)});
    put(s, {"\n  ", waiting(knot[i])});
  }
  return joined({s, ended()});
}

// It may be that the program took the end of one channel for the end of a process: say how it says
// so.
WEFT_IMPL std::string Report::ended() const {
  std::string s;
  std::size_t n = 0;
  for (const std::uint32_t id : order)
    for (const auto& [guard, place] : of(id).silent)
      if (++n <= kLines)
        put(s, {"\n", of(id).path, ": guard ", digits(guard), " ", place,
                " has ended; if that should end the process: ", report_hooks.ends});
  if (n > kLines) put(s, {and_more(n - kLines)});
  return s;
}

WEFT_IMPL void Report::sort_by_path() {
  sort_numbers(order, {[](const void* x, std::uint32_t a, std::uint32_t b) {
                         const auto& r = *static_cast<const Report*>(x);
                         const int c = r.of(a).path.compare(r.of(b).path);
                         return c != 0 ? c < 0 : a < b;
                       },
                       this});
  for (std::uint32_t n = 0; n < order.size(); ++n) find(order[n])->node = n;
}

WEFT_IMPL std::string Report::waiting(std::uint32_t id) const {
  const Blocked& b = of(id);
  std::vector<std::uint32_t> others;  // in the order of `order`
  for (const std::uint32_t n : to_[b.node]) {
    if (n <= running())
      others.push_back(n);
    else
      others.insert(others.end(), to_[n].begin(), to_[n].end());
  }
  sort_unique(others);
  const char* const between = b.for_children ? " and " : " or ";
  std::string s = joined({b.path, " waits for "});
  std::size_t shown = 0;
  for (const std::uint32_t n : others) {
    if (shown++) put(s, {between});
    if (shown > kNames) {
      put(s, {digits(others.size() - kNames), " more"});
      break;
    }
    put(s, {n == running() ? std::string_view("one that runs") : of(order[n]).path});
  }
  for (const std::string& u : b.unknown)
    put(s,
        {shown++ ? " or " : "", "whoever is on the other side of ", u, " (nobody that is known)"});
  if (shown == 0) put(s, {"nobody"});
  return s;
}

WEFT_IMPL std::string Report::line(const Blocked& b) {
  std::string s = joined({b.path, ": ", b.verb});
  for (std::size_t i = 0; i < b.places.size() && i < kNames; ++i)
    put(s, {i ? ", " : " ", b.places[i]});
  put(s, {b.places.size() > kNames ? ", …" : "", " at ", b.at});
  return s;
}

WEFT_IMPL bool Run::anybody_blocked() noexcept {
  bool any = false;
  each_process([&](ProcessBase& p) { any = any || (p.op && p.op->visit); });
  return any;
}
WEFT_IMPL void Run::describe() noexcept {
  const Report r = Report::of(*this);
  report_ = r.text();
  knot_ = r.knot_paths();
  if (report_hooks.deadlock) report_hooks.deadlock(*this, r);
}

}  // namespace weft::inline WEFT_ABI::runtime
