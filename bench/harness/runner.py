"""Runs programs, pinned and in interleaved rounds, and collects their samples.

Invariants
- Rounds are interleaved: A B C, A B C, …; so a slow spell of the machine affects all candidates
  alike.
- One program runs at a time, in a process group of its own, pinned from its first instruction.
  However the run ends (normally, by the time-out, by Ctrl-C, for lack of memory), no process of
  that group remains.
- A candidate that has failed once is not run again; the other candidates are.

The output of a program has lines "ns V V …", "bytes V V …" and "create V V …". Anything else on
stdout is an error; stderr is for messages.
"""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from .build import Program
from .targets import MEASURES

LOOKS = 0.25  # seconds between two checks of the available memory


class RunError(Exception):
    """A program failed, hung or printed something other than samples; the message describes the
    failure."""


@dataclasses.dataclass
class Samples:
    """All samples of one candidate, by measure; if there are none, `error` is the reason."""

    values: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    runs: list[list[float]] = dataclasses.field(default_factory=list)  # the ns of each run
    error: str | None = None


def choose_cpus(available: Sequence[int], count: int) -> list[int]:
    """Returns the CPUs to which a program is pinned: the last ones, since the first serves most
    interrupts.

    Raises RunError if there are too few.
    """
    if len(available) < count:
        raise RunError(f"needs {count} CPUs, this machine allows {len(available)}")
    return sorted(available)[-count:]


@contextmanager
def _pinned(cpus: Sequence[int]) -> Iterator[None]:
    """Pins the calling thread to `cpus` while the block runs; a child that is started in the block
    inherits the pinning.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived: the running program is killed, as after Ctrl-C."""


def stopped_by(main: Callable[[], int], name: str, kept: str) -> int:
    """Runs a command and returns the exit status: that of main(); 1 after a RunError, which is
    printed; 130 after Ctrl-C and 143 after SIGTERM. Either signal ends the program that runs, and a
    message with the text `kept` says which results were kept.
    """

    def terminated(*_: object) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, terminated)
    try:
        return main()
    except RunError as error:
        print(f"\n{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        print(f"\n{name}: stopped; {kept}", file=sys.stderr)
        return 143 if isinstance(stop, Terminated) else 130


def available() -> int:
    """Returns how many bytes of memory programs can use before the system swaps, or kills a
    program.
    """
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise RunError("the system does not report how much memory is available")


def _answer(child: subprocess.Popen[str], timeout: float, spare: int) -> tuple[str, str]:
    """Returns the output of the child when the child has ended. Raises RunError."""
    end = time.monotonic() + timeout
    while True:
        left = end - time.monotonic()
        try:
            return child.communicate(timeout=min(left, LOOKS) if spare else left)
        except subprocess.TimeoutExpired as error:
            if end - time.monotonic() <= 0:
                raise RunError(f"gave no result within {timeout:g} s and was ended") from error
        if available() < spare:
            raise RunError(f"left less than {spare >> 20} MB of the machine's memory and was ended")


def _end(child: subprocess.Popen[str]) -> None:
    """Ends the whole process group of a child. The child was started in a session of its own, so no
    other process belongs to the group.
    """
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def run_once(
    program: Program, cpus: Sequence[int], timeout: float, spare: int = 0
) -> dict[str, list[float]]:
    """Runs the program once and returns its samples by measure. With `spare`, the program is ended
    when fewer bytes of memory are left (0: never). Raises RunError.
    """
    with _pinned(cpus):
        try:
            child = subprocess.Popen(
                program.argv,
                env={**os.environ, **program.env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        except OSError as error:
            raise RunError(f"cannot be started: {error}") from error
    try:
        out, err = _answer(child, timeout, spare)
    finally:
        _end(child)
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()
    if child.returncode:
        how = (
            f"signal {signal.Signals(-child.returncode).name}"
            if child.returncode < 0
            else f"status {child.returncode}"
        )
        raise RunError(f"ended with {how}: {last_words(err)}")
    return parse(out)


def last_words(err: str) -> str:
    """Returns the last meaningful line of a program's messages. The frame that Python draws around
    the exceptions of a group does not count.
    """
    plain = (re.sub(r"^[ |]*(\+-[-+]*( [\d.]+ -+)?)?", "", line) for line in err.splitlines())
    lines = [line for line in plain if line and not re.fullmatch(r"and \d+ more exceptions?", line)]
    return lines[-1] if lines else "no message"


def parse(output: str) -> dict[str, list[float]]:
    """Returns the samples in a program's output. Raises RunError if there are none, or if a line
    contains anything else.
    """
    values: dict[str, list[float]] = {}
    for line in output.splitlines():
        measure, *words = line.split() or [""]
        try:
            numbers = [float(word) for word in words]
        except ValueError:
            numbers = []
        if (
            measure not in MEASURES
            or not numbers
            or not all(0 < number < float("inf") for number in numbers)
        ):
            raise RunError(f"printed a line that is not a sample: {line[:80]!r}")
        values.setdefault(measure, []).extend(numbers)
    if not values:
        raise RunError("printed no samples")
    return values


def interleave(
    programs: Mapping[str, Program],
    cpus: Mapping[str, Sequence[int]],
    rounds: int,
    timeout: float,
    before: Callable[[str, int], None] = lambda name, round_: None,
    run: Callable[[Program, Sequence[int], float], dict[str, list[float]]] = run_once,
) -> dict[str, Samples]:
    """Runs all programs, round by round, in the order of `programs`.

    `before(name, round)` is called before each run, and also in place of a run that is left out
    because the program failed earlier. KeyboardInterrupt passes through, after the running program
    has been ended.
    """
    samples = {name: Samples() for name in programs}
    for round_ in range(rounds):
        for name, program in programs.items():
            before(name, round_)
            mine = samples[name]
            if mine.error is not None:
                continue
            try:
                result = run(program, cpus[name], timeout)
            except RunError as error:
                mine.error = str(error)
                mine.values.clear()
                mine.runs.clear()
                continue
            for measure, numbers in result.items():
                mine.values.setdefault(measure, []).extend(numbers)
                if measure == "ns":
                    mine.runs.append(numbers)
    return samples
