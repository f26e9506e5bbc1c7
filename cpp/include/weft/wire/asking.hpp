// The frames by which programs ask each other about themselves (WIRE.md 10.6): each is heard once,
// over whatever graph of sessions. What a program says, and what it concludes, is its own matter:
// rounds.hpp for a program of C++, python/native/rounds/rounds.cpp for one of Python.
//
//   ASK(asker, round) ──the first──► asked_first() … say(): asks its other sessions ──all have SAID, or are gone──► SAID
//          │                                            └──it does not wait, and that is all that is asked──► SAID
//          └──again──► SAID, empty
//   ask() … say() ──all have SAID, or are gone──► found()
//   TELL ──the first──► told(), and to all others
//
// Invariants (the space's lock)
//  1 Of each asker the latest round counts. It is answered once, after say(), which may come later
//    than asked_first(): from a thread that had first to find out.
//  2 Frames of rounds move no counter of a session.
#pragma once
#include <map>
#include <vector>

#include "everywhere.hpp"
#include "space.hpp"

namespace weft::inline WEFT_ABI::wire {

namespace detail {

// The answers to one who asks.
struct Gathering {
  std::uint32_t round = 0;
  std::weak_ptr<Peer> from;  // of one that another asks for
  std::vector<Peer*> awaited;
  std::map<Peer*, Buffer> parts;  // of answers that are not complete
  Buffer got;
  bool whole = true, open = true;
  bool said = false;  // what is asked of this program
  bool all = true;    // all are to say what they are; else only whether all wait
};

}  // namespace detail

// The sessions of this program that may wake somebody, as it says of them. False: one is opening
// still, so that nothing is to be concluded. In a step.
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

  // All in a step. Begins a round of our own: its number. say() is to follow. `all`: everybody says
  // what it is; else only whether all wait is asked, and who does not asks nobody else.
  std::uint32_t ask(bool all);
  // What this program says in that round; `waits`: do all wait of which it knows? `whole`: it could
  // tell. It is passed over if the asker has begun another round.
  void say(std::uint64_t asker, std::uint32_t round, Bytes mine, bool waits, bool whole = true);
  // The answers to our own round so far; they are waited for no longer.
  Buffer give_up();
  // To all: what the last of our rounds has shown.
  void tell(Bytes what) { tell_all(me_, round_, what, nullptr); }

  std::uint64_t me() const noexcept { return me_; }

 protected:
  // Links that are made from now on say that this program answers.
  explicit Asking(std::shared_ptr<Space> space);
  ~Asking() = default;
  // No more is heard: before what the three below need goes.
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
  std::uint32_t round_ = 0;                          // the last one of ours
  std::map<std::uint64_t, Gathering> gatherings_;    // by who asks: the latest of each
  std::map<std::uint64_t, std::uint32_t> heard_of_;  // the last deadlock that each told
  std::map<std::pair<Peer*, std::uint64_t>, Buffer> telling_;
};

}  // namespace weft::inline WEFT_ABI::wire
