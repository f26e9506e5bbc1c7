"""Writes a run to a trace file, and reads such files. docs/observing.md describes the lines.

Invariants
- One line is one JSON object; the first line contains the version of the file's schema.
- Lines are written in whole blocks. The remaining lines are written when the trace ends, however it
  ends, and when the interpreter exits. A killed program loses at most the last block.
- A file whose last line is cut off can be read.
- The lines of one thread are in order. Of the lines of two threads, the line of the later event may
  be written first. The lines of another OS process (with "pid") arrive in pieces, some time after
  their events (rule 14.7). read() sorts all lines by their times, which are times of one clock.
"""

from __future__ import annotations

import abc
import atexit
import contextlib
import os
import threading
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from weft._extension import native as _native
from weft._watching import observers as _observers
from weft._watching import quiet_ends as _quiet_ends
from weft._watching import shares as _shares
from weft._watching import verdict as _verdict
from weft.errors import BadUse, WeftWarning

SCHEMA = 1
_BLOCK = 512  # the number of lines in a block


class Recorder(abc.ABC):
    """Makes a line from each event."""

    def __init__(self, start: int) -> None:
        self._start = start  # the beginning of the trace, in ns of the steady clock
        self._begun: dict[int, int] = {}  # process → the time since which its operation has waited
        self._names: dict[int, dict[str, Any]] = {}

    @abc.abstractmethod
    def _put(self, fields: dict[str, Any]) -> None:
        """Receives a line, given as its fields."""

    def _named(self, process: Any) -> dict[str, Any]:
        return {"p": process.path if process is not None else threading.current_thread().name}

    def _event(
        self, what: str, process: Any, operation: str | None, target: Any, detail: Any
    ) -> None:
        now = _native._steady_ns() - self._start
        key = _observers.key_of(process)
        if what == "park":
            self._begun[key] = now
            return
        if what == "lent":
            return
        if what in ("start", "end", "left") or key not in self._names:
            # The name is determined again at the end, because a path gets an index only when a
            # second process of that name is started.
            self._names[key] = self._named(process)
        fields: dict[str, Any] = {"t": now, "e": what, "id": key, **self._names[key]}
        if operation is not None:
            fields["op"] = operation
        if what == "start":
            pass
        elif what == "away":
            fields["in"] = detail
        elif what == "end":
            fields["how"] = "returned"
        elif what == "left":
            fields["e"] = "end"
            kind = type(detail).__name__
            left = _quiet_ends.left_by(process, detail)
            quiet = kind == "Cancelled" or left is not None
            fields["how"] = kind if quiet else "failed"
            if left is not None:
                fields |= {"c": left.channel, "at": f"{left.file}:{left.line}"}
            if not quiet:
                fields["error"] = f"{kind}: {detail}"
        elif what == "begin":
            fields.update(_places(target))
        else:
            fields.update(_place_of_outcome(operation, target, detail, what))
            since = self._begun.pop(key, None)
            fields["waited"] = 0 if since is None else now - since
            if what == "raise":
                # The end of an iteration is the end of its channel. (In a thread no exception
                # reports it.)
                loop_is_over = detail is None or isinstance(detail, StopAsyncIteration)
                why = "Retired" if loop_is_over else type(detail).__name__
                fields["e"] = "withdraw" if why == "Cancelled" else "ended"
                fields["why"] = why
        if fields["e"] == "end":
            self._names.pop(key, None)
            self._begun.pop(key, None)
        self._put(fields)


