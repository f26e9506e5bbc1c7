// Program 0 of a network that several programs play, and the other programs, which program 0
// starts.
//
//   0:   reads the network ──► starts the others ──► hands out ends ──► settle() ──► plays main
//        ──► sends "stop" to all ──► collects their counts
//   k:   is started with the network ──► takes the ends that it is given ──► runs the processes
//        that it is told to run, until "stop" ──► sends its counts
//
// All programs write their records into one pipe, each record by one write, so the record of an
// event precedes the records of events that happened after it.
#pragma once
#include <weft/wire/program.hpp>
#include <weft/wire/shm.hpp>

#include "abroad.hpp"
#include "far.hpp"
#include "lines.hpp"

namespace twin {

struct Spread {
  unsigned programs = 0;  // 0: one program plays the network, and there is no link
  std::string link, seed = "0";
  int me = 0;
  int control = -1;  // in the other programs: the socket for rounds
};

template <class L>
int host_of_network(const std::string& text, const Spread& s) {
  std::istringstream in(text);
  const Network net(in);
  const Placed placed(net, s.programs, static_cast<unsigned>(std::stoul(s.seed)), kIntroduces<L>);
  const auto space = w::Space::make("program " + std::to_string(s.me));
  Standing standing(space);
  L over(space, w::inherited());
  w::LinkBase& link = over;
  std::vector<w::LinkBase*> links{&link};
  Far far(net, placed, s.me, standing, links);
  std::thread asked(
      [&] { answer_all(standing, s.control, [&](int pid) { far.abandon(*net.process(pid)); }); });
  try {
    Play<Far> play(net, far);
    weft::run(weft::RunOptions{Far::kClock}, Abroad<Far>::serve(&play));
    far.tell_dropped();
  } catch (const weft::PeerDied&) {  // Program 0 has ended.
  }
  link.wait();
  ::shutdown(s.control, SHUT_RDWR);
  asked.join();
  return 0;
}

template <class L>
int network_over_hosts(const std::string& text, const Spread& s) {
  std::istringstream in(text);
  const Network net(in);
  const Placed placed(net, s.programs, static_cast<unsigned>(std::stoul(s.seed)), kIntroduces<L>);
  const auto space = w::Space::make("program 0");
  Standing standing(space);
  std::vector<int> controls;
  std::vector<std::unique_ptr<w::ProgramOver<L>>> others;
  std::vector<w::LinkBase*> links{nullptr};
  for (unsigned k = 1; k < s.programs; ++k) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
      throw std::runtime_error("no descriptor is left");
    ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    others.push_back(std::make_unique<w::ProgramOver<L>>(
        space,
        std::vector<std::string>{"/proc/self/exe", "--host", std::to_string(k), "--hosts",
                                 std::to_string(s.programs), "--link", s.link, "--seed", s.seed,
                                 "--control", std::to_string(ends[1]), "--network", text}));
    ::close(ends[1]);
    controls.push_back(ends[0]);
    w::LinkBase& link = others.back()->link();
    links.push_back(&link);
  }
  {
    Far far(net, placed, 0, standing, links, controls);
    Play<Far> play(net, far);
    {
      Rounds rounds(standing, controls);
      rounds.settle();
      rounds.begin();
      play.run();
    }
    Play<Far>::tell_dropped(far.stop(net.channels.size()));
  }
  others.clear();
  for (const int c : controls) ::close(c);
  return 0;
}

// Plays the network. Throws std::invalid_argument if there is no such link.
inline int spread_network(const std::string& text, const Spread& s) {
  if (s.programs < 2 || s.programs > 3) throw std::invalid_argument("--hosts: 2 or 3 programs");
  OverTcp::listens = s.me == 0;
  OverLossyLine::seed = std::stoull(s.seed) << 8 | static_cast<unsigned>(s.me) << 4;
  const auto play = [&]<class L>() {
    return s.me ? host_of_network<L>(text, s) : network_over_hosts<L>(text, s);
  };
  if (s.link == "shm") return play.template operator()<w::ShmLink>();
  if (s.link == "stream") return play.template operator()<w::StreamLink>();
  if (s.link == "tcp") return play.template operator()<OverTcp>();
  if (s.link == "serial") return play.template operator()<OverLine>();
  if (s.link == "lossy") return play.template operator()<OverLossyLine>();
  throw std::invalid_argument("--link: shm, stream, tcp, serial or lossy, not '" + s.link + "'");
}

}  // namespace twin
