// The definitions of runtime/group.hpp.
#include <algorithm>

#include <weft/runtime/group.hpp>
#include <weft/runtime/points.hpp>
#include <weft/runtime/report.hpp>

namespace weft::inline WEFT_ABI::runtime {

std::uint32_t next_process_id() noexcept {
  static prim::atomic<std::uint32_t> last{0};
  return Identity::nth(last.fetch_add(1, std::memory_order_relaxed));
}

Group::Group(Run& r, Executor* e, ProcessBase* p) noexcept : run(r), executor(e), parent(p) {
  run.add_group(*this);
}
Group::~Group() { run.remove_group(*this); }

void Group::add(ProcessBase& p) {
  p.group = this;
  if (p.id == 0) p.id = next_process_id();
  const std::lock_guard g(lock_);
  p.index = count_name(p.function);
  p.set_order(started_++);
  p.sibling_next = children_;
  p.sibling_prev = nullptr;
  if (children_) children_->sibling_prev = &p;
  children_ = &p;
  ++live_;
  if (cancelled_) p.cancel().store(1, std::memory_order_relaxed);
}

void Group::unlink(ProcessBase& p) noexcept {
  const std::lock_guard g(lock_);
  if (p.sibling_prev)
    p.sibling_prev->sibling_next = p.sibling_next;
  else
    children_ = p.sibling_next;
  if (p.sibling_next) p.sibling_next->sibling_prev = p.sibling_prev;
}

void Group::finished(std::uint32_t order, std::exception_ptr left, Ending how) noexcept {
  if (left && how == Ending::failed)
    fail(order, std::move(left));
  else if (left)
    end_ = std::move(left);  // end_ is set before live_ falls to 0, after which it is read.
  core::Node* w = nullptr;
  Group* successor = nullptr;
  lock_.lock();
  const bool last = --live_ == 0;
  if (last) {
    std::swap(w, waiter_);
    successor = successor_;
  }
  lock_.unlock();
  // From now on the group might already be destroyed, if no process waits for its end. But an
  // abandoned group belongs to this call.
  if (successor) {
    hand_over(*successor);
    delete this;
    successor->finished(0, nullptr);
  }
  if (w) {
    w->status = Status::ok;
    core::Waker* k = core::waker_of(w);
    k->ops->wake(k);
  }
}

Status Group::begin_wait(core::Node& n) noexcept {
  const std::lock_guard g(lock_);
  if (live_ == 0) return Status::ok;
  waiter_ = &n;
  return n.status = Status::pending;
}

bool Group::end_wait(core::Node& n) noexcept {
  const std::lock_guard g(lock_);
  const bool waits = waiter_ == &n;
  if (waits) waiter_ = nullptr;
  return waits;
}

bool Group::done() noexcept {
  const std::lock_guard g(lock_);
  return live_ == 0;
}

bool Group::abandon(Group& its) noexcept {
  cancel();
  Group* const successor = &its;
  successor->adopt();
  bool live = false;
  run.still([&] {  // The owner is about to be destroyed, so from now on paths omit the owner.
    const std::lock_guard g(lock_);
    live = live_ > 0;
    if (live) successor_ = successor;
  });
  if (!live) {  // The last child has just ended.
    hand_over(*successor);
    successor->finished(0, nullptr);
  }
  return live;
}

ProcessBase* Group::owner() const noexcept {
  const Group* g = this;
  while (g->successor_) g = g->successor_;
  return g->parent;
}

void Group::fail(std::uint32_t order, std::exception_ptr failure) {
  {
    const std::lock_guard g(lock_);
    failures_.push_back({order, std::move(failure)});
    if (failures_.size() > 1) return;
  }
  cancel();
  ask_block();
  if (also) {
    also->cancel();
    also->ask_block();
  }
}

std::vector<std::exception_ptr> Group::take_failures(Group* then) {
  std::vector<std::exception_ptr> r;
  for (Group* g = this; g; g = g == this ? then : nullptr) {
    auto those = std::exchange(g->failures_, {});
    std::ranges::stable_sort(those, {}, &Failure::order);
    for (Failure& f : those) r.push_back(std::move(f.what));
  }
  return r;
}

void Group::cancel() noexcept {
  WEFT_POINT(cancels());
  CancelLine& line = cancel_line;
  if (line.at_work) {
    if (!std::exchange(in_line_, true)) next_in_line_ = std::exchange(line.first, this);
    return;
  }
  line.at_work = true;
  cancel_children();
  while (Group* g = line.first) {
    line.first = g->next_in_line_;
    g->in_line_ = false;
    g->cancel_children();
  }
  line.at_work = false;
}

void Group::cancel(ProcessBase& p) noexcept {
  p.cancel().fetch_or(Identity::Cancel::asked);
  ask(p);
}

void Group::ask(ProcessBase& p) noexcept {
  Executor* e = p.executor();
  if (e->here())
    e->withdraw(p);
  else
    e->nudge();
}

void Group::pass_on() noexcept {
  if (std::exchange(passed_on_, true)) return;
  cancel();
  if (also) also->cancel();
}

void Group::open_block() noexcept {
  const std::lock_guard g(lock_);  // No other thread reads block_ before there is a failure.
  block_ = Block::open;
}

void Group::close_block() noexcept {
  lock_.lock();
  const bool unmet = std::exchange(block_, Block::none) == Block::asked;
  lock_.unlock();
  if (unmet) run.withdraw_block(*parent);
}

void Group::serve_cancellations(Executor& e) noexcept {
  each_child([&](ProcessBase& p) {
    if (p.cancel().load(std::memory_order_acquire) != 0 && p.executor() == &e) e.withdraw(p);
  });
}

std::uint32_t Group::started(const char* function) noexcept {
  const std::lock_guard g(lock_);
  const std::string_view name = function ? function : "";
  if (name == first_name_) return first_count_;
  const auto n = other_names_.find(name);
  return n == other_names_.end() ? 0 : n->second;
}

void Group::cancel_children() noexcept {
  const std::lock_guard g(lock_);
  cancelled_ = true;
  for (ProcessBase* p = children_; p; p = p->sibling_next)
    // If the bit was set already, the thread that set it acts on the request.
    if (p->cancel().fetch_or(Identity::Cancel::asked) == 0) ask(*p);
}

void Group::ask_block() noexcept {
  run.groups_mutex_.lock();
  lock_.lock();
  const bool open = block_ == Block::open;
  if (open) {
    block_ = Block::asked;
    parent->cancel().fetch_or(Identity::Cancel::block);
  }
  run.groups_mutex_.unlock();
  if (open) ask(*parent);  // Closing the block needs this lock, so the owner still exists.
  lock_.unlock();
}

void Group::hand_over(Group& successor) {
  for (Failure& f : std::exchange(failures_, {})) successor.fail(f.order, std::move(f.what));
}

void Group::adopt() noexcept {
  const std::lock_guard g(lock_);
  ++live_;
}

std::uint32_t Group::count_name(const char* f) {
  // Processes that are started in a row usually have one name, and usually the same pointer to it.
  if (f != last_name_ || !last_count_) {
    last_name_ = f;
    const std::string_view name = f ? f : "";
    if (!first_name_) first_name_ = name;
    last_count_ = name == *first_name_ ? &first_count_ : &other_names_[name];
  }
  return (*last_count_)++;
}

void Run::add_group(Group& g) noexcept {
  const std::lock_guard lock(groups_mutex_);
  g.next_ = groups_;
  if (groups_) groups_->prev_ = &g;
  groups_ = &g;
}

void Run::remove_group(Group& g) noexcept {
  const std::lock_guard lock(groups_mutex_);
  if (g.prev_)
    g.prev_->next_ = g.next_;
  else
    groups_ = g.next_;
  if (g.next_) g.next_->prev_ = g.prev_;
}

void Run::cancel_everybody() noexcept {
  const std::lock_guard lock(groups_mutex_);
  for (Group* g = groups_; g; g = g->next_) g->cancel();
}

void Run::serve_cancellations(Executor& e) noexcept {
  if (const auto looks = serve_looks.load(std::memory_order_acquire)) looks(*this, e);
  const std::lock_guard lock(groups_mutex_);
  for (Group* g = groups_; g; g = g->next_) g->serve_cancellations(e);
}

bool Run::meet_blocks(ProcessBase& owner) noexcept {
  const std::lock_guard lock(groups_mutex_);
  for (Group* g = groups_; g; g = g->next_) {
    if (g->parent != &owner) continue;
    const std::lock_guard l(g->lock_);
    if (g->block_ == Group::Block::asked) g->block_ = Group::Block::met;
  }
  return owner.cancel().take(Identity::Cancel::block) != 0;
}

void Run::withdraw_block(ProcessBase& owner) noexcept {
  const std::lock_guard lock(groups_mutex_);
  for (Group* g = groups_; g; g = g->next_) {
    if (g->parent != &owner) continue;
    const std::lock_guard l(g->lock_);
    if (g->block_ == Group::Block::asked) return;
  }
  owner.cancel().take_back(Identity::Cancel::block);
}

void Run::find_watch() noexcept {
  while_all_sleep([this] {
    bool found = false;
    each_process([&](ProcessBase& p) {
      if (found || !p.op) return;
      if (Executor* const e = p.executor()) found = true, e->nudge();
    });
  });
}

}  // namespace weft::inline WEFT_ABI::runtime
