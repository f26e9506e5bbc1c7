"""The conformance runner: builds and runs every `.lf` file of target C in some folders, and prints
a table by tier, or by folder if there are several, and another by what became of the programs.

A test passes if it builds, ends with status 0, and agrees with its references, if it has any. The
file FILE.out beside the test contains the expected output. FILE.trace, or the `//= TIME MICROSTEP
NAME` lines in the test, contain the expected trace: the reactions of each tag, in order within a
reactor.

Invariants
- A test writes only to a temporary folder of its own; the folder of tests is only read.
- Each test is printed as it ends, with its path.
- A test that has not ended at the limit is stopped. The test has failed, with one exception: if the
  limit is the caller's, a program without a `timeout`, or with one that is not shorter than the
  limit, may still be running, and is reported as stopped. A program with a shorter `timeout` must
  end by itself; as it may lag behind physical time, it has at least LIMIT seconds for that.
- A program for a device is built for it, and does not run; it is reported as stopped too.
- The tier of a test follows from the features that its text uses; lf/README.md has the list.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from weft_lf import reach
from weft_lf.build import Wanted, build, target_of
from weft_lf.elaborate import elaborate
from weft_lf.errors import LfError, rendered
from weft_lf.load import load
from weft_lf.model import Model
from weft_lf.reach import Fate

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
SKIPPED = {"lib", "util", "federated", "docker", "failing", "src-gen", "bin"}


@dataclass
class Result:
    path: Path
    tier: str
    fate: Fate
    text: str = ""
    folder: Path = Path()
    built: bool = True

    @property
    def passed(self) -> bool:
        return self.fate.kind in reach.GOOD

    @property
    def stopped(self) -> bool:
        """Whether the test was still running at the limit, which is allowed, or cannot run here."""
        return self.fate.kind in (reach.RAN_ON, reach.DEVICE)


@dataclass
class Way:
    """The way in which the tests are run: for up to `limit` seconds, or only built (`build`)."""

    limit: float = LIMIT
    bounded: bool = False  # whether the limit is the caller's
    build: bool = False
    jobs: int = 2


def _bare(text: str) -> str:
    """Returns the text without its comments."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def tier_of(text: str) -> str:
    bare = _bare(text)
    for name, pattern in TIERS:
        if re.search(pattern, bare, re.M):
            return name
    return "T0 main, timers, actions, ports, state"


def tests_in(folder: Path, words: Sequence[str], names: Path | None) -> list[Path]:
    if names is not None:
        lines = names.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        found = [folder / line.strip() for line in lines if line.strip()]
        return [p for p in found if not words or any(w in str(p) for w in words)]
    found = [
        p for p in sorted(folder.rglob("*.lf")) if not words or any(w in str(p) for w in words)
    ]
    return [p for p in found if not left_out(p, folder)]


def left_out(path: Path, folder: Path) -> str:
    """Returns why the file is no test; the text is empty if it is one."""
    inside = [part for part in path.relative_to(folder).parts if part in SKIPPED]
    if inside:
        return f"in a folder {inside[0]}"
    text = _bare(path.read_text(errors="replace"))
    target = re.search(r"^\s*target\s+(\w+)", text, re.M)
    if target is not None and target[1] != "C":
        return f"for the target {target[1]}"
    main = re.search(r"\b(main|federated)\s+(realtime\s+)?reactor\b", text)
    return "" if main else "without a main reactor"


def by_reactor(trace: Sequence[str]) -> dict[str, list[str]]:
    """Returns the trace's lines by reactor. Only the order within a reactor is guaranteed."""
    found: dict[str, list[str]] = {}
    for line in trace:
        reactor = line.split()[-1].rpartition(".")[0]
        found.setdefault(reactor, []).append(line)
    return found


def copied(project: Path, root: Path, place: Path) -> Path:
    """Returns a copy of the folder `project` under `place`. Everything else in `root` is linked
    beside the copy, because a program may import from there."""
    copy, at = place / root.name, root
    for name in project.relative_to(root).parts:
        copy.mkdir()
        for beside in at.iterdir():
            if beside.name != name:
                (copy / beside.name).symlink_to(beside)
        copy, at = copy / name, at / name
    shutil.copytree(
        project, copy, ignore=shutil.ignore_patterns("src-gen", "bin", ".*"), symlinks=True
    )
    return copy


def run_one(path: Path, project: Path, root: Path, place: Path, way: Way) -> Result:
    """Builds and runs the test `path` in a copy, under `place`, of the folder `project`. The test
    may use the other files of `project`, and the files of `root`."""
    text = path.read_text(errors="replace")
    tier = tier_of(text)
    copy = copied(project, root if project.is_relative_to(root) else project, place)
    here = copy / path.relative_to(project)
    expected = [line[len(MARK) :] for line in text.splitlines() if line.startswith(MARK)]
    if path.with_suffix(".trace").exists():
        expected = path.with_suffix(".trace").read_text().splitlines()
    step = reach.CHECK
    try:
        model = elaborate(load(here))
        device = target_of(model, "") != "host"
        step = reach.COMPILE
        built = build(model, Wanted("", trace=bool(expected)))
    except LfError as error:
        errors = "\n".join(rendered(p) for p in error.problems)
        fate = reach.refused(error.problems, step == reach.COMPILE)
        return Result(path, tier, fate, errors[-3000:], built=False)
    if built.program is None:
        return Result(path, tier, Fate(reach.WRITTEN))
    if way.build:
        return Result(path, tier, Fate(reach.BUILT))
    if device:
        return Result(path, tier, Fate(reach.DEVICE))
    fate, text = executed(path, model, built.program, place / "trace", expected, way, here.parent)
    return Result(path, tier, fate, text)


