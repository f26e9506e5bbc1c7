"""Counts the instructions that an operation takes, before and after a change: instructions.py
BEFORE AFTER [NAME…]

BEFORE and AFTER are two checkouts, each with its own .venv (`./run build` in each). For every case
the program of the bench, as BEFORE contains it, is run under callgrind at two sizes, first with the
headers and the package of BEFORE, then with those of AFTER. The difference of the two counts,
divided by the difference in operations, is the count of one operation: start and end cancel out. A
count does not depend on the load of the machine. It repeats to a tenth of a per cent; with threads
to some per cent, because chance decides which of them sleeps.

Prints one line of a table for each case as soon as the case is counted. Needs valgrind and g++.
Exit status: 0; 1 when a case is worse than before by more than 3 %, or does not run; 2 for bad
usage.

Callgrind runs one thread at a time and has no membarrier, so that biased locks fall back to plain
ones: shared channels cost more here than in reality.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ALLOWED = 1.03  # the agreed limit for a change that should cost nothing
FLAGS = ["-std=c++20", "-O2", "-DNDEBUG", "-pthread"]  # the same as in bench/CMakeLists.txt
TIMEOUT = 900.0
# The program runs without the cyclic collector: otherwise chance would decide whether the collector
# runs once more over all objects.
WITHOUT_COLLECTOR = """
import gc, runpy, sys
gc.disable()
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclasses.dataclass(frozen=True)
class Case:
    """A program of the benches, and the number of its operations at a size."""

    name: str
    program: str  # a program of bench/cpp, or a backend and a program of bench/py
    arguments: str  # the arguments of the program, with {} in place of the size
    sizes: tuple[int, int]
    operations: Callable[[int], int]
    module: str = ""  # WEFT_BENCH_MODULE; if it is given, the program runs without on.py

    def argv(self, size: int) -> list[str]:
        return self.arguments.format(size).split()


def commstime(per: int) -> int:
    return 4 * 2 * per  # 4 communications a round; one stretch warms up, one is timed


def twice(per: int) -> int:
    return 2 * per


def itself(n: int) -> int:
    return n


def cases() -> list[Case]:
    found = [
        Case(f"cpp commstime {kind}", "commstime", f"{kind} 1 {{}}", (1000, 3000), commstime)
        for kind in ("local", "shared", "local-par", "shared-par")
    ]
    found += [
        Case(
            f"cpp select {policy} {kind} {n}",
            "select",
            f"{policy} {kind} {n} 1 {{}}",
            (1000, 3000),
            twice,
        )
        for policy in ("local", "shared")
        for kind in ("mixed", "ready", "standing", "one-shot")
        for n in (2, 10, 100)
    ]
    found += [
        Case(
            f"cpp stressedalt {kind} {n}", "stressedalt", f"{kind} {n} 1 {{}}", (1000, 3000), twice
        )
        for kind in ("local", "shared", "standing")
        for n in (10, 100)
    ]
    found += [
        Case(
            f"cpp ring {policy}", "ring", f"{policy} 100 1 {{}}", (100, 300), lambda per: 100 * per
        )
        for policy in ("local", "shared")
    ]
    found += [
        Case(f"cpp create {kind}", "create", f"{kind} 1 {{}}", (1000, 3000), twice)
        for kind in ("par", "each")
    ]
    found += [
        Case(f"cpp messages {kind} 64", "messages", f"{kind} 64 1 {{}}", (1000, 3000), twice)
        for kind in ("copy", "move", "mobile", "flat")
    ]
    for backend in ("coroutines", "greenlets", "threads"):
        py = f"py {backend}"
        found += [
            Case(f"{py} commstime", f"{backend} commstime", "1 {}", (200, 600), commstime),
            Case(f"{py} select ready 10", f"{backend} stressedalt", "10 1 {}", (400, 1200), twice),
            Case(f"{py} select standing 10", f"{backend} standing", "10 1 {}", (400, 1200), twice),
        ]
    # The list contains no benchmark of threads, because valgrind has no room for so many OS
    # threads.
    for backend in ("coroutines", "greenlets"):
        py = f"py {backend}"
        found += [
            Case(f"{py} make", f"{backend} making", "{}", (500, 1500), itself),
            Case(f"{py} make, 2 laps, end", f"{backend} ring", "{} 1 1", (1000, 3000), itself),
        ]
    found += [
        Case(
            f"py compat {name}",
            f"- {program}",
            "1 {}",
            (200, 600),
            commstime,
            f"weft.compat.{name}",
        )
        for name, program in (
            ("pycsp.greenlets", "commstime_pycsp"),
            ("pycsp.threads", "commstime_pycsp"),
            ("apycsp", "commstime_apycsp"),
        )
    ]
    return found


