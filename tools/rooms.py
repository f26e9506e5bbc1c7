"""Runs the rooms of rooms.toml and adds up their counts: `./run test` and `./run soak`.

Invariants
- Only the standard library is used (Python 3.11, for tomllib): this program runs before anything is
  installed.
- Every room listed is accounted for: it reports its own counts, or it counts at least one failure.
- Parts are set up one after the other, in the order of the rooms that need them. A room marked
  `early` runs once its own parts are installed, while the parts of other rooms are set up. The
  other rooms wait for all parts, so that nothing is installed while they run.
- Two sequences of rooms run side by side, and within each the rooms run one after the other. The
  rooms marked `beside` are the second sequence. It has a lower priority, so that it gets the CPU
  time that the first sequence leaves. The output of such a room is shown when the room has ended.
  (A soak has one sequence.)
- A room runs in a process group of its own. When the room ends, hangs, or this program is stopped,
  no process of that group outlives it.
- Budgets are reported, never enforced: a busy or slow machine fails nothing. Only a hang ends a
  room (progress.py says what a hang is); tests that had passed until then count.
- The last line on stdout is `N passed, N failed`; the exit status is 0 only if nothing failed.

A room goes through these states:

    listed --Groups.start()--> running --follow()--> ended --judge()--> Result
                                  |                                       ^
                                  +--hangs: end_group()-------------------+
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import progress
import ratchet

try:
    import tomllib
except ModuleNotFoundError:
    sys.exit(
        "rooms: the tools need Python 3.11 or later (tomllib); the package itself runs on 3.10"
    )

ROOT = Path(__file__).resolve().parent.parent
SUMMARY = re.compile(r"(\d+) passed, (\d+) failed")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
POLITE = 3.0  # seconds between SIGTERM and SIGKILL
EXCERPT = 20  # lines of output that are shown again at the end, above a room's first `FAIL …`
LINGER = 2.0  # seconds that a room's descendants have to end after the room has ended
HEARTBEAT = 30.0  # seconds of silence after which a line reports that the room still runs
SOAK = 3600.0  # seconds; the soak's budget for a room that does not give one
# How much lower the priority (nice) is of a room marked `early`, because other rooms wait for the
# set-up, and of a room marked `beside`.
EARLY, BESIDE = 5, 5


@dataclass(frozen=True)
class Room:
    """One room of rooms.toml."""

    name: str
    budget: float
    setup: tuple[str, ...] = ()
    soak: float = SOAK
    early: bool = False
    beside: bool = False

    def of(self, kind: str) -> float:
        """Returns the budget of the room's tests or of its soak, in seconds."""
        return self.budget if kind == "test" else self.soak


@dataclass(frozen=True)
class House:
    """The whole of rooms.toml. Times are in seconds."""

    total: float
    setup: float
    spare: float
    still: float
    rooms: tuple[Room, ...]


@dataclass
class Result:
    """The outcome of one room. `notes` give the reasons for failures beyond those that the room
    reported.
    """

    room: str
    passed: int = 0
    failed: int = 0
    seconds: float = 0.0
    cpu: float | None = None  # CPU seconds; None: the system does not report them
    budget: float = 0.0
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # names of the tests that were reported
    second: list[str] = field(default_factory=list)  # tests that passed when run once more
    excerpt: list[str] = field(default_factory=list)  # the output above the first line `FAIL …`

    def fail(self, why: str) -> None:
        """Notes a reason for failure. From then on the room counts at least one failure."""
        self.notes.append(why)
        self.failed = max(self.failed, 1)


class BadHouse(Exception):
    """Raised if rooms.toml or the command line names something that does not exist. The text
    repeats the name."""


class Stopped(Exception):
    """Raised when SIGINT, SIGTERM or SIGHUP has arrived. The argument is the exit status."""


class Stops:
    """Turns the signals that stop this program into Stopped. While a room is started the signals
    are deferred, so that no process of the room is left behind.
    """

    def __init__(self) -> None:
        self.held = False
        self.came: int | None = None

    def take_over(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self.handle)

    def handle(self, number: int, _frame: object) -> None:
        if not self.held:
            raise Stopped(128 + number)
        self.came = number

    def hold(self) -> None:
        self.held = True

    def heed(self) -> None:
        """Makes the signals raise again. A deferred signal raises immediately."""
        self.held = False
        if self.came is not None:
            raise Stopped(128 + self.came)


