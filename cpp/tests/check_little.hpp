// Small networks on which tests run the engine of `weft check` independently of any language. A
// process is a list of operations at channels. A Machine runs a network, and makes the calls to the
// engine that the points of a language make (python/native/checking/engine.cpp).
#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "weft/check/reduced.hpp"
#include "weft/check/strategies.hpp"

namespace little {

namespace wc = weft::checking;
using wc::Access;
using wc::Begun;

struct Guard {
  int channel;
  bool writes = false;
  int value = 0;
};
// A read, a write, or a select of several guards. A process ends after its last operation.
struct Operation {
  std::vector<Guard> guards;
};
inline Operation read(int channel) { return {{{channel}}}; }
inline Operation write(int channel, int value = 0) { return {{{channel, true, value}}}; }
inline Operation select(std::vector<Guard> guards) { return {std::move(guards)}; }

struct Network {
  std::vector<int> capacities;  // the capacities of the channels
  std::vector<std::vector<Operation>> processes;
};

// The result of a run: whether all processes have ended, and which values each process has taken.
using Outcome = std::pair<bool, std::vector<std::vector<int>>>;

class Machine {
 public:
  Machine(const Network& network, wc::Run& run) : network_(network), run_(run) {}

  Outcome go(wc::Strategy& strategy) {
    run_.begin(strategy);
    wc::Record& r = run_.record;
    for (const int capacity : network_.capacities) {
      channels_.emplace_back();
      channels_.back().capacity = capacity;
      r.place(&channels_.back(), 0, capacity, false);
    }
    for (std::size_t i = 0; i < network_.processes.size(); ++i) {
      processes_.emplace_back();
      processes_.back().number = r.process(0, "p" + std::to_string(i));
      ready_.push_back(i);
    }
    std::optional<std::size_t> last;
    while (!ready_.empty() && !run_.stopped()) last = step(last);
    bool all = true;
    Outcome o;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      all = all && processes_[i].at == network_.processes[i].size();
      o.second.push_back(processes_[i].taken);
    }
    o.first = all;
    run_.end();
    return o;
  }

 private:
  struct Waits final : wc::Waiting {
    Machine* machine = nullptr;
    std::size_t process = 0;
    void decided() override { machine->weaken(process); }
  };
  struct Process {
    int number = 0;
    std::size_t at = 0;
    bool over = false;  // whether the operation has committed and the process has not resumed
    int chosen = -1;
    std::vector<int> taken;
    Waits waits;
  };
  struct Channel {
    int capacity = 0;
    std::deque<int> values;
    std::deque<std::size_t> waiting[2];  // readers, writers
  };

  const Operation& operation(std::size_t p) const {
    return network_.processes[p][processes_[p].at];
  }

  // Performs one step. Returns the process that performed the step, or nullopt if the run is to
  // stop.
  std::optional<std::size_t> step(std::optional<std::size_t> last) {
    const auto mine = last ? std::find(ready_.begin(), ready_.end(), *last) : ready_.end();
    const bool goes_on = mine != ready_.end();
    if (goes_on) {
      ready_.erase(mine);
      ready_.push_front(*last);
    }
    std::vector<int> numbers;
    for (const std::size_t p : ready_) numbers.push_back(processes_[p].number);
    const unsigned i = run_.go(numbers, goes_on, false);
    if (run_.stopped()) return {};
    const std::size_t p = ready_[i];
    ready_.erase(ready_.begin() + i);
    Process& me = processes_[p];
    run_.goes(me.number);
    if (std::exchange(me.over, false)) {  // The process resumes after its operation.
      if (++me.at < network_.processes[p].size()) wake(p);
      run_.record.ready(me.number);
      return p;
    }
    begin(p);
    return p;
  }

  void begin(std::size_t p) {
    Process& me = processes_[p];
    const Operation& o = operation(p);
    wc::Record& r = run_.record;
    const bool one = o.guards.size() == 1;
    std::vector<unsigned> able;
    if (one)
      r.arrives(place(o.guards[0]), how(o.guards[0]));
    else
      r.select_begins();
    for (unsigned i = 0; i < o.guards.size(); ++i)
      if (can(o.guards[i])) able.push_back(i);
    me.chosen = -1;
    if (!able.empty())
      me.chosen =
          static_cast<int>(able[run_.take(static_cast<unsigned>(able.size()), wc::Kind::guard)]);
    if (me.chosen >= 0) commit(p, o.guards[static_cast<std::size_t>(me.chosen)]);
    const Begun begun = me.chosen >= 0 ? Begun::done : Begun::parked;
    if (!one) tell_select(p, able.size());
    const Guard& g = o.guards[me.chosen < 0 ? 0 : static_cast<std::size_t>(me.chosen)];
    r.passes(me.number, me.chosen < 0 && !one ? nullptr : place(g), begun, how(g));
    if (me.chosen >= 0) {
      r.select_over(me.number);
      me.over = true;
      r.ready(me.number);
      ready_.push_back(p);
      return;
    }
    for (const Guard& w : o.guards) channel(w).waiting[w.writes].push_back(p);
  }

