#!/usr/bin/env python3
"""Break the core on purpose, one line at a time: exploration must notice every time.

Every mutant is a change of the text of a copy of the headers; each says which text it replaces, and
that text must stand there once (line breaks and spaces apart). The numbered ones (the same numbers
as in the Promela models) are in one copy together, and -DWEFT_MUTANT=n chooses:
explorer/mutated.py.

    mutants.py BUILD_DIR             print the table of MUTANTS.md: which scenarios kill which mutant; exit status 1 if one survives
    mutants.py --check               whether every mutant's text still stands in the headers, those of the other two programs too
    mutants.py BUILD_DIR --quick     only the text mutants, each against the one scenario named for it; last line `N passed, N failed`
"""

from __future__ import annotations

import concurrent.futures
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

CPP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CPP.parent / "tools"))
sys.path.insert(0, str(CPP / "explorer"))

import mutated as numbered_ones  # noqa: E402
import progress  # noqa: E402
from mutated import pattern  # noqa: E402

SOURCES = (
    "explore.cpp",
    "explore_hosted.cpp",
    "explore_wire.cpp",
    "explore_wire_looks.cpp",
    "explore_wire_spans.cpp",
)

NUMBERED = {
    1: "a locked peer is skipped",
    2: "a choice claims its own word first",
    3: "no second look while enrolling",
    4: "standing: the writer does not read the word again",
    5: "standing: the alternative does not read its list again",
    6: "foreign: a value is handed to the sleeper",
    7: "foreign: a withdrawal does not move the line on",
    8: "a cancellation stores its word blindly",
    9: "biased lock: the owner does not look whether it was revoked",
    10: "biased lock: revoked without a heavy fence",
    11: "biased lock: the revoker does not wait for the owner to leave",
    12: "one-to-one: who commits does not look whether the other side waits",
    13: "one-to-one: who is in line does not look at the ring again",
    14: "one-to-one: who sleeps beside a light side passes no heavy fence",
    15: "one-to-one: no more heavy fences once the other side has ceased to be light",
    16: "biased lock: who wins the word does not look whether it is biased again by now",
    17: "biased lock: a bias is given once more, not the next one",
    18: "owner's lock: the owner passes no fence when it should",
    19: "owner's lock: a visitor passes no heavy fence when it should",
    20: "owner's lock: a visitor passes its fence before it says that the owner is to pass one",
    21: "ended: only the guards that are enrolled so far are counted",
    22: "ended: a guard found ended while enrolling is not counted down",
    23: "ended: two who end the last two channels at once, neither of whom claims",
    31: "wire: the writer is told before the reader",
    32: "wire: a withdrawal does not wait for its answer",
    33: "wire: a writer whose session ends is told that nothing happened",
    34: "wire: offers outlive their session",
    36: "wire: a retirement drops a write that waits",
    39: "wire: ends whose session ended are retired, not dead",
    40: "wire: of two sleepers who are let to meet the writer is woken first",
    66: "wire: no earlier key goes with an end",
    67: "wire: an adopter that was found by an earlier key does not tell the sender",
    71: "wire: a choice that spans is never held",
    72: "wire: a choice that spans is held whatever the order",
    73: "wire: who chooses elsewhere frees no choice that is held for it",
    74: "wire: a home does not watch again for a choice after it was tried",
    75: "wire: a watch does not look whether somebody is there",
    76: "wire: a READY that comes while another home is tried is dropped",
    77: "wire: the withdrawal of a choice does not wait for the home that is trying",
    78: "wire: of a home lost while trying it is said that nothing happened",
    79: "wire: the first channel that retires ends a choice that spans",
    80: "wire: homes are not asked in order",
    134: "wire: a TRY of some guards of a home answers a READY of the others",
    135: "wire: a timer ends a choice, whichever home has not been asked",
    136: "wire: what is asked after a timer has come is not asked back",
    137: "wire: who only looks asks the first home alone",
    138: "wire: two who only look wait for each other",
    139: "wire: a timer does not ask back what is being asked",
    140: "wire: a home does not look at a guard that is off",
    141: "wire: a home watches a guard that is off",
    142: "wire: a home tries an input that is off",
    143: "wire: an output that is off holds no choice open",
    144: "wire: the loss of a home with nothing but guards that are off is the choice's",
    145: "wire: a home with nothing but guards that are off is not asked",
}


