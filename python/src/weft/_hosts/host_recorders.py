"""Observers in a host for its parent (_hosts/remote_observers.py). Each class of KINDS records what
happens in this OS process, and sends it to the parent.

Invariant: a record is sent once, in the order in which records were made, and at most BLOCK records
at a time.
"""

from __future__ import annotations

import abc
import os
import threading
from collections.abc import Callable
from typing import Any

from weft._distributed_deadlock import call_names as _call_names
from weft._extension import native as _native
from weft._hosts import child_output as _child_output
from weft._hosts import remote_observers as _remote_observers
from weft._watching import deadlocks as _deadlocks
from weft._watching import debug as _debug
from weft._watching import observers as _observers
from weft._watching import quiet_ends as _quiet_ends
from weft._watching import trace as _trace
from weft._watching import watchdog as _watchdog

__all__ = ["KINDS", "HostObserver"]

BLOCK = 256  #: how many records are sent at a time


class HostObserver(abc.ABC):
    """Records what happens in this OS process, for an observation of the parent or of the parent's
    parent.
    """

    kind = ""

    def __init__(self, key: _observers.Key, setting: Any) -> None:
        self.key = key
        self._setting = setting
        self._records: list[dict[str, Any]] = []
        self._lock = threading.RLock()  # re-entrant: a finaliser can record while a record is made

    def _for_others(self) -> Any:
        return self._setting

    @abc.abstractmethod
    def begin(self) -> None:
        """Begins to observe."""

    @abc.abstractmethod
    def end(self) -> None:
        """Ends the observation. When end() returns, all records have been sent."""

    def note(self, record: dict[str, Any]) -> None:
        with self._lock:
            self._records.append(record)
            if len(self._records) >= BLOCK:
                self.send()

    def send(self) -> None:
        with self._lock:
            records, self._records = self._records, []
            if records:
                self._pass_up(_remote_observers.source(), records)

    def _pass_up(
        self, source: _remote_observers.Source, records: list[dict[str, Any]] | None
    ) -> None:
        if _child_output.observed((self.key, source, records)) or records is None:
            return
        if len(records) > 1:  # the records are too long for one datagram
            half = len(records) // 2
            self._pass_up(source, records[:half])
            self._pass_up(source, records[half:])
        else:
            short = {k: v for k, v in records[0].items() if len(repr(v)) < 1000}
            _child_output.observed((self.key, source, [short]))

    def _add_records(self, source: _remote_observers.Source, records: list[dict[str, Any]]) -> None:
        with self._lock:
            self._pass_up(source, records)

    def _host_ended(self, pid: int) -> None:
        with self._lock:
            self._pass_up((pid, 0), None)


def _named(process: Any) -> dict[str, Any]:
    """Returns the fields that name a process for the parent, in the form that receive() reads."""
    return _call_names.name_for_parent(process.path, _call_names.call_of(process))


class _Trace(HostObserver, _trace.Recorder):
    kind = "trace"

    def __init__(self, key: _observers.Key, setting: int) -> None:
        HostObserver.__init__(self, key, setting)
        _trace.Recorder.__init__(self, setting)
        self._threads: dict[int, int] = {}

    def begin(self) -> None:
        _observers.add(self._event)

    def end(self) -> None:
        _observers.remove(self._event)

    def _named(self, process: Any) -> dict[str, Any]:
        return super()._named(process) if process is None else _named(process)

    def _put(self, fields: dict[str, Any]) -> None:
        if fields["id"] < 0:  # this is a thread's number, which is long
            fields["id"] = -self._threads.setdefault(fields["id"], len(self._threads) + 1)
        self.note(fields)


class _Measure(HostObserver):
    kind = "measure"

    def begin(self) -> None:
        from weft._watching import measure as _measure

        self._measured = _measure.Measurement()
        self._sent: dict[str, Any] = {}
        self._measured._begin()

    def end(self) -> None:
        self._measured._end()

    def send(self) -> None:
        """Sends the rows that have changed. The figures of a row are totals since the beginning."""
        with self._lock:
            for row in self._measured._rows_sent():
                if self._sent.get(row["name"]) != row:
                    self._sent[row["name"]] = dict(row)
                    self._records.append(row)
            super().send()


class _Watch(HostObserver, _watchdog.Watchdog):
    kind = "watchdog"

    def __init__(self, key: _observers.Key, setting: float) -> None:
        HostObserver.__init__(self, key, setting)
        _watchdog.Watchdog.__init__(self, setting)

    def begin(self) -> None:
        _watchdog.Watchdog._begin(self)

    def end(self) -> None:
        _watchdog.Watchdog._end(self)

    def _found(self, process: Any, hog: _watchdog.Hog) -> None:
        self.note({**hog._asdict(), **_named(process)})
        self.send()


class _Debug(HostObserver, _debug.Debug):
    kind = "debug"

    def __init__(self, key: _observers.Key, setting: None) -> None:
        HostObserver.__init__(self, key, setting)
        _debug.Debug.__init__(self, None)

    def begin(self) -> None:
        _debug._begun(self)

    def end(self) -> None:
        _observers.remove(self._event)
        before = _debug._present
        _native._watch_loans(*((None, None) if before is None else (before._lent, before._touched)))

    def _sender(self, process: Any) -> Any:
        return {"p": super()._sender(None)} if process is None else _named(process)

    def _is_unwatched(self, kind: str) -> None:
        if kind not in self.unwatched:
            self.unwatched.add(kind)
            self.note({"p": "", "unwatched": kind})

    def _say(self, changed: _debug.Changed) -> None:
        fields = changed._asdict()
        self.note({**fields.pop("sender"), **fields})


class _Leaving(HostObserver, _quiet_ends.Naming):
    kind = "leaving"

    def __init__(self, key: _observers.Key, setting: bool) -> None:
        HostObserver.__init__(self, key, setting)
        _quiet_ends.Naming.__init__(self, lambda text: None, setting)

    def begin(self) -> None:
        _observers.add(self.event)

    def end(self) -> None:
        _observers.remove(self.event)

    def _tell(self, process: Any, what: str) -> None:
        self.note({"text": what, **({"p": ""} if process is None else _named(process))})


class _Partial(HostObserver, _deadlocks._IdleCheck):
    kind = "partial"
    for_another = True
    _named = staticmethod(_call_names.named)

    def __init__(self, key: _observers.Key, setting: _deadlocks.Action) -> None:
        HostObserver.__init__(self, key, setting)
        _deadlocks._IdleCheck.__init__(self, setting)
        self._idled = False

    def _fell_idle(self) -> None:
        self._idled = True

    def send(self) -> None:
        """Sends the records, and whether an executor has become idle since the last call. That fact
        is sent here and not as soon as it happens.
        """
        with self._lock:
            if self._idled:
                self._idled = False
                self._records.append({"p": "", "idle": True})
            super().send()

    def begin(self) -> None:
        _deadlocks._IdleCheck.begin(self)

    def end(self) -> None:
        _deadlocks._IdleCheck.end(self)

    def _found(self, rows: list[_deadlocks.Stuck], ids: frozenset[int]) -> None:
        records = [_deadlocks.to_tell(row, os.getpid()) for row in rows]
        if self._setting == "warn":
            for record in records:
                self.note(record)
            self.send()
        else:
            # This call raises the deadlock in the network of this OS process, which passes the
            # error on to its caller.
            super()._found([_deadlocks.stuck_from(r)._replace(pid=None) for r in records], ids)


KINDS: dict[str, Callable[[Any, Any], HostObserver]] = {
    one.kind: one for one in (_Trace, _Measure, _Watch, _Debug, _Leaving, _Partial)
}
