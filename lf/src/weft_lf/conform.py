"""The conformance runner: builds and runs every `.lf` file of a folder and prints a table by tier.

A test passes if it builds, ends with status 0, and agrees with its references, if it has any. The
file FILE.out beside the test has the expected output. FILE.trace, or the `//= TIME MICROSTEP NAME`
lines in the test, have the expected trace: the reactions of each tag, in order within a reactor.

Invariants
- A test writes only to a temporary folder of its own; the folder of tests is only read.
- A test that has not ended after LIMIT seconds is stopped and has failed.
- The tier of a test follows from the features that its text uses; lf/README.md has the list.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from weft_lf.build import Wanted, build
from weft_lf.elaborate import elaborate
from weft_lf.errors import LfError, rendered
from weft_lf.load import load

LIMIT = 300
TIERS = (
    ("T6 enclaves, watchdogs", r"@enclave|\bwatchdog\b"),
    ("T5 modes", r"\bmode\s+\w+\s*\{"),
    (
        "T4 inheritance, generics, methods, physical, files",
        r"\bextends\b|\breactor\s+\w+\s*<|\bmethod\b|~>|\bphysical\b|lf_thread_create|\bfiles\s*:|cmake-include",
    ),
    (
        "T3 tokens, arrays, mutable",
        r"\bmutable\b|lf_set_token|lf_set_array|lf_schedule_(value|token|copy)|(input|output)\b[^\n]*(\[\s*\d*\]|\*)\s*$",
    ),
    ("T2 multiports, banks", r"new\s*\[|(input|output)\s*\[|\)\s*\+\s*->|interleaved"),
    ("T1 after, deadlines, spacing", r"\bafter\b|\bdeadline\b|action\s+\w+\s*\([^)]*,"),
)
MARK = "//= "


@dataclass
class Result:
    path: Path
    tier: str
    passed: bool
    text: str = ""


def tier_of(text: str) -> str:
    bare = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    for name, pattern in TIERS:
        if re.search(pattern, bare, re.M):
            return name
    return "T0 main, timers, actions, ports, state"


def tests_in(folder: Path, words: Sequence[str], names: Path | None) -> list[Path]:
    if names is not None:
        found = [folder / line.strip() for line in names.read_text().splitlines() if line.strip()]
    else:
        found = sorted(folder.rglob("*.lf"))
    found = [p for p in found if not words or any(w in str(p) for w in words)]
    if names is not None:
        return found
    skipped = {"lib", "util", "federated", "docker", "failing", "src-gen", "bin"}
    return [p for p in found if not skipped & set(p.relative_to(folder).parts) and has_main(p)]


def has_main(path: Path) -> bool:
    return (
        re.search(r"\b(main|federated)\s+(realtime\s+)?reactor\b", path.read_text(errors="replace"))
        is not None
    )


def by_reactor(trace: Sequence[str]) -> dict[str, list[str]]:
    """The trace's lines by reactor. Only the order within a reactor is guaranteed."""
    found: dict[str, list[str]] = {}
    for line in trace:
        reactor = line.split()[-1].rpartition(".")[0]
        found.setdefault(reactor, []).append(line)
    return found


def run_one(path: Path, project: Path, place: Path) -> Result:
    """Builds and runs the test `path` in a copy, under `place`, of the folder `project`, whose
    other files the test may use."""
    text = path.read_text(errors="replace")
    tier = tier_of(text)
    copy = place / project.name
    if not copy.exists():
        shutil.copytree(
            project, copy, ignore=shutil.ignore_patterns("src-gen", "bin", ".*"), symlinks=True
        )
    here = copy / path.relative_to(project)
    expected = [line[len(MARK) :] for line in text.splitlines() if line.startswith(MARK)]
    if path.with_suffix(".trace").exists():
        expected = path.with_suffix(".trace").read_text().splitlines()
    try:
        built = build(elaborate(load(here)), Wanted("host", trace=bool(expected)))
    except LfError as error:
        return Result(path, tier, False, "\n".join(rendered(p) for p in error.problems)[-3000:])
    assert built.program is not None
    traced = place / "trace"
    traced.unlink(missing_ok=True)
    try:
        ran = subprocess.run(
            [str(built.program)],
            capture_output=True,
            timeout=LIMIT,
            cwd=here.parent,
            env={**os.environ, "WEFT_RX_TRACE": str(traced)} if expected else None,
        )
    except subprocess.TimeoutExpired:
        return Result(path, tier, False, f"no end in {LIMIT} s")
    output = ran.stdout.decode(errors="replace")
    if ran.returncode:
        tail = "\n".join((output + ran.stderr.decode(errors="replace")).splitlines()[-8:])
        return Result(path, tier, False, f"exit status {ran.returncode}\n{tail}")
    reference = path.with_suffix(".out")
    if reference.exists() and reference.read_text() != output:
        return Result(path, tier, False, "another output than the reference's")
    if expected:
        got = traced.read_text().splitlines() if traced.exists() else []
        if by_reactor(got) != by_reactor(expected):
            return Result(path, tier, False, difference(expected, got))
    return Result(path, tier, True)


def difference(expected: Sequence[str], got: Sequence[str]) -> str:
    for number, (want, have) in enumerate(
        zip([*expected, "the end"], [*got, "the end"], strict=False)
    ):
        if want != have:
            return f"the trace differs at entry {number + 1}: wanted {want}, got {have}"
    return f"the trace has {len(got)} entries, expected were {len(expected)}"


def results(
    folder: Path, words: Sequence[str] = (), names: Path | None = None, jobs: int = 2
) -> list[Result]:
    tests = tests_in(folder, words, names)
    root = folder.resolve()
    root = (
        root.parent if root.name == "src" else root
    )  # upstream's tests use files that lie beside src

    def one(path: Path) -> Result:
        with tempfile.TemporaryDirectory(prefix="weft-lf-") as place:
            return run_one(path.resolve(), root, Path(place))

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, tests))


def conform(folder: Path, words: Sequence[str], names: Path | None) -> int:
    """Runs the tests; prints those that failed, then the table.

    Args:
        folder: the folder of tests.
        words: if not empty, only tests whose path contains one of these words run.
        names: a file that lists the tests to run, or None for all.

    Returns:
        The exit status: 0 if all passed, 1 if some failed, 2 if there are no tests.
    """
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "there is no such folder"
        print(f"weft lf: {folder}: {what}", file=sys.stderr)
        return 2
    found = results(folder, words, names)
    if not found:
        what = "no test there has any of these words" if words else "there are no tests"
        print(f"weft lf: {folder}: {what}", file=sys.stderr)
        return 2
    for result in found:
        if not result.passed:
            print(f"FAIL {result.path.name}")
            print("\n".join("    " + line for line in result.text.splitlines()))
    print(f"{'tier':52} passed    of")
    for tier in sorted({r.tier for r in found}):
        of = [r for r in found if r.tier == tier]
        print(f"{tier:52} {sum(r.passed for r in of):6} {len(of):5}")
    passed = sum(r.passed for r in found)
    print(f"{passed} passed, {len(found) - passed} failed")
    return int(passed != len(found))