  void tell_select(std::size_t p, std::size_t able) {
    Process& me = processes_[p];
    wc::Record& r = run_.record;
    const Operation& o = operation(p);
    for (std::size_t i = 0; i < o.guards.size(); ++i) {
      const Guard& g = o.guards[i];
      const bool here = able == 1 && me.chosen == static_cast<int>(i);
      r.select_at(place(g), here             ? g.writes ? Access::choose_write : Access::choose_read
                            : me.chosen >= 0 ? Access::quiet_choice
                                             : Access::choice);
      if (me.chosen < 0) r.waits_at(place(g), g.writes, false);
    }
    if (me.chosen >= 0) return;
    me.waits.machine = this;
    me.waits.process = p;
    r.select_parks(&me.waits);
  }
  void weaken(std::size_t p) {
    const Operation& o = operation(p);
    for (std::size_t i = 0; i < o.guards.size(); ++i)
      run_.record.weaken(place(o.guards[i]), static_cast<int>(i) != processes_[p].chosen
                                                 ? Access::quiet_choice
                                             : o.guards[i].writes ? Access::choose_write
                                                                  : Access::choose_read);
  }

  Channel& channel(const Guard& g) { return channels_[static_cast<std::size_t>(g.channel)]; }
  const void* place(const Guard& g) { return &channel(g); }
  static Access how(const Guard& g) { return g.writes ? Access::write : Access::read; }
  bool can(const Guard& g) {
    Channel& c = channel(g);
    if (!c.waiting[!g.writes].empty()) return true;
    return g.writes ? static_cast<int>(c.values.size()) < c.capacity : !c.values.empty();
  }
  void commit(std::size_t p, const Guard& g) {
    Channel& c = channel(g);
    Process& me = processes_[p];
    if (g.writes) {
      if (c.waiting[0].empty())
        c.values.push_back(g.value);
      else
        meet(c.waiting[0].front(), g.channel, false, g.value);
      return;
    }
    if (!c.values.empty()) {
      me.taken.push_back(c.values.front());
      c.values.pop_front();
      if (!c.waiting[1].empty()) {
        const std::size_t w = c.waiting[1].front();
        c.values.push_back(value_of(w, g.channel));
        meet(w, g.channel, true, 0);
      }
      return;
    }
    const std::size_t w = c.waiting[1].front();
    me.taken.push_back(value_of(w, g.channel));
    meet(w, g.channel, true, 0);
  }
  int value_of(std::size_t p, int channel) {
    for (const Guard& g : operation(p).guards)
      if (g.channel == channel && g.writes) return g.value;
    return -1;
  }
  // Commits the operation of a process that waits at this channel; that process resumes.
  void meet(std::size_t p, int at, bool writes, int value) {
    Process& other = processes_[p];
    const Operation& o = operation(p);
    for (std::size_t i = 0; i < o.guards.size(); ++i) {
      auto& line = channel(o.guards[i]).waiting[o.guards[i].writes];
      std::erase(line, p);
      if (o.guards[i].channel == at && o.guards[i].writes == writes)
        other.chosen = static_cast<int>(i);
    }
    if (!writes) other.taken.push_back(value);
    other.over = true;
    wake(p);
    run_.record.woke(other.number);
  }
  void wake(std::size_t p) { ready_.push_back(p); }

  const Network& network_;
  wc::Run& run_;
  std::deque<Channel> channels_;
  std::deque<Process> processes_;
  std::deque<std::size_t> ready_;
};

struct Found {
  std::set<Outcome> outcomes;
  // `first` is the number of the run that found the first deadlock.
  unsigned runs = 0, blocked = 0, deadlocks = 0, first = 0;
  bool complete = false;
};

// Runs all schedules of a strategy, but at most `most` of them.
inline Found search(const Network& network, wc::Strategy& strategy, unsigned most = 300000) {
  Found f;
  wc::Run run;
  bool more = true;
  while (more && f.runs < most) {
    const Outcome o = Machine(network, run).go(strategy);
    if (run.why() == wc::Stopped::different) return f;
    ++f.runs;
    if (run.why() == wc::Stopped::blocked) {
      ++f.blocked;
    } else {
      f.outcomes.insert(o);
      if (!o.first && f.deadlocks++ == 0) f.first = f.runs;
    }
    more = strategy.advance();
  }
  f.complete = !more;
  return f;
}

}  // namespace little
