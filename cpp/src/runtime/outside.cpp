// The definitions of runtime/outside.hpp.
#include <weft/runtime/outside.hpp>

namespace weft::inline WEFT_ABI::runtime {

[[gnu::noinline, gnu::cold]] Outsiders& Outsiders::all() {
  static Outsiders o;
  return o;
}

[[gnu::noinline, gnu::cold]] void Outsiders::join(Run& r) {
  const std::lock_guard g(mutex_);
  r.next_run = std::exchange(runs_, &r);
  r.look_by(look_);
  for (unsigned i = 0; i < tokens_; ++i) r.enter_outside();
  for (unsigned i = 0; i < strangers_; ++i) r.enter_outside(false);
}

[[gnu::noinline, gnu::cold]] void Outsiders::leave(Run& r) noexcept {
  std::unique_lock g(mutex_);
  Run** at = &runs_;
  while (*at && *at != &r) at = &(*at)->next_run;
  if (*at) *at = r.next_run;
  unpinned_.wait(g, [&] { return pins_ == 0; });
}

std::vector<Run*> Outsiders::pin() {
  const std::lock_guard g(mutex_);
  std::vector<Run*> all;
  for (Run* r = runs_; r; r = r->next_run) all.insert(all.begin(), r);  // the oldest first
  ++pins_;
  return all;
}

void Outsiders::unpin() noexcept {
  const std::lock_guard g(mutex_);
  if (--pins_ == 0) unpinned_.notify_all();
}

void Outsiders::look_by(Run::Look f) noexcept {
  const std::lock_guard g(mutex_);
  look_ = f;
  for (Run* r = runs_; r; r = r->next_run) r->look_by(f);
}

void Outsiders::enter(bool due, bool link) noexcept {
  const std::lock_guard g(mutex_);
  ++(due ? tokens_ : strangers_);
  if (due) due_tokens.fetch_add(1, std::memory_order_seq_cst);
  if (link) link_tokens.fetch_add(1, std::memory_order_seq_cst);
  for (Run* r = runs_; r; r = r->next_run) r->enter_outside(due);
}

void Outsiders::exit(bool due, bool link) noexcept {
  const std::lock_guard g(mutex_);
  --(due ? tokens_ : strangers_);
  if (due) due_tokens.fetch_sub(1, std::memory_order_seq_cst);
  if (link) link_tokens.fetch_sub(1, std::memory_order_seq_cst);
  for (Run* r = runs_; r; r = r->next_run) r->leave_outside(due);
}

void Outsiders::forget() noexcept {
  new (&mutex_) std::mutex;  // another thread may have had it
  runs_ = nullptr;
  tokens_ = strangers_ = pins_ = 0;
  due_tokens.store(0);
  link_tokens.store(0);
}

unsigned Outsiders::strangers() noexcept {
  const std::lock_guard g(mutex_);
  return strangers_;
}

}  // namespace weft::inline WEFT_ABI::runtime