class Trace(Recorder):
    """Writes events to a file from `start()` to `close()`, including the events of other OS
    processes.
    """

    kind = "trace"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = -1
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        except OSError as error:
            raise BadUse(f"trace: cannot write {os.fspath(path)}: {error.strerror}") from None
        from json import JSONEncoder  # imported late: only programs that trace need this

        self._encode = JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        self._lines: list[str] = []
        # re-entrant: a finaliser can add a line while another line is being added
        self._lock = threading.RLock()
        super().__init__(_native._steady_ns())
        self._pid = os.getpid()
        self._sources: dict[tuple[int, int], int] = {}  # OS processes, numbered from 1
        # Pid → the processes that run in that OS process: id → path.
        self._running: dict[int, dict[int, str]] = {}
        self._lost: set[int] = set()  # the pids of OS processes that were lost
        self._path = os.fspath(path)
        # the error of the last write, after which nothing more is written
        self._full: OSError | None = None
        self._put(
            {"weft_trace": SCHEMA, "version": _native.version, "clock": "steady", "unit": "ns"}
        )

    def __del__(self) -> None:
        # the file is still open if a signal handler raised before start(), or in close()
        if self._file >= 0:
            os.close(self._file)

    def start(self) -> None:
        _observers.add(self._event)
        atexit.register(self.close)
        _observers.begin_everywhere(self)

    def close(self) -> None:
        """Writes the remaining lines, and ends the trace. A second call does nothing."""
        try:
            _observers.remove(self._event)
            atexit.unregister(self.close)
            _observers.end_everywhere(self)
        finally:
            self._flush()
            if self._file >= 0:
                file, self._file = self._file, -1
                os.close(file)
            full, self._full = self._full, None
            if full is not None:
                warnings.warn(
                    f"the trace {self._path} is cut off: {full.strerror}", WeftWarning, stacklevel=2
                )

    def _for_others(self) -> int:
        return self._start

    def _add_records(self, source: tuple[int, int], records: list[dict[str, Any]]) -> None:
        pid = source[0]
        number = self._sources.setdefault(source, len(self._sources) + 1)
        running = self._running.setdefault(pid, {})
        for record in records:
            key = record.get("id", 0)
            record["id"] = key = key + (number << 32 if key >= 0 else -(number << 32))
            record["pid"] = pid
            if record["e"] == "end":
                running.pop(key, None)
            elif key > 0:
                running[key] = record["p"]
            self._put(record)

    def _host_ended(self, pid: int) -> None:
        """Records that an OS process was lost: its processes count as ended. The trace says once
        that a part is missing.
        """
        if pid in self._lost:
            return
        self._lost.add(pid)
        now = _native._steady_ns() - self._start
        for key, path in self._running.pop(pid, {}).items():
            self._put({"t": now, "e": "end", "id": key, "p": path, "pid": pid, "how": "lost"})
        self._put({"t": now, "e": "lost", "id": 0, "p": "", "pid": pid})

    def _put(self, fields: dict[str, Any]) -> None:
        line = self._encode(fields) + "\n"
        with self._lock:
            self._lines.append(line)
            if len(self._lines) >= _BLOCK:
                self._flush()

    def _flush(self) -> None:
        if os.getpid() != self._pid or self._file < 0:
            return
        with self._lock:  # the lock keeps blocks in order
            lines, self._lines = self._lines, []
            if self._full is not None:
                return
            data = memoryview("".join(lines).encode("utf-8", "backslashreplace"))
            try:
                while data:
                    data = data[os.write(self._file, data) :]
            except OSError as error:
                # for example, the disk is full; close() reports the error, once
                self._full = error


def _name(target: Any) -> str | None:
    channel = _observers.channel_of(target)
    return channel.name if channel is not None else None


def _places(target: Any) -> dict[str, Any]:
    if isinstance(target, tuple):
        return {
            "guards": [
                [kind, _name(end), *["ended"] * silent] for kind, end, _, on, silent in target if on
            ]
        }
    if isinstance(target, list):
        return {"for": [p.path for p in target if isinstance(p, _native.Process)]}
    name = _name(target)
    return {} if name is None else {"c": name}


def _place_of_outcome(operation: str | None, target: Any, detail: Any, what: str) -> dict[str, Any]:
    if not isinstance(target, tuple):
        return {} if isinstance(target, list) else _places(target)
    guard = detail[0] if what == "commit" and isinstance(detail, tuple) else None
    if what == "raise":
        guard = getattr(detail, "guard", None)
    if operation != "select":
        return {}
    silent = [i for i, (*_, is_silent) in enumerate(target) if is_silent]
    fields: dict[str, Any] = {"silent": silent} if silent else {}
    if not isinstance(guard, int):
        return fields
    kind, end, *_ = target[guard]
    name = _name(end)
    return {"guard": guard, "kind": kind} | ({} if name is None else {"c": name}) | fields


