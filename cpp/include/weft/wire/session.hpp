// A session, as a state machine that takes in received bytes and produces bytes to send (WIRE.md
// 2). The session does no input or output; the link does.
//
//   fresh ──greet()──► greeting ──input(): a good HELLO──► open
//   greeting, open ──bye(), input(): a fault; lost(); open: input(): BYE──► over
//
// Invariants (the space's lock)
//  1 Frames leave with seq 0, 1, 2, …; the first is HELLO. If frames arrive in another order, the
//    session ends.
//  2 session_over() of the receiver is called once, after every frame that arrived before the end.
//  3 Once the session has ended, nothing more is received or queued; what is queued may still be
//    sent.
//  4 The output is `out_` from `sent_` on. Each element of `lent_` names a place in `out_`, and
//    bytes that go before that place. These bytes are bodies of frames, which lie elsewhere. After
//    own() each of these bodies is kept in its place by its keeper.
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
  static constexpr std::uint32_t home = 1;     // the space can have channels of its own
  static constexpr std::uint32_t credits = 2;  // the space knows CREDIT and RECALL (WIRE.md 6.2)
  static constexpr std::uint32_t rounds = 4;   // the space answers ASK (WIRE.md 10.6)
  // The space knows credits at a rendezvous (WIRE.md 6.6).
  static constexpr std::uint32_t places = 8;
};

// The fields with which a space introduces itself (WIRE.md 2.3).
struct Greeting {
  std::uint64_t incarnation = 0;  // random, not zero
  std::string name;               // the space's name, for people
  std::uint32_t largest = kLargest;
  Version version{};
  std::uint32_t profile = Profile::home | Profile::credits | Profile::places;
};

class Receiver {
 public:
  virtual void opened() = 0;  // called when the peer's HELLO was good
  // Handles a frame. Returns null, or a text that says what is wrong with the frame, which is then
  // a fault.
  virtual const char* received(const Frame&) = 0;
  virtual void session_over() noexcept = 0;  // called once, when the session has ended
  // Called before BYE is queued. Frames that are sent now arrive before BYE.
  virtual void before_bye() noexcept {}

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
  // Returns the reason why the session has ended, as text for people.
  const std::string& why() const noexcept { return why_; }
  // Returns whether this side has ended the session, by bye() or because of what the peer sent.
  bool is_ours() const noexcept { return ours_; }
  const Greeting& mine() const noexcept { return mine_; }
  const Greeting& theirs() const noexcept { return theirs_; }
  // Returns the size in bytes of the largest frame that either side may send. Before the peer's
  // HELLO has arrived, this is the size that every peer accepts.
  std::uint32_t largest() const noexcept { return largest_; }

  // Sets who the peer must turn out to be, and the size of the peer's largest frame, if the maker
  // of the session knows them. Called before anything was sent or received.
  void expect(std::uint64_t incarnation, std::uint32_t largest) {
    theirs_.incarnation = expected_ = incarnation;
    largest_ = std::min(mine_.largest, largest);
  }
  // sent() and received() return how many frames have been queued for the peer, and received from
  // the peer, in 32 bits. Frames of rounds are not counted (WIRE.md 10).
  std::uint32_t sent() const noexcept { return next_out_ - rounds_out_; }
  std::uint32_t received() const noexcept { return next_in_ - rounds_in_; }
  // Returns whether both sides answer rounds.
  bool may_ask() const noexcept {
    return state_ == State::open && (mine_.profile & theirs_.profile & Profile::rounds) != 0;
  }
  void greet();
  // Takes in received bytes, in any pieces. Nothing must change the bytes during the call.
  void input(Bytes in);
  // Called by the link when the peer has ended.
  void lost(const std::string& why) { end(why, false); }
  // Ends the session in good order, and sends the reason to the peer.
  void bye(const std::string& why) { end(why, true); }

  // Queues a frame. A frame that is too long ends the session, since the peer could not accept it.
  // `time` says that no operation waits for this frame.
  void send(const Frame& f, bool time = false);
  // Returns whether any frame that a party waits for was queued since the last call.
  bool hurries() noexcept { return std::exchange(hurries_, false); }

