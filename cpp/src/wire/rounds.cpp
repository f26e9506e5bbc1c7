// The definitions of wire/rounds.hpp.
#include <weft/wire/rounds.hpp>

namespace weft::inline WEFT_ABI::wire {

// Called before other programs can ask this program.
std::shared_ptr<Space> Rounds::alone(std::shared_ptr<Space> space, Rounds* me) {
  const std::lock_guard g(one_lock_);
  if (one_) weft::detail::bad_use("Rounds: this program has one already");
  one_ = me;
  return space;
}
void Rounds::forget_me() noexcept {
  runtime::links_stand.store(nullptr);
  const std::lock_guard g(one_lock_);
  one_ = nullptr;
}
Rounds::Rounds(std::shared_ptr<Space> space) : Asking(alone(std::move(space), this)) {
  runtime::links_stand.store(&stand);
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (...) {  // A std::system_error says that the system cannot start another thread.
    forget_me();
    close();
    throw;
  }
}
Rounds::~Rounds() {
  forget_me();
  close();
  {
    const std::lock_guard g(lock_);
    stop_ = true;
  }
  news_.notify_all();
  thread_.join();
}

// Called when a run waits only for links. Any thread that sleeps can call this function.
void Rounds::stand() noexcept {
  const std::lock_guard g(one_lock_);
  if (!one_) return;
  const std::lock_guard h(one_->lock_);
  one_->stands_ = true;
  one_->news_.notify_all();
}
void Rounds::serve() {
  std::unique_lock g(lock_);
  for (;;) {
    news_.wait(g, [&] { return stop_ || stands_ || !condemned_.empty(); });
    auto condemned = std::exchange(condemned_, {});
    const bool looks = std::exchange(stands_, false) && condemned.empty();
    const bool ends = stop_ && condemned.empty();
    g.unlock();
    for (const auto& [pinned, runs] : condemned)
      for (runtime::Run* r : runs) r->carry_out();
    condemned.clear();
    if (ends) return;
    if (looks) look();
    g.lock();
  }
}
void Rounds::look() {
  for (const int ms : {0, 50, 100, 200, 400, 800}) {
    {
      std::unique_lock g(lock_);
      if (news_.wait_for(g, std::chrono::milliseconds(ms), [&] { return stop_; })) return;
    }
    static constexpr std::chrono::seconds kPatience{1};
    const Everywhere first = round(kPatience, false);
    if (!first.stands_still()) continue;
    const Everywhere second = round(kPatience, false);
    if (!second.stands_still() || second.has_moved_since(first)) continue;
    const Buffer what = second.knot().encoded();
    const Space::Step step(*space_);
    tell(what);
    on_tell(what);
    return;
  }
}

// --- asking --------------------------------------------------------------------------------------

Everywhere Rounds::everywhere(std::chrono::nanoseconds patience) { return round(patience, true); }
Everywhere Rounds::round(std::chrono::nanoseconds patience, bool all) {
  const std::lock_guard one(asking_);
  {
    const std::lock_guard g(lock_);
    found_.reset();
  }
  {
    const Space::Step step(*space_);
    asked_first(me(), ask(all));
  }
  {
    std::unique_lock g(lock_);
    news_.wait_for(g, patience, [&] { return found_ || stop_; });
    if (found_) return std::move(*found_);
  }
  const Space::Step step(*space_);
  return Everywhere::get(give_up(), false);
}

// --- in a step -----------------------------------------------------------------------------------

void Rounds::asked_first(std::uint64_t asker, std::uint32_t round) {
  const InProgram now = mine();
  Buffer packed;
  now.put(packed);
  say(asker, round, packed, now.waits);
}
void Rounds::found(std::uint32_t, Bytes all, bool whole) {
  const std::lock_guard g(lock_);
  found_ = Everywhere::get(all, whole);
  news_.notify_all();
}
// Handles the news that a deadlock was proven, in this program or in another. Runs that do not wait
// for links ignore the news.
void Rounds::on_tell(Bytes what) {
  const auto k = Everywhere::Knot::get(what);
  if (!k) return;
  detail::PinnedRuns pinned;
  std::vector<runtime::Run*> those;
  for (runtime::Run* run : pinned.runs())
    if (run->detect_deadlock && run->waits_for_links() && run->condemn(k->text, k->paths))
      those.push_back(run);
  if (those.empty()) return;
  const std::lock_guard g(lock_);
  condemned_.emplace_back(std::move(pinned), std::move(those));
  news_.notify_all();
}

// --- what this program says ----------------------------------------------------------------------

namespace detail {

// Lists the processes of a run, all of which wait.
class WhoWaits final : public runtime::WaitVisitor {
 public:
  using FarPlaces = std::map<const core::SyncObject*, const FarEnd*>;
  WhoWaits(const FarPlaces& far, std::uint32_t run, std::vector<InProgram::Process>& to) noexcept
      : far_(far), run_(run), to_(to) {}
  // Returns false if the run is not idle because another thread works on its groups, or if the run
  // also waits at a source, such as `signals`.
  bool of(runtime::Run& run) {
    return run.try_still([&] {
      // The processes are collected first, because finding a path takes the lock of a group.
      std::vector<runtime::ProcessBase*> all;
      run.each_process_still([&](runtime::ProcessBase& p) { all.push_back(&p); });
      for (runtime::ProcessBase* p : all) {
        if (!p->op) continue;
        const runtime::ProcessBase* const parent = p->group->owner();
        to_.push_back({run_,
                       p->id,
                       parent ? std::uint32_t{parent->id} : 0u,
                       !p->op->visit,
                       runtime::path_while_still(*p),
                       p->op->verb,
                       runtime::where(*p),
                       {}});
        if (p->op->visit) p->op->visit(*p, *this);
      }
    }) && !expects_;
  }

