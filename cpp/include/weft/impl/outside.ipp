// The definitions of runtime/outside.hpp; see config.hpp.
#pragma once
#include "../runtime/outside.hpp"

namespace weft::inline WEFT_ABI::runtime {

WEFT_IMPL Outsiders& Outsiders::all() {
  static Outsiders o;
  return o;
}

WEFT_IMPL void Outsiders::join(Run& r) {
  const std::lock_guard g(mutex_);
  runs_.push_back(&r);
  for (unsigned i = 0; i < tokens_; ++i) r.enter_outside();
  for (unsigned i = 0; i < strangers_; ++i) r.enter_outside(false);
}

WEFT_IMPL void Outsiders::leave(Run& r) noexcept {
  std::unique_lock g(mutex_);
  std::erase(runs_, &r);
  unpinned_.wait(g, [&] { return pins_ == 0; });
}

WEFT_IMPL std::vector<Run*> Outsiders::pin() {
  const std::lock_guard g(mutex_);
  ++pins_;
  return runs_;
}

WEFT_IMPL void Outsiders::unpin() noexcept {
  const std::lock_guard g(mutex_);
  if (--pins_ == 0) unpinned_.notify_all();
}

WEFT_IMPL void Outsiders::enter(bool due, bool link) noexcept {
  const std::lock_guard g(mutex_);
  ++(due ? tokens_ : strangers_);
  if (due) due_tokens.fetch_add(1, std::memory_order_seq_cst);
  if (link) link_tokens.fetch_add(1, std::memory_order_seq_cst);
  for (Run* r : runs_) r->enter_outside(due);
}

WEFT_IMPL void Outsiders::exit(bool due, bool link) noexcept {
  const std::lock_guard g(mutex_);
  --(due ? tokens_ : strangers_);
  if (due) due_tokens.fetch_sub(1, std::memory_order_seq_cst);
  if (link) link_tokens.fetch_sub(1, std::memory_order_seq_cst);
  for (Run* r : runs_) r->leave_outside(due);
}

WEFT_IMPL unsigned Outsiders::strangers() noexcept {
  const std::lock_guard g(mutex_);
  return strangers_;
}

}  // namespace weft::inline WEFT_ABI::runtime
