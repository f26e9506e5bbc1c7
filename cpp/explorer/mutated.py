"""The numbered mutants: each breaks an algorithm on purpose, and exploration must notice
(cpp/tests/MUTANTS.md).

They are no part of the headers. This writes a copy of them for the explorer alone, in which every
mutant can be switched on by its number (WEFT_MUTANT, a variable of the explorer's): one program has
them all.

    mutated.py OUT      write the copy; what has not changed is not written again
    mutated.py --check  only say whether every edit still applies

An edit names the text that it replaces, which must stand once in its file, line breaks and spaces
apart: one that no longer applies is an error.
"""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

INCLUDE = Path(__file__).resolve().parent.parent / "include"

# The file under weft/, the text that stands there, what takes its place.
EDITS: list[tuple[str, str, str]] = [
    (
        "runtime/asymmetric.hpp",
        "    inside_.exchange(1, std::memory_order_seq_cst);\n",
        "    if (WEFT_MUTANT != 18) inside_.exchange(1, std::memory_order_seq_cst);\n",
    ),
    (
        "runtime/asymmetric.hpp",
        "        fences_.store(renewed, std::memory_order_relaxed);\n"
        "        prim::heavy_fence();\n",
        "        if (WEFT_MUTANT == 20) prim::heavy_fence();\n"
        "        fences_.store(renewed, std::memory_order_relaxed);\n"
        "        if (WEFT_MUTANT != 19 && WEFT_MUTANT != 20) prim::heavy_fence();\n",
    ),
    (
        "core/notifier.hpp",
        "        if (r->choice_->word() != WAITING) continue;\n",
        "        if (WEFT_MUTANT == 4) continue;\n"
        "        if (r->choice_->word() != WAITING) continue;\n",
    ),
    (
        "core/notifier.hpp",
        "      if (t == Attempt::committed) after.finish_behind(before, r, Status::ok);\n",
        "      if (t == Attempt::committed) WEFT_MUTANT == 40 ? after.finish(r, Status::ok) : after.finish_behind(before, r, Status::ok);\n",
    ),
    (
        "core/notifier.hpp",
        "      if (w->choice_->word() != WAITING) continue;\n",
        "      if (WEFT_MUTANT == 4) continue;\n"
        "      if (w->choice_->word() != WAITING) continue;\n",
    ),
    (
        "core/notifier.hpp",
        "    state_ &= static_cast<std::uint8_t>(~B::kDeciding);\n",
        "    state_ &= static_cast<std::uint8_t>(~B::kDeciding);\n"
        "    if (WEFT_MUTANT == 7) return;\n",
    ),
    (
        "core/buffered.hpp",
        "      if (ring->lending()) return Attempt::not_ready;\n",
        "      if (ring->lending() && WEFT_MUTANT != 41) return Attempt::not_ready;\n",
    ),
    (
        "core/standing.hpp",
        "      if (choice.some()) {\n",
        "      if (WEFT_MUTANT != 5 && choice.some()) {\n",
    ),
    (
        "core/biased.hpp",
        "    if (owner_.load(std::memory_order_relaxed) == owner) [[likely]]\n",
        "    if (WEFT_MUTANT == 9 || owner_.load(std::memory_order_relaxed) == owner) [[likely]]\n",
    ),
    (
        "core/biased.hpp",
        "      revoke(owner);\n",
        "      if (WEFT_MUTANT != 16 || which(owner) == 0) revoke(owner);\n",
    ),
    (
        "core/biased.hpp",
        "        become(me, i);\n",
        "        become(me, WEFT_MUTANT == 17 ? 0 : i);\n",
    ),
    (
        "core/biased.hpp",
        "    prim::heavy_fence();\n",
        "    if (WEFT_MUTANT != 10) prim::heavy_fence();\n",
    ),
    (
        "core/biased.hpp",
        "    for (unsigned round = 0; held_[state_].load(std::memory_order_acquire) != 0; ++round) prim::pause(round);\n",
        "    if (WEFT_MUTANT != 11)\n"
        "      for (unsigned round = 0; held_[state_].load(std::memory_order_acquire) != 0; ++round) prim::pause(round);\n",
    ),
    (
        "core/select.hpp",
        "    choice.keep_open(count);\n",
        "    choice.keep_open(WEFT_MUTANT == 21 ? 0 : count);\n",
    ),
    (
        "core/select.hpp",
        "      x.lined = true;\n",
        "      x.lined = true;\n      if (WEFT_MUTANT == 21 && keep_.has(x)) choice.one_more();\n",
    ),
    (
        "core/select.hpp",
        "        case Attempt::partner_holds:  // decided; the partner wakes us once more\n"
        "        case Attempt::gone: return parked;\n"
        "        case Attempt::silent:\n"
        "          if (const int c = fell_silent_in_line(i); c != none) return c;\n",
        "        case Attempt::partner_holds:  // decided; the partner wakes us once more\n"
        "        case Attempt::gone: return parked;\n"
        "        case Attempt::silent:\n"
        "          if (const int c = WEFT_MUTANT == 22 ? none : fell_silent_in_line(i); c != none) return c;\n",
    ),
    (
        "core/waiter.hpp",
        "  bool finish_as(Word outcome) noexcept {\n",
        "  bool finish_as(Word outcome) noexcept {\n"
        "    if (WEFT_MUTANT == 8) {\n"
        "      word_.store(outcome);\n"
        "      return true;\n"
        "    }\n",
    ),
    (
        "core/waiter.hpp",
        "      } else if (s == LOCKED) {\n",
        "      } else if (s == LOCKED) {\n        if (WEFT_MUTANT == 1) return false;\n",
    ),
    (
        "core/waiter.hpp",
        "    const bool x_low = &x < &y;\n",
        "    const bool x_low = WEFT_MUTANT == 2 || &x < &y;\n",
    ),
    (
        "core/waiter.hpp",
        "  bool last_gone() noexcept {\n",
        "  bool last_gone() noexcept {\n"
        "    if (WEFT_MUTANT == 23) {\n"
        "      const std::uint32_t left = keepers_.load() - 1;\n"
        "      keepers_.store(left);\n"
        "      return left == 0;\n"
        "    }\n",
    ),
    (
        "core/waiter.hpp",
        "    return keepers_.fetch_sub(1, std::memory_order_acq_rel) == 1;\n  }\n",
        "    return keepers_.fetch_sub(1, std::memory_order_acq_rel) == 1;\n"
        "  }\n"
        "  void one_more() noexcept { keepers_.fetch_add(1); }  // (of a mutant)\n",
    ),
    (
        "core/rendezvous.hpp",
        "    if (side == Side::out && y.is(NodeFlags::foreign | NodeFlags::promised)) return Step::stop;\n",
        "    if (side == Side::out && y.is(NodeFlags::foreign | NodeFlags::promised))\n"
        "      return WEFT_MUTANT == (y.is(NodeFlags::foreign) ? 6 : 161) ? Step::claim : Step::stop;\n",
    ),
    (
        "core/lending.hpp",
        "    r.told = 1;\n    this->hint(after);\n",
        "    r.told = 1;\n    if (WEFT_MUTANT != 159) this->hint(after);\n",
    ),
    (  # its scenario has seen it by then
        "core/lending.hpp",
        "  void take_back(AfterUnlock& after) noexcept {\n",
        "  void take_back(AfterUnlock& after) noexcept {\n    if (WEFT_MUTANT == 161) return;\n",
    ),
    (
        "core/channel.hpp",
        "      if (me.is(NodeFlags::promised)) [[unlikely]]\n",
        "      if (me.is(NodeFlags::promised) && WEFT_MUTANT != 160) [[unlikely]]\n",
    ),
    (
        "wire/impl/lender.ipp",
        "  if (port_->buffered() || lent_ == 0) return false;\n",
        "  if (port_->buffered() || lent_ == 0 || WEFT_MUTANT == 158) return false;\n",
    ),
    (
        "wire/impl/far.ipp",
        "  if (last == offered_.end() || f.op < last->second) return nullptr;\n",
        "  if (last == offered_.end() || (f.op < last->second && WEFT_MUTANT != 157)) return nullptr;\n",
    ),
    (
        "wire/impl/far.ipp",
        "  const auto node = credits_.extract(end);\n  if (!node) return;\n",
        "  const auto node = credits_.extract(end);\n"
        "  if (!node && WEFT_MUTANT == 162) session_.send(Frame{Kind::recalled, 0, end, 0, 0, 0, {}});\n"
        "  if (!node) return;\n",
    ),
    (
        "core/one2one.hpp",
        "    if (look_.load(std::memory_order_seq_cst) & other) [[unlikely]]\n",
        "    if (WEFT_MUTANT != 12 && (look_.load(std::memory_order_seq_cst) & other)) [[unlikely]]\n",
    ),
    (
        "core/one2one.hpp",
        "    if (t == Attempt::not_ready && wait) {\n",
        "    if (t == Attempt::not_ready && wait) {\n"
        "      if (WEFT_MUTANT == 13) {\n"
        "        n.status = Status::pending;\n"
        "        this->template join<S>(n);\n"
        "        announce<S>();\n"
        "        lock_.unlock();\n"
        "        return t;\n"
        "      }\n",
    ),
    (
        "core/one2one.hpp",
        "    } else if (!was && !(me.unsettled &= other.load(std::memory_order_seq_cst) == me.fenced_at)) {\n",
        "    } else if (!was && (WEFT_MUTANT == 15 || !(me.unsettled &= other.load(std::memory_order_seq_cst) == me.fenced_at))) {\n",
    ),
    (
        "core/one2one.hpp",
        "    prim::heavy_fence();\n",
        "    if (WEFT_MUTANT != 14) prim::heavy_fence();\n",
    ),
    (
        "core/channel.hpp",
        "    Attempt t = attempt<S>(n, EnrolledParty{n.choice_, n.index}, after);\n",
        "    Attempt t = WEFT_MUTANT == 3 ? Attempt::not_ready : attempt<S>(n, EnrolledParty{n.choice_, n.index}, after);\n",
    ),
    (
        "core/channel.hpp",
        "    else if (me.is(NodeFlags::compute) && ring ? accepts() : this->template may_meet<S>())\n",
        "    else if (WEFT_MUTANT != 75 && (me.is(NodeFlags::compute) && ring ? accepts() : this->template may_meet<S>()))\n",
    ),
    (
        "core/lending.hpp",
        "writer_line_.insert_before(writer_line_.front(), &again);",
        "writer_line_.insert_before(WEFT_MUTANT == 105 ? nullptr : writer_line_.front(), &again);",
    ),
    (
        "wire/doubt.hpp",
        "  const bool sent = w == Word::open || w == Word::asked || w == Word::sent;\n",
        "  const bool sent = w == Word::open || w == Word::asked || (w == Word::sent && WEFT_MUTANT != 108);\n",
    ),
    (
        "wire/doubt.hpp",
        "  return {Status::died, 0, 0, sent && writes, true};\n",
        "  return {Status::died, 0, 0, WEFT_MUTANT == 33 ? false : sent && writes, true};\n",
    ),
    (
        "wire/ring.hpp",
        "      d_->starved.store(1, std::memory_order_seq_cst);\n",
        "      if (WEFT_MUTANT != 83) d_->starved.store(1, std::memory_order_seq_cst);\n",
    ),
    (
        "wire/ring.hpp",
        "    return !any();\n",
        "    return WEFT_MUTANT == 82 || !any();\n",
    ),
    (
        "wire/ring.hpp",
        "    b.thread.fetch_add(1, std::memory_order_seq_cst);\n",
        "    if (WEFT_MUTANT != 81) b.thread.fetch_add(1, std::memory_order_seq_cst);\n",
    ),
    (
        "wire/impl/lender.ipp",
        "  port_->end_lending(std::exchange(lent_, 0));\n",
        "  port_->end_lending(WEFT_MUTANT == 44 ? 0 : std::exchange(lent_, 0));\n",
    ),
    (
        "wire/impl/spanned.ipp",
        "  for (const Spanned* s : space_->spans) {\n",
        "  if (WEFT_MUTANT == 71) return false;\n  for (const Spanned* s : space_->spans) {\n",
    ),
    (
        "wire/impl/spanned.ipp",
        "    if (s == this || !s->place_ || rank_ >= s->rank_) continue;\n",
        "    if (s == this || !s->place_ || !(rank_ < s->rank_ || WEFT_MUTANT == 72)) continue;\n",
    ),
    (
        "wire/impl/spanned.ipp",
        "    if (looks_ && s->looks_) continue;",
        "    if (looks_ && s->looks_ && WEFT_MUTANT != 138) continue;",
    ),
    (
        "wire/impl/spanned.ipp",
        "    if (at_[i].off && (!at_[i].port || is_end(at_[i].port->ended()))) happened(i, Status::retired);\n",
        "    if (WEFT_MUTANT != 140 && at_[i].off && (!at_[i].port || is_end(at_[i].port->ended())))\n"
        "      happened(i, Status::retired);\n",
    ),
    (
        "wire/impl/spanned.ipp",
        "  if (at_[guard].silent || at_[guard].off) return;\n",
        "  if (at_[guard].silent || (at_[guard].off && !(WEFT_MUTANT == 141 && at_[guard].port))) return;\n",
    ),
    (
        "wire/impl/spanned.ipp",
        "    if (at_[i].silent || at_[i].off) continue;\n",
        "    const bool tries_off = WEFT_MUTANT == 142 && at_[i].off && !at_[i].port->writes();\n"
        "    if (tries_off) at_[i].room = at_[i].port->room();\n"
        "    if (at_[i].silent || (at_[i].off && !tries_off)) continue;\n",
    ),
    (
        "wire/impl/spanned.ipp",
        "  attempt_.reset();\n"
        "  for (std::uint32_t i = 0; i < size() && place_; ++i) watch(i);\n"
        "  if (place_) place_->not_ready();\n",
        "  attempt_.reset();\n"
        "  if (WEFT_MUTANT != 74)\n"
        "    for (std::uint32_t i = 0; i < size() && place_; ++i) watch(i);\n"
        "  if (place_) place_->not_ready();\n",
    ),
    (
        "wire/impl/spanned.ipp",
        "  if (making()) {\n    attempt_->fail();\n    attempt_.reset();\n",
        "  if (making()) {\n    if (WEFT_MUTANT != 106) attempt_->fail();\n    attempt_.reset();\n",
    ),
    (
        "wire/impl/spanned.ipp",
        "    attempt_.reset();\n  }\n  space_->reconsider();\n",
        "    attempt_.reset();\n  }\n  if (WEFT_MUTANT != 73) space_->reconsider();\n",
    ),
    (
        "wire/impl/space.ipp",
        "    if (const auto from = a.from.lock())\n",
        "    if (const auto from = a.from.lock(); from && WEFT_MUTANT != 65)\n",
    ),
    (
        "wire/impl/far.ipp",
        "    } else if (it->second.n == 0) {\n",
        "    } else if (it->second.n == 0 && WEFT_MUTANT != 42) {\n",
    ),
    (
        "wire/impl/far.ipp",
        "  const auto it = credits_.find(f.where);\n",
        "  const auto it = WEFT_MUTANT == 47 ? credits_.try_emplace(f.where).first : credits_.find(f.where);\n",
    ),
    (
        "wire/impl/far.ipp",
        "  if (std::exchange(c.wanted, true)) return;\n",
        "  if (std::exchange(c.wanted, true) || WEFT_MUTANT == 46) return;\n",
    ),
    (
        "wire/impl/far.ipp",
        "  for (FarOp* const o : node.mapped().line) {\n",
        "  if (WEFT_MUTANT == 45) credits_[end].n = node.mapped().n;\n"
        "  for (FarOp* const o : node.mapped().line) {\n",
    ),
    (
        "wire/impl/far.ipp",
        "  session_.send(Frame{Kind::withdraw, 0, 0, 0, o.op_, 0, {}});\n}\n",
        "  session_.send(Frame{Kind::withdraw, 0, 0, 0, o.op_, 0, {}});\n"
        "  if (WEFT_MUTANT == 32) finish(o, {Status::cancelled, 0, 0, false, false});\n"
        "}\n",
    ),
    (
        "wire/impl/moving.ipp",
        "      before = e->before;\n",
        "      if (WEFT_MUTANT != 66) before = e->before;\n",
    ),
    (
        "wire/impl/moving.ipp",
        "    if (token) peer_.session.send(Frame{Kind::dropped, 0, 0, 0, 0, token, {}});\n",
        "    if (token && WEFT_MUTANT != 62) peer_.session.send(Frame{Kind::dropped, 0, 0, 0, 0, token, {}});\n",
    ),
    (
        "wire/impl/moving.ipp",
        "  for (std::size_t i = moving_.size() - unsent_; i < moving_.size(); ++i)\n"
        "    moving_[i].op = op, moving_[i].delivered = op == 0;\n",
        "  if (WEFT_MUTANT == 61)\n"
        "    moving_.resize(moving_.size() - unsent_);\n"
        "  else\n"
        "    for (std::size_t i = moving_.size() - unsent_; i < moving_.size(); ++i)\n"
        "      moving_[i].op = op, moving_[i].delivered = op == 0;\n",
    ),
    (
        "wire/impl/moving.ipp",
        "    return !m.delivered;\n",
        "    return !m.delivered || WEFT_MUTANT == 63;\n",
    ),
    (
        "wire/impl/moving.ipp",
        "  for (const Moving& m : moving_)\n",
        "  if (WEFT_MUTANT == 64) return;\n  for (const Moving& m : moving_)\n",
    ),
    (
        "wire/impl/home.ipp",
        "  if (!back) {\n    port.end_extended(guest);\n",
        "  if (!back || WEFT_MUTANT == 103) {\n"
        "    if (WEFT_MUTANT != 102 || guest.home) port.end_extended(guest);\n",
    ),
    (
        "wire/impl/space.ipp",
        "  if (const auto from = a->from.lock())\n",
        "  if (const auto from = a->from.lock(); from && WEFT_MUTANT != (f.val ? 67 : 155))\n",
    ),
    (
        "wire/impl/space.ipp",
        "      if (a.closed && a.from.lock().get() == this)\n",
        "      if (a.closed && a.from.lock().get() == this && WEFT_MUTANT != 156)\n",
    ),
    (
        "wire/impl/home.ipp",
        "  if (guest.chose_a_write()) space.answer_decided();\n",
        "  if (guest.chose_a_write() != (WEFT_MUTANT == 31)) space.answer_decided();\n",
    ),
    (
        "wire/impl/home.ipp",
        "  if (told)\n",
        "  if (told && WEFT_MUTANT != 101)\n",
    ),
    (
        "wire/impl/home.ipp",
        '    return "a HELD-END of no read whose end is awaited";\n',
        '    return WEFT_MUTANT == 101 ? nullptr : "a HELD-END of no read whose end is awaited";\n',
    ),
    (
        "wire/impl/home.ipp",
        "  } else {\n",
        "  } else if (WEFT_MUTANT != 31) {\n",
    ),
    (
        "wire/impl/home.ipp",
        "  if (!it->second->withdraw())\n",
        "  if (!it->second->withdraw() && !(WEFT_MUTANT == 107 && it->second->stage == Guest::Stage::making))\n",
    ),
    (
        "wire/impl/home.ipp",
        "  close(g, f.val == 1);\n",
        "  if (WEFT_MUTANT == 36)\n"
        "    for (auto& [op, guest] : open_)\n"
        "      if (guest->at[0].port == g.port) guest->withdraw();\n"
        "  close(g, f.val == 1);\n",
    ),
    (
        "wire/impl/home.ipp",
        "      guest->fail();\n",
        "      if (WEFT_MUTANT != 106) guest->fail();\n",
    ),
    (
        "wire/impl/home.ipp",
        "    if (guest->withdraw()) continue;\n",
        "    if (WEFT_MUTANT != 34 && !(WEFT_MUTANT == 110 && guest->at[0].port->barrier()) && guest->withdraw()) continue;\n",
    ),
    (
        "wire/barrier.hpp",
        "    if (died && !std::exchange(closed_, true)) core_.die();\n",
        "    if ((WEFT_MUTANT == 110 || WEFT_MUTANT == 111 ? false : died || WEFT_MUTANT == 115) &&\n"
        "        !std::exchange(closed_, true))\n"
        "      core_.die();\n",
    ),
    (
        "core/barrier.hpp",
        "    for (Queue* q : {&choices_, &plain_})\n",
        "    for (Queue* q : {WEFT_MUTANT == 118 ? &plain_ : &choices_, &plain_})\n",
    ),
    (
        "core/barrier.hpp",
        "    if (fine && --enrolled_ > 0) complete_without_us(after);\n",
        "    if (fine && --enrolled_ > 0 && WEFT_MUTANT != 114) complete_without_us(after);\n",
    ),
    (
        "core/barrier.hpp",
        "    if (died_) {\n      lock_.unlock();\n",
        "    if (died_ && WEFT_MUTANT != 116) {\n      lock_.unlock();\n",
    ),
    (
        "core/barrier.hpp",
        "    if (was) remove(me);\n",
        "    if (was) remove(me);\n"
        "    if (was && !me.choice() && WEFT_MUTANT == 113) ++plain_count_;\n"
        "    if (was && me.choice() && WEFT_MUTANT == (me.choice_->word() == CANCELLED ? 121 : 119)) ++choice_count_;\n",
    ),
    (
        "wire/impl/far.ipp",
        "        Kind::parties, 0, o.guards[0].end, 0, o.op_, static_cast<std::uint64_t>(what) - 1, {}});\n    return true;\n",
        "        Kind::parties, 0, o.guards[0].end, 0, o.op_, static_cast<std::uint64_t>(what) - 1, {}});\n"
        "    if (WEFT_MUTANT == 117 && what == FarGuard::Parties::enrol) {\n"
        "      open_.erase(o.op_);\n"
        "      o.word_ = Word::over;\n"
        "      o.outcome = {Status::ok, 0, 0, false, false};\n"
        "      return false;\n"
        "    }\n"
        "    return true;\n",
    ),
    (
        "wire/impl/home.ipp",
        "    const bool back = it->second->keeps;\n",
        "    const bool back = it->second->keeps && WEFT_MUTANT != 104;\n",
    ),
    (
        "wire/impl/home.ipp",
        "  for (auto& [end, g] : ends) close(g, true);\n",
        "  for (auto& [end, g] : ends) close(g, WEFT_MUTANT != 39);\n",
    ),
    (
        "wire/impl/far.ipp",
        "  if (o.word_ != Word::sent) session_.send(Frame{Kind::gone, 0, 0, 0, o.op_, 0, {}});\n",
        "  if (o.word_ != Word::sent && !(WEFT_MUTANT == 147 && !o.writes()))\n"
        "    session_.send(Frame{Kind::gone, 0, 0, 0, o.op_, 0, {}});\n",
    ),
    (
        "wire/impl/span.ipp",
        "    if (count == p.size) p.ready = false;\n",
        "    if (count == p.size || WEFT_MUTANT == 134) p.ready = false;\n",
    ),
    (
        "wire/impl/span.ipp",
        "  if (asked_ >= seats_.size()) return withdraw();\n",
        "  if (asked_ >= seats_.size() || WEFT_MUTANT == 135) return withdraw();\n",
    ),
    (
        "wire/impl/span.ipp",
        "    if (trying_ == &p && !making_) p.stop_trying();\n",
        "    if (trying_ == &p && !making_ && WEFT_MUTANT != 136) p.stop_trying();\n",
    ),
    (
        "wire/impl/span.ipp",
        "  while (asked_ < n) {\n",
        "  while (asked_ < n && !(WEFT_MUTANT == 137 && looks_ && asked_ > 0)) {\n",
    ),
    (
        "wire/impl/span.ipp",
        "    if (!making_) trying_->stop_trying();\n",
        "    if (!making_ && WEFT_MUTANT != 139) trying_->stop_trying();\n",
    ),
    (
        "wire/impl/span.ipp",
        "    if (guards_[i].off && guards_[i].writes == writes && !seats_[i].silent) return true;\n",
        "    if (WEFT_MUTANT != 143 && guards_[i].off && guards_[i].writes == writes && !seats_[i].silent) return true;\n",
    ),
    (
        "wire/impl/span.ipp",
        "  if (p.off) {\n    silence(p);\n    if (trying_ == &p)",
        "  if (p.off && WEFT_MUTANT != 144) {\n    silence(p);\n    if (trying_ == &p)",
    ),
    (
        "wire/impl/span.ipp",
        "    if (all_silent && (count == 1 || s.part->off)) continue;\n",
        "    if (WEFT_MUTANT == 145 && s.part->off) continue;\n"
        "    if (all_silent && (count == 1 || s.part->off)) continue;\n",
    ),
    (
        "wire/impl/span.ipp",
        "    ready = true;\n",
        "    if (WEFT_MUTANT == 76 && span.trying_) return;\n    ready = true;\n",
    ),
    (
        "wire/impl/span.ipp",
        "  began_ = silently_ = true;\n",
        "  if (WEFT_MUTANT == 80) asked_ = static_cast<std::uint32_t>(seats_.size());\n"
        "  began_ = silently_ = true;\n",
    ),
    (
        "wire/impl/span.ipp",
        "    if (!seats_[i].silent) return false;\n",
        "    if (!seats_[i].silent) {\n"
        "      if (WEFT_MUTANT == 79) continue;\n"
        "      return false;\n"
        "    }\n",
    ),
    (
        "wire/impl/span.ipp",
        "  part_over(p, when_lost(trying_ == &p && !making_ ? Word::open : Word::unsent, trying_writes_));\n",
        "  Outcome how = when_lost(trying_ == &p && !making_ ? Word::open : Word::unsent, trying_writes_);\n"
        "  if (WEFT_MUTANT == 78) how.in_doubt = false;\n"
        "  part_over(p, how);\n",
    ),
    (
        "wire/impl/span.ipp",
        "  trying_->stop_trying();\n}\n",
        "  trying_->stop_trying();\n"
        "  if (WEFT_MUTANT == 77) end({Status::cancelled, 0, 0, false, false}, nullptr);\n"
        "}\n",
    ),
    (
        "wire/impl/slot.ipp",
        "          if (name == mine)\n",
        "          if (name == mine && WEFT_MUTANT != 93)\n",
    ),
    (
        "wire/impl/slot.ipp",
        "      if (p->head().shares.load(std::memory_order_seq_cst) != 0)\n",
        "      if (p->head().shares.load(std::memory_order_seq_cst) != 0 && WEFT_MUTANT != 92)\n",
    ),
    (
        "wire/impl/slot.ipp",
        "        head.shares.load(std::memory_order_seq_cst) != 0)\n",
        "        head.shares.load(std::memory_order_seq_cst) > (WEFT_MUTANT == 91 ? 1u : 0u))\n",
    ),
    (
        "wire/impl/slot.ipp",
        "  head.shares.fetch_add(1, std::memory_order_seq_cst);\n",
        "  head.shares.fetch_add(WEFT_MUTANT == 96 ? 0 : 1, std::memory_order_seq_cst);\n",
    ),
    (
        "wire/resend.hpp",
        "    if (ahead == 0) {\n",
        "    if (ahead == 0 || (WEFT_MUTANT == 51 && ahead < 0x8000'0000u) ||\n"
        "        (WEFT_MUTANT == 52 && ahead >= 0x8000'0000u)) {\n",
    ),
    (
        "wire/resend.hpp",
        "    if (moves > next_ - base_) return;\n",
        "    if (WEFT_MUTANT == 54   ? moves >= 0x8000'0000u\n"
        "        : WEFT_MUTANT == 55 ? moves > next_ - base_ && moves < 0x8000'0000u\n"
        "                            : moves > next_ - base_)\n"
        "      return;\n",
    ),
    (
        "wire/impl/everywhere.ipp",
        "    return g.second.queued == 0 && g.second.said % 2 == 0;\n",
        "    if (WEFT_MUTANT == 124) return g.second.queued == 0 || g.second.said % 2 != 0;\n"
        "    return (g.second.queued == 0 || WEFT_MUTANT == 122) && g.second.said % 2 == 0;\n",
    ),
    (
        "wire/session.hpp",
        "return next_out_ - rounds_out_;",
        "return next_out_ - (WEFT_MUTANT == 125 ? 0 : rounds_out_);",
    ),
    (
        "wire/session.hpp",
        "return next_in_ - rounds_in_;",
        "return next_in_ - (WEFT_MUTANT == 125 ? 0 : rounds_in_);",
    ),
    (
        "wire/impl/asking.ipp",
        "    send(from, Kind::said, f.op, f.txn, {}, 0);\n",
        "    if (WEFT_MUTANT != 126) send(from, Kind::said, f.op, f.txn, {}, 0);\n",
    ),
    (
        "wire/impl/asking.ipp",
        "    if (p == from.get() || !p->session.may_ask()) continue;\n",
        "    if (p == from.get() || !p->session.may_ask() || (WEFT_MUTANT == 127 && from)) continue;\n",
    ),
    (
        "wire/asking.hpp",
        "    if (p->session.is_over() || !p->outside) continue;\n",
        "    if (p->session.is_over() || !p->outside || (WEFT_MUTANT == 129 && p->session.state() != Session::State::open)) continue;\n",
    ),
    (
        "wire/impl/asking.ipp",
        "    g.whole = false;\n    finish_if_done(asker, g);\n",
        "    g.whole = false;\n    if (WEFT_MUTANT != 131) finish_if_done(asker, g);\n",
    ),
    (
        "wire/impl/asking.ipp",
        "static_cast<std::int32_t>(f.txn - it->second.round) <= 0;",
        "(WEFT_MUTANT == 132 || static_cast<std::int32_t>(f.txn - it->second.round) <= 0);",
    ),
    (
        "wire/impl/asking.ipp",
        "  tell_all(f.op, f.txn, whole.mapped(), &from);\n",
        "  if (WEFT_MUTANT != 146) tell_all(f.op, f.txn, whole.mapped(), &from);\n",
    ),
    (
        "wire/resend.hpp",
        "    put(packet, holds_ ? told_ : due_);\n",
        "    put(packet, WEFT_MUTANT == 53 ? seen_ : holds_ ? told_ : due_);\n",
    ),
]