@contextlib.contextmanager
def tracing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Writes the events of the block to the file `path`, as JSON lines (rule 14.6;
    docs/observing.md).

    The file is complete when the block is left, in whatever way. If a write fails, the file is cut
    off there, and at the end of the block a WeftWarning says so.

    Raises:
        BadUse: the file cannot be written.
    """
    trace = Trace(path)
    try:
        trace.start()
        yield
    finally:
        try:
            trace.close()
        except BaseException:  # a signal handler raised, and the clean-up below is still to be done
            trace.close()
            raise


# --- reading --------------------------------------------------------------------------------------


class Totals(NamedTuple):
    """The totals of one process, or of one channel."""

    name: str
    operations: int  #: operations that committed
    withdrawn: int  #: operations that a cancellation withdrew
    ended: int  #: operations that ended with the end of their channel, or with bad use
    waited_reading: float  #: seconds of waiting to read
    waited_writing: float  #: seconds of waiting to write
    waited: float  #: seconds of waiting, in all


class Summary(NamedTuple):
    events: int
    seconds: float
    processes: list[Totals]
    channels: list[Totals]
    unfinished: list[str]  #: paths of processes that had not ended
    cut_off: bool  #: whether the last line is incomplete
    lost: list[int]  #: pids of OS processes that were lost, with the events that they had not sent
    unseen: list[str]  #: hosts of a network whose processes are not in the trace
    verdict: str  #: where the time goes, in one sentence


#: the fields that an event must have besides t, e, id and p
_NEEDS: dict[str, tuple[str, ...]] = {
    "start": (),
    "begin": ("op",),
    "commit": ("op", "waited"),
    "withdraw": ("op", "waited"),
    "ended": ("op", "waited"),
    "end": ("how",),
    "away": ("in",),
    "lost": ("pid",),
}
_NUMBERS = ("t", "id", "waited", "guard", "pid")
_TEXTS = ("e", "p", "op", "c", "how", "why", "kind", "error", "at")


def _is_event(event: Any) -> bool:
    """Returns whether this is an event with all fields that the functions here read."""
    if not isinstance(event, dict) or not {"t", "e", "id", "p"} <= event.keys():
        return False
    return (
        all(isinstance(event[k], str) for k in _TEXTS if k in event)
        and all(type(event[k]) is int and abs(event[k]) < 1 << 63 for k in _NUMBERS if k in event)
        and isinstance(event.get("in", ""), int | str)
        and event["e"] in _NEEDS
        and all(k in event for k in _NEEDS[event["e"]])
    )


_IN_MEMORY = 8  #: the memory of a trace is about this many times the size of its file


def _most() -> int:
    """Returns the size, in bytes, of the largest trace whose events fit into this machine's
    memory."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _IN_MEMORY
    except (AttributeError, ValueError, OSError):
        return 1 << 62


def read(path: str | os.PathLike[str]) -> tuple[list[dict[str, Any]], bool]:
    """Returns the events of a trace in order, and whether its last line is cut off.

    Raises:
        BadUse: the file cannot be read, is not a trace, or has more events than fit in memory.
    """
    import json
    from pathlib import Path

    name = os.fspath(path)
    events: list[dict[str, Any]] = []
    cut_off = False
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as lines:
            if (size := os.fstat(lines.fileno()).st_size) > _most():
                raise BadUse(
                    f"{name} has {size / 1e9:.1f} GB, more than this machine's memory holds as events: "
                    "record the run with the flight recorder (weft run FILE --flight OUT), whose "
                    "files may be of any size"
                )
            for number, line in enumerate(lines, 1):
                try:
                    event = json.loads(line)
                    if number > 1 and not _is_event(event):
                        raise ValueError
                except (ValueError, RecursionError):
                    if number == 1 or line.endswith("\n"):
                        raise BadUse(
                            f"{name}:{number} is not a line of a trace; make one by: weft run FILE --trace OUT"
                        ) from None
                    cut_off = True
                    break
                if number == 1:
                    if not isinstance(event, dict) or event.get("weft_trace") != SCHEMA:
                        raise BadUse(
                            f"{name} is not a trace of this version (its first line says weft_trace {SCHEMA}); "
                            "make one by: weft run FILE --trace OUT"
                        )
                else:
                    events.append(event)
    except OSError as error:
        raise BadUse(f"cannot read {name}: {error.strerror}") from None
    events.sort(key=lambda event: int(event["t"]))
    return events, cut_off


def label(event: dict[str, Any]) -> str:
    """Returns the path of the event's process, and the OS process in which it runs."""
    path: str = event["p"]
    return f"{path} in OS process {event['pid']}" if "pid" in event else path


