"""Runs pytest in parallel lanes, and prints as its last line the counts that `./run test` adds up.

    .venv/bin/python tools/pytest_room.py python/tests [PYTEST ARGS…]

A room's tests/run may end with an `exec` of this program. The counts are: each test that passed;
each that failed, and each error in setup, teardown or collection. Tests that were skipped, or
failed as expected, count as neither; pytest names them.

A lane is a pytest process that collects everything and runs the bundles it claims. A bundle is a
few consecutive tests of one file, or all of a file marked `together` (pytestmark =
pytest.mark.together), whose fixtures take long. There are as many lanes as CPUs, at most 4;
WEFT_LANES=1, or an option such as -x, makes it one. The output of all lanes but the first is shown
at the end, and each lane has temporary files of its own.

If only a few tests failed, one lane runs them once more, one by one, when all lanes have ended. A
test that then passes failed by chance, or because the machine was busy. The test counts as passed.
The room names it, and `./run test` names it again at its end, because such a test must be fixed.
Nothing is run again if more than SOME tests failed, or if a lane died.

Tests marked `soak` (`@pytest.mark.soak`, or a parameter with `marks=pytest.mark.soak`) repeat
others, or take long for what they prove. They are left out, and counted, unless WEFT_SOAK is set,
as by `./run soak`. Of a test marked `spread` each value of each parameter is in at least one case
that runs; its other combinations count as marked `soak`. Each test is reported as it begins and
ends (progress.py). A test that has been under way for five minutes hangs: its lane prints where
each thread is, and ends; the test has failed, and tests that had passed in that lane count.

Invariants
1 The last line on stdout is `N passed, N failed`; the exit status is 0 only if nothing failed.
2 Each collected test is run by one lane. Tests that a lane had claimed and not run when it died are
  lost; so a lane that dies fails the room.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import progress
import pytest

BUNDLE = 4  # how many tests are claimed at a time
SOME = 5  # how many failed tests are run once more; if more have failed, the cause is not chance
SOAK = "WEFT_SOAK"  # if this variable is set, tests marked `soak` run too
LANE = "WEFT_LANE"  # the variable from which a lane learns where to claim bundles and write results
DONE = "(the lane has ended)"  # the last line that a lane writes
ALONE = {"-x", "--exitfirst", "--pdb", "--trace", "--collect-only", "--co", "-s", "--help", "-h"}


class Lane:
    """Runs the bundles that it claims, and counts what pytest reports. A test counts once, however
    many of its phases fail.
    """

    def __init__(
        self, shared: Path | None, kept: Path | None = None, only: list[str] | None = None
    ) -> None:
        self.shared = shared  # the folder where bundles are claimed; None: this is the only lane
        self.only = only  # the tests to run; None: all
        self.first = kept is None or kept.stem == "0"
        self.kept = kept  # the file to which each test's result is written immediately
        self.passed: set[str] = set()
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
            self.passed.discard(report.nodeid)
        elif report.passed and report.when == "call" and not hasattr(report, "wasxfail"):
            self.passed.add(report.nodeid)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        progress.begin(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        progress.end(nodeid, int(nodeid in self.passed), int(nodeid in self.failed))
        self.keep(nodeid)

    def keep(self, name: str) -> None:
        """Writes down whether the test passed or failed."""
        if self.kept is not None and name in self.passed | self.failed:
            with self.kept.open("a") as file:
                file.write(json.dumps([name in self.passed, name]) + "\n")

    @pytest.hookimpl(tryfirst=True)  # pytest's own hook reads the marks after this one (-m soak)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leaves out the tests marked `soak`. The first lane reports their number."""
        spread(items)
        if self.only is not None:
            items[:] = [item for item in items if item.nodeid in self.only]
        left = [item for item in items if item.get_closest_marker("soak")]
        if not left or os.environ.get(SOAK):
            return
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left)
        if self.first and self.only is None:
            print(f"{len(left)} tests are left to ./run soak", flush=True)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if self.shared is None or session.testsfailed or session.config.option.collectonly:
            return None  # pytest's own loop runs
        items = self.claimed(session.items)
        item = next(items, None)
        while item is not None:
            following = next(items, None)  # claimed early, so that shared fixtures remain
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following
        return True

    def claimed(self, items: list[pytest.Item]) -> Iterator[pytest.Item]:
        assert self.shared is not None
        for number, bundle in enumerate(bundles(items)):
            try:
                (self.shared / str(number)).touch(exist_ok=False)
            except FileExistsError:
                continue
            yield from bundle


