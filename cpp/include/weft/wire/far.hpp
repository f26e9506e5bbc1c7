// A session's part as a party: this program's operations at ends whose home is the peer's space
// (WIRE.md 4, 8). doubt.hpp has their states.
//
// Invariants (the space's lock)
//  1 An operation is in `open_` from begin() until over() is called, which happens once; after that
//    nothing here touches it.
//  2 Its rooms are its own: an input's room is filled when, and only when, its outcome is ok at
//    that guard.
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
  // an extended read, which is no guard of a choice; its value may be given back
  bool holds = false, keeps = false;
  bool off = false;  // of a choice that spans: its precondition is false
  // an output whose value is made after the commit: its room is filled then
  bool later = false;
  // Not an arrival at a barrier, but a message about its parties (WIRE.md 4.9), as the only guard:
  // its room gets how many are enrolled then.
  enum class Parties : std::uint8_t { none, ask, enrol, resign } parties = Parties::none;
};

// Credits at a writer end of this program (WIRE.md 6.2), and the writes that wait for a credit.
struct Credits {
  std::uint64_t n = 0;
  // Of a rendezvous (WIRE.md 6.6): there is one credit, and no write waits for it.
  bool place = false;
  bool wanted = false;  // the home knows that a write waits
  std::deque<FarOp*> line;
};

class FarOp {
 public:
  std::span<FarGuard> guards;
  Outcome outcome{};
  const char* refused = nullptr;  // why the operation was not sent, if it was not
  // of a part: only now can it commit; before begin(): its home is to try all of it at once
  bool trying = false;
  // not 0: it is a part of a choice that spans, with this place in the order (WIRE.md 5)
  std::uint32_t rank = 0;
  bool looks = false;  // of a part: the choice only looks (WIRE.md 5.9)
  Word word() const noexcept { return word_; }
  // The number by which the home knows it; for an extended read that has happened, until its end
  // has been told.
  std::uint64_t number() const noexcept { return op_; }

  FarOp() = default;
  FarOp(const FarOp&) = delete;
  FarOp& operator=(const FarOp&) = delete;

 protected:
  ~FarOp() = default;
  // The operation is over, and `outcome` says how. Called under the space's lock; the operation may
  // be destroyed when this returns.
  virtual void over() noexcept = 0;
  // The operation has committed with this guard, whose value is to be made now: Far::made() or
  // failed() must follow. Called under the space's lock.
  virtual void committed(std::uint32_t) noexcept {}
  // Of a part: what its home says meanwhile.
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
  std::uint64_t op_ = 0;      // 0: it has no number yet, or none at all
  std::uint32_t making_ = 0;  // the guard whose value is being made
  bool in_line_ = false;      // waits for a credit
  // its end is given back: a lending that begins with its answer is over already
  bool last_ = false;
  Word word_ = Word::unsent;
  Buffer pieces_;  // what has come of a value that needs several frames
  // Not 0: the pieces go into the operation's room, and so many bytes are to come.
  std::size_t to_come_ = 0;
};

class Far {
 public:
  Far(Session& s, Carrier& c, detail::Spare& spare) noexcept
      : session_(s), carrier_(c), spare_(spare) {}

  // Begins an operation. Returns true if it is over already; then over() is not called. With the
  // outcome `pending` nothing has happened, and o.refused says why.
  bool begin(FarOp& o);
  // Asks the home for the withdrawal; over() tells the answer. Does nothing if that was asked
  // already, or the operation is over.
  void withdraw(FarOp& o);

  // The block of an extended read that has happened is over. `back`: the value was not used, and is
  // the next to be read; only for a read that keeps.
  void held_end(std::uint64_t number, bool back);

  // For an operation that was told committed(). made(): the value is in the guard's room; failed():
  // it could not be made, and the operation is over, without over(). made() returns true if the
  // operation is over at once, also without over(); with the outcome `pending` the value could not
  // be sent, and `refused` says why.
  bool made(FarOp& o);
  void failed(FarOp& o);

  // These take in frames. They return null, or what is wrong.
  const char* commit(const Frame& f);
  const char* done(const Frame& f);
  const char* value(const Frame& f);
  const char* withdrawn(const Frame& f);
  const char* ended(const Frame& f);
  const char* hint(const Frame& f);
  const char* credit(const Frame& f);
  const char* recall(const Frame& f);

  // Gives the credits of this end back, and offers the writes that wait for one to the home. Does
  // nothing without credits.
  void give_up(std::uint32_t end);
  // The end is given back next.
  void closing(std::uint32_t end);
  std::size_t lendings() const noexcept { return credits_.size(); }

  // For a part that is open. attempt(): its home is to try these guards. gone(): another part was
  // chosen, and over() is not called.
  void attempt(FarOp& o, std::uint32_t first, std::uint32_t n);
  void gone(FarOp& o);

  void lost() noexcept;
  std::size_t open() const noexcept { return open_.size(); }
  // Returns whether an operation at this end alone has been sent, and not been answered.
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

  // The operation is open no more.
  void forget(const FarOp& o) noexcept {
    if (open_.erase(o.op_) == 0 || offered_.empty()) return;
    for (const FarGuard& g : o.guards)
      if (const auto it = g.writes ? offered_.find(g.end) : offered_.end(); it != offered_.end())
        --it->second.open;
  }
  // Sends it to the home. Returns false if it was not sent; `refused` says why.
  bool offer_it(FarOp& o);
  const char* credit_of_place(const Frame& f);
  void want(std::uint32_t end, Credits& c);
  bool put(FarOp& o, bool later);
  void send_before(std::uint32_t guard, const Payload& p, const Room& room, bool stays,
                   std::uint64_t end = 0);
  Keeper keeper_of(const Payload& p, const Room& room) const;

  Session& session_;
  Carrier& carrier_;
  std::unordered_map<std::uint32_t, Credits> credits_;  // by end
  // For a writer end of this program: the last OFFER, which says whether a credit at a rendezvous
  // has crossed it, and how many OFFERs are open.
  struct Offered {
    std::uint64_t last = 0;
    std::uint32_t open = 0;
  };
  std::unordered_map<std::uint32_t, Offered> offered_;  // by end
  std::unordered_map<std::uint64_t, FarOp*> open_;
  std::uint64_t next_ = 1;
  std::vector<Asked> asked_;
  std::vector<Buffer> keep_;
  Buffer body_;
  detail::Spare& spare_;  // the space's
};

}  // namespace weft::inline WEFT_ABI::wire
