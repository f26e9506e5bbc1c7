// A session's part as a party: this program's operations at ends whose home is the peer's space
// (WIRE.md 4, 8). doubt.hpp describes the states of an operation.
//
// Invariants (the space's lock)
//  1 An operation is in `open_` from begin() until over() is called, which happens once; after that
//    nothing here touches the operation.
//  2 The rooms of an operation are its own. An input's room is filled if and only if the
//    operation's outcome is ok at that guard.
//  3 An operation that waits for a credit is in the end's waiting queue and not in `open_`. The
//    queue is empty while there are credits.
#pragma once
#include <deque>
#include <unordered_map>

#include "doubt.hpp"
#include "moving.hpp"
#include "session.hpp"
#include "value.hpp"

namespace weft::inline WEFT_ABI::wire {

class FarOp;

struct FarGuard {
  std::uint32_t end = 0;
  bool writes = false;
  Room* room = nullptr;
  // `holds` marks an extended read, which is never a guard of a choice. `keeps` says that the
  // read's value can be given back.
  bool holds = false, keeps = false;
  bool off = false;  // For a choice that spans several homes: the guard's precondition is false.
  // The guard is an output whose value is made after the commit; its room is filled at that time.
  bool later = false;
  // If `parties` is not `none`, the guard is not an arrival at a barrier, but a message about the
  // barrier's parties (WIRE.md 4.9), and is the only guard. The guard's room receives the number of
  // parties that are then enrolled.
  enum class Parties : std::uint8_t { none, ask, enrol, resign } parties = Parties::none;
};

// The credits at a writer end of this program (WIRE.md 6.2), and the writes that wait for one.
struct Credits {
  std::uint64_t n = 0;
  // True at a rendezvous (WIRE.md 6.6), where there is one credit, and no write waits for it.
  bool place = false;
  bool wanted = false;  // whether the home has been notified that a write waits
  std::deque<FarOp*> line;
};

class FarOp {
 public:
  std::span<FarGuard> guards;
  Outcome outcome{};
  const char* refused = nullptr;  // the reason why the operation was not sent, or null
  // For a part of a choice: the part can commit only while `trying` is true. If it is true before
  // begin(), the home tries all guards of the part together.
  bool trying = false;
  // If not 0, the operation is a part of a choice that spans several homes, and `rank` is the
  // choice's place in the order of all such choices (WIRE.md 5).
  std::uint32_t rank = 0;
  // For a part of a choice: whether the choice polls, and does not wait (WIRE.md 5.9).
  bool looks = false;
  Word word() const noexcept { return word_; }
  // Returns the number by which the home knows the operation. An extended read that has happened
  // keeps this number until the home has been notified that the read has ended.
  std::uint64_t number() const noexcept { return op_; }

  FarOp() = default;
  FarOp(const FarOp&) = delete;
  FarOp& operator=(const FarOp&) = delete;

 protected:
  ~FarOp() = default;
  // Called when the operation has ended; `outcome` says how. Called under the space's lock; the
  // operation can be destroyed when over() returns.
  virtual void over() noexcept = 0;
  // Called when the operation has committed with this guard, whose value is to be made now:
  // Far::made() or Far::failed() must follow. Called under the space's lock.
  virtual void committed(std::uint32_t) noexcept {}
  // For a part of a choice: called when the part's home reports something before the part ends.
  virtual void ready() noexcept {}
  virtual void silent(std::uint32_t) noexcept {}
  virtual void not_ready() noexcept {}

 private:
  friend class Far;
  friend class Span;
  bool writes() const noexcept {
    for (const FarGuard& g : guards)
      if (g.writes && !g.off) return true;
    return false;
  }
  std::uint64_t op_ = 0;      // 0 if the operation has no number yet, or needs none
  std::uint32_t making_ = 0;  // the guard whose value is being made
  bool in_line_ = false;      // whether the operation waits for a credit
  // Whether the end is being given back. If the home's answer then begins a lending, that lending
  // ends immediately.
  bool last_ = false;
  Word word_ = Word::unsent;
  Buffer pieces_;  // the received pieces of a value that takes several frames
  // If `to_come_` is not 0, the pieces go directly into the operation's room, and this many bytes
  // are still missing.
  std::size_t to_come_ = 0;
};

class Far {
 public:
  Far(Session& s, Carrier& c, detail::Spare& spare) noexcept
      : session_(s), carrier_(c), spare_(spare) {}