 private:
  using How = InProgram::How;
  void channel(const core::SyncObject& c, bool writing) override {
    at(c, writing ? How::write : How::read, writing ? c.last_reader : c.last_writer);
    expects_ = expects_ || (!writing && runtime::Source::is_at(c));
  }
  void barrier(const core::SyncObject& c) override { at(c, How::sync, 0); }
  void end(const core::SyncObject& c) override { at(c, How::end, c.last_writer); }
  void at(const core::SyncObject& c, How how, std::uint32_t last) {
    InProgram::Place p{how, 0, reinterpret_cast<std::uintptr_t>(&c), last, runtime::name_of(c)};
    if (const auto f = far_.find(&c); f != far_.end()) {
      p.home = f->second->peer->session.theirs().incarnation;
      p.key = end_name(f->second->key);
    }
    to_.back().places.push_back(std::move(p));
  }
  const FarPlaces& far_;
  const std::uint32_t run_;
  bool expects_ = false;
  std::vector<InProgram::Process>& to_;
};

// Calls f if all runs are idle at one moment, which lasts until f returns. Examining one run after
// another is not enough: runs of one program wake each other, so each run might be found idle
// although the runs are never all idle at the same time.
template <class F>
void while_all_sleep(std::span<runtime::Run* const> runs, F&& f) {
  if (runs.empty()) return f();
  runs.front()->try_while_all_sleep([&] { while_all_sleep(runs.subspan(1), f); });
}

}  // namespace detail

// Describes this program. Called in a step.
InProgram Rounds::mine() {
  space_->answer_decided();
  InProgram me;
  me.incarnation = this->me();
  me.name = space_->greeting().name;
  me.pid = static_cast<std::uint32_t>(::getpid());
  me.waits = runtime::Outsiders::all().foreign_threads() == 0 && space_->has_all_links();
  me.waits = sessions_of(*space_, me.sessions) && me.waits;
  detail::WhoWaits::FarPlaces far;
  for (const FarEnd* e : space_->far_ends) far.emplace(&e->place, e);
  const detail::PinnedRuns pinned;
  for (runtime::Run* const run : pinned.runs()) me.standstills.push_back(run->rests());
  bool rest = false;
  if (me.waits && !pinned.runs().empty())
    detail::while_all_sleep(pinned.runs(), [&] {
      rest = true;
      std::uint32_t number = 0;
      for (runtime::Run* const run : pinned.runs())
        rest = rest && run->waits_for_links() &&
               detail::WhoWaits(far, ++number, me.processes).of(*run);
    });
  me.waits = rest;
  for (const Peer* p : space_->peers())
    p->home.each_end([&](std::uint64_t key, const Port& port) {
      const core::SyncObject* const c = port.place();
      if (!c || p->session.is_over()) return;
      me.lent.push_back({p->session.theirs().incarnation, detail::end_name(key),
                         reinterpret_cast<std::uintptr_t>(c), port.writes(), 0, 0});
      // The last reader is recorded only if all runs are idle: a process that runs might be using
      // the channel at this moment.
      if (me.waits) me.lent.back().last_reader = c->last_reader;
      if (me.waits) me.lent.back().last_writer = c->last_writer;
    });
  for (const FarEnd* e : space_->far_ends)
    if (me.waits)
      me.far.push_back({e->peer->session.theirs().incarnation, detail::end_name(e->key),
                        std::max(e->place.last_reader, e->place.last_writer)});
  if (!me.waits) me.processes.clear();
  return me;
}

}  // namespace weft::inline WEFT_ABI::wire
