// Where the processes and the channels of a network are, if several programs play it.
//
// Program 0 plays main, reads the network and tells the others. A process at its top is somebody's
// in turn, a channel's home as well; with another seed all are one further. Two kinds stay in 0:
//
//   who uses a barrier                 it meets within one address space (WIRE.md 15, rule 8); a channel of one with a barrier among its
//                                      guards has its home there too (rule 5.7: barriers beside remote guards are not built)
//   who cancels, or awaits another     that is for who has the object (rule 7.11)
//
// And these are in no network for several programs (`--without`):
//
//   nested, sequence, spawn            an end in two processes is one to the rules, and two to us: closing one would close the other's
//   mobile                             the same: what was sent is open here until the write has returned
#pragma once
#include "network.hpp"

namespace twin {

class Placed {
 public:
  Placed(const Network& n, unsigned programs, unsigned seed)
      : programs_(static_cast<int>(programs)) {
    const auto in_turn = [&](unsigned i) { return static_cast<int>(i % programs); };
    for (std::size_t c = 0; c < n.channels.size(); ++c)
      homes_.push_back(in_turn(static_cast<unsigned>(c) + seed));
    for (const Proc& p : n.processes()) {
      Found found;
      look(*p.body, found);
      const bool stays = p.id == 0 || found.barrier || found.another;
      where_[p.id] = stays ? 0 : in_turn(static_cast<unsigned>(p.id) + seed / programs);
      if (found.beside)
        for (const End& e : p.ends) homes_[static_cast<std::size_t>(e.channel)] = 0;
    }
  }
  int programs() const { return programs_; }
  int host_of(int process) const { return where_.at(process); }
  int home_of(int channel) const { return homes_[static_cast<std::size_t>(channel)]; }

 private:
  struct Found {
    bool barrier = false, beside = false, another = false;
  };
  static void look(const Body& b, Found& found) {
    for (const Statement& s : b.statements) {
      if (s.word == "sync" || s.word == "enrol" || s.word == "resign") found.barrier = true;
      if (s.word == "cancel" || s.word == "ended") found.another = true;
      for (const Guard& g : s.guards) {
        if (g.kind == "barrier") found.barrier = found.beside = true;
        if (g.kind == "ended") found.another = true;
      }
      if (s.inner) look(*s.inner, found);
      if (s.handler) look(*s.handler, found);
    }
  }
  const int programs_;
  std::vector<int> homes_;    // by channel
  std::map<int, int> where_;  // by process
};

}  // namespace twin
