// Where the processes and the channels of a network are, if several programs play it.
//
// Program 0 plays main, reads the network and sends it to the other programs. The processes at the
// top of the network are given to the programs in turn, and so are the homes of channels; another
// seed shifts all processes and homes by one program. Three types of process stay in program 0,
// where all barriers are:
//
//   - a process with a barrier among its guards. Its channels have their homes in program 0 too,
//     since a far channel in a choice that spans a barrier is bad use (WIRE.md 4.10).
//   - a process that enrols or resigns parties. In another program that operation waits for an
//     answer (WIRE.md 4.9), and can be cancelled; the rules know neither.
//   - a process that cancels or awaits another process. Only the holder of that process's object
//     can do so (rule 7.11).
//
// Over a link that makes no sessions between two other programs (lines.hpp) a channel is moved to
// program 0 if program 0 would be neither its home nor one of the two programs that use it.
//
// The following occur in no network for several programs (`--without`):
//
//   - nested, sequence, spawn: an end that two processes have. To the rules such an end is one end,
//     and here it is two: closing one of the two would have to close the other.
//   - mobile: an end that was sent stays open here until the write has returned, so that for a time
//     it is two ends here as well.
#pragma once
#include "network.hpp"

namespace twin {

class Placed {
 public:
  Placed(const Network& n, unsigned programs, unsigned seed, bool introduces)
      : programs_(static_cast<int>(programs)), introduces_(introduces) {
    const auto in_turn = [&](unsigned i) { return static_cast<int>(i % programs); };
    for (std::size_t c = 0; c < n.channels.size(); ++c)
      homes_.push_back(in_turn(static_cast<unsigned>(c) + seed));
    for (const Proc& p : n.processes()) {
      Found found;
      look(*p.body, found);
      const bool stays = p.id == 0 || found.beside || found.parties || found.another;
      where_[p.id] = stays ? 0 : in_turn(static_cast<unsigned>(p.id) + seed / programs);
      if (found.beside)
        for (const End& e : p.ends) homes_[static_cast<std::size_t>(e.channel)] = 0;
    }
    for (const Proc& p : n.processes())
      for (const End& e : p.ends)
        if (!meet(home_of(e.channel), host_of(p.id)))
          homes_[static_cast<std::size_t>(e.channel)] = 0;
  }
  // Returns whether these two programs have a session, or may get one.
  bool meet(int a, int b) const { return introduces_ || a == b || a == 0 || b == 0; }
  int programs() const { return programs_; }
  int host_of(int process) const { return where_.at(process); }
  int home_of(int channel) const { return homes_[static_cast<std::size_t>(channel)]; }

 private:
  struct Found {
    bool parties = false, beside = false, another = false;
  };
  static void look(const Body& b, Found& found) {
    for (const Statement& s : b.statements) {
      if (s.word == "enrol" || s.word == "resign") found.parties = true;
      if (s.word == "cancel" || s.word == "ended") found.another = true;
      for (const Guard& g : s.guards) {
        if (g.kind == "barrier") found.beside = true;
        if (g.kind == "ended") found.another = true;
      }
      if (s.inner) look(*s.inner, found);
      if (s.handler) look(*s.handler, found);
    }
  }
  const int programs_;
  const bool introduces_;
  std::vector<int> homes_;    // the home of each channel: the number of a program
  std::map<int, int> where_;  // the program of each process, by the number of the process
};

}  // namespace twin