  // Begins an operation. Returns true if the operation has ended already; then over() is not
  // called. If its outcome is then `pending`, nothing was sent, and o.refused says why.
  bool begin(FarOp& o);
  // Asks the home to withdraw the operation; over() then reports the answer. Does nothing if the
  // home was asked already, or the operation has ended.
  void withdraw(FarOp& o);

  // Notifies the home that the block of an extended read has ended. `back` says that the value was
  // not used, so that the next reader receives it; `back` is only for a read that keeps its value.
  void held_end(std::uint64_t number, bool back);

  // The caller calls made() or failed() after committed(). made() says that the value is in the
  // guard's room. failed() says that the value could not be made; the operation has then ended, and
  // over() is not called. made() returns true if the operation ends at once; over() is not called
  // in that case either. If the outcome of such an operation is `pending`, the value could not be
  // sent, and `refused` says why.
  bool made(FarOp& o);
  void failed(FarOp& o);

  // Each function below handles a received frame. It returns null, or a text that says what is
  // wrong with the frame.
  const char* commit(const Frame& f);
  const char* done(const Frame& f);
  const char* value(const Frame& f);
  const char* withdrawn(const Frame& f);
  const char* ended(const Frame& f);
  const char* hint(const Frame& f);
  const char* credit(const Frame& f);
  const char* recall(const Frame& f);

  // Gives the credits of this end back, and offers to the home the writes that wait for a credit.
  // Does nothing if the end has no credits.
  void give_up(std::uint32_t end);
  // Announces that the end is about to be given back.
  void closing(std::uint32_t end);
  std::size_t lendings() const noexcept { return credits_.size(); }

  // attempt() and gone() are for a part of a choice that is open. attempt() asks the part's home to
  // try these guards. gone() notifies the home that another part was chosen; over() is not called.
  void attempt(FarOp& o, std::uint32_t first, std::uint32_t n);
  void gone(FarOp& o);

  void lost() noexcept;
  std::size_t open() const noexcept { return open_.size(); }
  // Returns whether a plain operation at this end has been sent and not yet answered.
  bool waits_at(std::uint32_t end) const noexcept {
    for (const auto& [op, o] : open_)
      if (o->guards.size() == 1 && o->guards[0].end == end) return true;
    return false;
  }

 private:
  FarOp* find(std::uint64_t op) const noexcept {
    const auto it = open_.find(op);
    return it == open_.end() ? nullptr : it->second;
  }
  void finish(FarOp& o, const Outcome& how) noexcept {
    session_.own();
    if (o.op_) forget(o);
    if (o.op_ && carrier_.under_way() > 0)
      carrier_.settled(o.op_, how.status == Status::ok ? static_cast<int>(how.guard) : -1);
    o.word_ = Word::over;
    o.outcome = how;
    o.over();
  }

  // Removes the operation from the open ones.
  void forget(const FarOp& o) noexcept {
    if (open_.erase(o.op_) == 0 || offered_.empty()) return;
    for (const FarGuard& g : o.guards)
      if (const auto it = g.writes ? offered_.find(g.end) : offered_.end(); it != offered_.end())
        --it->second.open;
  }
  // Sends the operation to its home. Returns false if the operation could not be sent; `refused`
  // says why.
  bool offer_it(FarOp& o);
  const char* credit_of_place(const Frame& f);
  void want(std::uint32_t end, Credits& c);
  bool put(FarOp& o, bool later);
  void send_before(std::uint32_t guard, const Payload& p, const Room& room, bool stays,
                   std::uint64_t end = 0);
  Keeper keeper_of(const Payload& p, const Room& room) const;

  Session& session_;
  Carrier& carrier_;
  std::unordered_map<std::uint32_t, Credits> credits_;  // the key is the number of the end
  // For a writer end of this program: how many OFFERs are open, and the number of the latest OFFER,
  // which shows whether a credit at a rendezvous has crossed that OFFER.
  struct Offered {
    std::uint64_t last = 0;
    std::uint32_t open = 0;
  };
  std::unordered_map<std::uint32_t, Offered> offered_;  // the key is the number of the end
  std::unordered_map<std::uint64_t, FarOp*> open_;
  std::uint64_t next_ = 1;
  std::vector<Asked> asked_;
  std::vector<Buffer> keep_;
  Buffer body_;
  detail::Spare& spare_;  // shared by all sessions of the space
};

}  // namespace weft::inline WEFT_ABI::wire
