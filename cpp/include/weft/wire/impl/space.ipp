// The definitions of space.hpp; see ../../config.hpp.
#pragma once
#include "../space.hpp"

namespace weft::inline WEFT_ABI::wire {

WEFT_IMPL void Space::decided(core::Waker* w) noexcept {
  {
    const std::lock_guard g(list_lock_);
    w->next = nullptr;
    if (last_)
      last_->next = w;
    else
      first_ = w;
    last_ = w;
  }
  if (stepping == this) return;  // it was our own step that woke it
  if (!lock_.try_lock()) return;
  Space* const outer = std::exchange(stepping, this);
  end_step(outer);
}

WEFT_IMPL void Space::answer_decided() noexcept {
  for (;;) {
    core::Waker* w;
    {
      const std::lock_guard g(list_lock_);
      w = first_;
      if (!w) return;
      first_ = core::next_of(w);
      if (!first_) last_ = nullptr;
    }
    Guest& g = Guest::of(w);
    g.look();
    if (g.home)
      g.home->answer(g);
    else
      std::erase_if(orphans_, [&](const std::unique_ptr<Guest>& o) { return o.get() == &g; });
  }
}

WEFT_IMPL void Space::readers_first(const Home& h) noexcept {
  for (Peer* p : peers_)
    if (&p->home != &h && std::exchange(p->home.told_a_reader, false) && p->link) p->link->flush();
}

WEFT_IMPL void Space::end_step(Space* outer) noexcept {
  for (;;) {
    answer_decided();
    for (Peer* p : peers_) {
      p->home.told_a_reader = false;
      if (p->link && (!p->session.output().empty() || p->session.is_over())) p->link->flush();
    }
    stepping = outer;
    // An orphan may have been the last to keep the space.
    const std::shared_ptr<Space> me = weak_from_this().lock();
    lock_.unlock();
    if (!anybody_decided() || !lock_.try_lock()) return;
    stepping = this;
  }
}

WEFT_IMPL const char* Peer::received(const Frame& f) {
  switch (f.kind) {
    case Kind::offer: return home.asked(f);
    case Kind::withdraw: return home.withdraw(f);
    case Kind::retire: return home.retire(f);
    case Kind::poison: return home.poison(f);
    case Kind::done: return far.done(f);
    case Kind::withdrawn: return far.withdrawn(f);
    case Kind::ended: return far.ended(f);
    case Kind::give: return given(f);
    case Kind::hello:
    case Kind::bye: break;
  }
  return "a frame that has no business here";
}

WEFT_IMPL const char* Peer::given(const Frame& f) {
  if (f.where != offered.size()) return "a GIVE whose number is not the next";
  if (offered.size() == Home::kOffers) return "more ends were handed out than a space takes";
  const std::string text(reinterpret_cast<const char*>(f.body.data()), static_cast<std::size_t>(f.val));
  const std::size_t zero = text.find('\0');
  if (zero == std::string::npos) return "a GIVE without its type or name";
  offered.push_back({f.where, (f.flags & Flag::write) != 0, f.op, text.substr(0, zero), text.substr(zero + 1), false});
  if (news) news(*this);
  return nullptr;
}

WEFT_IMPL void Peer::session_over() noexcept {
  far.lost();
  home.lost();
  if (news) news(*this);
}

}  // namespace weft::inline WEFT_ABI::wire