class DoesNotApply(Exception):
    """An edit's text does not stand once in its file."""


def pattern(old: str) -> re.Pattern[str]:
    """`old`, wherever its lines are broken; of its comments the words count."""
    tokens = re.findall(r"\w+|[^\w\s]", old.replace("//", " "))
    return re.compile(r"(?:\s|//)*".join(map(re.escape, tokens)))


def mutated() -> dict[str, str]:
    """The files that have mutants, as they are then. Every edit is of the text as it is
    committed."""
    found: dict[str, str] = {}
    places: dict[str, list[tuple[int, int, str]]] = {}
    for file, old, new in EDITS:
        text = found.setdefault(file, (INCLUDE / "weft" / file).read_text())
        spans = [m.span() for m in pattern(old).finditer(text)]
        if len(spans) != 1:
            raise DoesNotApply(
                f"mutated.py: this stands {len(spans)} times in weft/{file}, not once; bring it up to date:\n{old}"
            )
        places.setdefault(file, []).append((*spans[0], new))
    for file, here in places.items():
        here.sort()
        if any(a[1] > b[0] for a, b in itertools.pairwise(here)):
            raise DoesNotApply(f"mutated.py: two edits of weft/{file} overlap")
        for begin, end, new in reversed(here):
            found[file] = found[file][:begin] + new.strip() + found[file][end:]
    return found


def write(out: Path) -> None:
    """All headers, those with mutants in place of their own."""
    texts = mutated()
    for path in sorted((INCLUDE / "weft").rglob("*")):
        if not path.is_file():
            continue
        name = path.relative_to(INCLUDE / "weft").as_posix()
        text = texts.get(name) or path.read_text()
        to = out / "weft" / name
        to.parent.mkdir(parents=True, exist_ok=True)
        if not to.exists() or to.read_text() != text:
            to.write_text(text)


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        if sys.argv[1] == "--check":
            mutated()
        else:
            write(Path(sys.argv[1]))
    except DoesNotApply as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
