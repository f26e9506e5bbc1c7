// A choice whose guards live at several homes, at its place (WIRE.md 5). One of the homes may be
// this space.
//
//   begin() ──► asks each home in the order of the guards, and offers as it asks ──NOTREADY──► … ──► waits ──READY──► tries that home ──► …
//                  └─────────────── DONE, ENDED: over, and the others to which it was offered are told that it has gone ───────────┘
//
// At most one home is trying at a time, and only that one can commit. So the choice is made once,
// whatever happens to the others; and if a session ends, only what was being tried there can be in
// doubt (WIRE.md 8).
//
// Asked in the order of the guards the first that is ready is chosen ; a fair select
// begins elsewhere each time (rule 5.4). One who only looks (a skip, a timeout that is over) is
// over once all have been asked: `cancelled` (WIRE.md 5.9).
//
// Invariants (the space's lock)
//  1 trying_ is the part that has been asked and has not answered. No other part can commit.
//  2 whole_.over() is called once, when no part can be heard of any more; not if begin() says that
//    it is over. Nothing of this is touched after it: whoever waits goes on, and destroys it.
#pragma once
#include <memory>

#include "far.hpp"
#include "inline_vector.hpp"

namespace weft::inline WEFT_ABI::wire {

class Span {
  static constexpr std::size_t kUsual = 4;  // guards

 public:
  struct Guard {
    Peer* peer = nullptr;          // its home; null: this space
    std::shared_ptr<Port> port{};  // here
    std::uint32_t end = 0;         // there
    bool writes = false;
    std::unique_ptr<Room>* room = nullptr;
    bool ends = false;  // that its channel has retired is an outcome
    // its precondition is false: it takes no part, but its home says whether its channel is open
    bool off = false;
    bool later = false;  // an output whose value is made after the commit: its room is filled then
  };
  using Guards = InlineVector<Guard, kUsual>;
  // What rule 5.6 makes of retired guards: it is over once all that keep it open have retired.
  // Neither: nothing but a guard ends it. The program may yet switch on what is off. So it is not
  // over while an input that is off is open, or inputs keep it open too while an output that is off
  // is; open when it began.
  struct Kept {
    bool by_inputs = false, by_outputs = false;
    bool by_inputs_off = false, by_outputs_off = false;
  };
  static Kept kept(core::Kinds all) noexcept {
    const bool outputs = all.on(core::Kind::output), inputs = all.on(core::Kind::input);
    if (!outputs && (!inputs || all.lasting())) return {};
    return {!outputs, outputs, all.off(core::Kind::input) && all.timed(),
            outputs && inputs && all.off(core::Kind::output)};
  }
  static Kept kept(const Guards& g) noexcept {
    core::Kinds all;
    for (const Guard& x : g) {
      core::Guard one;
      one.kind = x.writes ? core::Kind::output : core::Kind::input;
      one.enabled = !x.off;
      all.add(one);
    }
    return kept(all);
  }

  // `whole` is told of the outcome. The guards are asked in this order, beginning with `first`.
  Span(Space& s, FarOp& whole, Guards guards, std::uint32_t first, Kept kept, bool only_looks);
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span();

  // True: it is over already. With the outcome `pending` nothing has happened: whole.refused says
  // why.
  bool begin();
  // Of one whose whole_ was told committed(): the value is in the guard's room; or it could not be
  // made, and the choice is over, without over(). True: it is over at once, also without over().
  bool made();
  void failed();
  // Asks for its withdrawal: over() tells whether it was too late.
  void withdraw();
  // The same for a timer that has come, or an end: a guard that is ready is chosen before it (rule
  // 5.7), so every home is asked once.
  void look_once();
  // Has a home been asked that has not answered yet? In a step.
  bool trying() const noexcept { return trying_ != nullptr; }

 private:
  // parts that lie in here, and room for each of them
  static constexpr std::size_t kHere = 2, kPart = 256;
  struct Part;
  struct There;
  struct Here;
  struct Seat {
    Part* part;
    std::uint32_t at;  // its number there
    bool silent = false;
  };
  template <class P, class... A>
  Part& add_part(A&&... a);
  bool ask(Part& p, std::uint32_t first, std::uint32_t count);
  void part_commits(Part& p, std::uint32_t at);
  void go_on();
  void end(const Outcome& how, Part* at);
  bool all_silent(std::uint32_t& guard) const;
  bool open_though_off(bool writes) const noexcept;
  std::uint32_t guard_of(const Part& p, std::uint32_t at) const;
  void silence(const Part& p) noexcept;
  void part_lost(Part& p);
  void part_silent(Part& p, std::uint32_t at);
  void part_over(Part& p, const Outcome& how);

  Space& space_;
  FarOp& whole_;
  Guards guards_;
  const std::uint32_t first_;
  const Kept kept_;
  const bool looks_;
  bool late_ = false;            // look_once(): no attempt is waited for
  bool* over_within_ = nullptr;  // of the attempt that go_on() is in after that: it is over
  alignas(std::max_align_t) std::byte here_[kHere][kPart];
  InlineVector<Part*, kHere> parts_;
  InlineVector<Seat, kUsual> seats_;
  std::uint32_t rank_ = 0;
  Part* trying_ = nullptr;
  bool trying_writes_ = false;  // an output is among the guards that are tried
  std::uint32_t asked_ = 0;     // guards that have been asked in order
  // Where that began, and whether one of those that are tried fell silent meanwhile: then the
  // others were not tried, and are asked again.
  std::uint32_t asked_from_ = 0;
  bool fell_silent_ = false;
  bool began_ = false, over_ = false, unwanted_ = false;
  bool silently_ = false;  // begin() itself tells that it is over
  // A guard that has ended, or whose session has, while another home was trying: it is the outcome
  // unless that one commits.
  bool failed_ = false;
  bool making_ = false;        // trying_ has committed, and waits for the value
  Part* failed_at_ = nullptr;  // the part that is over by it, if one is
  Outcome failure_{};
};

}  // namespace weft::inline WEFT_ABI::wire
