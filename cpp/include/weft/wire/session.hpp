// A session: a state machine that is fed with bytes and gives bytes (WIRE.md 2). It does no input
// or output; the link does.
//
//   fresh ──greet()──► greeting ──input(): a good HELLO──► open
//   greeting, open ──bye(), input(): a fault; lost(); open: input(): BYE──► over
//
// Invariants (the space's lock)
//  1 Frames leave with seq 0, 1, 2, …; the first is HELLO. Frames arrive so, or the session is
//    over.
//  2 The receiver is told session_over() once, after every frame that came before the end.
//  3 Once the session is over nothing is taken in, and nothing is added to what is to go out; what
//    is there may still be sent.
//  4 What is to go is `out_` from `sent_` on, with the bytes of each of `lent_` before the place in
//    `out_` that it names: the bodies of frames, which lie elsewhere. After own() each of them is
//    kept in its place by its keeper.
#pragma once
#include <algorithm>
#include <deque>
#include <string>

#include "frame.hpp"

namespace weft::inline WEFT_ABI::wire {

struct Version {
  std::uint16_t lowest = 1, highest = 1;
};

struct Profile {
  static constexpr std::uint32_t home = 1;     // it may have channels of its own
  static constexpr std::uint32_t credits = 2;  // it knows CREDIT and RECALL (WIRE.md 6.2)
  static constexpr std::uint32_t rounds = 4;   // it answers ASK (WIRE.md 10.6)
  static constexpr std::uint32_t places = 8;   // it knows credits at a rendezvous (WIRE.md 6.6)
};

// The fields with which a space introduces itself (WIRE.md 2.3).
struct Greeting {
  std::uint64_t incarnation = 0;  // random; not zero
  std::string name;               // for people
  std::uint32_t largest = kLargest;
  Version version{};
  std::uint32_t profile = Profile::home | Profile::credits | Profile::places;
};

class Receiver {
 public:
  virtual void opened() = 0;  // the peer's HELLO was good
  // returns null, or what is wrong with the frame: a fault
  virtual const char* received(const Frame&) = 0;
  virtual void session_over() noexcept = 0;  // called once
  virtual void before_bye() noexcept {}      // frames sent now arrive before this side's BYE

 protected:
  ~Receiver() = default;
};

class Session {
 public:
  enum class State : std::uint8_t { fresh, greeting, open, over };

