"""Runs pytest and closes with the line that `./run test` adds up.

    .venv/bin/python tools/pytest_room.py python/tests [PYTEST ARGS…]

A room's tests/run may end in `exec` of this. What counts: each test that passed; each that failed, and each error in
setup, teardown or collection. Tests that were skipped, or failed as expected, count as neither; pytest names them.

Invariant: the last line on stdout is `N passed, N failed`; the exit status is 0 only if nothing failed.
"""

from __future__ import annotations

import sys

import pytest


class Counter:
    """Counts what pytest reports; a test counts once, however many of its phases fail."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
            self.passed.discard(report.nodeid)
        elif report.passed and report.when == "call" and not hasattr(report, "wasxfail"):
            self.passed.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


def main(arguments: list[str]) -> int:
    counter = Counter()
    status = pytest.main(["-q", "--no-header", *arguments], plugins=[counter])
    failed = len(counter.failed)
    if status == pytest.ExitCode.INTERRUPTED and not failed:
        print("pytest was interrupted")
    if status != pytest.ExitCode.OK:
        failed = max(failed, 1)  # a usage error, an internal error or no tests at all
    print(f"{len(counter.passed)} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
