// The definitions of runtime/report.hpp.
#include <algorithm>
#include <cstdint>

#include <weft/runtime/group.hpp>
#include <weft/runtime/knot.hpp>
#include <weft/runtime/names.hpp>
#include <weft/runtime/report.hpp>
#include <weft/runtime/text.hpp>

namespace weft::inline WEFT_ABI::runtime {

// Receives the places at which processes wait, and records for which processes they wait there.
struct Report::Collect final : WaitVisitor {
  enum How : std::uint8_t { to_read, to_write, to_sync, for_end };
  static constexpr std::uintptr_t kHow = 3;
  static_assert(alignof(core::SyncObject) > kHow);
  using Ids = Numbers;
  Report& r;
  const Pairs& all;  // each process by its id
  std::uint32_t self = 0;
  // The key is a place and how a process waits there, in one number; the value is the process's id.
  Pairs waits;

  Collect(Report& to, const Pairs& processes) : r(to), all(processes) {}
  bool known(std::uintptr_t id) const { return all.find(id) < all.size(); }
  std::uint32_t node(std::uint32_t id) const {
    const Blocked* const b = r.find(id);
    return b ? b->node : r.running();
  }
  void at(const core::SyncObject& c, How how) {
    r.find(self)->places.push_back(name_of(c));
    waits.add(Pairs::number(&c) | how, self);
  }
  void channel(const core::SyncObject& c, bool writing) override {
    at(c, writing ? to_write : to_read);
  }
  void barrier(const core::SyncObject& c) override { at(c, to_sync); }
  void end(const core::SyncObject& c) override { at(c, for_end); }
  void ended(const core::SyncObject& c, std::uint32_t guard) override {
    Blocked& b = *r.find(self);
    b.places.push_back(joined({name_of(c), " (ended)"}));
    b.silent.push_back(joined({std::to_string(guard), " ", name_of(c)}));
  }

  void edges() {
    waits.sort();
    for (std::uint32_t i = 0; i < waits.size();) {
      const std::uintptr_t key = waits[i].key & ~kHow;
      while (i < waits.size() && (waits[i].key & ~kHow) == key) ++i;
      const auto& place = *reinterpret_cast<const core::SyncObject*>(key);
      channel(place, key, false);
      channel(place, key, true);
      const std::span<const Pairs::Pair> here = waits.of(key | to_sync);
      Ids others;
      // Which processes are enrolled is not recorded. So every process that has not arrived might
      // be the missing one.
      for (std::uint32_t n = 0, next = 0; n < all.size() && !here.empty(); ++n) {
        if (next < here.size() && here[next].value == all[n].key)
          ++next;
        else
          others.push_back(all[n].key);
      }
      wait(place, here, others);
      others.clear();
      others.push_back(place.last_writer);
      wait(place, waits.of(key | for_end), others);
    }
  }
  // A process that waits at a channel waits for the processes on its other side: the processes that
  // were given an end there or used one last, and the processes that wait there.
  void channel(const core::SyncObject& place, std::uintptr_t key, bool writing) {
    const std::span<const Pairs::Pair> those = waits.of(key | (writing ? to_write : to_read));
    if (those.empty()) return;
    Ids others;
    if (report_hooks.holders) report_hooks.holders(place, writing, others);
    if (others.empty()) {
      for (const Pairs::Pair& p : waits.of(key | (writing ? to_read : to_write)))
        others.push_back(p.value);
      others.push_back(writing ? place.last_reader : place.last_writer);
    }
    wait(place, those, others,
         !report_hooks.never || !report_hooks.never(place, writing) ? nullptr
         : writing                                                  ? " never had a reader end)"
                                                                    : " never had a writer end)");
  }
  // `never` says why no process is known on the other side of the place. It is null if the reason
  // is not known either.
  void wait(const core::SyncObject& place, std::span<const Pairs::Pair> those, const Ids& others,
            const char* never = nullptr) {
    if (those.empty()) return;
    bool any = false;
    for (const std::uint32_t other : others) {
      if (!known(other)) continue;
      any = true;
      r.edges_.add(r.nodes_, node(other));
    }
    for (const Pairs::Pair& p : those) {
      Blocked& b = *r.find(static_cast<std::uint32_t>(p.value));
      b.somebody = b.somebody || (!any && !never);
      if (any)
        r.edges_.add(b.node, r.nodes_);
      else
        b.unknown.push_back(never ? joined({name_of(place), " (", name_of(place), never})
                                  : joined({name_of(place), " (nobody that is known)"}));
    }
    r.nodes_ += any;
  }
};

Report::Blocked* Report::find(std::uint32_t id) noexcept {
  const auto at = std::ranges::lower_bound(blocked, id, {}, &One::id);
  return at != blocked.end() && at->id == id ? &at->blocked : nullptr;
}

Report Report::of(Run& run) {
  Report r;
  if (report_hooks.begin) report_hooks.begin(run);
  // The processes are collected first, because finding a path takes a group's lock. The processes
  // stay alive, because nothing can run.
  Pairs all;
  run.each_process([&](ProcessBase& p) { all.add(p.id, Pairs::number(&p)); });
  all.sort();
  const auto process = [&](std::uint32_t i) -> ProcessBase& {
    return *reinterpret_cast<ProcessBase*>(all[i].value);
  };
  std::uint32_t n = 0;
  for (std::uint32_t i = 0; i < all.size(); ++i) n += process(i).op != nullptr;
  r.blocked.resize(n);
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const ProcessBase& p = process(i);
    if (!p.op) continue;
    auto& [id, b] = r.blocked[r.order.size()];
    id = p.id;
    b.path = path_of(p);
    b.verb = p.op->verb;
    b.at = where(p);
    b.for_children = !p.op->visit;
    r.order.push_back(id);
  }
  r.nodes_ = n + 1;
  r.sort_by_path();
  Collect collect(r, all);
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    ProcessBase& p = process(i);
    collect.self = p.id;
    if (p.op && p.op->visit) p.op->visit(p, collect);
    if (const ProcessBase* const parent = p.group->owner())
      if (const Blocked* const b = r.find(parent->id); b && b->for_children)
        r.edges_.add(b->node, collect.node(p.id));
  }
  collect.edges();
  r.edges_.sort();
  for (const std::uint32_t k : smallest_knot(r.edges_, r.nodes_, n, r.running()))
    r.knot.push_back(r.order[k]);
  if (report_hooks.end) report_hooks.end(run);
  return r;
}

