"""The numbered mutants: each breaks an algorithm on purpose, and exploration must notice it
(cpp/tests/MUTANTS.md).

The mutants are not part of the library. This script writes a copy of the library for the explorer.
In this copy every mutant can be switched on by its number (WEFT_MUTANT, a variable of the
explorer), so that one program contains all mutants.

    mutated.py OUT      write the copy; files that have not changed are not written again
    mutated.py --check  only say whether every edit still applies

An edit names the text that it replaces. This text must occur exactly once in its file, apart from
line breaks and spaces; otherwise the edit no longer applies, which is an error.
"""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

import mutated_wire

CPP = Path(__file__).resolve().parent.parent

# The file under include/weft/, or src/FILE; the text in the file; the text that replaces it.
EDITS: list[tuple[str, str, str]] = [
    *mutated_wire.EDITS,
    (
        "runtime/asymmetric.hpp",
        "    inside_.exchange(1, std::memory_order_seq_cst);\n",
        "    if (WEFT_MUTANT != 18) inside_.exchange(1, std::memory_order_seq_cst);\n",
    ),
    (
        "runtime/asymmetric.hpp",
        "    if (announce_renewing()) prim::heavy_fence();\n",
        "    if (WEFT_MUTANT == 20) prim::heavy_fence();\n"
        "    if (announce_renewing() && WEFT_MUTANT != 19 && WEFT_MUTANT != 20) prim::heavy_fence();\n",
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
        "    if (--deciding_ == 0) state_ &= static_cast<std::uint8_t>(~B::kDeciding);\n",
        "    if (--deciding_ == 0) state_ &= static_cast<std::uint8_t>(~B::kDeciding);\n"
        "    if (WEFT_MUTANT == 7) return;\n",
    ),
    (
        "core/notifier.hpp",
        "      if (!std::exchange(looked, true)) spare = offered(deciding_);\n",
        "      if (!std::exchange(looked, true))\n"
        "        spare = offered(deciding_) && (deciding_ == 0 || WEFT_MUTANT != 24);\n",
    ),
    (
        "core/notifier.hpp",
        "      return n > 0 && n <= deciding_;\n",
        "      return n > 0 && (n <= deciding_ || WEFT_MUTANT == 24);\n",
    ),
    (
        "core/notifier.hpp",
        "      if (r.is(NodeFlags::notified) && !(r.choice() && r.choice()->done())) declined_ = mark_now();\n",
        "      if (WEFT_MUTANT != 25 && r.is(NodeFlags::notified) &&\n"
        "          !(r.choice() && r.choice()->done()))\n"
        "        declined_ = mark_now();\n",
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
        "      x.enqueued = true;\n",
        "      x.enqueued = true;\n      if (WEFT_MUTANT == 21 && keep_.has(x)) choice.one_more();\n",
    ),
    (
        "core/select.hpp",
        "        case Attempt::partner_holds:  // The select has committed; the partner wakes it once more.\n"
        "        case Attempt::gone: return parked;\n"
        "        case Attempt::silent:\n"
        "          if (const int c = fell_silent_queued(i); c != none) return c;\n",
        "        case Attempt::partner_holds:  // The select has committed; the partner wakes it once more.\n"
        "        case Attempt::gone: return parked;\n"
        "        case Attempt::silent:\n"
        "          if (const int c = WEFT_MUTANT == 22 ? none : fell_silent_queued(i); c != none) return c;\n",
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
    (  # By this point the scenario has noticed mutant 161.
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
        "writer_queue_.insert_before(writer_queue_.front(), &again);",
        "writer_queue_.insert_before(WEFT_MUTANT == 105 ? nullptr : writer_queue_.front(), &again);",
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
]


class DoesNotApply(Exception):
    """Raised if an edit's text does not occur exactly once in its file."""


def pattern(old: str) -> re.Pattern[str]:
    """Returns a pattern that finds `old` whatever its line breaks, and wherever its comments begin
    a new line."""
    tokens = re.findall(r"\w+|[^\w\s]", old.replace("//", " "))
    return re.compile(r"(?:\s|//)*".join(map(re.escape, tokens)))


def place(file: str) -> str:
    """Returns where a file of EDITS is in cpp/, or in the copy."""
    return file if file.startswith("src/") else f"include/weft/{file}"


def mutated() -> dict[str, str]:
    """Returns the files that have mutants, with the mutants in them. The text of an edit is
    searched in the file as it is committed, without the earlier edits.
    """
    found: dict[str, str] = {}
    places: dict[str, list[tuple[int, int, str]]] = {}
    for file, old, new in EDITS:
        text = found.setdefault(file, (CPP / place(file)).read_text())
        spans = [m.span() for m in pattern(old).finditer(text)]
        if len(spans) != 1:
            raise DoesNotApply(
                f"mutated.py: this stands {len(spans)} times in {place(file)}, not once; bring it up to date:\n{old}"
            )
        places.setdefault(file, []).append((*spans[0], new))
    for file, here in places.items():
        here.sort()
        if any(a[1] > b[0] for a, b in itertools.pairwise(here)):
            raise DoesNotApply(f"mutated.py: two edits of {place(file)} overlap")
        for begin, end, new in reversed(here):
            found[file] = found[file][:begin] + new.strip() + found[file][end:]
    return found


def write(out: Path) -> None:
    """Writes all headers and sources to `out`, with the mutants in the files that have some."""
    texts = {place(file): text for file, text in mutated().items()}
    for path in sorted([*(CPP / "include/weft").rglob("*"), *(CPP / "src").rglob("*")]):
        if not path.is_file():
            continue
        name = path.relative_to(CPP).as_posix()
        text = texts.get(name) or path.read_text()
        to = out / name
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