@dataclass
class Text:
    name: str
    what: str
    file: str
    old: str
    new: str
    killer: str  # part of a scenario's name


TEXT = [
    Text(
        "a",
        "claim_both leaves the lower word locked",
        "waiter.hpp",
        "      lo.unlock_as(WAITING);\n      return x_low",
        "      return x_low",
        "four parties, three channels",
    ),
    Text(
        "b",
        "a withdrawal does not tell those for whom the channel has ended by it",
        "channel.hpp",
        "      decided(me, after);\n      tell_if_ended(after);\n      unlock(after);\n    }\n    return was;",
        "      decided(me, after);\n      unlock(after);\n    }\n    return was;",
        "foreign reader whose end is closed",
    ),
    Text(
        "c",
        "standing: not looked at again after a held commit",
        "channel.hpp",
        "if (t == Attempt::committed || t == Attempt::partner_holds) this->template mark_if_more<S>(n);",
        "if (t == Attempt::committed) this->template mark_if_more<S>(n);",
        "the second writer is not forgotten",
    ),
    Text(
        "d",
        "standing: not looked at again after a commit",
        "channel.hpp",
        "if (t == Attempt::committed || t == Attempt::partner_holds) this->template mark_if_more<S>(n);",
        "",
        "retire meets standing",
    ),
    Text(
        "e",
        "extended read on a buffer: the freed slot is offered to writers only",
        "channel.hpp",
        "    Buffering::free_slot(me);\n    rematch(after);",
        "    Buffering::free_slot(me);\n    this->pull(after);",
        "two extended readers and a computed",
    ),
    Text(
        "f",
        "extended read: a value handed over takes no slot",
        "rendezvous.hpp",
        "return S == Side::in || !ring->room() ?",
        "return S == Side::in ?",
        "two extended readers and a computed",
    ),
    Text(
        "g",
        "buffer: a waiting writer is not met when no slot is free",
        "buffered.hpp",
        "if (ring->size == 0) return n.is(NodeFlags::extended) && !ring->room() ? "
        "Attempt::not_ready : this->template meet<Side::in>(n, me, after);",
        "if (ring->size == 0) return Attempt::not_ready;",
        "reader and writer meet while the only slot is held",
    ),
    Text(
        "h",
        "foreign: take() tells its own caller again",
        "notifier.hpp",
        "    if (deciding_ != 0) return;\n",
        "",
        "foreign",
    ),
    Text(
        "i",
        "foreign: writers wait for the decision too",
        "channel.hpp",
        "if (S == Side::in && (state_",
        "if ((state_",
        "slow to decide",
    ),
    Text(
        "j",
        "foreign: a standing output does not learn of it",
        "channel.hpp",
        "      rematch(after);  // a standing output must learn of us\n",
        "",
        "foreign reader meets a standing output",
    ),
    Text(
        "k",
        "foreign: a standing output that waits does not invite it",
        "notifier.hpp",
        "      else\n        invite(after);\n",
        "",
        "foreign reader meets a standing output",
    ),
    Text(
        "l",
        "foreign: looking again at an output joins anew",
        "guard.hpp",
        "->template retry<S>(g.node)",
        "->template enrol<S>(g.node)",
        "foreign select told by two channels",
    ),
    Text(
        "m",
        "foreign: a look takes a committed party out of a line",
        "channel.hpp",
        "    if (!me.is(NodeFlags::queued)) {",
        "    if (false) {",
        "cancelled too late",
    ),
    Text(
        "n",
        "barrier: a party that is gone leaves the others locked",
        "barrier.hpp",
        "        gone = node(l);\n        release_until(l);",
        "        gone = node(l);",
        "the other stays winnable",
    ),
    Text(
        "o",
        "barrier: resigning does not complete the phase",
        "barrier.hpp",
        "if (fine && --enrolled_ > 0) complete_without_us(after);",
        "if (fine) --enrolled_;",
        "resign meets select",
    ),
    Text(
        "p",
        "barrier: the same barrier twice locks its own word",
        "barrier.hpp",
        "    } else if (!same) {",
        "    } else {",
        "the same barrier twice",
    ),
    Text(
        "q",
        "buffer: a slot that falls free is not filled by the waiting writer",
        "buffered.hpp",
        "    if (n.is(NodeFlags::extended)) this->hold_slot(n);\n    pull(after);",
        "    if (n.is(NodeFlags::extended)) this->hold_slot(n);",
        "the freed slot is filled",
    ),
    Text(
        "r",
        "poison passes waiting writers over",
        "channel.hpp",
        "    fail_all(writer_line_, Status::poisoned, after);\n",
        "",
        "poison meets choice: it ends",
    ),
    Text(
        "s",
        "foreign: a standing output that waits invites nobody",
        "standing.hpp",
        "      if (contested_) [[unlikely]]\n        invite_foreigners();\n",
        "",
        "foreign reader meets a standing output",
    ),
    Text(
        "t",
        "a parked thread is not woken",
        "parker.hpp",
        "    prim::unpark(word_);\n",
        "",
        "rendezvous 1x1",
    ),
    Text(
        "u",
        "a wake-up and a nudge: the nudge wins",
        "parker.hpp",
        "if (s & woken) {",
        "if ((s & woken) && !(s & nudged)) {",
        "cancel meets commit: a plain write",
    ),
    Text(
        "A",
        "crew: a process is taken before its worker has let go of it",
        "runtime/deque.hpp",
        "if (!p || p->runs_on.load(std::memory_order_acquire) != 0) [[unlikely]]",
        "if (!p || p->runs_on.load(std::memory_order_acquire) == 255) [[unlikely]]",
        "hosted: a write meets a read on two cores, twice",
    ),
    Text(
        "B",
        "crew: a worker that goes to sleep does not look into the inbox again",
        "runtime/crew.hpp",
        "if (inbox_.load(std::memory_order_seq_cst) || pending_",
        "if (pending_",
        "crew: what is put in from outside",
    ),
    Text(
        "C",
        "crew: a worker that goes to sleep does not look for cancellations again",
        "runtime/crew.hpp",
        " || pending_.load(std::memory_order_seq_cst) != 0) {",
        ") {",
        "crew: the only worker goes to sleep",
    ),
    Text(
        "D",
        "crew: whoever puts something in from outside wakes nobody",
        "runtime/crew.hpp",
        "    signal_one(Parking::woken);\n  }\n  // Somebody was cancelled.",
        "  }\n  // Somebody was cancelled.",
        "crew: what is put in from outside",
    ),
    Text(
        "E",
        "crew: who runs a cancelled process is not told",
        "runtime/crew.hpp",
        "      workers_[by - 1].parking_.signal(Parking::nudged);\n",
        "      static_cast<void>(by);\n",
        "crew: a cancelled process is withdrawn",
    ),
    Text(
        "F",
        "owner's lock: the owner does not look for a visitor",
        "runtime/asymmetric.hpp",
        "== light && visitor_.load(std::memory_order_seq_cst) == 0) [[likely]]",
        "== light && visitor_.load(std::memory_order_seq_cst) < 2)",
        "crew: a cancellation is served while another",
    ),
    Text(
        "G",
        "owner's lock: the visitor does not wait for the owner",
        "runtime/asymmetric.hpp",
        "for (unsigned round = 0; inside_.load(std::memory_order_seq_cst) != 0;) prim::pause(round++);",
        "static_cast<void>(inside_.load(std::memory_order_seq_cst));",
        "crew: a surplus is shared",
    ),
    Text(
        "H",
        "crew: nobody takes over from a keeper that would sleep too long",
        "runtime/crew.hpp",
        " || host().earliest() < keeper_until_",
        "",
        "crew: a timer that is armed when the keeper sleeps",
    ),
    Text(
        "I",
        "crew: nobody is appointed keeper",
        "runtime/crew.hpp",
        "    if (keeper_.load(std::memory_order_relaxed) & kWatching) return;\n",
        "    if (keeper_.load(std::memory_order_relaxed) < 999) return;\n",
        "crew: three workers, the keeper has left",
    ),
    Text(
        "J",
        "crew: a worker that is called does not ask whether it is done",
        "runtime/crew.hpp",
        "      idle(w);\n      asked = false;\n",
        "      idle(w);\n",
        "crew: three workers, the keeper has left",
    ),
    Text(
        "L",
        "crew: cancellations that come while others are served are forgotten",
        "runtime/crew.hpp",
        "      resume_all(w);\n",
        "      resume_all(w);\n      pending_.store(0, std::memory_order_seq_cst);\n",
        "crew: a cancelled process is withdrawn",
    ),
    Text(
        "M",
        "crew: the keeper does not look after long steps",
        "runtime/crew.hpp",
        "    if (s == 0 && kept) steal(w, true);\n",
        "    static_cast<void>(kept);\n",
        "crew: a step that goes on and on does not hold up those behind it: the keeper",
    ),
    Text(
        "N",
        "crew: cancellations are served while a worker takes a process",
        "runtime/crew.hpp",
        "    for (unsigned i = 0; i < n_; ++i)\n      if (i != me.index) workers_[i].queue.lock().await_owner();\n",
        "",
        "crew: a cancellation is served while",
    ),
    Text(
        "O",
        "together: an end does not withdraw the others",
        "runtime/together.hpp",
        "      word_.raise(kEnded);\n      withdraw_rest();\n",
        "      word_.raise(kEnded);\n",
        "together: a poison of one",
    ),
    Text(
        "P",
        "together: an end that came before the process slept is forgotten",
        "runtime/together.hpp",
        "      if (w & kEnded) {  // before",
        "      if ((w & kEnded) && false) {  // before",
        "together: a poison that is met while",
    ),
    Text(
        "Q",
        "together: what ended at once does not withdraw those before it",
        "runtime/together.hpp",
        "offers_[i].status = Status::cancelled;  // those that are not begun\n      withdraw_rest();\n",
        "offers_[i].status = Status::cancelled;  // those that are not begun\n",
        "together: a poison that is met while",
    ),
    Text(
        "R",
        "together: a cancellation takes no count of its own",
        "runtime/together.hpp",
        "    self.word_.add(1, std::memory_order_relaxed);  // nobody else wakes us meanwhile\n"
        "    self.withdraw_rest();\n    return self.one_decided(false);",
        "    self.withdraw_rest();\n    return (self.word_.load(std::memory_order_acquire) & kUndecided) == 0;",
        "together: a cancellation meets",
    ),
    Text(
        "S",
        "together: who decides the last one wakes a process that is awake",
        "runtime/together.hpp",
        "const bool last = (w & kAsleep) != 0 && (w & kUndecided) == 1;",
        "const bool last = (w & kUndecided) == 1;",
        "together:",
    ),
    Text(
        "T",
        "hosted: a process is let go before it is suspended",
        "runtime/cores.hpp",
        "    c.running = p;\n    if (c.attention)",
        "    c.running = p;\n    p->runs_on.store(0, std::memory_order_release);\n    if (c.attention)",
        "hosted: a write meets a read",
    ),
    Text(
        "U",
        "hosted: who is started in a cancelled group is not cancelled",
        "impl/group.ipp",
        "  if (cancelled_) p.cancel().store(1, std::memory_order_relaxed);\n",
        "",
        "hosted: a member fails as its block",
    ),
    Text(
        "V",
        "hosted: a block that has ended does not give the request back",
        "impl/group.ipp",
        "  if (unmet) run.withdraw_block(*parent);",
        "",
        "hosted: a member fails as its block",
    ),
    Text(
        "W",
        "hosted: the failure of a member does not cancel the block",
        "impl/group.ipp",
        "  cancel();\n  ask_block();\n  if (also) {",
        "  cancel();\n  if (also) {",
        "hosted: a member fails while its block",
    ),
    Text(
        "X",
        "hosted: nobody waits for a group that was left",
        "impl/group.ipp",
        "  successor->adopt();\n",
        "",
        "hosted: a group is left",
    ),
    Text(
        "Y",
        "hosted: a request is passed on at every pass",
        "impl/group.ipp",
        "  if (std::exchange(passed_on_, true)) return;\n",
        "",
        "hosted: a request is passed on",
    ),
    Text(
        "Z",
        "hosted: virtual time jumps, and the run counts as idle while it wakes",
        "impl/run.ipp",
        "      activated();  // held until those who woke are counted\n",
        "",
        "hosted: virtual time jumps",
    ),
    Text(
        "aa",
        "hosted: the timer of a select that was decided otherwise stays armed",
        "selecting.hpp",
        "      armed = false;\n      run_of(*p).disarm(timer);\n",
        "      armed = false;\n",
        "hosted: a timeout meets",
    ),
    Text(
        "ab",
        "hosted: a process that poison ended retires its ends",
        "coroutine.hpp",
        "      c.dying = p.dying;\n",
        "",
        "hosted: poison meets",
    ),
    Text(
        "ac",
        "hosted: a look for partial deadlocks holds nobody",
        "impl/partial.ipp",
        "  here.held(takes, &look);\n",
        "  takes(&look);\n",
        "hosted: a look for partial",
    ),
    Text(
        "ad",
        "hosted: a cancellation that came during a look is forgotten",
        "runtime/crew.hpp",
        "        if (crew.pending_.load(std::memory_order_seq_cst) != 0) me.parking_.signal(Parking::nudged);",
        "        crew.pending_.store(0, std::memory_order_seq_cst);",
        "hosted: a look meets",
    ),
    Text(
        "ae",
        "hosted: who begins to host does not look whether it was asked before",
        "impl/thread.ipp",
        "  if (self_.cancel().load(std::memory_order_seq_cst)) executor_.nudge();\n",
        "",
        "hosted: a thread process is asked to end as it begins",
    ),
    Text(
        "af",
        "hosted: what ran on a thread goes while it is still told",
        "runtime/thread.hpp",
        "      self_.nudging_.wait_until_none();  // who still found the executor here, which goes after us\n",
        "",
        "hosted: a thread process is asked to end as its network has",
    ),
    Text(
        "ag",
        "latch: a choice that enrols does not look again",
        "latch.hpp",
        "    if (set_)\n      t = ",
        "    if (false)\n      t = ",
        "latch: set while one comes",
    ),
    Text(
        "ah",
        "latch: a choice that has committed elsewhere is woken by it too",
        "latch.hpp",
        "      if (Free{}.with(&n) == Claim::won) after.finish(&n, Status::ok);",
        "      Free{}.with(&n);\n      after.finish(&n, Status::ok);",
        "latch: cancel meets the set, a choice",
    ),
]


