// A session's part as a home: the ends that this program has handed to the peer, and the peer's
// operations at them (WIRE.md 4, 7).
//
// An operation of the peer is a *visitor* at the channel: an ordinary party, plain or a select,
// whose waker answers by a frame.
//
//   OFFER ──asked()──► committed at once ──answer()──► DONE │ ENDED
//             └──► open ──wake(): has an outcome──► in the space's list ──answer()──► DONE │ ENDED
//                    ├──withdraw(): it was queued──► WITHDRAWN
//                    ├──withdraw(): too late──► in the space's list, and so on
//                    └──lost(): destroyed if it was queued. Too late: the space's orphan, until its
//                       wake-up has come; it is not answered
//   A value made after the commit: answer() ──COMMIT──► making ──made()──► DONE, or delivering: an
//       extended reader holds it
//   An extended read: answer() ──► held ──held_end(), lost()──► Back::end(): its writer goes on, or
//       its value comes back
//
// Invariants (the space's lock)
//  1 A visitor is in `open_` until it is answered. It is destroyed only when it is in no queue and
//    no wake-up of it is under way.
//  2 A visitor is answered once. When two visitors meet, the reader's answer is queued before the
//    writer's (WIRE.md 4.2).
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

#include "moving.hpp"
#include "untaken.hpp"

namespace weft::inline WEFT_ABI::wire {

class Home;
class Space;

// A waker whose wake-up is handled in a step of its space, by notified().
class Decided : public core::Waker {
 public:
  explicit Decided(std::shared_ptr<Space> s) noexcept : space(std::move(s)) { ops = &kOps; }
  Decided(const Decided&) = delete;
  Decided& operator=(const Decided&) = delete;
  virtual void notified() noexcept = 0;  // the object can be destroyed when notified() returns

  const std::shared_ptr<Space> space;

 protected:
  ~Decided() = default;

 private:
  static void wake(core::Waker* w) noexcept;
  static const core::WakerOps kOps;
};

class Lender;
class Spanned;

class Visitor final : public Decided {
 public:
  // The first constructor makes the visitor for an OFFER of a choice at one home, the second makes
  // it for an attempt of `part`. Neither visitor may use a lent place (WIRE.md 6.6).
  Visitor(Home& h, std::uint64_t op);
  Visitor(std::shared_ptr<Space> s, std::shared_ptr<Spanned> part);

  struct Seat {
    std::shared_ptr<Port> port;
    std::unique_ptr<Room> room;
    std::uint32_t end = 0;  // the number of the end, for a visitor of a session
    // In a choice that spans several homes: the guard's precondition is false. `port` is then null
    // if the end had died.
    bool off = false;
    bool later = false;  // an output whose value is made after the commit
    // In a choice that spans: the choice's place has been notified that this channel has retired.
    bool silent = false;
  };

  // Null if the visitor's session has ended, or the visitor is a part of a choice that spans
  // several homes.
  Home* home = nullptr;
  const std::uint64_t op;
  const std::shared_ptr<Spanned> span;
  detail::Untaken untaken;  // counts the bytes of the visitor's values, and of the visitor itself
  std::vector<Seat> at;
  std::unique_ptr<core::Guard[]> guards;  // used if there are several guards
  core::Select select;

  // Begins the operation. Returns true if the operation has its outcome immediately; `chosen` is
  // then the guard.
  bool begin() noexcept;
  // Withdraws the visitor. Returns true if nothing has happened. Returns false if the visitor had
  // its outcome; its wake-up is then under way or in the space's list.
  bool withdraw() noexcept;
  // Returns whether the visitor has committed, even if an extended reader still holds it.
  bool has_met() noexcept;
  // Sets `outcome`. Called after the wake-up.
  void look() noexcept;
  void notified() noexcept override;
  // Called before begin() if there are several guards. Returns false if two guards are at opposite
  // ends of one channel.
  bool bind() noexcept;
  // Makes this visitor an extended read (rule 1.6). Called before begin(). `keeping` says that this
  // home keeps the value, which can come back.
  void will_hold(bool keeping) noexcept {
    holds = true;
    keeps = keeping;
    set(core::NodeFlags::extended | (keeping ? core::NodeFlags::kept : 0));
  }
  // For an output whose value is made after the commit (rule 5.8). to_make() returns whether the
  // output has committed, so that the peer must be notified. After that, `stage` is `making` until
  // made() is called, with the value in its room, or fail() is called. made() returns `pending` if
  // an extended reader holds the visitor; then notified() is called once more.
  enum class Stage : std::uint8_t { offered, making, delivering } stage = Stage::offered;
  bool to_make() const noexcept {
    return stage == Stage::offered && outcome == Status::ok &&
           at[static_cast<std::size_t>(chosen)].later;
  }
  Status made() noexcept {
    stage = Stage::delivering;
    return at_chosen().deliver(node());
  }
  void fail() noexcept { at_chosen().abandon(node()); }
  bool has_happened() const noexcept { return holds && outcome == Status::ok; }
  bool chose_a_write() const noexcept {
    return at[static_cast<std::size_t>(chosen)].port->writes();
  }
  int chosen = 0;
  Status outcome = Status::pending;
  bool holds = false, keeps = false;

