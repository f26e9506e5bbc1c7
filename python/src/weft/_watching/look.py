"""The program's part of a look from outside (rules 14.9, 14.10): it answers the questions of `weft
ps`, `weft top` and `weft view`.

python/native/watching/look_door.cpp calls serve() on a helper thread when a visitor has connected,
and imports this module only then. The activity of processes is sampled
(python/native/rounds/look.cpp): a process records nothing for a look.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import sys
import time
from typing import Any

from weft._extension import native as _native
from weft._watching import deadlocks as _deadlocks
from weft._watching import look_boards as _look_boards
from weft._watching import observers as _observers
from weft._watching import supervision as _supervision
from weft._watching.look_frames import REQUEST, BadMessage, Reader, message
from weft.errors import BadUse

#: the activities of a process that a sample finds, in the order of look.cpp
STATES = ("runs", "due", "reads", "writes", "either", "time", "barrier", "waits", "io")
SAMPLES = 20  #: how many samples an interval has
LONGEST = 60.0  #: the longest interval, in seconds
MAX_PROCESSES = 2_000  #: in an answer, if the request sets no other limit
_PIECE = 400  #: how many rows are made at a time; other threads can run between two pieces
_PAUSE = 0.0001  #: seconds between two pieces in which other threads can run
_PATIENCE = 3600.0  #: seconds of silence after which a visitor is disconnected


def serve(descriptor: int) -> None:
    """Answers the requests on this socket until the visitor has disconnected. The socket stays
    open."""
    with socket.socket(fileno=os.dup(descriptor)) as visitor:
        visitor.settimeout(_PATIENCE)
        with contextlib.suppress(OSError):  # the visitor has disconnected, or was silent too long
            _answer_all(visitor)


def _answer_all(visitor: socket.socket) -> None:
    reader = Reader(REQUEST)
    look = Look()
    while data := visitor.recv(REQUEST):
        try:
            requests = reader.feed(data)
        except BadMessage as error:
            visitor.sendall(message({"error": str(error)}))
            return
        for request in requests:
            visitor.sendall(message(_answer(look, request)))


def _answer(look: Look, request: dict[str, Any]) -> dict[str, Any]:
    match request.get("ask"):
        case "who":
            return who()
        case "look":
            interval, most = request.get("interval", 0.1), request.get("most", MAX_PROCESSES)
            if not _is_number(interval) or not 0 <= interval <= LONGEST:
                return {"error": f"the interval must be from 0 to {LONGEST:g} s"}
            if type(most) is not int or most < 0:
                return {"error": "the number of processes must be 0 or more"}
            return who() | look.over(interval, most)
        case "flight":
            return who() | _flight(request.get("path"))
        case "stuck":
            found = _deadlocks.deadlocks().processes
            return {"stuck": [[one.path, one.pid, one.waits_for] for one in found]}
        case _:
            return {"error": 'the question must be "who", "look", "stuck" or "flight"'}


def _flight(path: Any) -> dict[str, Any]:
    """Writes the flight recorder's file."""
    if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
        return {"error": "the path of the file must be absolute"}
    from weft._watching import flight as _flight_recorder

    try:
        _flight_recorder.write(path)
    except BadUse as error:
        return {"error": str(error)}
    return {"path": path}


def _is_number(x: Any) -> bool:
    return type(x) in (int, float) and math.isfinite(x)


def who() -> dict[str, Any]:
    """Returns a description of this program."""
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "program": [str(word) for word in getattr(sys, "argv", [])][:64],
        "version": _native.version,
        "python": ".".join(map(str, sys.version_info[:2])),
    }