class Checkout:
    """One of the two checkouts: compiles programs with its own headers, and runs them under
    callgrind.

    The folders `programs` are searched for a program in this order.
    """

    def __init__(self, root: Path, programs: list[Path], work: Path) -> None:
        self._root = root
        self._programs = programs
        self._work = work
        self._built: set[Path] = set()

    def slope(self, case: Case) -> float:
        small, large = case.sizes
        more = self._count(case, large) - self._count(case, small)
        return more / (case.operations(large) - case.operations(small))

    def _count(self, case: Case, size: int) -> int:
        environment = dict(os.environ, PYTHONHASHSEED="0")
        if case.name.startswith("cpp"):
            argv = [str(self._compiled(case.program))]
        else:
            backend, program = case.program.split()
            path = self._find(f"py/{program}.py")
            argv = [str(self._root / ".venv/bin/python"), "-c", WITHOUT_COLLECTOR]
            environment["PYTHONPATH"] = str(path.parent)
            if case.module:
                environment["WEFT_BENCH_MODULE"] = case.module
                argv.append(str(path))
            else:
                argv += [str(path.parent / "on.py"), backend, program]
        with tempfile.TemporaryDirectory(dir=self._work) as folder:
            counted = subprocess.run(
                [
                    "valgrind",
                    "--tool=callgrind",
                    f"--callgrind-out-file={folder}/out",
                    *argv,
                    *case.argv(size),
                ],
                env=environment,
                cwd=self._work,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
        if counted.returncode != 0:
            raise RuntimeError(
                f"status {counted.returncode}: {counted.stderr.strip().splitlines()[-1]}"
            )
        return collected(counted.stderr)

    def _find(self, name: str) -> Path:
        return next((p / name for p in self._programs if (p / name).exists()), Path(name))

    def _compiled(self, program: str) -> Path:
        binary = self._work / program
        if binary not in self._built:
            source = self._find(f"cpp/{program}.cpp")
            flags = ["g++", *FLAGS, f"-I{self._root / 'cpp/include'}"]
            library = self._work / "weft.o"
            if not library.exists():
                whole = self._root / "cpp/src/weft.cpp"
                subprocess.run([*flags, "-c", str(whole), "-o", str(library)], check=True)
            subprocess.run([*flags, str(source), str(library), "-o", str(binary)], check=True)
            self._built.add(binary)
        return binary


def collected(output: str) -> int:
    """Returns the count that callgrind prints when it ends. Raises RuntimeError if there is
    none.
    """
    found = re.search(r"Collected\s*: (\d+)", output)
    if not found:
        raise RuntimeError("callgrind counted nothing")
    return int(found[1])


def line(name: str, before: float, after: float) -> str:
    return f"| {name} | {before:,.1f} | {after:,.1f} | {after / before:.3f} |"


def main(arguments: list[str]) -> int:
    if len(arguments) < 2 or not all((Path(a) / "bench/cpp").is_dir() for a in arguments[:2]):
        print(
            "usage: instructions.py BEFORE AFTER [NAME…], BEFORE and AFTER checkouts",
            file=sys.stderr,
        )
        return 2
    roots = [Path(a).resolve() for a in arguments[:2]]
    chosen = [c for c in cases() if not arguments[2:] or any(a in c.name for a in arguments[2:])]
    if not chosen:
        print(
            "no case has such a name; there are:",
            *(c.name for c in cases()),
            sep="\n  ",
            file=sys.stderr,
        )
        return 2
    print("| case | before | after | ratio |\n|---|---:|---:|---:|", flush=True)
    fine = True
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as both:
        sides = []
        for name, root in zip(("before", "after"), roots, strict=True):
            work = Path(folder) / name
            work.mkdir()
            sides.append(Checkout(root, [r / "bench" for r in roots], work))
        for case in chosen:
            try:
                before, after = both.map(lambda side, case=case: side.slope(case), sides)
            except (RuntimeError, subprocess.SubprocessError) as error:
                print(f"| {case.name} | {error} | | |", flush=True)
                fine = False
                continue
            print(line(case.name, before, after), flush=True)
            fine = fine and after <= ALLOWED * before
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
