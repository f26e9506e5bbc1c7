// The definitions of runtime/outside.hpp.
#include <weft/runtime/outside.hpp>

namespace weft::inline WEFT_ABI::runtime {

Outsiders& Outsiders::all() {
  static Outsiders o;
  return o;
}

void Outsiders::join(Run& r) {
  const std::lock_guard g(mutex_);
  runs_.push_back(&r);
  r.look_by(look_);
  for (unsigned i = 0; i < tokens_; ++i) r.enter_outside();
  for (unsigned i = 0; i < unknown_tokens_; ++i) r.enter_outside(false);
}

void Outsiders::leave(Run& r) noexcept {
  std::unique_lock g(mutex_);
  std::erase(runs_, &r);
  unpinned_.wait(g, [&] { return pins_ == 0; });
}

std::vector<Run*> Outsiders::pin() {
  const std::lock_guard g(mutex_);
  ++pins_;
  return runs_;
}

void Outsiders::unpin() noexcept {
  const std::lock_guard g(mutex_);
  if (--pins_ == 0) unpinned_.notify_all();
}

void Outsiders::look_by(Run::Look f) noexcept {
  const std::lock_guard g(mutex_);
  look_ = f;
  for (Run* const r : runs_) r->look_by(f);
}

void Outsiders::enter(bool due, bool link) noexcept {
  const std::lock_guard g(mutex_);
  ++(due ? tokens_ : unknown_tokens_);
  if (due) due_tokens.fetch_add(1, std::memory_order_seq_cst);
  if (link) link_tokens.fetch_add(1, std::memory_order_seq_cst);
  for (Run* const r : runs_) r->enter_outside(due);
}

void Outsiders::exit(bool due, bool link) noexcept {
  const std::lock_guard g(mutex_);
  --(due ? tokens_ : unknown_tokens_);
  if (due) due_tokens.fetch_sub(1, std::memory_order_seq_cst);
  if (link) link_tokens.fetch_sub(1, std::memory_order_seq_cst);
  for (Run* const r : runs_) r->leave_outside(due);
}

void Outsiders::forget() noexcept {
  new (&mutex_) std::mutex;  // A thread of the parent might have held the lock.
  new (&runs_) std::vector<Run*>;
  tokens_ = unknown_tokens_ = pins_ = 0;
  due_tokens.store(0);
  link_tokens.store(0);
}

unsigned Outsiders::foreign_threads() noexcept {
  const std::lock_guard g(mutex_);
  return unknown_tokens_;
}

}  // namespace weft::inline WEFT_ABI::runtime