class Look:
    """The looks of one visitor. Each answer describes what has happened since the previous one."""

    def __init__(self) -> None:
        self._native = _native._look_new()
        self._parts = 1  # in how many parts the interval begins and ends
        self._boards = _look_boards.Boards()

    def over(self, interval: float, most: int = MAX_PROCESSES) -> dict[str, Any]:
        """Returns what every process did in this interval, according to samples, and where it is
        now."""
        self.begin()
        self._boards.begin()
        start = time.perf_counter()
        self._samples(start, interval)
        rows = self._rows(most)
        channels, samples, seconds = self.channels(start)
        count = _native._look(self._native) if len(rows) >= most else len(rows)
        calls, away = _elsewhere(rows)
        processes = [_process(row) for row in rows]
        self._boards.add_to(processes, channels, seconds)
        _operations(processes, channels)
        return {
            "seconds": seconds,
            "samples": samples,
            "processes": processes,
            "left_out": max(count - len(rows), 0),
            "channels": channels,
            "calls": calls,
            "away": away,
            # the processes that supervisors have started, by their paths
            "lives": _supervision.lives(),
        }

    def begin(self, anew: bool = True) -> None:
        """Begins an interval: earlier samples do not count, nor do earlier values. If `anew` is
        False, the values since the end of the last interval count.
        """
        self._parts = _native._look_parts(self._native)
        for part in range(self._parts):
            if part:
                time.sleep(_PAUSE)
            _native._look_base(self._native, part, anew)

    def channels(self, start: float) -> tuple[dict[str, Any], int, float]:
        """Returns the channels by their keys, the number of samples, and the seconds since `start`,
        when the interval began. The interval ends with this call.
        """
        by_key, samples = _native._look_channels(self._native, 0)
        for part in range(1, self._parts):
            time.sleep(_PAUSE)
            more, samples = _native._look_channels(self._native, part)
            by_key |= more
        seconds = max(time.perf_counter() - start, 1e-9)
        channels = {
            str(key): _channel(row, seconds, samples)
            for key, row in by_key.items()
            if row[-1] not in _observers._own
        }
        return channels, samples, seconds

    def now(self, most: int) -> list[str]:
        """Returns the state of each process at this moment."""
        return [STATES[row[4]] for row in self._rows(most)]

    def sample(self) -> None:
        """Takes one sample."""
        _native._look(self._native)

    def _samples(self, start: float, interval: float) -> None:
        for n in range(1, SAMPLES + 1):
            self.sample()
            self._boards.sample()
            now = time.perf_counter() - start
            if now >= interval:
                break
            time.sleep(max(n * interval / SAMPLES - now, 0))

    def _rows(self, most: int) -> list[Any]:
        rows: list[Any] = []
        while piece := _native._look_rows(self._native, min(_PIECE, most - len(rows))):
            rows += piece
            if len(piece) < _PIECE or len(rows) >= most:
                break
            time.sleep(_PAUSE)
        return rows


def _process(row: Any) -> dict[str, Any]:
    number, parent, path, kind, now, ns, before, does, counts, cpu, holds, waits = row
    samples = sum(counts) or 1
    return {
        "id": number,
        "parent": parent,
        "path": path,
        "kind": kind,
        "now": STATES[now],
        "for": ns * 1e-9,
        "before": before,  # whether the process has been in this state since it was first seen
        "does": does,
        "share": {
            state: count / samples for state, count in zip(STATES, counts, strict=True) if count
        },
        "cpu": None if cpu < 0 else cpu * 1e-9,
        "holds": [[str(key), writes] for key, writes in holds],
        "waits": [[str(key), writes] for key, writes in waits],
    }


def _channel(row: Any, seconds: float, samples: int) -> dict[str, Any]:
    name, passed, dropped, depth, capacity, reading, writing, readers, writers, _ = row
    return {
        "name": name.strip("'"),
        "passed": passed,
        "rate": passed / seconds,
        "dropped": dropped,
        "depth": depth,
        "capacity": capacity,
        # The share of the samples in which a process waited to read.
        "reading": reading / (samples or 1),
        "writing": writing / (samples or 1),
        "readers": readers,
        "writers": writers,
    }


def _operations(processes: list[dict[str, Any]], channels: dict[str, dict[str, Any]]) -> None:
    """Adds the rate of operations to each process, from the values that have passed at its ends, if
    no other process holds these ends. The rate is None if the process shares an end, or holds none.
    """
    holders: dict[tuple[str, bool], int] = {}
    for one in processes:
        for key, writes in one["holds"]:
            holders[key, writes] = holders.get((key, writes), 0) + 1
    for one in processes:
        alone = [
            channels[key]["rate"]
            for key, writes in one["holds"]
            if holders[key, writes] == 1 and key in channels
        ]
        one["rate"] = sum(alone) if alone and len(alone) == len(one["holds"]) else None


def _elsewhere(rows: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns two tables by the number of a process: the calls that run here for the parent, each
    with its name and path; and the processes that wait for a call in another OS process, each with
    the pid of that OS process and the call's name.
    """
    names = sys.modules.get("weft._distributed_deadlock.call_names")
    rounds = sys.modules.get("weft._distributed_deadlock.rounds")
    calls: dict[str, Any] = {}
    away: dict[str, Any] = {}
    if names is not None:
        calls = {str(p.id): [call, p.path] for call, p in list(names._running.values())}
    if rounds is not None:
        for member in rounds.members():
            for call, process in list(member.away.items()):
                away[str(process.id)] = [member.pid, call]
    return calls, away