  Session(Receiver& r, Greeting mine) : receiver_(r), mine_(std::move(mine)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  State state() const noexcept { return state_; }
  bool is_over() const noexcept { return state_ == State::over; }
  // Why the session is over: for people.
  const std::string& why() const noexcept { return why_; }
  // Returns whether the session is over because this side has ended it, by bye() or for what the
  // peer sent.
  bool is_ours() const noexcept { return ours_; }
  const Greeting& mine() const noexcept { return mine_; }
  const Greeting& theirs() const noexcept { return theirs_; }
  // The largest frame that either side may send, in bytes. Before the peer's HELLO: what every peer
  // takes.
  std::uint32_t largest() const noexcept { return largest_; }

  // Says who the peer must turn out to be, and the peer's largest frame, where the maker of the
  // session knows them. Called before anything has been said.
  void expect(std::uint64_t incarnation, std::uint32_t largest) {
    theirs_.incarnation = expected_ = incarnation;
    largest_ = std::min(mine_.largest, largest);
  }
  // Frames so far, of 32 bits: how many were queued for the peer, and how many of the peer's were
  // taken in, without those of rounds (WIRE.md 10).
  std::uint32_t sent() const noexcept { return next_out_ - rounds_out_; }
  std::uint32_t received() const noexcept { return next_in_ - rounds_in_; }
  // Returns whether both sides answer rounds.
  bool may_ask() const noexcept {
    return state_ == State::open && (mine_.profile & theirs_.profile & Profile::rounds) != 0;
  }
  void greet();
  // Takes in what has arrived, in any pieces; nothing changes the bytes meanwhile.
  void input(Bytes in);
  // The link says that the peer is gone.
  void lost(const std::string& why) { end(why, false); }
  // Ends the session in good order; the peer is told why.
  void bye(const std::string& why) { end(why, true); }

  // Queues a frame. A frame that is too long ends the session: the peer could not take it. `time`:
  // nobody waits for this frame.
  void send(const Frame& f, bool time = false);
  // Returns whether any frame that a party waits for was queued since the last call.
  bool hurries() noexcept { return std::exchange(hurries_, false); }

  // The link takes parts(): then a long body is sent from where it lies, if it stays there.
  void may_lend() noexcept { lends_ = true; }
  bool lends(std::size_t body) const noexcept { return lends_ && body >= kLent; }
  // Copies bodies that stay where they are only until now.
  void own() {
    if (borrows_) copy_borrowed();
  }

  // What is to go out, or the first part of it; empty only if there is nothing. went() says how
  // much of it has gone.
  Bytes output() const noexcept {
    Bytes first;
    parts(std::span(&first, 1));
    return first;
  }
  void went(std::size_t bytes);
  // The first parts, as many as `into` has room for. Returns how many.
  std::size_t parts(std::span<Bytes> into) const noexcept;
  // How many bytes are to go out.
  std::size_t queued() const noexcept { return out_.size() - sent_ + lent_bytes_; }
  // How many bytes the first whole frames have: at most `most`, but one frame at least. For a link
  // by which only whole frames go.
  std::size_t frames(std::size_t most) const noexcept;
  // Copies the first bytes, of which there must be so many.
  void copy_to(std::byte* to, std::size_t bytes) const noexcept;

 private:
  std::size_t take_frames(Bytes in);  // takes whole frames; returns how many bytes they have
  std::size_t take_part(Bytes in);    // takes bytes of part_; returns how many
  void heard(const Frame& f);
  const char* hello(const Frame& f);
  void end(const std::string& why, bool tell);
  void copy_borrowed();

  static constexpr std::size_t kNamed = 200;    // bytes of a space's name
  static constexpr std::size_t kLent = 16'384;  // in bytes: a shorter body is quickly copied
  struct Lent {
    std::size_t before;  // a place in out_
    Bytes bytes;         // that have not gone yet
    Keeper keeper;
  };

  Receiver& receiver_;
  const Greeting mine_;
  Greeting theirs_;
  State state_ = State::fresh;
  std::uint32_t largest_ = kSmallest;
  std::uint64_t expected_ = 0;
  std::uint32_t next_in_ = 0, next_out_ = 0;
  std::uint32_t rounds_in_ = 0, rounds_out_ = 0;  // frames of rounds among them
  // The beginning of a frame, or a word of part_, that is not all there yet.
  Buffer in_;
  // A long VALUE that is not all there yet is passed on to the receiver as it comes. That is not
  // possible for other frames: only for a VALUE does it not matter how it was cut up (WIRE.md 9.1).
  // Of its body part_left_ bytes are to come, with padding.
  Frame part_{};
  std::size_t part_left_ = 0;
  Buffer out_;
  std::size_t sent_ = 0;
  std::vector<Lent> lent_;
  std::size_t first_lent_ = 0,
              // the first of lent_ that has not gone; the bytes of all that have not
      lent_bytes_ = 0;
  bool lends_ = false, borrows_ = false;  // borrows_: some of lent_ have no keeper
  bool hurries_ = false;
  // At most kUnread answers may wait. `answers_` counts them, `gone_` the bytes sent; `unread_`
  // has, for each kEach answers, what `gone_` will be when they are sent.
  static constexpr std::uint64_t kUnread = 65'536, kEach = 64;
  std::uint64_t answers_ = 0, gone_ = 0;
  std::deque<std::uint64_t> unread_;
  // Too many wait, for the peer does not read; if it sends more, that is a fault.
  bool piles_up_ = false;
  std::string refused_;  // why a HELLO was not good
  std::string why_;
  bool ours_ = false;
};

}  // namespace weft::inline WEFT_ABI::wire