def build(
    out: pathlib.Path,
    include: pathlib.Path,
    engine: pathlib.Path,
    number: int,
    sources: tuple[str, ...] = SOURCES,
) -> None:
    made = progress.run(
        [
            "g++",
            "-std=c++20",
            "-O1",
            f"-I{include}",
            f"-I{CPP}/explorer",
            f"-I{CPP}/tests",
            f'-DWEFT_PRIM_HEADER="{CPP}/explorer/prim.hpp"',
            f'-DWEFT_POOL_HEADER="{CPP}/explorer/pool.hpp"',
            f"-DWEFT_MUTANT={number}",
            *(str(CPP / "tests" / source) for source in sources),
            str(engine),
            "-o",
            str(out),
        ],
        name=f"building {out.name}",
        still=None,
    )
    if made.status:
        raise SystemExit(f"mutants.py: {out.name} does not build:\n{made.output}")


def killers(exe: pathlib.Path, *more: str) -> list[str]:
    command = [str(exe), "--killers", "--executions", "150000", *more]
    run = progress.run(command, name=f"exploration of {exe.name}", stderr=subprocess.DEVNULL)
    lines = [line for line in run.output.splitlines() if line]
    if run.hung:
        lines.append("(the exploration itself hung)")
    elif run.status < 0 or (run.status and lines):
        lines.append(f"(the exploration itself crashed: signal {-run.status})")
    return lines


