// The frames by which programs ask each other about themselves (WIRE.md 10.6): each program hears a
// question once, over whatever graph of sessions. What a program answers and concludes is not
// decided here, but in rounds.hpp for a program in C++, and in python/native/rounds/rounds.cpp for
// one in Python.
//
//   ASK(asker, round) ──the first──► asked_first() … say(): asks the program's other sessions
//          │                           ├──all have SAID, or are gone──► SAID
//          │                           └──it does not wait, and no more is asked──► SAID
//          └──again──► SAID, empty
//   ask() … say() ──all have SAID, or are gone──► found()
//   TELL ──the first──► told(), and to all other sessions
//
// Invariants (the space's lock)
//  1 Of each asker the latest round counts. It is answered once, after say(), which may come later
//    than asked_first(), from a thread that first had to find out what to say.
//  2 Frames of rounds move no counter of a session.
#pragma once
#include <map>
#include <vector>

#include "everywhere.hpp"
#include "space.hpp"

namespace weft::inline WEFT_ABI::wire {

namespace detail {

// The answers to one asker.
struct Gathering {
  std::uint32_t round = 0;
  std::weak_ptr<Peer> from;  // the peer to answer, if another program asks
  std::vector<Peer*> awaited;
  std::map<Peer*, Buffer> parts;  // parts of answers that are not complete
  Buffer got;
  bool whole = true, open = true;
  bool said = false;  // this program has said what it is asked
  bool all = true;    // every program is to say what it is; otherwise only whether all wait
};

}  // namespace detail

// The sessions of this program that may wake a process, as it tells other programs. Returns false
// if a session is still opening, so that nothing is to be concluded. Called in a step.
inline bool sessions_of(const Space& space, std::vector<InProgram::Session>& to) {
  bool open = true;
  for (const Peer* p : space.peers()) {
    if (p->session.is_over() || !p->outside) continue;
    open = open && p->session.state() == Session::State::open;
    to.push_back({p->session.theirs().incarnation, p->session.sent(), p->session.received()});
  }
  return open;
}

class Asking : private Inquirer {
 public:
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

  // The functions below are called in a step. ask() begins a round of this program's own, and
  // returns its number; say() must follow. With `all` every program says what it is; otherwise they
  // are asked only whether all wait, and a program that does not wait asks no further program.
  std::uint32_t ask(bool all);
  // Sets this program's answer in that round. `waits`: whether all processes that it knows wait.
  // `whole`: whether it can know. The call does nothing if the asker has begun another round.
  void say(std::uint64_t asker, std::uint32_t round, Bytes mine, bool waits, bool whole = true);
  // Ends the wait for answers to this program's own round, and returns those that came so far.
  Buffer give_up();
  // Tells all programs what the last of this program's rounds has shown.
  void tell(Bytes what) { tell_all(me_, round_, what, nullptr); }

  std::uint64_t me() const noexcept { return me_; }

 protected:
  // Links that are made from now on say that this program answers.
  explicit Asking(std::shared_ptr<Space> space);
  ~Asking() = default;
  // Nothing more is heard. Called before the objects that the three functions below need are
  // destroyed.
  void close() noexcept;

  const std::shared_ptr<Space> space_;

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 24;  // bytes of one round's answers
  static constexpr std::size_t kAskers = 256;
  using Gathering = detail::Gathering;
  virtual void asked_first(std::uint64_t asker, std::uint32_t round) = 0;
  virtual void found(std::uint32_t round, Bytes all, bool whole) = 0;
  virtual void told(Bytes what) = 0;

  const char* heard(Peer& from, const Frame& f) override;
  void gone(Peer& p) noexcept override;
  const char* heard_ask(Peer& from, const Frame& f);
  const char* heard_said(Peer& from, const Frame& f);
  const char* heard_tell(Peer& from, const Frame& f);
  void finish_if_done(std::uint64_t asker, Gathering& g);
  void tell_all(std::uint64_t asker, std::uint32_t round, Bytes what, const Peer* but);
  static void send(Peer& to, Kind k, std::uint64_t asker, std::uint32_t round, Bytes body,
                   std::uint32_t last);

  const std::uint64_t me_;
  std::uint32_t round_ = 0;                        // this program's last round
  std::map<std::uint64_t, Gathering> gatherings_;  // the latest round of each asker
  // the last deadlock that each program has told of
  std::map<std::uint64_t, std::uint32_t> heard_of_;
  std::map<std::pair<Peer*, std::uint64_t>, Buffer> telling_;
};

}  // namespace weft::inline WEFT_ABI::wire
