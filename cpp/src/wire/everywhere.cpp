// The definitions of wire/everywhere.hpp.
#include <weft/wire/everywhere.hpp>

namespace weft::inline WEFT_ABI::wire {

void InProgram::put(Buffer& out) const {
  using detail::put;
  using detail::put_all;
  using detail::put_text;
  put(out, incarnation);
  put_text(out, name);
  put(out, pid);
  put(out, static_cast<std::uint8_t>(waits));
  put_all(out, standstills, [&](std::uint32_t n) { put(out, n); });
  put_all(out, sessions,
          [&](const Session& s) { put(out, s.peer), put(out, s.sent), put(out, s.received); });
  put_all(out, lent, [&](const Lent& l) {
    put(out, l.peer), put(out, l.end), put(out, l.key);
    put(out, static_cast<std::uint8_t>(l.writes));
    put(out, l.last_reader), put(out, l.last_writer);
  });
  put_all(out, far, [&](const Far& f) { put(out, f.home), put(out, f.end), put(out, f.user); });
  put_all(out, processes, [&](const Process& p) {
    put(out, p.run), put(out, p.id), put(out, p.parent);
    put(out, static_cast<std::uint8_t>(p.for_children));
    put_text(out, p.path), put_text(out, p.operation), put_text(out, p.at);
    put_all(out, p.places, [&](const Place& at) {
      put(out, static_cast<std::uint8_t>(at.how));
      put(out, at.home), put(out, at.key), put(out, at.last);
      put_text(out, at.name);
    });
  });
}

std::optional<InProgram> InProgram::get(Bytes& in) {
  detail::Reading r(in);
  const auto u8 = [&] { return r.number<std::uint8_t>(); };
  const auto u32 = [&] { return r.number<std::uint32_t>(); };
  const auto u64 = [&] { return r.number<std::uint64_t>(); };
  // Reads all items of a list. Each item has at least `least` bytes.
  const auto all = [&](auto& to, std::size_t least, auto&& one) {
    for (std::size_t n = r.count(least); n > 0 && !r.bad(); --n) one(to.emplace_back());
  };
  InProgram p;
  p.incarnation = u64();
  p.name = r.text();
  p.pid = u32();
  p.waits = u8() == 1;
  all(p.standstills, 4, [&](std::uint32_t& n) { n = u32(); });
  all(p.sessions, 16, [&](Session& s) { s.peer = u64(), s.sent = u32(), s.received = u32(); });
  all(p.lent, 33, [&](Lent& l) {
    l.peer = u64(), l.end = u64(), l.key = u64(), l.writes = u8() == 1;
    l.last_reader = u32(), l.last_writer = u32();
  });
  all(p.far, 20, [&](Far& f) { f.home = u64(), f.end = u64(), f.user = u32(); });
  all(p.processes, 29, [&](Process& x) {
    x.run = u32(), x.id = u32(), x.parent = u32(), x.for_children = u8() == 1;
    x.path = r.text(), x.operation = r.text(), x.at = r.text();
    all(x.places, 25, [&](Place& at) {
      at.how = static_cast<How>(u8() & 3);
      at.home = u64(), at.key = u64(), at.last = u32();
      at.name = r.text();
    });
  });
  if (r.bad() || p.incarnation == 0) return {};
  in = r.rest();
  return p;
}

Everywhere Everywhere::get(Bytes all, bool whole) {
  Everywhere e;
  e.whole = whole;
  while (!all.empty()) {
    auto p = InProgram::get(all);
    if (!p) return e.whole = false, e;
    e.programs.push_back(std::move(*p));
  }
  return e;
}
Buffer Everywhere::Knot::encoded() const {
  Buffer what;
  detail::put_text(what, text);
  detail::put_all(what, paths, [&](const std::string& s) { detail::put_text(what, s); });
  return what;
}
std::optional<Everywhere::Knot> Everywhere::Knot::get(Bytes in) {
  detail::Reading r(in);
  Knot k;
  k.text = r.text();
  k.paths.resize(r.count(4));
  for (std::string& p : k.paths) p = r.text();
  if (r.bad()) return {};
  return k;
}

bool Everywhere::stands_still() const {
  if (!whole || programs.empty()) return false;
  // For each session, as one side names it: the number of frames queued on that side minus the
  // number of frames received on the other side.
  struct Balance {
    std::uint32_t queued = 0;
    int said = 0;
  };
  std::map<std::pair<std::uint64_t, std::uint64_t>, Balance> given;
  for (const InProgram& p : programs) {
    if (!p.waits) return false;
    for (const InProgram::Session& s : p.sessions) {
      Balance &to = given[{p.incarnation, s.peer}], &from = given[{s.peer, p.incarnation}];
      to.queued += s.sent, ++to.said;
      from.queued -= s.received, ++from.said;
    }
  }
  return std::all_of(given.begin(), given.end(),
                     [](const auto& g) { return g.second.queued == 0 && g.second.said % 2 == 0; });
}

bool Everywhere::has_moved_since(const Everywhere& before) const {
  const auto counters = [](const Everywhere& e) {
    std::map<std::uint64_t, std::pair<std::vector<std::uint32_t>, std::vector<InProgram::Session>>>
        all;
    for (const InProgram& p : e.programs) {
      auto& [rests, sessions] = all[p.incarnation];
      rests = p.standstills;
      sessions = p.sessions;
      std::sort(sessions.begin(), sessions.end());
    }
    return all;
  };
  return counters(*this) != counters(before);
}

std::string Everywhere::listed(const InProgram& p, const InProgram::Process& x) {
  std::string s = x.path + ": " + x.operation;
  for (std::size_t i = 0; i < x.places.size() && i < runtime::Report::kNames; ++i)
    s += (i ? ", " : " ") + x.places[i].name;
  if (x.places.size() > runtime::Report::kNames) s += ", …";
  return s + " at " + x.at + ", in " + p.name + " (" + std::to_string(p.pid) + ")";
}

std::string Everywhere::text() const {
  std::string s =
      std::to_string(programs.size()) + (programs.size() == 1 ? " program" : " programs");
  if (!whole) s += ", and some that have not answered";
  for (const InProgram& p : programs) {
    std::uint64_t sent = 0, received = 0;
    for (const InProgram::Session& x : p.sessions) sent += x.sent, received += x.received;
    s += "\n" + p.name + " (" + std::to_string(p.pid) + "): " + (p.waits ? "waits" : "runs") +
         "; links: " + std::to_string(p.sessions.size()) +
         ", frames sent: " + std::to_string(sent) + ", received: " + std::to_string(received) +
         ", ends that others have: " + std::to_string(p.lent.size());
    std::size_t shown = 0;
    for (const InProgram::Process& x : p.processes) {
      if (x.for_children || ++shown > runtime::Report::kLines) continue;
      s += "\n  " + listed(p, x);
    }
    if (shown > runtime::Report::kLines)
      s += "\n  … and " + std::to_string(shown - runtime::Report::kLines) + " more";
  }
  return s;
}

namespace detail {

// Finds which process waits for which.
struct Waiting {
  // The name of a channel: its home, and its place at that home.
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  using How = InProgram::How;
  struct Row {
    const InProgram* program;
    const InProgram::Process* process;
    bool operator<(const Row& o) const {
      return process->path != o.process->path
                 ? process->path < o.process->path
                 : std::pair(program->name, program->incarnation) <
                       std::pair(o.program->name, o.program->incarnation);
    }
  };
  std::vector<Row> rows;
  // The edges between rows. One more node, after the last row, stands for everything outside the
  // listed processes that might run.
  runtime::Pairs to;
  // The channel of each end; the key is the program that holds the end, and the end's home and
  // name.
  std::map<std::pair<std::uint64_t, Key>, Key> known;