def mutate(t: Text, work: pathlib.Path) -> pathlib.Path:
    include = work / f"include_{t.name}"
    shutil.rmtree(include, ignore_errors=True)
    shutil.copytree(CPP / "include", include)
    path = header(t, include)
    path.write_text(mutated(t, path.read_text()))
    return include


def header(t: Text, include: pathlib.Path) -> pathlib.Path:
    places = (include / "weft" / "core" / t.file, include / "weft" / t.file)
    return next(p for p in places if p.exists())


def mutated(t: Text, text: str) -> str:
    """The file's text with the mutant in it. Raises SystemExit if what it replaces does not stand
    there once."""
    found = list(pattern(t.old).finditer(text))
    if len(found) != 1:
        raise SystemExit(
            f"mutants.py: mutant {t.name}: its text stands {len(found)} times in {t.file}, not once; bring it up to date"
        )
    begin, end = found[0].span()
    return text[:begin] + t.new + text[end:]


def check() -> int:
    """Whether all apply, of all three programs; last line `N passed, N failed`."""
    import mutants_library
    import mutants_networks

    alike = [*TEXT, *mutants_networks.MUTANTS, *mutants_library.MUTANTS]
    bad = 0
    for t in alike:
        try:
            mutated(t, header(t, CPP / "include").read_text())
        except SystemExit as gone:
            print(gone)
            bad += 1
    try:
        numbered_ones.mutated()
    except numbered_ones.DoesNotApply as gone:
        print(gone)
        bad += 1
    print(f"{len(alike) + 1 - bad} passed, {bad} failed")
    return 1 if bad else 0


