// A choice that spans is a choice whose guards belong to several homes. This file is the code for
// the choice's *place*, the space of the process that makes the choice (WIRE.md 5). One of the
// homes may be that space.
//
//   begin() ──► asks each home in the order of the guards, offers at once ──NOTREADY──► the next
//   all asked ──► waits ──READY──► tries that home ──► …
//   DONE, ENDED ──► over: the other homes to which it was offered are notified that it has gone
//
// At most one home is trying at a time, and only that home can commit. So the choice commits once,
// whatever happens at the other homes. If a session ends, only the guards that were being tried
// over that session can be in doubt (WIRE.md 8).
//
// The homes are asked in the order of the guards, so the first guard that is ready is chosen; a
// fair select begins at another guard each time (rule 5.4). A choice that polls (with a skip, or a
// timeout that has expired) ends as `cancelled` once all homes have been asked (WIRE.md 5.9).
//
// Invariants (the space's lock)
//  1 trying_ is the part that was asked to try and has not answered. No other part can commit.
//  2 whole_.over() is called once, when no part can receive any more messages; it is not called if
//    begin() returns that the choice has ended. Nothing of this object is used after that call: the
//    process that waits continues, and destroys the object.
#pragma once
#include <memory>

#include "far.hpp"
#include "inline_vector.hpp"

namespace weft::inline WEFT_ABI::wire {

class Span {
  // The number of guards for which no allocation is needed.
  static constexpr std::size_t kUsual = 4;

 public:
  struct Guard {
    Peer* peer = nullptr;          // the guard's home; null for this space
    std::shared_ptr<Port> port{};  // the port, if the home is this space
    std::uint32_t end = 0;         // the number of the end at its home
    bool writes = false;
    std::unique_ptr<Room>* room = nullptr;
    bool ends = false;  // whether the retirement of its channel is an outcome
    // The guard's precondition is false, so the guard takes no part; but its home says whether its
    // channel is open.
    bool off = false;
    // The guard is an output whose value is made after the commit; its room is filled at that time.
    bool later = false;
  };
  using Guards = InlineVector<Guard, kUsual>;
  // How retired guards end the choice (rule 5.6): the choice ends once all guards that keep it open
  // have retired. With neither of the first two flags, only a chosen guard ends the choice. The
  // program may yet switch on guards that are off. So the choice does not end while an input that
  // is off is open (by_inputs_off), and inputs keep the choice open too while an output that is off
  // is open (by_outputs_off). Here "open" means open when the choice began.
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

  // Makes a choice, whose outcome is passed to `whole`. The guards are asked in this order,
  // beginning with `first`.
  Span(Space& s, FarOp& whole, Guards guards, std::uint32_t first, Kept kept, bool only_looks);
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span();

  // Begins the choice. Returns true if the choice has ended already. If its outcome is then
  // `pending`, nothing has happened, and whole.refused says why.
  bool begin();
  // The caller calls made() or failed() after whole_.committed(). made() says that the value is in
  // the guard's room. failed() says that the value could not be made; the choice has then ended,
  // and over() is not called. made() returns true if the choice ends immediately; over() is not
  // called in that case either.
  bool made();
  void failed();
  // Asks the homes to withdraw the choice; over() then says whether that was too late.
  void withdraw();
  // Called instead of withdraw() when a timer has expired or a process has ended. A guard of a
  // channel that is ready is chosen before that timer or process (rule 5.7), so every home is asked
  // once more.
  void look_once();
  // Returns whether a home has been asked and has not answered yet. Called in a step.
  bool trying() const noexcept { return trying_ != nullptr; }

 private:
  // The number of parts that are stored in this object, and the bytes reserved for each of them.
  static constexpr std::size_t kHere = 2, kPart = 256;
  struct Part;
  struct There;
  struct Here;
  struct Seat {
    Part* part;
    std::uint32_t at;  // the guard's number in that part
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
  bool late_ = false;  // set by look_once(): no further attempt is waited for
  // During an attempt that go_on() makes after look_once(): points to a flag, which end() sets if
  // the choice ends within the attempt. Null at other times.
  bool* over_within_ = nullptr;
  alignas(std::max_align_t) std::byte here_[kHere][kPart];
  InlineVector<Part*, kHere> parts_;
  InlineVector<Seat, kUsual> seats_;
  std::uint32_t rank_ = 0;
  Part* trying_ = nullptr;
  bool trying_writes_ = false;    // whether an output is among the guards that are tried
  std::uint32_t asked_ = 0;       // how many guards have been asked, in their order
  std::uint32_t asked_from_ = 0;  // asked_ when the present attempt began
  // Whether the channel of a guard in this attempt has retired. The other guards were not tried
  // then, and are asked again, from asked_from_.
  bool fell_silent_ = false;
  bool began_ = false, over_ = false, unwanted_ = false;
  bool silently_ = false;  // begin() itself returns that the choice has ended
  // A guard's channel or session has ended while another home was trying. That end is the outcome
  // unless the other home commits.
  bool failed_ = false;
  bool making_ = false;        // trying_ has committed, and waits for the value of its output
  Part* failed_at_ = nullptr;  // the part whose end is this outcome, if there is one
  Outcome failure_{};
};

}  // namespace weft::inline WEFT_ABI::wire
