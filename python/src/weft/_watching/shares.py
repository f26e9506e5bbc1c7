"""Computes from the events of a run the share of time in which each process was busy or waited. The
verdict on a trace or a measurement uses these shares (rules 14.11, 14.12).

Invariant: a process is busy whenever it is in no operation that waits. The time in which a process
could go on but another one ran counts as busy or as waiting, as the events do not show it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weft._watching import verdict as _verdict

_TIME = ("sleep", "tick")
#: with more processes than this, those that existed only for a moment are forgotten
_MANY = 4096
_IO = ("io call", "await", "blocking call", "read from a descriptor", "write to a descriptor")


@dataclass
class _One:
    path: str
    at: object
    start: int
    end: int | None = None
    waits: dict[str, int] = field(default_factory=dict)  # "reads", "writes", … → ns
    inputs: set[str] = field(default_factory=set)
    outputs: set[str] = field(default_factory=set)
    since: int | None = None  # the time since which the process is in an operation, if it is in one
    what: str = ""


def _what(operation: str, kind: str | None) -> str:
    """Returns the kind of waiting to which an operation's time is added."""
    if operation in ("read", "extended read") or kind == "input":
        return "reads"
    if operation == "write" or kind == "output":
        return "writes"
    if operation in _TIME or kind in ("timer", "timeout", "after"):
        return "time"
    return "io" if operation in _IO or kind in ("readable", "writable") else "waits"


class Shares:
    """Collects the times of processes, which may have any keys. Times are in ns."""

    def __init__(self) -> None:
        self._all: dict[object, _One] = {}
        self._first: int | None = None
        self._last = 0

    def seen(self, key: object, path: str, at: object, now: int) -> None:
        """Adds the process if it is new. `at` is equal for processes that share an interpreter."""
        if self._first is None:
            self._first = now
        self._last = max(self._last, now)
        if key not in self._all:
            self._all[key] = _One(path, at, now)

    def knows(self, key: object) -> bool:
        return key in self._all

    def waited(self, key: object, now: int) -> int:
        """Returns how long the process has been in its operation, or 0 if it is in none."""
        self._last = max(self._last, now)
        since = self._all[key].since
        return 0 if since is None else now - since

    def begins(self, key: object, operation: str, now: int) -> None:
        one = self._all[key]
        one.since = now
        one.what = _what(operation, None)

    def done(
        self, key: object, operation: str, kind: str | None, channel: str | None, waited: int
    ) -> None:
        one = self._all[key]
        one.since = None
        what = _what(operation, kind)
        one.waits[what] = one.waits.get(what, 0) + waited
        if channel is not None:
            (one.outputs if what == "writes" else one.inputs).add(channel)

    def over(self, key: object, now: int) -> None:
        one = self._all[key]
        one.end = now
        one.since = None
        self._last = max(self._last, now)
        if len(self._all) > _MANY:
            self._forget_short()

    def _forget_short(self) -> None:
        """Forgets the processes that existed only for a moment."""
        short = (self._last - (self._first or 0)) / 100
        for key, one in list(self._all.items()):
            if one.end is not None and one.end - one.start < short:
                del self._all[key]

    def nodes(self) -> list[_verdict.Node]:
        """Returns the processes with their shares of the whole time, without those that mostly
        waited for their children.
        """
        whole = max(self._last - (self._first or 0), 1)
        found = []
        for one in list(self._all.values()):
            end = self._last if one.end is None else one.end
            waits = dict(one.waits)
            if one.since is not None and one.end is None:
                waits[one.what] = waits.get(one.what, 0) + end - one.since
            if waits.get("waits", 0) > whole / 2:
                continue
            share = {what: ns / whole for what, ns in waits.items()}
            busy = max(end - one.start - sum(waits.values()), 0) / whole
            found.append(
                _verdict.Node(
                    one.path,
                    busy,
                    share.get("time", 0.0),
                    share.get("io", 0.0),
                    share.get("reads", 0.0),
                    share.get("writes", 0.0),
                    inputs=one.inputs,
                    outputs=one.outputs,
                    at=one.at,
                )
            )
        return found


def add(shares: Shares, event: dict[str, object]) -> None:
    """Adds one line of a trace."""
    key, now = event.get("id"), event["t"]
    assert isinstance(now, int)
    if event["e"] == "lost" or not isinstance(key, int) or key < 0:
        return
    shares.seen(key, str(event["p"]), event.get("pid"), now)
    match event["e"]:
        case "begin":
            shares.begins(key, str(event["op"]), now)
        case "commit" | "withdraw" | "ended":
            kind, channel, waited = event.get("kind"), event.get("c"), event.get("waited", 0)
            shares.done(
                key,
                str(event["op"]),
                kind if isinstance(kind, str) else None,
                channel if isinstance(channel, str) else None,
                waited if isinstance(waited, int) else 0,
            )
        case "end":
            shares.over(key, now)