stops = Stops()


def load_house(path: Path) -> House:
    """Reads rooms.toml. Raises BadHouse for a field that is missing, is unknown, or has the wrong
    type.
    """
    try:
        raw = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BadHouse(f"cannot read {path.name}: {error}") from error

    def seconds(table: dict[str, Any], key: str, where: str, default: float | None = None) -> float:
        value = table.pop(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise BadHouse(f"{path.name}: {where} needs `{key}`, a positive number of seconds")
        return float(value)

    rooms = []
    for name, table in raw.pop("rooms", {}).items():
        where = f"room {name}"
        room = Room(
            name=name,
            budget=seconds(table, "budget", where),
            setup=tuple(table.pop("setup", [])),
            soak=seconds(table, "soak", where, SOAK),
            early=table.pop("early", False),
            beside=table.pop("beside", False),
        )
        for key in ("early", "beside"):
            if not isinstance(getattr(room, key), bool):
                raise BadHouse(f"{path.name}: {where} has `{key}` that is not true or false")
        if table:
            raise BadHouse(f"{path.name}: {where} has unknown {', '.join(table)}")
        rooms.append(room)
    house = House(
        total=seconds(raw, "total", "the file"),
        setup=seconds(raw, "setup", "the file"),
        spare=seconds(raw, "spare", "the file"),
        still=seconds(raw, "still", "the file", progress.STILL + progress.GRACE),
        rooms=tuple(rooms),
    )
    if raw:
        raise BadHouse(f"{path.name}: unknown {', '.join(raw)}")
    return house


def choose(house: House, names: list[str]) -> list[Room]:
    """Returns the named rooms, each once and in the order of the file; if no room is named, all
    rooms.
    """
    known = [room.name for room in house.rooms]
    for name in names:
        if name.rstrip("/") not in known:
            raise BadHouse(f"there is no room '{name}'; rooms: {', '.join(known)}")
    wanted = {name.rstrip("/") for name in names} or set(known)
    return [room for room in house.rooms if room.name in wanted]


def say(text: str) -> None:
    print(text, flush=True)


def group_lives(group: int) -> bool:
    """Returns whether any process of the group still runs.

    A zombie does not count: in a container it might never be reaped, and it holds no resources.
    """
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # the process exists, but belongs to another user (sudo)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # the process ended during the check
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state not in "ZX":
                return True
    return False


def wait_gone(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Returns whether the process and its whole group end within that time."""
    end = time.monotonic() + seconds
    while True:
        process.poll()
        if not group_lives(process.pid):
            return True
        if time.monotonic() >= end:
            return False
        time.sleep(0.02)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends the process and its whole group, by force if SIGTERM does not end them."""
    for number, patience in ((signal.SIGTERM, POLITE), (signal.SIGKILL, POLITE)):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            return
        if wait_gone(process, patience):
            return


class RoomProcess(subprocess.Popen[bytes]):
    """A process whose CPU seconds are read from /proc when the process has ended. They include
    those of its descendants that were waited for. Where there is no /proc, `cpu` remains None.
    """

    cpu: float | None = None

    def poll(self) -> int | None:
        if self.returncode is None and self.cpu is None:
            with contextlib.suppress(OSError, AttributeError):  # AttributeError: no os.waitid
                if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    stat = Path(f"/proc/{self.pid}/stat").read_text()
                    times = stat.rpartition(")")[2].split()[11:15]  # utime, stime, cutime, cstime
                    self.cpu = sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
        return super().poll()


class Groups:
    """The process groups of the rooms that run. stop() ends all groups, and afterwards no group is
    started. `lock` protects `processes` and `stopped`.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.processes: set[subprocess.Popen[bytes]] = set()
        self.stopped = False

    def start(self, begin: Callable[[], RoomProcess]) -> RoomProcess | None:
        """Calls begin(), which starts a process, and returns the process. After stop() starts none,
        and returns None.
        """
        with self.lock:
            if self.stopped:
                return None
            process = begin()
            self.processes.add(process)
            return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        end_group(process)
        with self.lock:
            self.processes.discard(process)

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
            for process in self.processes:
                end_group(process)


groups = Groups()


def start_room(script: Path, progress_file: Path, lower: int) -> RoomProcess:
    # The output is written to a log and also shown, so the room must not treat it as a terminal.
    return RoomProcess(
        [*(["nice", "-n", str(lower)] if lower else []), str(script)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", progress.VARIABLE: str(progress_file)},
    )


def follow(
    process: subprocess.Popen[bytes],
    room: str,
    budget: float,
    still: float,
    log: Path,
    listener: progress.Listener,
    show: bool,
) -> tuple[str, str | None]:
    """Keeps the room's output, and also shows it if `show` is set, until the room ends. Ends a room
    that hangs for `still` seconds.

    Returns the output, and a description of what hangs.
    """
    start = heard_at = time.monotonic()
    kept: list[str] = []
    with log.open("w") as file:

        def heard(text: str) -> None:
            nonlocal heard_at
            kept.append(text)
            file.write(text)
            if show:
                sys.stdout.write(text)
                sys.stdout.flush()
            heard_at = time.monotonic()

        def passing(now: float) -> None:
            nonlocal heard_at
            if show and now - heard_at > HEARTBEAT:
                heard_at = now
                runs = listener.what_runs()
                say(
                    f"  … {room}: {now - start:.0f} s (budget {budget:.0f} s)"
                    + (f", now {runs}" if runs else "")
                )

        hangs = progress.watch(process, listener, still, heard, passing)
        if hangs:
            end_group(process)
            listener.look(time.monotonic())
    output = "".join(kept)
    if show and output and not output.endswith("\n"):
        say("")
    return output, hangs


def judge(result: Result, output: str, status: int) -> None:
    """Reads the counts from the room's last line, and adds a failure for any other fault."""
    lines = [line for line in COLOUR.sub("", output).splitlines() if line.strip()]
    match = SUMMARY.fullmatch(lines[-1].strip()) if lines else None
    if match:
        result.passed += int(match[1])
        result.failed += int(match[2])
        if result.passed + result.failed == 0:
            result.fail("it ran no tests")
    else:
        result.fail("its last line is not `N passed, N failed`")
    if status < 0:
        result.fail(f"it was ended by {signal.Signals(-status).name}")
    elif status > 0 and not (match and result.failed):
        result.fail(f"its exit status is {status}")


def salvage(result: Result, output: str, listener: progress.Listener) -> None:
    """Records the counts of a room that was ended: those that its tests reported one by one, or a
    closing line that it had written.
    """
    closing = [m for m in map(SUMMARY.fullmatch, COLOUR.sub("", output).splitlines()) if m]
    if listener.passed + listener.failed == 0 and closing:
        result.passed, result.failed = int(closing[-1][1]), int(closing[-1][2])
    else:
        result.passed, result.failed = listener.passed, listener.failed
    result.failed += 1


def excerpt(output: str) -> list[str]:
    """Returns the first line that begins with FAIL, and the lines above it, so that a log that was
    cut in the middle still shows the fault.
    """
    lines = [line for line in COLOUR.sub("", output).splitlines() if line.strip()]
    at = next((i for i, line in enumerate(lines) if line.startswith("FAIL ")), -1)
    return lines[max(0, at - EXCERPT) : at + 1]


def write_slowest(place: Path, seconds: dict[str, float]) -> None:
    """Writes how long each part of a room took, the slowest first: first its test files (a test's
    name up to `::`), then all its parts. Parts that ran at the same time count in full. Times are
    as exact as the interval at which progress is read (progress.LOOK)."""
    files: dict[str, float] = {}
    for name, took in seconds.items():
        if ".py::" in name:
            file = name.partition("::")[0]
            files[file] = files.get(file, 0.0) + took
    with place.open("w") as out:
        for table in (files, seconds):
            for name, took in sorted(table.items(), key=lambda entry: -entry[1]):
                out.write(f"{took:7.1f}  {name}\n")


def run_room(room: Room, kind: str, still: float, show: bool = True) -> Result:
    """Runs ROOM/tests/run or ROOM/tests/soak to its end, or until it hangs for `still` seconds.
    Shows the output at once if `show` is set, otherwise when the room has ended.
    """
    budget = room.of(kind)
    result = Result(room.name, budget=budget)
    script = ROOT / room.name / "tests" / ("run" if kind == "test" else "soak")
    if not os.access(script, os.X_OK):
        result.fail(f"{script.relative_to(ROOT)} is missing or not executable")
        return result
    log = ROOT / ".build" / "logs" / f"{kind}-{room.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    listener = progress.Listener(log.with_suffix(".progress"))
    start = time.monotonic()
    if show:
        stops.hold()
    lower = BESIDE if not show else EARLY if room.early else 0
    process = groups.start(lambda: start_room(script, listener.path, lower))
    if process is None:
        result.fail("stopped")
        return result
    output = ""
    try:
        if show:
            stops.heed()
        output, hangs = follow(process, room.name, budget, still, log, listener, show)
        if hangs is None:
            if not wait_gone(process, LINGER):
                result.fail("it left processes behind (ended now)")
            judge(result, output, process.returncode)
        else:
            salvage(result, output, listener)
            result.notes.append(f"it hung and was ended: {hangs}")
        result.failures, result.second = listener.failures, listener.second
        if result.failed:
            result.excerpt = excerpt(output)
    finally:
        groups.end(process)
        assert process.stdout is not None
        process.stdout.close()
        process.wait()
        result.seconds, result.cpu = time.monotonic() - start, process.cpu
        write_slowest(log.with_suffix(".slowest"), listener.seconds)
    if not show:
        say(f"\n=== {room.name}, which ran beside other rooms\n{output.rstrip()}")
    if result.seconds > budget:
        result.notes.append("over its budget")
    return result


class SetUp:
    """Installs what the rooms need, each part once, while rooms that are `early` run.

    `waited` is the time in seconds for which rooms of the first sequence waited for set-up.
    `seconds` is the time that set-up took in all. `lock` protects `process` and `stopped`: no part
    begins after `stop()`.
    """

    def __init__(self, rooms: list[Room]) -> None:
        parts = list(dict.fromkeys(part for room in rooms for part in room.setup))
        self.ended = {part: threading.Event() for part in parts}
        self.failed: set[str] = set()
        self.seconds = self.waited = 0.0
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False
        self.thread = threading.Thread(target=self.install)
        self.thread.start()

    def install(self) -> None:
        start = time.monotonic()
        for part, ended in self.ended.items():
            if self.install_one(part):
                self.failed.add(part)
            self.seconds = time.monotonic() - start
            ended.set()

    def install_one(self, part: str) -> bool:
        """Installs one part. Returns whether that failed, or was prevented by stop()."""
        with self.lock:
            if self.stopped:
                return True
            try:
                self.process = subprocess.Popen(
                    [ROOT / "tools" / "setup", part],
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,  # so that stop() ends its compilers too
                )
            except OSError as error:
                say(f"rooms: tools/setup cannot be run: {error}")
                return True
        return self.process.wait() != 0

    def lacking(self, room: Room, first: bool) -> list[str]:
        """Waits until the room may run. Returns those of its parts whose set-up failed. `first`
        says whether the room is in the first sequence.
        """
        start = time.monotonic()
        for part in room.setup if room.early else self.ended:
            self.ended[part].wait()
        if first:
            self.waited += time.monotonic() - start
        return [part for part in room.setup if part in self.failed]

    def stop(self) -> None:
        """Ends the part under way, and waits until no part runs. If all parts have ended, stop()
        does nothing.
        """
        with self.lock:
            self.stopped = True
            if self.process is not None:
                end_group(self.process)  # does nothing if all of the group has ended
        self.thread.join()


def report(
    results: list[Result],
    kind: str,
    setup: SetUp,
    total_seconds: float,
    budget: float | None,
) -> int:
    """Prints the table and the closing line, and writes out/KIND.json. Returns the exit status."""
    passed = sum(result.passed for result in results)
    failed = sum(result.failed for result in results)
    width = max([len(result.room) for result in results] + [len("set-up")])
    say(f"\n{'room':{width}}  passed  failed  seconds  CPU secs  budget")
    say(
        f"{'set-up':{width}}  {'':6}  {'':6}  {setup.waited:7.1f}"
        f"  {'':8}  {'':6}  {setup.seconds:.1f} in all, beside early rooms"
    )
    for result in results:
        notes = "; ".join(result.notes)
        cpu = "" if result.cpu is None else f"{result.cpu:.1f}"
        say(
            f"{result.room:{width}}  {result.passed:6}  {result.failed:6}  {result.seconds:7.1f}"
            f"  {cpu:>8}  {result.budget:6.0f}{'  ' if notes else ''}{notes}"
        )
    over = (
        ""
        if budget is None
        else f"  {'':8}  {budget:6.0f}{'  over its budget' if total_seconds > budget else ''}"
    )
    say(f"{'all':{width}}  {passed:6}  {failed:6}  {total_seconds:7.1f}{over}")
    out = ROOT / "out"
    out.mkdir(exist_ok=True)
    summary = {
        "passed": passed,
        "failed": failed,
        "seconds": round(total_seconds, 3),
        "setup_seconds": round(setup.seconds, 3),
        "setup_waited": round(setup.waited, 3),
        "rooms": [asdict(result) for result in results],
    }
    (out / f"{kind}.json").write_text(json.dumps(summary, indent=2) + "\n")
    for result in results:
        if result.failed:
            say(
                f"\n{result.room}, what failed (its whole output: .build/logs/{kind}-{result.room}.log)"
            )
            for line in [*result.failures, *result.excerpt]:
                say(f"  {line}")
    for result in results:
        for name in result.second:
            say(f"\n{result.room}, passed only when it was run once more: {name}")
            say(
                f"  how it failed: .build/logs/{kind}-{result.room}.log; such a test is to be mended"
            )
    if kind == "test":
        say("\nMore seeds, builds, compilers and mutants: ./run soak, ./run portability")
    say(f"\n{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def run_sequence(
    rooms: list[Room], kind: str, house: House, setup: SetUp, results: dict[str, Result], show: bool
) -> None:
    """Runs the rooms one after the other, and adds their results to `results`. `show` is set for
    the first sequence.
    """
    for index, room in enumerate(rooms, 1):
        missing = setup.lacking(room, show)
        if groups.stopped:
            return
        if show:
            say(f"\n=== {room.name} ({index} of {len(rooms)}, budget {room.of(kind):.0f} s)")
        if missing:
            result = Result(room.name, budget=room.of(kind))
            result.fail(f"its set-up failed: {', '.join(missing)}")
        else:
            result = run_room(room, kind, house.still, show)
        if not groups.stopped:  # otherwise the room counts as stopped
            results[room.name] = result


def run_all(kind: str, names: list[str]) -> int:
    house = load_house(ROOT / "tools" / "rooms.toml")
    rooms = choose(house, names)
    if kind == "soak" and not names:
        rooms = [room for room in rooms if (ROOT / room.name / "tests" / "soak").exists()]
        if not rooms:
            raise BadHouse("no room has a tests/soak")
    start = time.monotonic()
    results: dict[str, Result] = {}
    exit_status = None
    stops.hold()
    setup = SetUp(rooms)
    beside = [room for room in rooms if room.beside and kind == "test"]
    first = [room for room in rooms if room not in beside]
    if not first:  # all rooms are marked `beside`: they run as the first sequence
        first, beside = beside, []
    second = threading.Thread(
        target=run_sequence, args=(beside, kind, house, setup, results, False)
    )
    second.start()
    try:
        stops.heed()
        run_sequence(first, kind, house, setup, results, True)
        while second.is_alive():
            second.join(HEARTBEAT)
            if second.is_alive():
                left = ", ".join(room.name for room in beside if room.name not in results)
                say(f"  … beside other rooms: {left}")
    except Stopped as stop:
        exit_status = stop.args[0]
    finally:
        groups.stop()
        setup.stop()
        second.join()
    for room in rooms:
        results.setdefault(
            room.name, Result(room.name, failed=1, budget=room.of(kind), notes=["stopped"])
        )
    whole = house.total if kind == "test" and not names else None
    if whole is not None and exit_status is None:
        say("\n" + "\n".join(ratchet.report()))
    ended = [results[room.name] for room in rooms]
    status = report(ended, kind, setup, time.monotonic() - start, whole)
    return status if exit_status is None else exit_status


def main() -> int:
    kind = next(iter(sys.argv[1:2]), "test")
    parser = argparse.ArgumentParser(
        prog=f"./run {kind}",
        description=f"Run ROOM/tests/{'soak' if kind == 'soak' else 'run'} of the rooms in tools/rooms.toml.",
    )
    parser.add_argument("kind", choices=["test", "soak"], help=argparse.SUPPRESS)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help="only these rooms")
    arguments = parser.parse_args()
    stops.take_over()
    try:
        return run_all(arguments.kind, arguments.rooms)
    except BadHouse as error:
        print(f"rooms: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