  // Called by a link that sends parts(). From now on a long body is sent from its place in memory,
  // if it stays there.
  void may_lend() noexcept { lends_ = true; }
  bool lends(std::size_t body) const noexcept { return lends_ && body >= kLent; }
  // Copies bodies that stay in place only until now.
  void own() {
    if (borrows_) copy_borrowed();
  }

  // Returns the bytes that are to be sent, or the first part of these bytes. The result is empty
  // only if no bytes are to be sent. went() must say how many of the bytes were sent.
  Bytes output() const noexcept {
    Bytes first;
    parts(std::span(&first, 1));
    return first;
  }
  void went(std::size_t bytes);
  // Stores the first parts of the output in `into`, as many as it has room for. Returns how many it
  // has stored.
  std::size_t parts(std::span<Bytes> into) const noexcept;
  // Returns how many bytes are to be sent.
  std::size_t queued() const noexcept { return out_.size() - sent_ + lent_bytes_; }
  // Returns how many bytes the first whole frames have: at most `most`, but at least one frame.
  // frames() is for a link that sends only whole frames.
  std::size_t frames(std::size_t most) const noexcept;
  // Copies the first `bytes` bytes of the output, which must have at least that many.
  void copy_to(std::byte* to, std::size_t bytes) const noexcept;

 private:
  std::size_t take_frames(Bytes in);  // handles whole frames; returns the number of their bytes
  std::size_t take_part(Bytes in);    // handles bytes of part_; returns their number
  void heard(const Frame& f);
  const char* hello(const Frame& f);
  void end(const std::string& why, bool tell);
  void copy_borrowed();

  static constexpr std::size_t kNamed = 200;    // the maximum size of a space's name in bytes
  static constexpr std::size_t kLent = 16'384;  // in bytes; a shorter body is copied
  struct Lent {
    std::size_t before;  // the place in out_ before which the bytes go
    Bytes bytes;         // the bytes that were not sent yet
    Keeper keeper;
  };

  Receiver& receiver_;
  const Greeting mine_;
  Greeting theirs_;
  State state_ = State::fresh;
  std::uint32_t largest_ = kSmallest;
  std::uint64_t expected_ = 0;
  std::uint32_t next_in_ = 0, next_out_ = 0;
  std::uint32_t rounds_in_ = 0, rounds_out_ = 0;  // how many of these frames belong to rounds
  // The beginning of a frame, or of a word of part_, whose rest has not arrived yet.
  Buffer in_;
  // A long VALUE is passed on to the receiver piece by piece, as it arrives. That is possible for a
  // VALUE only, since it does not matter how a VALUE is cut up (WIRE.md 9.1). part_left_ is the
  // number of bytes of its body that have not arrived yet, with padding.
  Frame part_{};
  std::size_t part_left_ = 0;
  Buffer out_;
  std::size_t sent_ = 0;
  std::vector<Lent> lent_;
  std::size_t first_lent_ = 0,
              // The index of the first element of lent_ that was not sent; the number of bytes of
      // all such elements.
      lent_bytes_ = 0;
  bool lends_ = false, borrows_ = false;  // borrows_: whether an element of lent_ has no keeper
  bool hurries_ = false;
  // At most kUnread answers can wait to be sent. `answers_` counts the answers, `gone_` the bytes
  // sent. For every kEach answers, `unread_` holds the value that `gone_` will have once these
  // answers are sent.
  static constexpr std::uint64_t kUnread = 65'536, kEach = 64;
  std::uint64_t answers_ = 0, gone_ = 0;
  std::deque<std::uint64_t> unread_;
  // True if too many answers wait because the peer does not read. If the peer then sends more, that
  // is a fault.
  bool piles_up_ = false;
  std::string refused_;  // why the peer's HELLO was not good
  std::string why_;
  bool ours_ = false;
};

}  // namespace weft::inline WEFT_ABI::wire