 private:
  core::Node& node() noexcept {
    return guards ? static_cast<core::Node&>(guards[static_cast<std::size_t>(chosen)].node) : *this;
  }
  Port& at_chosen() noexcept { return *at[static_cast<std::size_t>(chosen)].port; }
  bool decide(int guard, Status s) noexcept;
};

// The value of an extended read that came back. It acts as a writer that is first in the waiting
// queue (WIRE.md 4.7); the writer of the value is held until this value has been read.
class Back final : public Decided {
 public:
  // Ends the extended read of `g`. `back` says that the value is to be read again. Called in a
  // step.
  static void end(std::unique_ptr<Visitor> g, bool back);
  void notified() noexcept override;

 private:
  explicit Back(std::unique_ptr<Visitor> g) : Decided(g->space), visitor_(std::move(g)) {}
  const std::unique_ptr<Visitor> visitor_;
};

class Home {
 public:
  // The maximum number of operations that the peer may have open at a time.
  static constexpr std::size_t kOffers = 4096;
  // The number of bytes that a guard counts for, beside its value.
  static constexpr std::size_t kVisitor = 256;
  // The maximum number of ends that the peer may hold at a time.
  static constexpr std::size_t kEnds = 65'536;
  // The lowest of the numbers that the peer chooses (WIRE.md 7.4).
  static constexpr std::uint32_t kAdopted = std::uint32_t{1} << 31;

  Home(Session& s, Space& space, Carrier& c, detail::Spare& spare) noexcept
      : space(space), session_(s), carrier_(c), spare_(spare) {}

  // Hands an end to the peer, with its name and type. Returns the end's number.
  std::uint32_t give(std::shared_ptr<Port> p, const std::string& type, const std::string& name,
                     std::uint64_t capacity);

  // lend() gives a number to an end that goes to the peer in a value. unlend() undoes that, if the
  // value was not sent.
  struct Numbered {
    std::uint32_t number;
    std::uint64_t key;
  };
  Numbered lend(std::shared_ptr<Port> p);
  void unlend(std::uint32_t end);
  // Returns the port of an end that the peer holds, or null.
  std::shared_ptr<Port> port_of(std::uint32_t end) const noexcept {
    const auto it = ends_.find(end);
    return it == ends_.end() ? nullptr : it->second.port;
  }

  // Calls f(key, port) for each end that the peer holds.
  template <class F>
  void each_end(F&& f) const {
    for (const auto& [number, given] : ends_)
      if (given.port) f(given.key, *given.port);
  }

  // Calls f(number, port, whether an operation of the peer waits there) for each end that the peer
  // holds. A choice that spans several homes counts as no wait.
  template <class F>
  void each_wait(F&& f) const {
    std::vector<std::uint32_t> waits;
    for (const auto& [op, visitor] : open_)
      if (visitor->outcome == Status::pending)
        for (const Visitor::Seat& seat : visitor->at) waits.push_back(seat.end);
    for (const auto& [number, given] : ends_)
      if (given.port)
        f(number, *given.port, std::find(waits.begin(), waits.end(), number) != waits.end());
  }

  // Each function below handles a received frame. It returns null, or a text that says what is
  // wrong with the frame.
  const char* adopt(const Frame& f);
  const char* asked(const Frame& f);
  const char* withdraw(const Frame& f);
  const char* put(const Frame& f);
  const char* value(const Frame& f);
  const char* want(const Frame& f);
  const char* recalled(const Frame& f);
  const char* held_end(const Frame& f);
  const char* made(const Frame& f);
  const char* retire(const Frame& f);
  const char* poison(const Frame& f);
  const char* gone(const Frame& f);
  const char* try_it(const Frame& f);
  const char* parties(const Frame& f);

