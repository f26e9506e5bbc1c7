#!/usr/bin/env python3
"""Runs spin on the Promela models. Each original must pass a complete search; each mutant must
fail.

    check.py [--all] [--only NAME] [--list]

Without --all or --only, two cases of each small model are searched. All other cases, the large
models and the mutants are left to ./run soak: their results change only when a model changes. Each
large model takes 4 to 13 s of CPU time, 115 s in all, and the mutants take 130 s. Run --all when
you have changed a model, or this script.

Prints one line for each case, with its count of states; the last line is `N passed, N failed`. Each
case has a memory limit, and is ended if it hangs. A case that reaches a limit has no complete
search: an original then fails, and a mutant counts as not killed. Needs the package `spin` and a C
compiler.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools"))

import progress  # noqa: E402

MEMORY_MB = 1500
DEPTH = 100_000
BESIDE = 2  # how many cases run at the same time
# These models have millions of states, so their verifiers are optimised, and start first. The
# verifiers of all other models and of all mutants take longer to compile than to run. If clang is
# installed it compiles them, in half the time.
LARGE = ("wire_delegated.pml", "wire_slots.pml", "wire_barrier.pml", "wire_knots.pml")
# A verifier spends its time on packing and finding states. Most of its code is the model's own
# steps, and optimising these would take longer than it saves.
STEPS = """\
#ifdef __clang__
#define AS_IT_IS __attribute__((noinline, optnone))
#else
#define AS_IT_IS __attribute__((optimize("O0")))
#endif
void new_state(void) AS_IT_IS;
void settable(void) AS_IT_IS;
"""


FOR_EVER = ("AGAIN",)


class Case(NamedTuple):
    """One run of spin: the model file, its macros, and the mutant's number, or 0 for the original.
    A mutant must fail.
    """

    model: str
    macros: tuple[str, ...]
    mutant: int

    @property
    def name(self) -> str:
        return " ".join([self.model, *self.macros])

    @property
    def for_ever(self) -> bool:
        """Whether the case checks liveness, so that runs without an end are searched too."""
        return self.macros[:1] == FOR_EVER

    @property
    def large(self) -> bool:
        return self.mutant == 0 and self.model in LARGE


COMMIT = [
    ("TOPO=1",),
    ("TOPO=1", "CANCEL"),
    ("TOPO=2",),
    ("TOPO=2", "CANCEL"),
    ("TOPO=1", "CANCEL", "SCAN"),
    ("TOPO=2", "CANCEL", "SCAN"),
]
# Two choices that cross, with every fault; and a choice of inputs, and one of outputs, with the
# faults that make a difference.
SPANS = [
    *(("TOPO=2", f"FAULT={f}") for f in (0, 1, 2, 5)),
    # both orders of offering would have millions of states
    *(("TOPO=2", f"FAULT={f}", "LATE=1") for f in (3, 4)),
    *(("TOPO=1", f"FAULT={f}") for f in (1, 4, 5)),
    *(("TOPO=5", f"FAULT={f}") for f in (1, 2, 3)),
    ("TOPO=4",),
    ("TOPO=1", "ALL", "ROUNDS=2"),
    ("TOPO=5", "ALL", "ROUNDS=2"),
    ("TOPO=1", "FAULT=3", "ROUNDS=2"),
]
SPANS_MUTANTS = [
    (71, ("TOPO=2",)),
    (72, ("TOPO=2",)),
    (73, ("TOPO=4",)),
    (74, ("TOPO=1",)),
    (75, ("TOPO=1",)),
    (76, ("TOPO=1",)),
    (77, ("TOPO=5", "FAULT=3")),
    (78, ("TOPO=5", "FAULT=1")),
    (79, ("TOPO=1", "FAULT=4")),
    (80, ("TOPO=1", "ALL", "ROUNDS=2")),
    (147, ("TOPO=4",)),
]
# Cases of operations that never wait, of timers, and of guards that are off. Two choices cross:
# both wait, one or both have a timer, or one or both never wait. The second choice may stop.
LOOKS = [
    *(("CASE=1", f"KIND0={k}") for k in range(3)),
    ("CASE=1", "LEAVES"),
    *(("CASE=2", f"KIND0={a}", f"KIND1={b}") for a in range(3) for b in range(3) if a or b),
    ("CASE=2", "KIND0=1", "STOP"),
    *((f"CASE={c}", f"KIND0={k}") for c in (3, 4) for k in range(3)),
    *(("CASE=3", f"KIND0={k}", "CUT") for k in (0, 2)),
]
LOOKS_MUTANTS = [
    (134, ("CASE=1",)),
    (135, ("CASE=1", "KIND0=1")),
    (136, ("CASE=2", "KIND0=1", "STOP")),
    (137, ("CASE=1", "KIND0=2")),
    (138, ("CASE=2", "KIND0=2", "KIND1=2")),
    (139, ("CASE=2", "KIND0=1", "STOP")),
    *((m, ("CASE=3",)) for m in (140, 141, 142, 143)),
    (144, ("CASE=3", "CUT")),
    (145, ("CASE=3", "KIND0=2")),
]
ROUNDS_MUTANTS = [
    (122, ("ROUNDS=1",)),
    (123, ("WAKES=2",)),
    (124, ("DEAF",)),
    (125, ()),
    (126, ("TRIANGLE",)),
    (127, ()),
    (128, ("JOIN",)),
    (129, ("JOIN",)),
    (130, ("KILL",)),
    (131, ("KILL",)),
    (132, ()),
    (133, ()),
]
# Cases of a knot beside running processes: one case for each home of the channel whose ends move.
MOVES = ("CASE=2", "L0=1", "L2=2")
KNOTS = [
    *(("CASE=1", f"HA={h}") for h in range(3)),
    ("CASE=1", "L0=1", "L2=2"),
    ("CASE=1", "ROUNDS=2"),
    *((*MOVES, f"HA={h}") for h in range(3)),
]
KNOTS_MUTANTS = [
    (148, ("CASE=1",)),
    (149, ("CASE=1", "L1=2", "L2=2")),
    (150, ("CASE=1",)),
    (151, (*MOVES, "HA=0")),
    (152, (*MOVES, "HA=1")),
    (153, ("CASE=1",)),
    (154, ("CASE=1",)),
]
CASES = [
    *(Case("commit.pml", macros, 0) for macros in COMMIT),
    Case("standing.pml", (), 0),
    *(Case("foreign.pml", macros, 0) for macros in ((), FOR_EVER)),
    *(Case("ended.pml", macros, 0) for macros in ((), ("CANCEL",))),
    *(Case("commit.pml", ("TOPO=2", "CANCEL", f"MUT={m}"), m) for m in (1, 2, 3)),
    *(Case("standing.pml", (f"MUT={m}",), m) for m in (4, 5)),
    *(Case("foreign.pml", (f"MUT={m}",), m) for m in (6, 7)),
    Case("foreign.pml", (*FOR_EVER, "MUT=25"), 25),
    Case("commit.pml", ("TOPO=1", "CANCEL", "MUT=8"), 8),
    *(Case("ended.pml", (f"MUT={m}",), m) for m in (21, 22, 23)),
    *(Case("wire_delegated.pml", (f"FAULT={f}",), 0) for f in (0, 1, 2)),
    Case("wire_credits.pml", (), 0),
    *(Case("wire_places.pml", (f"KIND={k}",), 0) for k in range(4)),
    *(Case("wire_places.pml", (f"MUT={m}",), m) for m in (157, 158, 160, 161, 162)),
    Case("wire_places.pml", ("KIND=3", "MUT=159"), 159),
    Case("wire_resend.pml", (), 0),
    *(Case("wire_ends.pml", macros, 0) for macros in ((), ("KILL",), ("LEAVE",))),
    *(Case("wire_slots.pml", macros, 0) for macros in ((), ("KILL",))),
    *(Case("wire_held.pml", (f"KEEPS={k}",), 0) for k in (0, 1)),
    *(Case("wire_held.pml", (f"MUT={m}",), m) for m in range(101, 106)),
    Case("wire_later.pml", (), 0),
    *(Case("wire_later.pml", (f"MUT={m}",), m) for m in range(106, 110)),
    Case("wire_barrier.pml", (), 0),
    *(Case("wire_barrier.pml", (f"MUT={m}",), m) for m in range(110, 122)),
    Case("wire_rounds.pml", ("FRAMES=2", "WAKES=2"), 0),
    *(
        Case("wire_rounds.pml", (macro,), 0)
        for macro in ("KILL", "JOIN", "DEAF", "TRIANGLE", "ROUNDS=1")
    ),
    *(Case("wire_rounds.pml", (*macros, f"MUT={m}"), m) for m, macros in ROUNDS_MUTANTS),
    *(
        Case("wire_delegated.pml", (f"FAULT={f}", f"MUT={m}"), m)
        for m, f in ((31, 2), (32, 0), (33, 2), (34, 1), (36, 0), (37, 0))
    ),
    *(Case("wire_credits.pml", (f"MUT={m}",), m) for m in range(41, 48)),
    *(Case("wire_resend.pml", (f"MUT={m}",), m) for m in range(51, 56)),
    *(Case("wire_ends.pml", ("KILL", f"MUT={m}"), m) for m in range(61, 68)),
    *(Case("wire_ends.pml", ("LEAVE", f"MUT={m}"), m) for m in (155, 156)),
    *(Case("wire_slots.pml", (f"MUT={m}",), m) for m in (91, 92, 93, 95, 96)),
    *(Case("wire_spans.pml", macros, 0) for macros in SPANS),
    *(Case("wire_spans.pml", (*macros, f"MUT={m}"), m) for m, macros in SPANS_MUTANTS),
    *(Case("wire_looks.pml", macros, 0) for macros in LOOKS),
    *(Case("wire_looks.pml", (*macros, f"MUT={m}"), m) for m, macros in LOOKS_MUTANTS),
    *(Case("wire_knots.pml", macros, 0) for macros in KNOTS),
    *(Case("wire_knots.pml", (*macros, f"MUT={m}"), m) for m, macros in KNOTS_MUTANTS),
]


def in_each_run() -> list[Case]:
    """Returns the first two originals of each model that is not large."""
    those: dict[str, list[Case]] = {}
    for case in CASES:
        if case.mutant == 0 and not case.large:
            those.setdefault(case.model, []).append(case)
    return [case for cases in those.values() for case in cases[:2]]


class Result(NamedTuple):
    """The result of a verifier. errors: the number of errors, -1 if unknown. complete: the whole
    state space was searched. message: spin's first complaint.
    """

    errors: int
    states: int
    complete: bool
    message: str


def parse(text: str) -> Result:
    """Reads the verifier's output. Anything unexpected counts as incomplete: a search that prints
    nothing has proved nothing.
    """
    errors = re.findall(r"^State-vector \d+ byte, depth reached (\d+), errors: (\d+)$", text, re.M)
    states = re.findall(r"^\s*(\d+) states, stored", text, re.M)
    message = re.search(r"^pan:\d+: (.*)$", text, re.M)
    if len(errors) != 1 or len(states) != 1:
        return Result(-1, 0, False, "the verifier's output was not understood")
    stopped = [
        w
        for w in (
            "max search depth too small",
            "out of memory",
            "reached -DMEMLIM",
            "Search not completed",
            "interrupted",
            "hash table full",
            "VECTORSZ",
        )
        if w.lower() in text.lower()
    ]
    searches = re.search(r"^\s*assertion violations\s*\+", text, re.M)
    ends = re.search(r"^\s*invalid end states\s*\+", text, re.M)
    cycles = re.search(r"^\s*acceptance\s+cycles\s*\+ \(fairness enabled\)", text, re.M)
    complete = not stopped and int(errors[0][1]) == 0 and bool(searches and (ends or cycles))
    return Result(
        int(errors[0][1]),
        int(states[0]),
        complete,
        message.group(1) if message else "; ".join(stopped),
    )


def verify(case: Case, folder: Path) -> Result:
    """Generates, compiles and runs the verifier of one case."""

    def tool(*command: str) -> progress.Ran:
        return progress.run(command, cwd=folder, name=case.name)

    made = tool("spin", "-a", *(f"-D{m}" for m in case.macros), str(HERE / case.model))
    if made.status != 0 or not (folder / "pan.c").exists():
        return Result(-1, 0, False, made.output.strip())
    (folder / "steps.h").write_text(STEPS)
    quick = "clang" if shutil.which("clang") else "cc"
    how = ["cc", "-O1", "-include", "steps.h"] if case.large else [quick, "-O0"]
    what = ["-DNFAIR=3"] if case.for_ever else ["-DSAFETY"]
    bounds = [*what, "-DCOLLAPSE", f"-DMEMLIM={MEMORY_MB}"]
    built = tool(*how, "-w", *bounds, "-o", "pan", "pan.c")
    if built.status != 0:
        return Result(-1, 0, False, built.output.strip())
    # The size of the table of states: clearing the default of 128 MB takes longer than most
    # searches.
    cycles = ["-a", "-f"] if case.for_ever else []
    ran = tool("./pan", f"-m{DEPTH}", f"-w{24 if case.large else 20}", *cycles)
    return Result(-1, 0, False, f"it hung: {ran.hung}") if ran.hung else parse(ran.output)


def judge(case: Case, r: Result) -> tuple[bool, str]:
    """Compares the result with the result that the case must have. Returns (whether the two agree,
    a line for people).
    """
    if case.mutant == 0:
        good = r.errors == 0 and r.complete
        return (
            good,
            f"{r.states:>9} states, no error, searched whole"
            if good
            else f"FAILED: {r.message or 'an error was found'}",
        )
    found = r"acceptance cycle" if case.for_ever else r"assertion violated|invalid end state"
    good = r.errors > 0 and bool(re.search(found, r.message))
    return (
        good,
        f"{r.states:>9} states, killed: {r.message[:60]}"
        if good
        else f"SURVIVED: {r.message or 'no error found'}",
    )


def judged(case: Case) -> tuple[bool, str]:
    with tempfile.TemporaryDirectory(prefix="weft-spin-") as folder:
        good, line = judge(case, verify(case, Path(folder)))
    progress.end(case.name, int(good), int(not good))
    return good, line


def main() -> int:
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--all", action="store_true", help="also the large models and the mutants")
    args.add_argument("--only", default="", help="run the cases whose name contains this")
    args.add_argument("--list", action="store_true", help="list the cases")
    given = args.parse_args()
    every = given.all or given.only or given.list
    cases = [c for c in CASES if given.only in c.name] if every else in_each_run()
    if given.list:
        print("\n".join(c.name for c in cases))
        return 0
    if not cases:
        print(f"no case is named like {given.only!r}: see --list")
        return 2
    for tool in ("spin", "cc"):
        if shutil.which(tool) is None:
            print(
                f"{tool} is missing: install the packages spin and gcc\n0 passed, {len(cases)} failed"
            )
            return 1
    passed = 0
    with ThreadPoolExecutor(BESIDE) as pool:
        begun = {c: pool.submit(judged, c) for c in sorted(cases, key=lambda c: not c.large)}
        for case in cases:
            good, line = begun[case].result()
            passed += good
            print(f"{'ok  ' if good else 'BAD '} {case.name:42} {line}", flush=True)
    if not every:
        print(f"{len(CASES) - len(cases)} cases are left to ./run soak")
    print(f"{passed} passed, {len(cases) - passed} failed")
    return 0 if passed == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