std::vector<std::string> Report::knot_paths() const {
  std::vector<std::string> r;
  for (const std::uint32_t id : knot) r.push_back(of(id).path);
  return r;
}

inline void put_more(std::string& s, std::size_t n) {
  put(s, {"\n  … and ", std::to_string(n), " more"});
}

std::string Report::text() const {
  std::size_t n = 0;
  for (const auto& x : blocked) n += !x.blocked.for_children;
  std::string s =
      joined({"deadlock: ", std::to_string(n), n == 1 ? " process is" : " processes are",
              " blocked and nothing outside can wake any"});
  std::size_t shown = 0;
  for (const std::uint32_t id : order) {
    const Blocked& b = of(id);
    if (b.for_children) continue;
    if (++shown > kLines) {
      put_more(s, n - kLines);
      break;
    }
    put(s, {"\n  ", line(b)});
  }
  put(s, {"\nknot:"});
  for (std::size_t i = 0; i < knot.size(); ++i) {
    if (i == kLines) {
      put_more(s, knot.size() - kLines);
      return s;
    }
    put(s, {"\n  ", waiting(knot[i])});
  }
  bool somebody = false;
  for (const std::uint32_t id : knot) somebody = somebody || of(id).somebody;
  if (somebody && report_hooks.outside) put(s, {"\n", report_hooks.outside});
  return joined({s, ended()});
}

// The program might have mistaken the end of one channel for the end of a process. The text says
// how to make a retirement an outcome.
std::string Report::ended() const {
  std::string s;
  std::size_t n = 0;
  for (const std::uint32_t id : order)
    for (const std::string& guard : of(id).silent)
      if (++n <= kLines)
        put(s, {"\n", of(id).path, ": guard ", guard,
                " has ended; if that should end the process: ", report_hooks.ends});
  if (n > kLines) put_more(s, n - kLines);
  return s;
}

void Report::sort_by_path() {
  std::ranges::sort(order, {}, [this](std::uint32_t id) {
    return std::pair<std::string_view, std::uint32_t>(of(id).path, id);
  });
  for (std::uint32_t n = 0; n < order.size(); ++n) find(order[n])->node = n;
}

std::string Report::waiting(std::uint32_t id) const {
  const Blocked& b = of(id);
  Numbers others;  // sorted as `order` is
  for (const Pairs::Pair& e : edges_.of(b.node)) {
    if (e.value <= running())
      others.push_back(e.value);
    else
      for (const Pairs::Pair& f : edges_.of(e.value)) others.push_back(f.value);
  }
  sort_unique(others);
  const char* const between = b.for_children ? " and " : " or ";
  std::string s = joined({b.path, " waits for "});
  std::size_t shown = 0;
  for (const std::uint32_t n : others) {
    if (shown++) put(s, {between});
    if (shown > kNames) {
      put(s, {std::to_string(others.size() - kNames), " more"});
      break;
    }
    put(s, {n == running() ? std::string_view("one that runs") : of(order[n]).path});
  }
  for (const std::string& u : b.unknown)
    put(s, {shown++ ? " or " : "", "whoever is on the other side of ", u});
  if (shown == 0) put(s, {"nobody"});
  return s;
}

std::string Report::line(const Blocked& b) {
  std::string s = joined({b.path, ": ", b.verb});
  std::size_t shown = 0;
  for (const std::string& place : b.places) {
    if (shown == kNames) break;
    put(s, {shown++ ? ", " : " ", place});
  }
  put(s, {b.places.size() > kNames ? ", …" : "", " at ", b.at});
  return s;
}

bool Run::anybody_blocked() noexcept {
  bool any = false;
  each_process([&](ProcessBase& p) { any = any || (p.op && p.op->visit); });
  return any;
}
void Run::describe() noexcept {
  const Report r = Report::of(*this);
  report_ = r.text();
  knot_ = r.knot_paths();
  if (report_hooks.deadlock) report_hooks.deadlock(*this, r);
}

}  // namespace weft::inline WEFT_ABI::runtime