def executed(
    path: Path,
    model: Model,
    program: Path,
    traced: Path,
    expected: Sequence[str],
    way: Way,
    folder: Path,
) -> tuple[Fate, str]:
    """Runs the program of the test `path` in `folder`. Returns its fate, and the text of a
    failure."""
    traced.unlink(missing_ok=True)
    timeout = model.program.config.timeout
    ends = timeout is not None and timeout < way.limit * 1e9
    limit = max(way.limit, LIMIT) if ends else way.limit
    try:
        ran = subprocess.run(
            [str(program)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit,
            cwd=folder,
            env={**os.environ, "WEFT_RX_TRACE": str(traced)} if expected else None,
        )
    except subprocess.TimeoutExpired:
        late = f"no end in {limit:g} s"
        return Fate(reach.LATE if ends or not way.bounded else reach.RAN_ON, late), late
    output = ran.stdout.decode(errors="replace")
    if ran.returncode:
        tail = (output + ran.stderr.decode(errors="replace")).splitlines()[-8:]
        status = f"exit status {ran.returncode}"
        return Fate(reach.STATUS, ": ".join([status, *tail[-1:]])), "\n".join([status, *tail])
    reference = path.with_suffix(".out")
    wrong = ""
    if reference.exists() and reference.read_bytes() != ran.stdout:
        wrong = "another output than the reference's"
    elif expected:
        got = traced.read_text().splitlines() if traced.exists() else []
        if by_reactor(got) != by_reactor(expected):
            wrong = difference(expected, got)
    return Fate(reach.OUTPUT if wrong else reach.ENDED, wrong), wrong


def named(result: Result, several: bool) -> str:
    """Returns the path of a test within its folder, or with the folder's name if there are
    several."""
    folder = result.folder.resolve()
    return str(result.path.relative_to(folder.parent if several else folder))


def difference(expected: Sequence[str], got: Sequence[str]) -> str:
    for number, (want, have) in enumerate(
        zip([*expected, "the end"], [*got, "the end"], strict=False)
    ):
        if want != have:
            return f"the trace differs at entry {number + 1}: wanted {want}, got {have}"
    return f"the trace has {len(got)} entries, expected were {len(expected)}"


def project_of(path: Path, folder: Path) -> Path:
    """Returns the folder that a test needs: the folder above the nearest `src`, or else
    `folder`."""
    for above in path.parents:
        if above.name == "src":
            return above.parent
    return folder


def results(
    folder: Path,
    words: Sequence[str] = (),
    names: Path | None = None,
    way: Way | None = None,
    ended: Callable[[Result], None] = lambda _: None,
) -> list[Result]:
    """Returns the results of the tests of `folder`; `ended` is called with each result as its test
    ends."""
    root = folder.resolve()
    how = way or Way()

    def one(path: Path) -> Result:
        with tempfile.TemporaryDirectory(prefix="weft-lf-") as place:
            at = path.resolve()
            result = run_one(at, project_of(at, root), root, Path(place), how)
        result.folder = folder
        ended(result)
        return result

    with ThreadPoolExecutor(how.jobs) as pool:
        return list(pool.map(one, tests_in(folder, words, names)))


def told(result: Result) -> None:
    """Prints a test that has ended: a line, and below it the reasons of a failure."""
    word = "stopped" if result.stopped else "passed" if result.passed else "FAILED"
    lines = [f"{word:8}{result.path}"]
    if not result.passed:
        lines += ["    " + line for line in result.text.splitlines()]
    print("\n".join(lines), flush=True)


def table(found: Sequence[Result], of: Callable[[Result], str], head: str) -> list[str]:
    """Returns a line for each group of results that `of` makes: how many tests were built, ended
    well or were stopped, and how many there are.
    """
    lines = [f"{head:52} built passed stopped    of"]
    for name in sorted({of(r) for r in found}):
        own = [r for r in found if of(r) == name]
        built, stopped = sum(r.built for r in own), sum(r.stopped for r in own)
        passed = sum(r.passed for r in own) - stopped
        lines.append(f"{name:52} {built:5} {passed:6} {stopped:7} {len(own):5}")
    return lines


def conform(
    folders: Sequence[Path], words: Sequence[str], names: Path | None, way: Way | None = None
) -> int:
    """Runs the tests; prints each as it ends, then the table.

    Args:
        folders: the folders of tests.
        words: if not empty, only tests whose path contains one of these words run.
        names: a file that lists the tests to run, or None for all.
        way: how they are run.

    Returns:
        The exit status: 0 if all passed, 1 if some failed, 2 if there are no tests.
    """
    for folder in folders:
        if not folder.is_dir():
            what = "is not a folder" if folder.exists() else "there is no such folder"
            print(f"weft lf: {folder}: {what}", file=sys.stderr)
            return 2
    found: list[Result] = []
    for folder in folders:
        found += results(folder, words, names, way, told)
    if not found:
        what = "no test there has any of these words" if words else "there are no tests"
        print(f"weft lf: {', '.join(map(str, folders))}: {what}", file=sys.stderr)
        return 2
    several = len(folders) > 1
    print("\n".join(reach.by_class((named(r, several), r.fate) for r in found)))
    if not words and names is None:
        others = Counter(left_out(p, f) for f in folders for p in f.rglob("*.lf"))
        lines = [f"{why:52} {others[why]:8}" for why in sorted(others) if why]
        print("\n".join([f"{'files that are no tests':52}    files", *lines]))
    by_folder = table(found, lambda r: str(r.folder), "folder")
    print("\n".join(by_folder if several else table(found, lambda r: r.tier, "tier")))
    passed = sum(r.passed for r in found)
    print(f"{passed} passed, {len(found) - passed} failed in {', '.join(map(str, folders))}")
    return int(passed != len(found))