def _direction(event: dict[str, Any]) -> str:
    if event["op"] in ("read", "extended read") or event.get("kind") == "input":
        return "reading"
    return "writing" if event["op"] == "write" or event.get("kind") == "output" else "other"


def summarise(events: Iterable[dict[str, Any]], cut_off: bool = False) -> Summary:
    """Adds up counts and waiting times by process and by channel, each with the longest waits
    first.
    """
    paths: dict[int, str] = {}
    ended: set[int] = set()
    lost: list[int] = []
    unseen: set[str] = set()
    by: dict[str, dict[Any, dict[str, float]]] = {
        kind: defaultdict(lambda: defaultdict(float)) for kind in ("id", "c")
    }
    count = 0
    last = 0
    shares = _shares.Shares()
    for event in events:
        count += 1
        _shares.add(shares, event)
        last = max(last, event["t"])
        if event["e"] == "lost":
            lost.append(event["pid"])
            continue
        if event["e"] == "away" and isinstance(event["in"], str):
            unseen.add(event["in"])
        paths[event["id"]] = label(event)
        if event["e"] == "end":
            ended.add(event["id"])
        if event["e"] not in ("commit", "withdraw", "ended"):
            continue
        for kind in ("id", "c"):
            if kind in event:
                totals = by[kind][event[kind]]
                totals[event["e"]] += 1
                totals[_direction(event)] += event["waited"] * 1e-9
                totals["waited"] += event["waited"] * 1e-9

    def rows(kind: str) -> list[Totals]:
        return sorted(
            (
                Totals(
                    paths[key] if kind == "id" else key,
                    int(t["commit"]),
                    int(t["withdraw"]),
                    int(t["ended"]),
                    t["reading"],
                    t["writing"],
                    t["waited"],
                )
                for key, t in by[kind].items()
            ),
            key=lambda row: (-row.waited, row.name),
        )

    return Summary(
        count,
        last * 1e-9,
        rows("id"),
        rows("c"),
        sorted(paths[i] for i in paths if i > 0 and i not in ended),
        cut_off,
        lost,
        sorted(unseen),
        _verdict.verdict(shares.nodes()).text,
    )


def chrome(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Returns the trace in the Trace Event Format (a "JSON object" with complete events), which
    Perfetto and chrome://tracing read.
    """
    return {"traceEvents": list(chrome_events(events)), "displayTimeUnit": "ns"}


def chrome_events(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields the events of that format, one by one. The processes of the format are OS processes
    (this one has number 1); its threads are processes of Weft.
    """
    paths: dict[int, str] = {}
    started: dict[int, float] = {}
    begun: dict[int, tuple[float, str]] = {}
    of: dict[int, int] = {}  # process → its OS process

    def track(key: int) -> dict[str, int]:
        return {"pid": of[key], "tid": key if of[key] == 1 else key % (1 << 32)}

    def complete(key: int, name: str, since: float, until: float, **args: Any) -> dict[str, Any]:
        return {
            "name": name,
            "ph": "X",
            **track(key),
            "ts": since,
            "dur": max(until - since, 0.0),
            "args": args,
        }

    last = 0.0
    for event in events:
        key, at = event["id"], event["t"] / 1000
        last = max(last, at)
        if event["e"] in ("lost", "away"):
            continue
        of[key] = event.get("pid", 1)
        paths[key] = event["p"]
        match event["e"]:
            case "start":
                started[key] = at
            case "end":
                if key in started:
                    yield complete(key, event["p"], started.pop(key), at, how=event["how"])
                begun.pop(key, None)
            case "begin":
                begun[key] = (at, event["op"])
            case _:
                since, operation = begun.pop(key, (at, event["op"]))
                place = event.get("c")
                name = f"{operation} {place}" if place else operation
                yield complete(key, name, since, at, outcome=event.get("why", event["e"]))
    for key, since in started.items():
        yield complete(key, paths[key], since, last, how="had not ended")
    for key, path in paths.items():
        yield {"name": "thread_name", "ph": "M", **track(key), "args": {"name": path}}
    for pid in {pid for pid in of.values() if pid != 1}:
        name = {"name": f"OS process {pid}"}
        yield {"name": "process_name", "ph": "M", "pid": pid, "args": name}