def work_directory(usage: str | None) -> pathlib.Path:
    """That of the first argument, made. Exits with the usage if there is none."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(usage)
        raise SystemExit(2)
    work = pathlib.Path(sys.argv[1]).resolve()
    work.mkdir(parents=True, exist_ok=True)
    return work


def each_dies(
    usage: str | None, mutants: list[Text], killed_by: Callable[[Text, pathlib.Path], str]
) -> int:
    """The program of a list of mutants, or of those that are named: a table of what killed each,
    then the counts."""
    work = work_directory(usage)
    todo = [m for m in mutants if not sys.argv[2:] or m.name in sys.argv[2:]]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(zip(todo, pool.map(lambda m: killed_by(m, work), todo), strict=True))
    print("| mutant | what is broken | killed by |\n|---|---|---|")
    for m, by in results:
        print(f"| {m.name} | {m.what} | {by or '**nothing**'} |")
    alive = sum(not by for _, by in results)
    print(f"{len(results) - alive} passed, {alive} failed")
    return 1 if alive else 0


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        return check()
    work = work_directory(__doc__)
    numbered = work / "include_numbered"
    subprocess.run([sys.executable, str(CPP / "explorer/mutated.py"), str(numbered)], check=True)
    quick = "--quick" in sys.argv
    engine = work / "engine.o"
    subprocess.run(
        ["g++", "-std=c++20", "-O2", "-c", str(CPP / "explorer/engine.cpp"), "-o", str(engine)],
        check=True,
    )

    def one(m: int | Text) -> tuple[str, str, list[str]]:
        if isinstance(m, int):
            exe, include, number, name, what = (
                work / f"mutant_{m}",
                numbered,
                m,
                str(m),
                NUMBERED[m],
            )
        else:
            exe, include, number, name, what = (
                work / f"mutant_{m.name}",
                mutate(m, work),
                0,
                m.name,
                m.what,
            )
        build(exe, include, engine, number)
        more = ["--only", m.killer, "--first"] if quick and isinstance(m, Text) else []
        return name, what, killers(exe, *more)

    todo: list[int | Text] = [*TEXT] if quick else [*NUMBERED, *TEXT]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(one, todo))
    alive = [r for r in results if not r[2]]
    if quick:
        for name, what, _ in alive:
            print(f"FAIL  mutant {name} lives: {what}")
        print(f"{len(results) - len(alive)} passed, {len(alive)} failed")
        return 1 if alive else 0
    print("| mutant | what is broken | killed by (exploration of the code) |\n|---|---|---|")
    for name, what, by in results:
        shown = "; ".join(by[:3]) + (f"; and {len(by) - 3} more" if len(by) > 3 else "")
        print(f"| {name} | {what} | {shown or '**nothing**'} |")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
