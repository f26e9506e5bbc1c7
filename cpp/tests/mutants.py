#!/usr/bin/env python3
"""Breaks the core on purpose, one line at a time: exploration must notice every change.

A mutant is an edit of a copy of the library. It names the text that it replaces, which must occur
exactly once (apart from line breaks and spaces). Each lettered mutant (mutants_lettered.py) has a
copy and a program of its own. All numbered mutants (mutants_numbered.py) are in one copy, and its
program is told which mutant to switch on.

    mutants.py BUILD_DIR             print the table of MUTANTS.md, which says which scenarios kill
                                     which mutant; exit status 1 if a mutant survives
    mutants.py --check               say whether every mutant's text is still in the library, also
                                     for mutants_checked.py, mutants_io.py, mutants_library.py and
                                     mutants_networks.py
    mutants.py BUILD_DIR --quick     run only the lettered mutants, each against the one scenario
                                     that is named for it; last line `N passed, N failed`
"""

from __future__ import annotations

import concurrent.futures
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable

CPP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CPP.parent / "tools"))
sys.path.insert(0, str(CPP / "explorer"))

import mutated as numbered_ones  # noqa: E402
import progress  # noqa: E402
from mutants_lettered import TEXT, Text  # noqa: E402
from mutants_numbered import NUMBERED  # noqa: E402
from mutated import pattern  # noqa: E402

# The explorations on which lettered mutants are tried; a numbered mutant is tried on all
# explorations.
SOURCES = (
    "explore.cpp",
    "explore_hosted.cpp",
    "explore_wire.cpp",
    "explore_wire_looks.cpp",
    "explore_wire_spans.cpp",
)


def build(
    out: pathlib.Path,
    copy: pathlib.Path,
    engine: pathlib.Path,
    sources: tuple[str, ...] = SOURCES,
) -> None:
    made = progress.run(
        [
            "g++",
            "-std=c++20",
            "-O1",
            f"-I{copy}/include",
            f"-I{CPP}/explorer",
            f"-I{CPP}/tests",
            f'-DWEFT_PRIM_HEADER="{CPP}/explorer/prim.hpp"',
            f'-DWEFT_POOL_HEADER="{CPP}/explorer/pool.hpp"',
            *(str(CPP / "tests" / source) for source in sources),
            str(copy / "src/weft.cpp"),
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
    """Returns a copy of the library with the mutant in it."""
    copy = work / f"copy_{t.name}"
    shutil.rmtree(copy, ignore_errors=True)
    for part in ("include", "src"):
        shutil.copytree(CPP / part, copy / part)
    path = place(t, copy)
    path.write_text(mutated(t, path.read_text()))
    return copy


def place(t: Text, cpp: pathlib.Path) -> pathlib.Path:
    """Returns the mutant's file: src/FILE, or a file under include/weft/ or include/weft/core/."""
    include = cpp / "include/weft"
    return next(
        p for p in (cpp / t.file, include / "core" / t.file, include / t.file) if p.exists()
    )


def mutated(t: Text, text: str) -> str:
    """Returns the file's text with the mutant in it. Raises SystemExit if the text that the
    mutant replaces does not occur exactly once."""
    found = list(pattern(t.old).finditer(text))
    if len(found) != 1:
        raise SystemExit(
            f"mutants.py: mutant {t.name}: its text stands {len(found)} times in {t.file}, not once; bring it up to date"
        )
    begin, end = found[0].span()
    return text[:begin] + t.new + text[end:]


def check() -> int:
    """Checks that all mutants of all five programs apply; last line `N passed, N failed`."""
    import mutants_checked
    import mutants_io
    import mutants_library
    import mutants_networks

    others = (mutants_networks, mutants_library, mutants_io, mutants_checked)
    alike = [*TEXT, *(m for table in others for m in table.MUTANTS)]
    bad = 0
    for t in alike:
        try:
            mutated(t, place(t, CPP).read_text())
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
    """Makes the directory that the first argument names, and returns it. Exits with the usage if
    there is no such argument."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(usage)
        raise SystemExit(2)
    work = pathlib.Path(sys.argv[1]).resolve()
    work.mkdir(parents=True, exist_ok=True)
    return work


def what_failed(run: progress.Ran) -> str:
    """Returns what a program of doctest says of a mutant: the cases that failed, or how the program
    ended; "" if all cases passed.
    """
    if run.hung:
        return "(it hangs)"
    if run.status == 0:
        return ""
    if run.status < 0:
        return f"(the tests themselves crashed: signal {-run.status})"
    cases = [
        line.removeprefix("TEST CASE:").removeprefix("FAIL ").strip()
        for line in run.output.splitlines()
        if line.startswith(("TEST CASE:", "FAIL "))
    ]
    return "; ".join(dict.fromkeys(cases)) or "(the tests failed)"


def each_dies(
    usage: str | None, mutants: list[Text], killed_by: Callable[[Text, pathlib.Path], str]
) -> int:
    """Tries the mutants of the list, or those that are named on the command line. Prints a table of
    what killed each mutant, then the counts."""
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
    quick = "--quick" in sys.argv
    engine = work / "engine.o"
    subprocess.run(
        ["g++", "-std=c++20", "-O2", "-c", str(CPP / "explorer/engine.cpp"), "-o", str(engine)],
        check=True,
    )
    with_numbered = work / "numbered"
    if not quick:
        copy = work / "copy_numbered"
        subprocess.run([sys.executable, str(CPP / "explorer/mutated.py"), str(copy)], check=True)
        build(
            with_numbered,
            copy,
            engine,
            tuple(sorted(p.name for p in (CPP / "tests").glob("explore*.cpp"))),
        )

    def one(m: int | Text) -> tuple[str, str, list[str]]:
        if isinstance(m, int):
            return str(m), NUMBERED[m][0], killers(with_numbered, "--mutant", str(m))
        exe = work / f"mutant_{m.name}"
        build(exe, mutate(m, work), engine)
        more = ["--only", m.killer, "--first"] if quick else []
        return m.name, m.what, killers(exe, *more)

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
