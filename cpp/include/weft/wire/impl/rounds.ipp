// The definitions of rounds.hpp; see ../../config.hpp.
#pragma once
#include "../rounds.hpp"

namespace weft::inline WEFT_ABI::wire {

WEFT_IMPL Rounds::Rounds(std::shared_ptr<Space> space)
    : space_(std::move(space)), me_(space_->greeting().incarnation) {
  {
    const std::lock_guard g(one_lock_);
    if (one_) weft::detail::bad_use("Rounds: this program has one already");
    one_ = this;
  }
  {
    const Space::Step step(*space_);
    space_->may_be_asked(*this);
  }
  runtime::links_stand.store(&stand);
  thread_ = std::thread([this] { serve(); });
}
WEFT_IMPL Rounds::~Rounds() {
  runtime::links_stand.store(nullptr);
  {
    const std::lock_guard g(one_lock_);
    one_ = nullptr;
  }
  {
    const Space::Step step(*space_);
    space_->inquirer = nullptr;
  }
  {
    const std::lock_guard g(lock_);
    stop_ = true;
  }
  news_.notify_all();
  thread_.join();
}

// A run waits for links alone. From any thread that sleeps.
WEFT_IMPL void Rounds::stand() noexcept {
  const std::lock_guard g(one_lock_);
  if (!one_) return;
  const std::lock_guard h(one_->lock_);
  one_->stands_ = true;
  one_->news_.notify_all();
}
WEFT_IMPL void Rounds::serve() {
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
WEFT_IMPL void Rounds::look() {
  for (const int ms : {0, 50, 100, 200, 400, 800}) {
    {
      std::unique_lock g(lock_);
      if (news_.wait_for(g, std::chrono::milliseconds(ms), [&] { return stop_; })) return;
    }
    const Everywhere first = everywhere();
    if (!first.stands_still()) continue;
    const Everywhere second = everywhere();
    if (!second.stands_still() || second.has_moved_since(first)) continue;
    const Everywhere::Knot k = second.knot();
    Buffer what;
    detail::put_text(what, k.text);
    detail::put_all(what, k.paths, [&](const std::string& s) { detail::put_text(what, s); });
    const Space::Step step(*space_);
    tell_all(me_, round_, what, nullptr);
    condemn(what);
    return;
  }
}

// --- asking --------------------------------------------------------------------------------------

WEFT_IMPL Everywhere Rounds::everywhere(std::chrono::nanoseconds patience) {
  const std::lock_guard one(asking_);
  {
    const std::lock_guard g(lock_);
    found_.reset();
  }
  {
    const Space::Step step(*space_);
    begin(me_, ++round_, nullptr);
  }
  {
    std::unique_lock g(lock_);
    news_.wait_for(g, patience, [&] { return found_ || stop_; });
    if (found_) return std::move(*found_);
  }
  const Space::Step step(*space_);
  Gathering& g = gatherings_[me_];
  g.open = false;
  return read(g.got, false);
}
WEFT_IMPL Everywhere Rounds::read(Bytes all, bool whole) {
  Everywhere e;
  e.whole = whole;
  while (!all.empty()) {
    auto p = InProgram::get(all);
    if (!p) return e.whole = false, e;
    e.programs.push_back(std::move(*p));
  }
  return e;
}

// In a step.
WEFT_IMPL void Rounds::begin(std::uint64_t asker, std::uint32_t round, Peer* from) {
  Gathering& g = gatherings_[asker] = {};
  g.round = round;
  if (from) g.from = from->weak_from_this();
  mine().put(g.got);
  for (Peer* p : space_->peers()) {
    if (p == from || !p->session.may_ask()) continue;
    p->session.send(Frame{Kind::ask, 0, 0, round, asker, 0, {}});
    g.awaited.push_back(p);
  }
  finish_if_done(asker, g);
}
WEFT_IMPL void Rounds::finish_if_done(std::uint64_t asker, Gathering& g) {
  if (!g.open || !g.awaited.empty()) return;
  g.open = false;
  if (asker != me_) {
    if (const auto from = g.from.lock())
      send(*from, Kind::said, asker, g.round, g.got, g.whole ? 0 : 2);
    g.got.clear();
    return;
  }
  const std::lock_guard h(lock_);
  found_ = read(g.got, g.whole);
  news_.notify_all();
}
// In as many frames as it takes; in the last one `where` is `last`, in the others 1.
WEFT_IMPL void Rounds::send(Peer& to, Kind k, std::uint64_t asker, std::uint32_t round, Bytes body,
                            std::uint32_t last) {
  const std::size_t most = to.session.largest() - kHeader;
  while (body.size() > most) {
    to.session.send(Frame{k, 0, 1, round, asker, most, body.first(most)});
    body = body.subspan(most);
  }
  to.session.send(Frame{k, 0, last, round, asker, body.size(), body});
}

// --- answering, in a step ------------------------------------------------------------------------

WEFT_IMPL const char* Rounds::heard(Peer& from, const Frame& f) {
  if (f.kind == Kind::ask) return asked(from, f);
  return f.kind == Kind::said ? said(from, f) : told(from, f);
}
WEFT_IMPL const char* Rounds::asked(Peer& from, const Frame& f) {
  const auto it = gatherings_.find(f.op);
  const bool known =
      it != gatherings_.end() && static_cast<std::int32_t>(f.txn - it->second.round) <= 0;
  if (f.op == me_ || known) {
    send(from, Kind::said, f.op, f.txn, {}, 0);
    return nullptr;
  }
  if (it == gatherings_.end() && gatherings_.size() == kAskers)
    return "more programs ask than a program answers";
  begin(f.op, f.txn, &from);
  return nullptr;
}
WEFT_IMPL const char* Rounds::said(Peer& from, const Frame& f) {
  if (f.where > 2) return "a SAID that says neither that more comes nor that this was all";
  const auto it = gatherings_.find(f.op);
  if (it == gatherings_.end() || it->second.round != f.txn) return nullptr;  // of an earlier one
  Gathering& g = it->second;
  const auto at = std::find(g.awaited.begin(), g.awaited.end(), &from);
  if (at == g.awaited.end()) return "a SAID that was not asked for";
  Buffer& part = g.parts[&from];
  if (g.got.size() + part.size() + f.val > kMost) return "more than a program says of itself";
  detail::put(part, f.body.first(static_cast<std::size_t>(f.val)));
  if (f.where == 1) return nullptr;
  g.whole = g.whole && f.where == 0;
  detail::put(g.got, Bytes(part));
  g.parts.erase(&from);
  g.awaited.erase(at);
  finish_if_done(f.op, g);
  return nullptr;
}
WEFT_IMPL const char* Rounds::told(Peer& from, const Frame& f) {
  if (f.where > 1) return "a TELL that says neither that more comes nor that this was all";
  Buffer& what = telling_[{&from, f.op}];
  if (what.size() + f.val > kMost || telling_.size() > kAskers)
    return "more than a program says of itself";
  detail::put(what, f.body.first(static_cast<std::size_t>(f.val)));
  if (f.where == 1) return nullptr;
  const auto whole = telling_.extract({&from, f.op});
  if (heard_of_.size() == kAskers) heard_of_.clear();
  if (std::exchange(heard_of_[f.op], f.txn) == f.txn || f.op == me_) return nullptr;
  tell_all(f.op, f.txn, whole.mapped(), &from);
  condemn(whole.mapped());
  return nullptr;
}
WEFT_IMPL void Rounds::tell_all(std::uint64_t asker, std::uint32_t round, Bytes what,
                                const Peer* but) {
  for (Peer* p : space_->peers())
    if (p != but && p->session.may_ask()) send(*p, Kind::tell, asker, round, what, 0);
}
WEFT_IMPL void Rounds::gone(Peer& p) noexcept {
  std::erase_if(telling_, [&](const auto& t) { return t.first.first == &p; });
  for (auto& [asker, g] : gatherings_) {
    g.parts.erase(&p);
    if (std::erase(g.awaited, &p) == 0) continue;
    g.whole = false;
    finish_if_done(asker, g);
  }
}
// What was proven, here or elsewhere; where nobody waits for links it is passed over. In a step.
WEFT_IMPL void Rounds::condemn(Bytes what) {
  detail::Reading r(what);
  const std::string text = r.text();
  std::vector<std::string> paths(r.count(4));
  for (std::string& p : paths) p = r.text();
  if (r.bad()) return;
  runtime::Outsiders::Pinned pinned;
  std::vector<runtime::Run*> those;
  for (runtime::Run* run : pinned.runs())
    if (run->detect_deadlock && run->waits_for_links() && run->condemn(text, paths))
      those.push_back(run);
  if (those.empty()) return;
  const std::lock_guard g(lock_);
  condemned_.emplace_back(std::move(pinned), std::move(those));
  news_.notify_all();
}

// --- what this program says ----------------------------------------------------------------------

namespace detail {

// The processes of a run all of which sleep.
class WhoWaits final : public runtime::WaitVisitor {
 public:
  using FarPlaces = std::map<const core::SyncObject*, const FarEnd*>;
  WhoWaits(const FarPlaces& far, std::uint32_t run, std::vector<InProgram::Process>& to) noexcept
      : far_(far), run_(run), to_(to) {}
  // False: somebody is at its groups, so it does not rest.
  bool of(runtime::Run& run) {
    return run.try_still([&] {
      std::vector<runtime::ProcessBase*> all;  // paths take their groups' locks
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
    });
  }

 private:
  using How = InProgram::How;
  void channel(const core::SyncObject& c, bool writing) override {
    at(c, writing ? How::write : How::read, writing ? c.last_reader : c.last_writer);
  }
  void barrier(const core::SyncObject& c) override { at(c, How::sync, 0); }
  void end(const core::SyncObject& c) override { at(c, How::end, c.last_writer); }
  void at(const core::SyncObject& c, How how, std::uint32_t last) {
    InProgram::Place p{how, 0, reinterpret_cast<std::uintptr_t>(&c), last, runtime::name_of(c)};
    if (const auto f = far_.find(&c); f != far_.end()) {
      p.home = f->second->peer->session.theirs().incarnation;
      p.key = f->second->number;
    }
    to_.back().places.push_back(std::move(p));
  }
  const FarPlaces& far_;
  const std::uint32_t run_;
  std::vector<InProgram::Process>& to_;
};

// Calls f if all of them sleep at one moment, which lasts until it returns. One by one will not do:
// runs of one program wake each other, so each might be found at rest though never all are.
template <class F>
void while_all_sleep(std::span<runtime::Run* const> runs, F&& f) {
  if (runs.empty()) return f();
  runs.front()->try_while_all_sleep([&] { while_all_sleep(runs.subspan(1), f); });
}

}  // namespace detail

// In a step.
WEFT_IMPL InProgram Rounds::mine() {
  space_->answer_decided();
  InProgram me;
  me.incarnation = me_;
  me.name = space_->greeting().name;
  me.pid = static_cast<std::uint32_t>(::getpid());
  me.waits = runtime::Outsiders::all().strangers() == 0;
  for (const Peer* p : space_->peers()) {
    if (p->session.is_over()) continue;
    me.waits = me.waits && p->session.state() == Session::State::open;
    me.sessions.push_back(
        {p->session.theirs().incarnation, p->session.sent(), p->session.received()});
  }
  detail::WhoWaits::FarPlaces far;
  for (const FarEnd* e : space_->far_ends) far.emplace(&e->place, e);
  const runtime::Outsiders::Pinned pinned;
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
    p->home.each_end([&](std::uint32_t number, const Port& port) {
      const core::SyncObject* const c = port.place();
      if (!c || p->session.is_over()) return;
      me.lent.push_back({p->session.theirs().incarnation, number,
                         reinterpret_cast<std::uintptr_t>(c), port.writes(), 0, 0});
      // who runs may be just using it
      if (me.waits) me.lent.back().last_reader = c->last_reader;
      if (me.waits) me.lent.back().last_writer = c->last_writer;
    });
  for (const FarEnd* e : space_->far_ends)
    if (me.waits)
      me.far.push_back({e->peer->session.theirs().incarnation, e->number,
                        std::max(e->place.last_reader, e->place.last_writer)});
  if (!me.waits) me.processes.clear();
  return me;
}

}  // namespace weft::inline WEFT_ABI::wire
