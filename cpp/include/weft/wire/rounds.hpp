// Deadlock over several programs, and who waits where in all of them (rule 10.1, WIRE.md 10.6).
//
//   auto space = wire::Space::make("main");
//   wire::Rounds rounds(space);                  // before the links of the space; one a program
//   …
//   std::puts(rounds.everywhere().text().c_str());
//
// While it lives this program answers the questions of others. A run here that waits for links
// alone, for 50 ms, asks: is it so everywhere, and is no frame under way? Then nobody will ever be
// woken, each of those runs throws Deadlock, and the report has the knot over all programs. A
// program without Rounds, or of which a thread is no process (a weft::Outside), keeps those that
// can reach it from concluding anything.
//
//   a run stands ──links_stand──► look(): a round ──somebody can go on──► later, five times
//                                   │ all stand still ──a second round: nothing has moved──► TELL: all declare it
//   ASK(asker, round) ──the first──► begin(): asks its other sessions ──all have SAID, or are gone──► SAID
//          └──again──► SAID, empty
//
// Invariants
//  1 What is gathered is under the space's lock; `found_`, `condemned_`, `stands_` and `stop_`
//    under `lock_`, which is a leaf. Runs are condemned in the step that hears of it, before what
//    others do who were told; processes are cancelled by the thread, which has no lock then.
//  2 What a program says is of one moment: it is in a step of its space, so no frame is taken in
//    meanwhile, and `rests` shows in the second round whether a run has gone on between.
//  3 Frames of rounds move no counter of a session.
#pragma once
#include <unistd.h>
#include <chrono>
#include <condition_variable>
#include <thread>

#include "../runtime/names.hpp"
#include "../runtime/outside.hpp"
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
};

}  // namespace detail

class Rounds final : private Inquirer {
 public:
  // Throws BadUse if this program has one already.
  explicit Rounds(std::shared_ptr<Space> space);
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  ~Rounds();

  // What all programs that can be reached say of themselves now. Waits for the answers, for so long
  // at most: then `whole` is false. From any thread; not in a coroutine, which it would block.
  Everywhere everywhere(std::chrono::nanoseconds patience = std::chrono::seconds(1));

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 24;  // bytes of one round's answers
  static constexpr std::size_t kAskers = 256;
  using Gathering = detail::Gathering;
  WEFT_IMPL const char* heard(Peer& from, const Frame& f) override;
  WEFT_IMPL void gone(Peer& p) noexcept override;
  const char* asked(Peer& from, const Frame& f);
  const char* said(Peer& from, const Frame& f);
  const char* told(Peer& from, const Frame& f);
  void begin(std::uint64_t asker, std::uint32_t round, Peer* from);
  void finish_if_done(std::uint64_t asker, Gathering& g);
  InProgram mine();
  void look();
  void serve();
  void tell_all(std::uint64_t asker, std::uint32_t round, Bytes what, const Peer* but);
  static void send(Peer& to, Kind k, std::uint64_t asker, std::uint32_t round, Bytes body,
                   std::uint32_t last);
  void condemn(Bytes what);
  static Everywhere read(Bytes all, bool whole);
  static void stand() noexcept;

  const std::shared_ptr<Space> space_;
  const std::uint64_t me_;
  std::uint32_t round_ = 0;                          // the last one of ours
  std::map<std::uint64_t, Gathering> gatherings_;    // by who asks: the latest of each
  std::map<std::uint64_t, std::uint32_t> heard_of_;  // the last deadlock that each told
  std::map<std::pair<Peer*, std::uint64_t>, Buffer> telling_;
  std::mutex asking_;  // one round of ours at a time
  std::mutex lock_;
  std::condition_variable news_;
  std::optional<Everywhere> found_;
  std::vector<std::pair<runtime::Outsiders::Pinned, std::vector<runtime::Run*>>> condemned_;
  bool stands_ = false, stop_ = false;
  std::thread thread_;

  static inline std::mutex one_lock_;
  static inline Rounds* one_ = nullptr;
};

}  // namespace weft::inline WEFT_ABI::wire

#if !defined(WEFT_COMPILED)
#include "impl/rounds.ipp"
#endif