  // Answers a visitor of this session that has its outcome and has called look().
  void answer(Visitor& g);
  // Ends the session: all ends that the peer held through the session die.
  void lost() noexcept;

  std::size_t open() const noexcept { return open_.size() + parts_.size() + held_.size(); }
  // Returns the number of the peer's latest OFFER.
  std::uint64_t last_op() const noexcept { return last_; }

  Space& space;
  bool told_a_reader = false;  // an answer to a reader was queued and not flushed yet
  // Whether this home is allowed to lend the places of readers (WIRE.md 6.6). It is not if frames
  // can be lost while both sides live on.
  bool lends_places = true;
  // Whether the peer is on another machine. If so, the values that the peer has sent and no reader
  // has taken are counted.
  bool counts = false;
  // Returns how many bytes those values have.
  std::size_t untaken() const noexcept;

 private:
  struct Given {
    std::shared_ptr<Port> port;  // null if the end had died before the peer adopted it
    std::uint64_t key;
    std::shared_ptr<Lender> lender;  // used for a writer end, while its peer has credits
    // For a rendezvous. `late` says how many credits in a row have crossed an OFFER; `later` says
    // how many writes are answered before the next credit is lent.
    std::uint8_t late = 0, later = 0;
  };
  Given* held(std::uint32_t end) noexcept {
    const auto it = ends_.find(end);
    return it == ends_.end() ? nullptr : &it->second;
  }
  struct Part;  // a part of a choice that spans several homes (WIRE.md 5)
  const char* spans(const Frame& f, std::vector<Visitor::Seat> at, std::size_t bytes);
  const char* seats(const Frame& f, std::vector<Visitor::Seat>& at, bool& dead);
  // Tells the peer that an operation has committed. `lending` is 0, or for a write 1 and how many
  // credits come with the answer. Returns false if the value is too long.
  bool tell_done(std::uint64_t op, std::uint32_t guard, Visitor::Seat& at,
                 std::uint64_t lending = 0);
  void tell_ended(std::uint64_t op, std::uint32_t guard, Status s, const Port& at);
  // Tells the peer that its operation was bad use (WIRE.md 3.4, ENDED).
  void tell_bad_use(std::uint64_t op, std::uint64_t how) {
    session_.send(Frame{Kind::ended, 0, 0, 0, op, how, {}});
  }
  void add(std::uint32_t end, std::uint64_t key, std::shared_ptr<Port> p);
  void close(Given& g, bool died);
  std::shared_ptr<Lender> may_lend(const Visitor& g);
  void offered(Given& g);

  Session& session_;
  Carrier& carrier_;
  std::unordered_map<std::uint32_t, Given> ends_;  // the ends that the peer holds, by number
  std::uint32_t next_ = 0, next_adopted_ = kAdopted;
  std::unordered_map<std::uint64_t, std::unique_ptr<Visitor>> open_;
  // Extended reads that have happened. Each of them stays until its HELD-END.
  std::map<std::uint64_t, std::unique_ptr<Visitor>> held_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Part>> parts_;
  // For a value that takes several frames: the pieces that came before the value's OFFER or PUT.
  struct Before {
    std::uint32_t guard;
    Buffer bytes;
    // If the frame named the end, the pieces go directly into a room, and `to_come` bytes are
    // missing.
    std::uint32_t end = 0;
    std::unique_ptr<Room> room{};
    std::size_t to_come = 0, size = 0;
    detail::Untaken untaken{};
  };
  const char* may_send(std::uint64_t end) const noexcept;
  static const char* complete(std::vector<Before>& before, std::span<Asked> guards,
                              bool offered = false);
  std::unique_ptr<Room> room_for(const Frame& f);
  std::vector<Before> before_;
  detail::Spare& spare_;  // shared by all sessions of the space
  struct Came {           // the pieces that came before a frame, while that frame is handled
    std::vector<Before> all;
    detail::Spare& spare;
    explicit Came(Home& h) noexcept : all(std::exchange(h.before_, {})), spare(h.spare_) {}
    Came(const Came&) = delete;
    Came& operator=(const Came&) = delete;
    ~Came() {
      for (Before& b : all) spare.keep(std::move(b.bytes));
    }
  };
  std::vector<Asked> asked_;
  Buffer keep_;
  std::uint64_t last_ = 0;
};

}  // namespace weft::inline WEFT_ABI::wire
