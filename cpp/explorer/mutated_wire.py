"""The numbered mutants of the wire (mutated.py)."""

from __future__ import annotations

# Each edit has three parts: the file under weft/, the text in that file, and its replacement.
EDITS: list[tuple[str, str, str]] = [
    (
        "src/wire/lender.cpp",
        "  if (port_->buffered() || lent_ == 0) return false;\n",
        "  if (port_->buffered() || lent_ == 0 || WEFT_MUTANT == 158) return false;\n",
    ),
    (
        "src/wire/far.cpp",
        "  if (offered == offered_.end() || f.op < offered->second.last) return nullptr;\n",
        "  if (offered == offered_.end()) return nullptr;\n"
        "  if (f.op < offered->second.last && WEFT_MUTANT != 157) return nullptr;\n",
    ),
    (
        "src/wire/far.cpp",
        "  const auto node = credits_.extract(end);\n  if (!node) return;\n",
        "  const auto node = credits_.extract(end);\n"
        "  if (!node && WEFT_MUTANT == 162) session_.send(Frame{Kind::recalled, 0, end, 0, 0, 0, {}});\n"
        "  if (!node) return;\n",
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
        "src/wire/lender.cpp",
        "  port_->end_lending(std::exchange(lent_, 0));\n",
        "  port_->end_lending(WEFT_MUTANT == 44 ? 0 : std::exchange(lent_, 0));\n",
    ),
    (
        "src/wire/spanned.cpp",
        "  for (const Spanned* s : space_->spans) {\n",
        "  if (WEFT_MUTANT == 71) return false;\n  for (const Spanned* s : space_->spans) {\n",
    ),
    (
        "src/wire/spanned.cpp",
        "    if (s == this || !s->place_ || rank_ >= s->rank_) continue;\n",
        "    if (s == this || !s->place_ || !(rank_ < s->rank_ || WEFT_MUTANT == 72)) continue;\n",
    ),
    (
        "src/wire/spanned.cpp",
        "    if (looks_ && s->looks_) continue;",
        "    if (looks_ && s->looks_ && WEFT_MUTANT != 138) continue;",
    ),
    (
        "src/wire/spanned.cpp",
        "    if (at_[i].off && (!at_[i].port || is_end(at_[i].port->ended()))) happened(i, Status::retired);\n",
        "    if (WEFT_MUTANT != 140 && at_[i].off && (!at_[i].port || is_end(at_[i].port->ended())))\n"
        "      happened(i, Status::retired);\n",
    ),
    (
        "src/wire/spanned.cpp",
        "  if (at_[guard].silent || at_[guard].off) return;\n",
        "  if (at_[guard].silent || (at_[guard].off && !(WEFT_MUTANT == 141 && at_[guard].port))) return;\n",
    ),
    (
        "src/wire/spanned.cpp",
        "    if (at_[i].silent || at_[i].off) continue;\n",
        "    const bool tries_off = WEFT_MUTANT == 142 && at_[i].off && !at_[i].port->writes();\n"
        "    if (tries_off) at_[i].room = at_[i].port->room();\n"
        "    if (at_[i].silent || (at_[i].off && !tries_off)) continue;\n",
    ),
    (
        "src/wire/spanned.cpp",
        "  attempt_.reset();\n"
        "  for (std::uint32_t i = 0; i < size() && place_; ++i) watch(i);\n"
        "  if (place_) place_->not_ready();\n",
        "  attempt_.reset();\n"
        "  if (WEFT_MUTANT != 74)\n"
        "    for (std::uint32_t i = 0; i < size() && place_; ++i) watch(i);\n"
        "  if (place_) place_->not_ready();\n",
    ),
    (
        "src/wire/spanned.cpp",
        "  if (making()) {\n    attempt_->fail();\n    attempt_.reset();\n",
        "  if (making()) {\n    if (WEFT_MUTANT != 106) attempt_->fail();\n    attempt_.reset();\n",
    ),
    (
        "src/wire/spanned.cpp",
        "    attempt_.reset();\n  }\n  space_->reconsider();\n",
        "    attempt_.reset();\n  }\n  if (WEFT_MUTANT != 73) space_->reconsider();\n",
    ),
    (
        "src/wire/space.cpp",
        "    if (const auto from = a.from.lock())\n",
        "    if (const auto from = a.from.lock(); from && WEFT_MUTANT != 65)\n",
    ),
    (
        "src/wire/far.cpp",
        "    } else if (it->second.n == 0) {\n",
        "    } else if (it->second.n == 0 && WEFT_MUTANT != 42) {\n",
    ),
    (
        "src/wire/far.cpp",
        "  const auto it = credits_.find(f.where);\n",
        "  const auto it = WEFT_MUTANT == 47 ? credits_.try_emplace(f.where).first : credits_.find(f.where);\n",
    ),
    (
        "src/wire/far.cpp",
        "  if (std::exchange(c.wanted, true)) return;\n",
        "  if (std::exchange(c.wanted, true) || WEFT_MUTANT == 46) return;\n",
    ),
    (
        "src/wire/far.cpp",
        "  for (FarOp* const o : node.mapped().line) {\n",
        "  if (WEFT_MUTANT == 45) credits_[end].n = node.mapped().n;\n"
        "  for (FarOp* const o : node.mapped().line) {\n",
    ),
    (
        "src/wire/far.cpp",
        "  session_.send(Frame{Kind::withdraw, 0, 0, 0, o.op_, 0, {}});\n}\n",
        "  session_.send(Frame{Kind::withdraw, 0, 0, 0, o.op_, 0, {}});\n"
        "  if (WEFT_MUTANT == 32) finish(o, {Status::cancelled, 0, 0, false, false});\n"
        "}\n",
    ),
    (
        "src/wire/moving.cpp",
        "      before = e->before;\n",
        "      if (WEFT_MUTANT != 66) before = e->before;\n",
    ),
    (
        "src/wire/moving.cpp",
        "    if (token) peer_.session.send(Frame{Kind::dropped, 0, 0, 0, 0, token, {}});\n",
        "    if (token && WEFT_MUTANT != 62) peer_.session.send(Frame{Kind::dropped, 0, 0, 0, 0, token, {}});\n",
    ),
    (
        "src/wire/moving.cpp",
        "  for (std::size_t i = moving_.size() - unsent_; i < moving_.size(); ++i)\n"
        "    moving_[i].op = op, moving_[i].delivered = op == 0;\n",
        "  if (WEFT_MUTANT == 61)\n"
        "    moving_.resize(moving_.size() - unsent_);\n"
        "  else\n"
        "    for (std::size_t i = moving_.size() - unsent_; i < moving_.size(); ++i)\n"
        "      moving_[i].op = op, moving_[i].delivered = op == 0;\n",
    ),
    (
        "src/wire/moving.cpp",
        "    return !m.delivered;\n",
        "    return !m.delivered || WEFT_MUTANT == 63;\n",
    ),
    (
        "src/wire/moving.cpp",
        "  for (const Moving& m : moving_)\n",
        "  if (WEFT_MUTANT == 64) return;\n  for (const Moving& m : moving_)\n",
    ),
    (
        "src/wire/home.cpp",
        "  if (!back) {\n    port.end_extended(visitor);\n",
        "  if (!back || WEFT_MUTANT == 103) {\n"
        "    if (WEFT_MUTANT != 102 || visitor.home) port.end_extended(visitor);\n",
    ),
    (
        "src/wire/space.cpp",
        "  if (const auto from = a->from.lock())\n",
        "  if (const auto from = a->from.lock(); from && WEFT_MUTANT != (f.val ? 67 : 155))\n",
    ),
    (
        "src/wire/space.cpp",
        "      if (a.closed && a.from.lock().get() == this)\n",
        "      if (a.closed && a.from.lock().get() == this && WEFT_MUTANT != 156)\n",
    ),
    (
        "src/wire/home.cpp",
        "  if (visitor.chose_a_write()) space.answer_decided();\n",
        "  if (visitor.chose_a_write() != (WEFT_MUTANT == 31)) space.answer_decided();\n",
    ),
    (
        "src/wire/home.cpp",
        "  if (sent)\n",
        "  if (sent && WEFT_MUTANT != 101)\n",
    ),
    (
        "src/wire/home.cpp",
        '    return "a HELD-END of no read whose end is awaited";\n',
        '    return WEFT_MUTANT == 101 ? nullptr : "a HELD-END of no read whose end is awaited";\n',
    ),
    (
        "src/wire/home.cpp",
        "  } else {\n",
        "  } else if (WEFT_MUTANT != 31) {\n",
    ),
    (
        "src/wire/home.cpp",
        "  if (!it->second->withdraw())\n",
        "  if (!it->second->withdraw() && !(WEFT_MUTANT == 107 && it->second->stage == Visitor::Stage::making))\n",
    ),
    (
        "src/wire/home.cpp",
        "  close(g, f.val == 1);\n",
        "  if (WEFT_MUTANT == 36)\n"
        "    for (auto& [op, visitor] : open_)\n"
        "      if (visitor->at[0].port == g.port) visitor->withdraw();\n"
        "  close(g, f.val == 1);\n",
    ),
    (
        "src/wire/home.cpp",
        "      visitor->fail();\n",
        "      if (WEFT_MUTANT != 106) visitor->fail();\n",
    ),
    (
        "src/wire/home.cpp",
        "    if (visitor->withdraw()) continue;\n",
        "    if (WEFT_MUTANT != 34 && !(WEFT_MUTANT == 110 && visitor->at[0].port->barrier()) && visitor->withdraw()) continue;\n",
    ),
    (
        "wire/barrier.hpp",
        "    if (died && !std::exchange(closed_, true)) core_.die();\n",
        "    if ((WEFT_MUTANT == 110 || WEFT_MUTANT == 111 ? false : died || WEFT_MUTANT == 115) &&\n"
        "        !std::exchange(closed_, true))\n"
        "      core_.die();\n",
    ),
    (
        "src/wire/far.cpp",
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
        "src/wire/home.cpp",
        "    const bool back = it->second->keeps;\n",
        "    const bool back = it->second->keeps && WEFT_MUTANT != 104;\n",
    ),
    (
        "src/wire/home.cpp",
        "  for (auto& [end, g] : ends) close(g, true);\n",
        "  for (auto& [end, g] : ends) close(g, WEFT_MUTANT != 39);\n",
    ),
    (
        "src/wire/far.cpp",
        "  if (o.word_ != Word::sent) session_.send(Frame{Kind::gone, 0, 0, 0, o.op_, 0, {}});\n",
        "  if (o.word_ != Word::sent && !(WEFT_MUTANT == 147 && !o.writes()))\n"
        "    session_.send(Frame{Kind::gone, 0, 0, 0, o.op_, 0, {}});\n",
    ),
    (
        "src/wire/span.cpp",
        "    if (count == p.size) p.ready = false;\n",
        "    if (count == p.size || WEFT_MUTANT == 134) p.ready = false;\n",
    ),
    (
        "src/wire/span.cpp",
        "  if (asked_ >= seats_.size()) return withdraw();\n",
        "  if (asked_ >= seats_.size() || WEFT_MUTANT == 135) return withdraw();\n",
    ),
    (
        "src/wire/span.cpp",
        "    if (trying_ == &p && !making_) p.stop_trying();\n",
        "    if (trying_ == &p && !making_ && WEFT_MUTANT != 136) p.stop_trying();\n",
    ),
    (
        "src/wire/span.cpp",
        "  while (asked_ < n) {\n",
        "  while (asked_ < n && !(WEFT_MUTANT == 137 && looks_ && asked_ > 0)) {\n",
    ),
    (
        "src/wire/span.cpp",
        "    if (!making_) trying_->stop_trying();\n",
        "    if (!making_ && WEFT_MUTANT != 139) trying_->stop_trying();\n",
    ),
    (
        "src/wire/span.cpp",
        "    if (guards_[i].off && guards_[i].writes == writes && !seats_[i].silent) return true;\n",
        "    if (WEFT_MUTANT != 143 && guards_[i].off && guards_[i].writes == writes && !seats_[i].silent) return true;\n",
    ),
    (
        "src/wire/span.cpp",
        "  if (p.off) {\n    silence(p);\n    if (trying_ == &p)",
        "  if (p.off && WEFT_MUTANT != 144) {\n    silence(p);\n    if (trying_ == &p)",
    ),
    (
        "src/wire/span.cpp",
        "    if (all_silent && (count == 1 || s.part->off)) continue;\n",
        "    if (WEFT_MUTANT == 145 && s.part->off) continue;\n"
        "    if (all_silent && (count == 1 || s.part->off)) continue;\n",
    ),
    (
        "src/wire/span.cpp",
        "    ready = true;\n",
        "    if (WEFT_MUTANT == 76 && span.trying_) return;\n    ready = true;\n",
    ),
    (
        "src/wire/span.cpp",
        "  began_ = silently_ = true;\n",
        "  if (WEFT_MUTANT == 80) asked_ = static_cast<std::uint32_t>(seats_.size());\n"
        "  began_ = silently_ = true;\n",
    ),
    (
        "src/wire/span.cpp",
        "    if (!seats_[i].silent) return false;\n",
        "    if (!seats_[i].silent) {\n"
        "      if (WEFT_MUTANT == 79) continue;\n"
        "      return false;\n"
        "    }\n",
    ),
    (
        "src/wire/span.cpp",
        "  part_over(p, when_lost(trying_ == &p && !making_ ? Word::open : Word::unsent, trying_writes_));\n",
        "  Outcome how = when_lost(trying_ == &p && !making_ ? Word::open : Word::unsent, trying_writes_);\n"
        "  if (WEFT_MUTANT == 78) how.in_doubt = false;\n"
        "  part_over(p, how);\n",
    ),
    (
        "src/wire/span.cpp",
        "  trying_->stop_trying();\n}\n",
        "  trying_->stop_trying();\n"
        "  if (WEFT_MUTANT == 77) end({Status::cancelled, 0, 0, false, false}, nullptr);\n"
        "}\n",
    ),
    (
        "src/wire/slot.cpp",
        "          if (name == mine)\n",
        "          if (name == mine && WEFT_MUTANT != 93)\n",
    ),
    (
        "src/wire/slot.cpp",
        "      if (p->head().shares.load(std::memory_order_seq_cst) != 0)\n",
        "      if (p->head().shares.load(std::memory_order_seq_cst) != 0 && WEFT_MUTANT != 92)\n",
    ),
    (
        "src/wire/slot.cpp",
        "        head.shares.load(std::memory_order_seq_cst) != 0)\n",
        "        head.shares.load(std::memory_order_seq_cst) > (WEFT_MUTANT == 91 ? 1u : 0u))\n",
    ),
    (
        "src/wire/slot.cpp",
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
        "src/wire/everywhere.cpp",
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
        "src/wire/asking.cpp",
        "    send(from, Kind::said, f.op, f.txn, {}, 0);\n",
        "    if (WEFT_MUTANT != 126) send(from, Kind::said, f.op, f.txn, {}, 0);\n",
    ),
    (
        "src/wire/asking.cpp",
        "    if (p == from.get() || !p->session.may_ask()) continue;\n",
        "    if (p == from.get() || !p->session.may_ask() || (WEFT_MUTANT == 127 && from)) continue;\n",
    ),
    (
        "wire/asking.hpp",
        "    if (p->session.is_over() || !p->outside) continue;\n",
        "    if (p->session.is_over() || !p->outside || (WEFT_MUTANT == 129 && p->session.state() != Session::State::open)) continue;\n",
    ),
    (
        "src/wire/asking.cpp",
        "    g.whole = false;\n    finish_if_done(asker, g);\n",
        "    g.whole = false;\n    if (WEFT_MUTANT != 131) finish_if_done(asker, g);\n",
    ),
    (
        "src/wire/asking.cpp",
        "static_cast<std::int32_t>(f.txn - it->second.round) <= 0;",
        "(WEFT_MUTANT == 132 || static_cast<std::int32_t>(f.txn - it->second.round) <= 0);",
    ),
    (
        "src/wire/asking.cpp",
        "  tell_all(f.op, f.txn, whole.mapped(), &from);\n",
        "  if (WEFT_MUTANT != 146) tell_all(f.op, f.txn, whole.mapped(), &from);\n",
    ),
    (
        "wire/resend.hpp",
        "    put(packet, holds_ ? told_ : due_);\n",
        "    put(packet, WEFT_MUTANT == 53 ? seen_ : holds_ ? told_ : due_);\n",
    ),
]
