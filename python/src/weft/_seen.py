"""What runs in other OS processes, for those here who observe (rule 14.7).

    begin_everywhere() ──FOLLOW: all that is wanted, by _rounds.py──► a host: one of KINDS observes there
    there: a record ──a piece, by _said.py──► came(): the path of the network ──► the observation, or up to the parent
    end_everywhere() ──FOLLOW without it──► the host's last piece, its answer ──► Heard.take() ──► it is complete

Invariants
- A host is told of everything that is wanted, each time, with a number: what is older than it has
  heard is ignored. It answers when its own hosts have answered, and it has sent all that there is.
  A host that starts is told at its start, and again once it is a member if that has changed.
- A host holds at most BLOCK records of an observation back, and for some PERIODs at most. All are
  sent before the result of a call is. They come by the socket of its log records, so they are
  here when the result is (_said.py).
- A record has the path there ("p"), and where that is part of a call of the parent's, the call and
  the path within. At each step up the caller's path takes the place of the call's.
- No process waits for a host here, but who begins or ends an observation does, and who reads a
  measurement: for PATIENCE at most. Who does not answer counts as lost.
"""

from __future__ import annotations

import abc
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from weft import _deadlocks, _debug, _leaving, _observers, _rounds, _said, _trace, _watchdog
from weft._extension import native as _native

__all__ = ["came", "follow", "join", "settings", "tell"]

BLOCK = 256  #: records that are sent at once
PERIOD = 0.2  #: seconds
PATIENCE = 10.0  #: seconds

Wanted = tuple[int, dict[_observers.Key, tuple[str, Any]]]
Source = tuple[int, int]  #: an OS process: its number, and when it began to be observed

_lock = threading.RLock()  # held while hosts are told, and guards what follows
_heard = 0  # the number of what this host was told last
_following: dict[_observers.Key, _There] = {}
_ticker: threading.Event | None = None  # set, it ends the thread that sends in between
_source: Source = (0, 0)


# --- for who has hosts --------------------------------------------------------------------------


def settings() -> Wanted:
    """What a host is to be told."""
    with _lock:
        return time.monotonic_ns(), {
            key: (o.kind, o._for_others()) for key, o in list(_observers.wanted.items())
        }


def _tell(whom: list[_rounds.Member], wanted: Wanted) -> None:
    for member in whom:
        member.follows = set(wanted[1])
    answers, silent = _rounds.ask(whom, _rounds.FOLLOW, wanted, PATIENCE)
    for member, _ in answers:
        member.heard.take()
    for member in silent + [m for m in whom if m.gone and not m.away]:
        has_gone(member)


def _tell_all() -> None:
    """All hosts learn what is wanted now, those that have nothing to change too: what they have
    recorded is here afterwards.
    """
    with _lock:
        wanted = settings()
        _tell([m for m in _rounds.members() if m.follows or wanted[1]], wanted)


def join(member: _rounds.Member, begun_with: Wanted) -> None:
    """A host is a member from now on; it was told of these at its start."""
    with _lock:
        member.follows = set(begun_with[1])
        wanted = settings()
        if member.follows != wanted[1].keys():
            _tell([member], wanted)


def has_gone(member: _rounds.Member) -> None:
    """It has died, if it was not let go of, or does not answer. All that it sent has come."""
    if not member.closing:
        for one in list(_observers.known.values()):
            _handed(one._gone, member.pid)


_observers.tell_others = _tell_all
_rounds.has_gone = has_gone


def came(member: _rounds.Member, piece: Any) -> None:
    """A piece has come from this host, or from one of its hosts through it."""
    key, source, records = piece
    one = _observers.known.get(key)
    if one is None:
        return
    if records is None:
        _handed(one._gone, source[0])
        return
    for record in records:
        for named in (record, *record.get("others", ())):
            _rounds.name_here(member, named)
    _handed(one._came, source, records)


def _handed(f: Callable[..., None], *args: Any) -> None:
    """Calls it; what it raises reaches nobody who is observed (rule 14.2)."""
    try:
        f(*args)
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)


# --- in a host ----------------------------------------------------------------------------------


def follow(wanted: Wanted) -> bool:
    """Observes what the parent wants to be observed, and ends what it no longer wants. True, as an
    answer: it is done, or was out of date.
    """
    global _heard, _source
    with _lock:
        number, those = wanted
        if number < _heard:
            return True
        _heard = number
        if not _following:
            _source = os.getpid(), time.monotonic_ns()
        for key in those.keys() - _following.keys():
            kind, setting = those[key]
            one = _following[key] = _observers.known[key] = _observers.wanted[key] = KINDS[kind](
                key, setting
            )
            one.begin()
        over = [_following.pop(key) for key in _following.keys() - those.keys()]
        for one in over:
            one.end()
            del _observers.wanted[one.key]
        _tell_all()
        for one in over:
            one.send()
            del _observers.known[one.key]
        tell()
        _tick(bool(_following))
    return True


_rounds.follow = follow


def tell() -> None:
    """Sends what there is."""
    for one in list(_following.values()):
        one.send()


def _tick(on: bool) -> None:
    """A thread sends in between, or does not."""
    global _ticker
    if on and _ticker is None:
        _ticker = threading.Event()
        threading.Thread(
            target=_send_now_and_then, args=(_ticker,), name="weft: tells", daemon=True
        ).start()
    elif not on and _ticker is not None:
        _ticker.set()
        _ticker = None


