// A session's part as a party: our operations at ends whose home is the peer's space (WIRE.md 4, 8). The words are in doubt.hpp.
//
// Invariants (the space's lock)
//  1 An operation is in `open_` from begin() until over() is called, which is once; after that nothing here touches it.
//  2 Its rooms are its own: an input's is filled when, and only when, its outcome is ok at that guard.
#pragma once
#include <unordered_map>

#include "doubt.hpp"
#include "moving.hpp"
#include "session.hpp"
#include "value.hpp"

namespace weft::inline WEFT_ABI::wire {

struct FarGuard {
  std::uint32_t end = 0;
  bool writes = false;
  Room* room = nullptr;
};

class FarOp {
 public:
  std::span<FarGuard> guards;
  Outcome outcome{};
  const char* refused = nullptr;  // why it was not sent, if it was not
  bool trying = false;            // of a part: only now can it commit
  std::uint32_t rank = 0;         // not 0: it is a part of a choice that spans, with this place in the order (WIRE.md 5)
  Word word() const noexcept { return word_; }

  FarOp() = default;
  FarOp(const FarOp&) = delete;
  FarOp& operator=(const FarOp&) = delete;

 protected:
  ~FarOp() = default;
  // It is over, and `outcome` says how. Under the space's lock; it may be gone when this returns.
  virtual void over() noexcept = 0;
  // Of a part: what its home says meanwhile.
  virtual void ready() noexcept {}
  virtual void silent(std::uint32_t) noexcept {}
  virtual void not_ready() noexcept {}

 private:
  friend class Far;
  friend class Span;
  bool writes() const noexcept {
    for (const FarGuard& g : guards)
      if (g.writes) return true;
    return false;
  }
  std::uint64_t op_ = 0;
  Word word_ = Word::unsent;
  Buffer pieces_;  // what has come of a value that needs several frames
};

class Far {
 public:
  Far(Session& s, Carrier& c) noexcept : session_(s), carrier_(c) {}

  // True: it is over already, and over() is not called. With the outcome `pending` nothing has happened: o.refused says why.
  bool begin(FarOp& o);
  // Asks for its withdrawal; the answer is told by over(). Once it has been asked, or is over: nothing.
  void withdraw(FarOp& o);

  // Frames; null, or what is wrong.
  const char* done(const Frame& f);
  const char* value(const Frame& f);
  const char* withdrawn(const Frame& f);
  const char* ended(const Frame& f);
  const char* hint(const Frame& f);

  // Of a part that is open: its home is to try these guards; it has been chosen elsewhere, and over() is not called.
  void attempt(FarOp& o, std::uint32_t first, std::uint32_t n);
  void gone(FarOp& o);

  void lost() noexcept;
  std::size_t open() const noexcept { return open_.size(); }

 private:
  FarOp* find(std::uint64_t op) const noexcept {
    const auto it = open_.find(op);
    return it == open_.end() ? nullptr : it->second;
  }
  void finish(FarOp& o, const Outcome& how) noexcept {
    open_.erase(o.op_);
    if (carrier_.under_way() > 0) carrier_.settled(o.op_, how.status == Status::ok ? static_cast<int>(how.guard) : -1);
    o.word_ = Word::over;
    o.outcome = how;
    o.over();
  }

  Session& session_;
  Carrier& carrier_;
  std::unordered_map<std::uint64_t, FarOp*> open_;
  std::uint64_t next_ = 1;
  std::vector<Asked> asked_;
  std::vector<Buffer> keep_;
  Buffer body_;
};

}  // namespace weft::inline WEFT_ABI::wire

#if !defined(WEFT_COMPILED)
#include "impl/far.ipp"
#endif
