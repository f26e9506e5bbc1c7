// The definitions of runtime/group.hpp.
#include <algorithm>

#include <weft/runtime/group.hpp>
#include <weft/runtime/report.hpp>

namespace weft::inline WEFT_ABI::runtime {

std::uint32_t next_process_id() noexcept {
  static prim::atomic<std::uint32_t> last{0};
  return Identity::nth(last.fetch_add(1, std::memory_order_relaxed));
}

[[gnu::noinline]] Group::Group(Run& r, Executor* e, ProcessBase* p) noexcept
    : run(r), executor(e), parent(p) {
  run.add_group(*this);
}
[[gnu::noinline]] Group::~Group() {
  run.remove_group(*this);
  drop_failures();
}

void Group::add(ProcessBase& p) {
  p.group = this;
  if (p.id == 0) p.id = next_process_id();
  lock_.lock();
  p.index = count_name(p.function);
  p.set_order(started_++);
  p.sibling_next = children_;
  p.sibling_prev = nullptr;
  if (children_) children_->sibling_prev = &p;
  children_ = &p;
  ++live_;
  if (cancelled_) p.cancel().store(1, std::memory_order_relaxed);
  lock_.unlock();
}

[[gnu::noinline]] void Group::unlink(ProcessBase& p) noexcept {
  lock_.lock();
  if (p.sibling_prev)
    p.sibling_prev->sibling_next = p.sibling_next;
  else
    children_ = p.sibling_next;
  if (p.sibling_next) p.sibling_next->sibling_prev = p.sibling_prev;
  lock_.unlock();
}

[[gnu::noinline]] void Group::finished(std::uint32_t order, std::exception_ptr left,
                                       Ending how) noexcept {
  if (left && how == Ending::failed)
    fail(order, std::move(left));
  else if (left)
    end_ = std::move(left);  // before live_ falls to 0, after which it is read
  core::Node* w = nullptr;
  Group* successor = nullptr;
  lock_.lock();
  const bool last = --live_ == 0;
  if (last) {
    std::swap(w, waiter_);
    successor = successor_;
  }
  lock_.unlock();
  // From here on the group may be gone, if nobody waits by the node, unless it was abandoned: then
  // it is ours.
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

[[gnu::noinline]] Status Group::begin_wait(core::Node& n) noexcept {
  lock_.lock();
  const bool done = live_ == 0;
  if (!done) {
    n.status = Status::pending;
    waiter_ = &n;
  }
  lock_.unlock();
  return done ? Status::ok : Status::pending;
}

bool Group::end_wait(core::Node& n) noexcept {
  lock_.lock();
  const bool waits = waiter_ == &n;
  if (waits) waiter_ = nullptr;
  lock_.unlock();
  return waits;
}

[[gnu::noinline]] bool Group::done() noexcept {
  lock_.lock();
  const bool d = live_ == 0;
  lock_.unlock();
  return d;
}

bool Group::abandon(Group& its) noexcept {
  cancel();
  Group* const successor = &its;
  successor->adopt();
  bool live = false;
  run.still([&] {  // the owner is about to go; paths leave it out from here on
    lock_.lock();
    live = live_ > 0;
    if (live) successor_ = successor;
    lock_.unlock();
  });
  if (!live) {  // the last of them has just ended
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

[[gnu::noinline, gnu::cold]] void Group::fail(std::uint32_t order, std::exception_ptr failure) {
  auto* const f = new Failure{order, std::move(failure), nullptr};
  lock_.lock();
  f->before = std::exchange(failures_, f);
  const bool first = !f->before;
  lock_.unlock();
  if (!first) return;
  cancel();
  ask_block();
  if (also) {
    also->cancel();
    also->ask_block();
  }
}

[[gnu::noinline, gnu::cold]] std::vector<std::exception_ptr> Group::take_failures(Group* then) {
  std::vector<std::exception_ptr> r;
  for (Group* g = this; g; g = g == this ? then : nullptr) {
    std::vector<Failure*> those;  // of one process: the later first, as they are linked
    for (Failure* f = g->failures_; f; f = f->before) those.push_back(f);
    std::ranges::reverse(those);
    std::ranges::stable_sort(those, {}, &Failure::order);
    for (Failure* const f : those) r.push_back(std::move(f->what));
    g->drop_failures();
  }
  return r;
}

[[gnu::noinline, gnu::cold]] void Group::drop_failures() noexcept {
  while (failures_) delete std::exchange(failures_, failures_->before);
}

[[gnu::noinline, gnu::cold]] void Group::cancel() noexcept {
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

[[gnu::noinline, gnu::cold]] void Group::ask(ProcessBase& p) noexcept {
  Executor* e = p.executor();
  if (e->here())
    e->withdraw(p);
  else
    e->nudge();
}

[[gnu::noinline, gnu::cold]] void Group::pass_on() noexcept {
  if (std::exchange(passed_on_, true)) return;
  cancel();
  if (also) also->cancel();
}

void Group::open_block() noexcept {
  lock_.lock();  // nobody else looks at it before there is a failure
  block_ = Block::open;
  lock_.unlock();
}

void Group::close_block() noexcept {
  lock_.lock();
  const bool unmet = std::exchange(block_, Block::none) == Block::asked;
  lock_.unlock();
  if (unmet) run.withdraw_block(*parent);
}

void Group::serve_cancellations(Executor& e) noexcept {
  lock_.lock();
  for (ProcessBase* p = children_; p; p = p->sibling_next)
    if (p->cancel().load(std::memory_order_acquire) != 0 && p->executor() == &e) e.withdraw(*p);
  lock_.unlock();
}

[[gnu::noinline, gnu::cold]] std::uint32_t Group::started(const char* function) noexcept {
  lock_.lock();
  const std::string_view name = function ? function : "";
  std::uint32_t r = 0;
  if (name == first_name_)
    r = first_count_;
  else if (const auto n = other_names_.find(name); n != other_names_.end())
    r = n->second;
  lock_.unlock();
  return r;
}

[[gnu::noinline, gnu::cold]] void Group::cancel_children() noexcept {
  lock_.lock();
  cancelled_ = true;
  for (ProcessBase* p = children_; p; p = p->sibling_next)
    // else whoever asked before us sees to it
    if (p->cancel().fetch_or(Identity::Cancel::asked) == 0) ask(*p);
  lock_.unlock();
}

[[gnu::noinline, gnu::cold]] void Group::ask_block() noexcept {
  run.groups_mutex_.lock();
  lock_.lock();
  const bool open = block_ == Block::open;
  if (open) {
    block_ = Block::asked;
    parent->cancel().fetch_or(Identity::Cancel::block);
  }
  run.groups_mutex_.unlock();
  if (open) ask(*parent);  // who closes the block waits for the lock: it is there yet
  lock_.unlock();
}

[[gnu::noinline, gnu::cold]] void Group::hand_over(Group& successor) {
  Failure* in_order = nullptr;
  while (Failure* const f = failures_) {
    failures_ = f->before;
    f->before = std::exchange(in_order, f);
  }
  while (Failure* const f = in_order) {
    in_order = f->before;
    successor.fail(f->order, std::move(f->what));
    delete f;
  }
}

void Group::adopt() noexcept {
  lock_.lock();
  ++live_;
  lock_.unlock();
}

std::uint32_t Group::count_name(const char* f) {
  // Processes started in a row mostly have one name, and it is mostly one and the same text.
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

[[gnu::noinline, gnu::cold]] void Run::cancel_everybody() noexcept {
  const std::lock_guard lock(groups_mutex_);
  for (Group* g = groups_; g; g = g->next_) g->cancel();
}

[[gnu::noinline, gnu::cold]] void Run::serve_cancellations(Executor& e) noexcept {
  const std::lock_guard lock(groups_mutex_);
  for (Group* g = groups_; g; g = g->next_) g->serve_cancellations(e);
}

[[gnu::noinline, gnu::cold]] bool Run::meet_blocks(ProcessBase& owner) noexcept {
  const std::lock_guard lock(groups_mutex_);
  for (Group* g = groups_; g; g = g->next_) {
    if (g->parent != &owner) continue;
    g->lock_.lock();
    if (g->block_ == Group::Block::asked) g->block_ = Group::Block::met;
    g->lock_.unlock();
  }
  return owner.cancel().take(Identity::Cancel::block) != 0;
}

void Run::withdraw_block(ProcessBase& owner) noexcept {
  const std::lock_guard lock(groups_mutex_);
  for (Group* g = groups_; g; g = g->next_) {
    if (g->parent != &owner) continue;
    g->lock_.lock();
    const bool asks = g->block_ == Group::Block::asked;
    g->lock_.unlock();
    if (asks) return;
  }
  owner.cancel().take_back(Identity::Cancel::block);
}

[[gnu::noinline, gnu::cold]] void Run::find_watch() noexcept {
  while_all_sleep([this] {
    bool found = false;
    each_process([&](ProcessBase& p) {
      if (found || !p.op) return;
      if (Executor* const e = p.executor()) found = true, e->nudge();
    });
  });
}

}  // namespace weft::inline WEFT_ABI::runtime