def spread(items: list[pytest.Item]) -> None:
    """Marks `soak` the combinations of parameters that tests marked `spread` can do without."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        marks = item.get_closest_marker("spread") and not item.get_closest_marker("soak")
        if marks and "callspec" in vars(item):  # the test has parameters
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for those in cases.values():
        # The order must not follow the parameters. Otherwise most of the chosen cases would contain
        # the first values.
        rest = sorted(those, key=lambda item: zlib.crc32(item.nodeid.encode()))
        # The name that pytest gives to each value. `callspec.id` contains these names joined.
        values = {item: set(enumerate(vars(item)["callspec"]._idlist)) for item in rest}
        missing = set().union(*values.values())
        while missing:
            best = max(rest, key=lambda item: len(values[item] & missing))
            missing -= values[best]
            rest.remove(best)
        for item in rest:
            item.add_marker(pytest.mark.soak)


def bundles(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """Returns bundles of tests, each of one file. A file marked `together` is one bundle; such
    bundles are claimed first, because they are long.
    """
    files = [list(group) for _, group in itertools.groupby(items, key=lambda item: item.path)]
    whole = [file for file in files if any(item.get_closest_marker("together") for item in file)]
    parts = [
        f[at : at + BUNDLE] for f in files if f not in whole for at in range(0, len(f), BUNDLE)
    ]
    return whole + parts


def how_many(arguments: list[str]) -> int:
    if ALONE.intersection(arguments) or any("::" in a for a in arguments):
        return 1
    return int(os.environ.get("WEFT_LANES") or min(len(os.sched_getaffinity(0)), 4))


def run_lane(
    arguments: list[str],
    shared: Path | None,
    kept: Path | None = None,
    only: list[str] | None = None,
) -> Lane:
    lane = Lane(shared, kept, only)
    stuck = ["-o", f"faulthandler_timeout={progress.STILL:.0f}"]
    stuck += ["-o", "faulthandler_exit_on_timeout=true"]
    style = ["-o", "console_output_style=classic"] if shared else []
    status = pytest.main(["-q", "--no-header", *stuck, *style, *arguments], plugins=[lane])
    if status == pytest.ExitCode.INTERRUPTED and not lane.failed:
        print("pytest was interrupted")
    if status != pytest.ExitCode.OK and not lane.failed:
        lane.failed.add(
            f"pytest: {status!r}"
        )  # a usage error, an internal error or no tests at all
    return lane


def await_lanes(lanes: list[subprocess.Popen[bytes]], listeners: list[progress.Listener]) -> bool:
    """Waits until all lanes have ended, and forwards their reports. Returns whether Ctrl-C was
    pressed (its signal reaches the lanes too).
    """
    interrupted = False
    while True:
        try:
            ended = [lane.poll() is not None for lane in lanes]
            for listener, over in zip(listeners, ended, strict=True):
                listener.look(time.monotonic())
                if over and not listener.left:  # else a test that hung would count as under way
                    listener.leave()
            if all(ended):
                return interrupted
            time.sleep(0.05)
        except KeyboardInterrupt:
            interrupted = True


class Run(NamedTuple):
    """The outcome of lanes that ran at the same time."""

    passed: set[str]
    failed: set[str]
    whole: bool  # whether each lane ran all the tests that it had claimed


def run_lanes(count: int, arguments: list[str], only: list[str] | None = None) -> Run:
    """Runs all tests, or only the tests `only`, if given."""
    passed: set[str] = set()
    failed: set[str] = set()
    whole = True
    # A process that a test has left running might still write to the folder when the folder is
    # removed.
    with tempfile.TemporaryDirectory(prefix="weft-lanes-", ignore_cleanup_errors=True) as folder:
        shared = Path(folder) / "claims"
        shared.mkdir()
        # Each lane has a folder of its own. In the place that all runs of pytest share, each run
        # clears away old folders, and two runs that clear the same folder end with an error.
        files = [Path(folder) / str(lane) for lane in range(count)]
        for place in files:
            place.mkdir()
        outputs = [Path(folder) / f"{lane}.out" for lane in range(count)]
        kept = [output.with_suffix(".kept") for output in outputs]
        listeners = [
            progress.Listener(output.with_suffix(".progress"), prefix="") for output in outputs
        ]
        lanes = [
            subprocess.Popen(
                [sys.executable, __file__, *arguments, f"--basetemp={files[lane] / 'own'}"],
                env={
                    **os.environ,
                    # A pytest that a test runs uses this variable.
                    "PYTEST_DEBUG_TEMPROOT": str(files[lane]),
                    LANE: json.dumps([str(shared), str(kept[lane]), only]),
                    progress.VARIABLE: str(listeners[lane].path),
                },
                stdout=None if lane == 0 else output.open("wb"),
                stderr=None if lane == 0 else subprocess.STDOUT,
            )
            for lane, output in enumerate(outputs)
        ]
        if await_lanes(lanes, listeners):
            failed.add("interrupted")
            whole = False
        for number, lane in enumerate(lanes):
            if number:
                print(outputs[number].read_text(errors="replace"), end="", flush=True)
            lines = kept[number].read_text().splitlines() if kept[number].exists() else []
            results = [json.loads(line) for line in lines]
            passed.update(name for good, name in results if good)
            failed.update(name for good, name in results if not good)
            if results[-1:] != [[lane.returncode == 0, DONE]]:
                whole = False
                failed.update(listeners[number].left or [f"lane {number}"])
                where = listeners[number].what_runs()
                print(
                    f"lane {number} died (status {lane.returncode}){' in ' + where if where else ''}"
                )
    return Run(passed - failed - {DONE}, failed - {DONE}, whole)


def run_again(first: Run, arguments: list[str]) -> Run:
    """If few tests failed, runs these once more, in one lane. Returns the outcome of both runs."""
    tests = sorted(first.failed)
    if not tests or len(tests) > SOME or not first.whole or not all("::" in t for t in tests):
        return first
    print(f"running once more, one after the other: {', '.join(tests)}", flush=True)
    passed = run_lanes(1, arguments, tests).passed & first.failed
    for test in sorted(passed):
        print(f"passed only when it was run once more: {test}", flush=True)
    return Run(first.passed | passed, first.failed - passed, True)


def main(arguments: list[str]) -> int:
    given = os.environ.pop(LANE, None)  # programs that the tests start must not see the variable
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell has started this program in the background (`./run test &`). Programs that the
        # tests start would inherit that SIGINT is ignored, and tests that send it to them would
        # wait forever.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if given:
        shared, kept, only = json.loads(given)
        lane = run_lane(arguments, Path(shared), Path(kept), only)
        for name in lane.failed:
            lane.keep(name)  # the name can be that of an error of collection, which is not a test
        lane.passed.discard(DONE)
        (lane.failed if lane.failed else lane.passed).add(DONE)
        lane.keep(DONE)
        return 1 if lane.failed else 0
    count = how_many(arguments)
    if count > 1:
        passed, failed, _ = run_again(run_lanes(count, arguments), arguments)
    else:
        lane = run_lane(arguments, None)
        passed, failed = lane.passed, lane.failed
    print(f"{len(passed)} passed, {len(failed)} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
