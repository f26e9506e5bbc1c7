"""Writes the reports of a room's tests while the tests run, and reads these reports.

A program that runs tests appends lines to the file that $WEFT_PROGRESS names, each line whole at
once. Without this variable nothing is written.

    begin NAME          a test is under way; repeated: it is still alive
    end P F NAME        it is over; P passed and F failed (0 0: its parts were reported one by one,
                        or it was skipped). A second `end` for the same test replaces the first:
                        the test was run once more.

A test hangs if it has been under way for STILL seconds without a report. All tests hang if there
was no report and no output for STILL seconds. Nothing else ends a test: budgets are compared, never
enforced.

    listening --watch()--> the child ended                  -> None
        |        ^
        |        +-- output, or a line of progress
        +-- silent for too long                 -> words about what hangs; the caller ends the child

Invariants
- Only the standard library is used, since the rooms' runners start before anything is installed.
- The variable is taken out of the environment when this module is imported: programs that a test
  starts, even other runners, must not report to this file. A program that must report is given the
  variable again.
- A child that watches its own children has a file of its own, and forwards their reports
  (`prefix`): only one program reports that a name is under way.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

VARIABLE = "WEFT_PROGRESS"
STILL = 300.0  # seconds without a sign of life after which a test counts as hung
# A listener whose runner itself listens waits for these further seconds, because that runner can
# name the test that hangs.
GRACE = 30.0
LOOK = 0.2  # seconds between two reads of the progress


_PLACE = os.environ.pop(VARIABLE, None)


def _write_line(line: str) -> None:
    if _PLACE is None:
        return
    with contextlib.suppress(OSError):  # the listener has ended
        file = os.open(_PLACE, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, (" ".join(line.split("\n")) + "\n").encode(errors="replace"))
        finally:
            os.close(file)


def begin(name: str) -> None:
    """Reports that the test is under way, or still alive."""
    _write_line(f"begin {name}")


def end(name: str, passed: int, failed: int) -> None:
    """Reports that the test has ended."""
    _write_line(f"end {passed} {failed} {name}")


class Listener:
    """The reports of the tests so far in one progress file, which the Listener empties at the
    start.
    """

    def __init__(self, path: Path, prefix: str | None = None) -> None:
        """`prefix`: forwards the reports to the listener of this program, with `prefix` before each
        name. None: does not forward them.
        """
        self.path = path
        self.prefix = prefix
        self.passed = 0
        self.failed = 0
        self.under_way: dict[str, float] = {}  # name → the time of its last sign of life
        self.seconds: dict[str, float] = {}  # name → how long the test took, if it has ended
        self.failures: list[str] = []  # names of failed tests, in the order in which they ended
        self.second: list[str] = []  # names of tests that failed, and passed when run once more
        self.left: list[str] = []  # tests that were under way when the runner ended
        self.signs = 0
        self._began: dict[str, float] = {}  # name of a test under way → the time when it began
        self._failed_parts: dict[str, int] = {}  # name of a failed test → how many parts failed
        self._at = 0
        path.write_bytes(b"")

    def look(self, now: float) -> bool:
        """Reads the new reports. Returns whether there were any."""
        with self.path.open("rb") as file:
            file.seek(self._at)
            lines = file.read()
        lines = lines[: lines.rfind(b"\n") + 1]  # the rest of the last line has not arrived yet
        self._at += len(lines)
        self.signs += bool(lines)
        for line in lines.decode(errors="replace").splitlines():
            self._handle_line(line, now)
        return bool(lines)

    def _handle_line(self, line: str, now: float) -> None:
        if found := re.fullmatch(r"begin (.+)", line):
            self.under_way[found[1]] = now
            self._began.setdefault(found[1], now)
            if self.prefix is not None:
                begin(self.prefix + found[1])
        elif found := re.fullmatch(r"end (\d+) (\d+) (.+)", line):
            self.under_way.pop(found[3], None)
            if (began := self._began.pop(found[3], None)) is not None:
                self.seconds[found[3]] = self.seconds.get(found[3], 0.0) + now - began
            failed = int(found[2])
            if found[3] in self.failures:  # the test was run once more
                self.failures.remove(found[3])
                self.failed -= self._failed_parts[found[3]]
                if not failed:
                    self.second.append(found[3])
            self.passed += int(found[1])
            self.failed += failed
            if failed:
                self.failures.append(found[3])
                self._failed_parts[found[3]] = failed
            if self.prefix is not None:
                end(self.prefix + found[3], int(found[1]), int(found[2]))

    def silent(self, now: float, still: float) -> list[str]:
        """Returns the tests under way that have reported nothing for `still` seconds, the longest
        silent first.
        """
        since = sorted((heard, name) for name, heard in self.under_way.items())
        return [name for heard, name in since if now - heard > still]

    def leave(self) -> list[str]:
        """Returns the tests that were under way when the runner ended, and reports them as over."""
        self.left = list(self.under_way)
        if self.prefix is not None:
            for name in self.left:
                end(self.prefix + name, 0, 0)
        return self.left

    def what_runs(self) -> str:
        """Describes the tests under way; "" if there are none."""
        names = [
            name for _, name in sorted((heard, name) for name, heard in self.under_way.items())
        ]
        return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def watch(
    process: subprocess.Popen[bytes],
    listener: Listener,
    still: float | None,
    heard: Callable[[str], None],
    passing: Callable[[float], None] = lambda now: None,
) -> str | None:
    """Listens to a child (its stdout is a pipe) and its progress. Returns None when the child ends,
    or a description of what hangs.

    `heard` is called with each piece of output, `passing` now and then with the time. `still` is in
    seconds; None: nothing counts as a hang. A child has ended when its first process has, even if
    another process still holds the pipe.
    """
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    os.set_blocking(pipe, False)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    last = looked = time.monotonic()
    last_text = ""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        open_pipe = True
        while True:
            ended = process.poll() is not None
            if open_pipe and selector.select(0 if ended else LOOK):
                data = os.read(pipe, 65536)
                open_pipe = bool(data)
                text = decoder.decode(data, final=not data)
                heard(text)
                last_text = (last_text + text)[-400:]
                last = time.monotonic()
                if open_pipe and last - looked < LOOK:
                    continue
            elif not open_pipe and not ended:
                time.sleep(0.02)
            looked = time.monotonic()
            if listener.look(looked):
                last = looked
            if ended and not (open_pipe and selector.select(0)):
                return None
            passing(looked)
            if still is None:
                continue
            silent = listener.silent(looked, still)
            if silent:
                return f"{', '.join(silent[:3])}: no sign of life for {still:.0f} s"
            if looked - last > still:
                lines = [line.strip() for line in last_text.splitlines() if line.strip()]
                ran = listener.what_runs() or (
                    f'after "{lines[-1]}"' if lines else "from its start"
                )
                return f"no sign of life for {still:.0f} s: {ran}"


class Ran(NamedTuple):
    """The outcome of a program of tests."""

    status: int
    output: str
    told: Listener  # the reports of the program
    hung: str | None  # a description of what hung, if the program had to be ended


def end_at_once(process: subprocess.Popen[bytes]) -> None:
    """Kills the process, and its whole group if it leads one."""
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def run(
    command: Sequence[str | Path],
    *,
    name: str | None = None,
    prefix: str | None = None,
    still: float | None = STILL,
    end_it: Callable[[subprocess.Popen[bytes]], None] = end_at_once,
    stderr: int | None = subprocess.STDOUT,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    own_group: bool = False,
) -> Ran:
    """Runs a program of tests to its end, or until it hangs for `still` seconds and `end_it` has
    ended it.

    Args:
        name: the program is reported as one test with this name; each sign of life of the program
            counts for the test. The caller reports the counts.
        prefix: the program's reports are forwarded, with this before each name.
        still: None is for a program that runs no test (a compiler): it is alive as long as it runs.
    """
    told_at = time.monotonic()
    signs = 0
    output: list[str] = []

    def alive(now: float) -> None:
        nonlocal told_at
        if name is not None and now - told_at > 1.0:
            told_at = now
            begin(name)

    def heard(text: str) -> None:
        output.append(text)
        alive(time.monotonic())

    def passing(now: float) -> None:
        nonlocal signs
        if still is None or listener.signs != signs:
            signs = listener.signs
            alive(now)

    if name is not None:
        begin(name)
    with tempfile.TemporaryDirectory(prefix="weft-progress-") as folder:
        listener = Listener(Path(folder) / "progress", prefix)
        process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=own_group,
            env={**(os.environ if env is None else env), VARIABLE: str(listener.path)},
        )
        try:
            hung = watch(process, listener, still, heard, passing)
            if hung:
                end_it(process)
                watch(process, listener, None, heard)  # reads the last reports and output
        finally:
            end_at_once(process)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
            listener.look(time.monotonic())
            listener.leave()
            if name is not None:
                end(name, 0, 0)
    return Ran(process.returncode, "".join(output), listener, hung)
