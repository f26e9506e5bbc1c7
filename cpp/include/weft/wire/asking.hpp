// The frames by which programs ask each other about their state (WIRE.md 10.6). Each program
// handles a question once, even if several sessions bring the question. What a program answers and
// concludes is not decided here: rounds.hpp decides that for a program in C++,
// python/native/rounds/rounds.cpp for a program in Python.
//
//   ASK(asker, round) ──the first──► asked_first() … say(): asks the program's other sessions
//          │                           ├──all have SAID, or are gone──► SAID
//          │                           └──it does not wait, and no more is asked──► SAID
//          └──again──► SAID, empty
//   ask() … say() ──all have SAID, or are gone──► found()
//   TELL ──the first──► on_tell(), and to all other sessions
//
// Invariants (the space's lock)
//  1 Only the latest round of each asker counts. A round is answered once, after say(). say() may
//    be called later than asked_first(), by a thread that first had to compute the answer.
//  2 Frames of rounds are not counted in a session's `sent` and `received`.
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
  std::weak_ptr<Peer> from;  // the peer to which the answer goes, if another program asks
  std::vector<Peer*> awaited;
  std::map<Peer*, Buffer> parts;  // answers of which a part is still missing
  Buffer got;
  bool whole = true, open = true;
  bool said = false;  // whether this program has given its own answer
  // Whether every program describes itself. If false, each program reports only whether all its
  // runs wait.
  bool all = true;
};

}  // namespace detail

// Appends the sessions of this program that might wake a process, as the program reports them to
// others. Returns false if a session is still opening; the caller must then conclude nothing.
// Called in a step.
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

  // The functions below are called in a step. ask() begins a round of this program's own and
  // returns its number; say() must follow. If `all` is true, every program describes itself.
  // Otherwise the programs are asked only whether all their runs wait, and a program that has a run
  // which does not wait does not pass the question on.
  std::uint32_t ask(bool all);
  // Sets this program's answer in this round of `asker`. `waits` says whether all processes that
  // this program knows wait; `whole` says whether the program knows all of its processes. Does
  // nothing if the asker has begun another round.
  void say(std::uint64_t asker, std::uint32_t round, Bytes mine, bool waits, bool whole = true);
  // Stops waiting for answers to this program's own round, and returns the answers received so far.
  Buffer give_up();
  // Sends the result of this program's latest round to all programs.
  void tell(Bytes what) { tell_all(me_, round_, what, nullptr); }

  std::uint64_t me() const noexcept { return me_; }

 protected:
  // After this call, new links announce that this program answers questions.
  explicit Asking(std::shared_ptr<Space> space);
  ~Asking() = default;
  // Stops receiving questions and answers. Must be called before the objects that the three
  // functions below need are destroyed.
  void close() noexcept;

  const std::shared_ptr<Space> space_;

 private:
  // The maximum number of bytes of all answers of one round.
  static constexpr std::size_t kMaxAnswerBytes = std::size_t{1} << 24;
  static constexpr std::size_t kAskers = 256;
  using Gathering = detail::Gathering;
  virtual void asked_first(std::uint64_t asker, std::uint32_t round) = 0;
  virtual void found(std::uint32_t round, Bytes all, bool whole) = 0;
  virtual void on_tell(Bytes what) = 0;

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
  std::uint32_t round_ = 0;                        // the number of this program's latest round
  std::map<std::uint64_t, Gathering> gatherings_;  // the latest round of each asker
  // The latest deadlock that each program has announced.
  std::map<std::uint64_t, std::uint32_t> heard_of_;
  std::map<std::pair<Peer*, std::uint64_t>, Buffer> telling_;
};

}  // namespace weft::inline WEFT_ABI::wire