def _send_now_and_then(over: threading.Event) -> None:
    _native._helper_thread(True)
    _rounds.ours()
    pause = PERIOD
    try:
        while not over.wait(pause):
            since = time.monotonic()
            tell()
            pause = max(PERIOD, 9 * (time.monotonic() - since))  # of many channels
    finally:
        _rounds.not_ours()
        _native._helper_thread(False)


class _There(abc.ABC):
    """What is recorded here for an observation of the parent's, or of a parent's of that."""

    kind = ""

    def __init__(self, key: _observers.Key, setting: Any) -> None:
        self.key = key
        self._setting = setting
        self._records: list[dict[str, Any]] = []
        self._lock = threading.RLock()  # a finaliser may record while a record is made

    def _for_others(self) -> Any:
        return self._setting

    @abc.abstractmethod
    def begin(self) -> None:
        """Observes from now on."""

    @abc.abstractmethod
    def end(self) -> None:
        """Observes no more; all that there is has been sent."""

    def note(self, record: dict[str, Any]) -> None:
        with self._lock:
            self._records.append(record)
            if len(self._records) >= BLOCK:
                self.send()

    def send(self) -> None:
        with self._lock:
            records, self._records = self._records, []
            if records:
                self._pass_up(_source, records)

    def _pass_up(self, source: Source, records: list[dict[str, Any]] | None) -> None:
        if _said.observed((self.key, source, records)) or records is None:
            return
        if len(records) > 1:  # too long for one datagram
            half = len(records) // 2
            self._pass_up(source, records[:half])
            self._pass_up(source, records[half:])
        else:
            short = {k: v for k, v in records[0].items() if len(repr(v)) < 1000}
            _said.observed((self.key, source, [short]))

    def _came(self, source: Source, records: list[dict[str, Any]]) -> None:
        with self._lock:
            self._pass_up(source, records)

    def _gone(self, pid: int) -> None:
        with self._lock:
            self._pass_up((pid, 0), None)


def _named(process: Any) -> dict[str, Any]:
    """The path of a process, as came() takes it."""
    return _rounds.name_for_parent(process.path, _rounds.call_of(process))


class _Trace(_There, _trace.Recorder):
    kind = "trace"

    def __init__(self, key: _observers.Key, setting: int) -> None:
        _There.__init__(self, key, setting)
        _trace.Recorder.__init__(self, setting)
        self._threads: dict[int, int] = {}

    def begin(self) -> None:
        _observers.add(self._event)

    def end(self) -> None:
        _observers.remove(self._event)

    def _named(self, process: Any) -> dict[str, Any]:
        return super()._named(process) if process is None else _named(process)

    def _put(self, fields: dict[str, Any]) -> None:
        if fields["id"] < 0:  # a thread's, which is long
            fields["id"] = -self._threads.setdefault(fields["id"], len(self._threads) + 1)
        self.note(fields)


class _Measure(_There):
    kind = "measure"

    def begin(self) -> None:
        from weft import _measure

        self._measured = _measure.Measurement()
        self._sent: dict[str, Any] = {}
        self._measured._begin()

    def end(self) -> None:
        self._measured._end()

    def send(self) -> None:
        """Rows have the figures since the beginning, and are sent when they have changed."""
        with self._lock:
            for row in self._measured._rows_sent():
                if self._sent.get(row["name"]) != row:
                    self._sent[row["name"]] = dict(row)
                    self._records.append(row)
            super().send()


class _Watch(_There, _watchdog.Watchdog):
    kind = "watchdog"

    def __init__(self, key: _observers.Key, setting: float) -> None:
        _There.__init__(self, key, setting)
        _watchdog.Watchdog.__init__(self, setting)

    def begin(self) -> None:
        _watchdog.Watchdog._begin(self)

    def end(self) -> None:
        _watchdog.Watchdog._end(self)

    def _found(self, process: Any, hog: _watchdog.Hog) -> None:
        self.note({**hog._asdict(), **_named(process)})
        self.send()


class _Debug(_There, _debug.Debug):
    kind = "debug"

    def __init__(self, key: _observers.Key, setting: None) -> None:
        _There.__init__(self, key, setting)
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


class _Leaving(_There, _leaving.Naming):
    kind = "leaving"

    def __init__(self, key: _observers.Key, setting: bool) -> None:
        _There.__init__(self, key, setting)
        _leaving.Naming.__init__(self, lambda text: None, setting)

    def begin(self) -> None:
        _observers.add(self.event)

    def end(self) -> None:
        _observers.remove(self.event)

    def _tell(self, process: Any, what: str) -> None:
        self.note({"text": what, **({"p": ""} if process is None else _named(process))})


class _Partial(_There, _deadlocks._IdleCheck):
    kind = "partial"
    for_another = True
    _named = staticmethod(_rounds.named)

    def __init__(self, key: _observers.Key, setting: _deadlocks.Action) -> None:
        _There.__init__(self, key, setting)
        _deadlocks._IdleCheck.__init__(self, setting)
        self._idled = False

    def _fell_idle(self) -> None:
        self._idled = True

    def send(self) -> None:
        """That it has fallen idle is said when something is sent, which is now and then."""
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
        else:  # in the network there, from which it comes to who called it
            super()._found([_deadlocks.told(r)._replace(pid=None) for r in records], ids)


KINDS: dict[str, Callable[[Any, Any], _There]] = {
    one.kind: one for one in (_Trace, _Measure, _Watch, _Debug, _Leaving, _Partial)
}


def _forget() -> None:
    """In the child of a fork: it observes nothing, and has no hosts."""
    global _lock, _heard, _ticker
    _lock, _heard, _ticker = threading.RLock(), 0, None
    _following.clear()


_observers.in_child_of_fork(_forget)