  explicit Waiting(const std::vector<InProgram>& all) {
    for (const InProgram& p : all) {
      for (const InProgram::Process& x : p.processes) rows.push_back({&p, &x});
      for (const InProgram::Lent& l : p.lent)
        known[{l.peer, {p.incarnation, l.end}}] = {p.incarnation, l.key};
    }
    std::sort(rows.begin(), rows.end());
    for (std::uint32_t n = 0; n < rows.size(); ++n) edges(all, n);
    to.sort();
  }
  Key channel_of(const InProgram& p, const InProgram::Place& at) const {
    if (at.home == 0) return {p.incarnation, at.key};
    const auto it = known.find({p.incarnation, {at.home, at.key}});
    return it == known.end() ? Key{at.home, ~at.key} : it->second;
  }

 private:
  void edges(const std::vector<InProgram>& all, std::uint32_t n) {
    const auto& [program, process] = rows[n];
    std::set<std::uint32_t> there;
    if (process->for_children)
      for (std::uint32_t m = 0; m < rows.size(); ++m)
        if (rows[m].program == program && rows[m].process->run == process->run &&
            rows[m].process->parent == process->id)
          there.insert(m);
    for (const InProgram::Place& at : process->places) {
      const Key key = channel_of(*program, at);
      if (at.how == How::sync)
        at_barrier(all, key, there);
      else if (at.how == How::end)
        add(*program, at.last, there);
      else
        other_side(all, key, at.how == How::read, there);
      if (at.how != How::end && at.home == 0) add(*program, at.last, there);
    }
    for (const std::uint32_t m : there) to.add(n, m);
  }
  void add(const InProgram& p, std::uint32_t id, std::set<std::uint32_t>& there) const {
    for (std::uint32_t m = 0; m < rows.size() && id != 0; ++m)
      if (rows[m].program == &p && rows[m].process->id == id) there.insert(m);
  }
  // Adds the rows of the processes on one side of channel `key`: its writers if `writers` is true,
  // otherwise its readers.
  void other_side(const std::vector<InProgram>& all, Key key, bool writers,
                  std::set<std::uint32_t>& there) const {
    for (std::uint32_t m = 0; m < rows.size(); ++m)
      for (const InProgram::Place& at : rows[m].process->places)
        if (at.how == (writers ? How::write : How::read) && channel_of(*rows[m].program, at) == key)
          there.insert(m);
    for (const InProgram& home : all) {
      if (home.incarnation != key.first) continue;
      for (const InProgram::Lent& l : home.lent) {
        if (l.key != key.second) continue;
        add(home, writers ? l.last_writer : l.last_reader, there);
        if (l.writes == writers) holders(all, home.incarnation, l, there);
      }
    }
  }
  // Adds the processes of the peer that might hold this end.
  void holders(const std::vector<InProgram>& all, std::uint64_t home, const InProgram::Lent& l,
               std::set<std::uint32_t>& there) const {
    for (const InProgram& p : all) {
      if (p.incarnation != l.peer) continue;
      std::uint32_t user = 0;
      for (const InProgram::Far& f : p.far)
        if (f.home == home && f.end == l.end) user = f.user;
      if (user)
        add(p, user, there);
      else
        add_all(p, there);
    }
  }
  void add_all(const InProgram& p, std::set<std::uint32_t>& there) const {
    for (std::uint32_t m = 0; m < rows.size(); ++m)
      if (rows[m].program == &p && !rows[m].process->for_children) there.insert(m);
  }
  // Which processes are enrolled is not recorded. So every process that has not arrived, in any
  // program that holds the barrier, might be the one that is missing.
  void at_barrier(const std::vector<InProgram>& all, Key key,
                  std::set<std::uint32_t>& there) const {
    std::set<std::uint64_t> have{key.first};
    for (const InProgram& home : all)
      for (const InProgram::Lent& l : home.lent)
        if (home.incarnation == key.first && l.key == key.second) have.insert(l.peer);
    for (std::uint32_t m = 0; m < rows.size(); ++m) {
      const Row& r = rows[m];
      bool is_there = r.process->for_children || !have.contains(r.program->incarnation);
      for (const InProgram::Place& at : r.process->places)
        is_there = is_there || (at.how == How::sync && channel_of(*r.program, at) == key);
      if (!is_there) there.insert(m);
    }
  }
};

}  // namespace detail

Everywhere::Knot Everywhere::knot() const {
  const detail::Waiting w(programs);
  const auto count = static_cast<std::uint32_t>(w.rows.size());
  const auto path = [&](std::uint32_t n) {
    return w.rows[n].process->path + " in " + w.rows[n].program->name;
  };
  std::size_t shown = 0;
  std::string lines;
  for (const detail::Waiting::Row& r : w.rows) {
    if (r.process->for_children || ++shown > runtime::Report::kLines) continue;
    lines += "\n  " + listed(*r.program, *r.process);
  }
  if (shown > runtime::Report::kLines)
    lines += "\n  … and " + std::to_string(shown - runtime::Report::kLines) + " more";
  Knot k;
  k.text = "deadlock: " + std::to_string(shown) + (shown == 1 ? " process is" : " processes are") +
           " blocked and nothing outside can wake any; they are in " +
           std::to_string(programs.size()) + (programs.size() == 1 ? " program" : " programs") +
           lines + "\nknot:";
  for (const std::uint32_t n : runtime::smallest_knot(w.to, count + 1, count, count)) {
    k.paths.push_back(path(n));
    const InProgram::Process& p = *w.rows[n].process;
    std::string whom;
    for (const auto& edge : w.to.of(n))
      whom += (whom.empty()     ? ""
               : p.for_children ? " and "
                                : " or ") +
              path(static_cast<std::uint32_t>(edge.value));
    if (whom.empty() && p.places.empty()) whom = "nobody";
    if (whom.empty()) {
      whom = "whoever is on the other side of ";
      for (const InProgram::Place& at : p.places)
        whom += (&at == p.places.data() ? "" : ", ") + at.name;
      whom += " (nobody that is known)";
    }
    k.text += "\n  " + path(n) + " waits for " + whom;
  }
  return k;
}

}  // namespace weft::inline WEFT_ABI::wire
