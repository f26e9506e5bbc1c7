"""What runs in other OS processes, for those here who observe (rule 14.7).

    begin_everywhere() ──FOLLOW: all that is wanted──► a host: one of its KINDS observes there
    there: a record ──a piece──► came(): the path of the network ──► the observation, or the parent
    end_everywhere() ──FOLLOW without it──► the host's last piece, its answer ──► Heard.take() ──► it is complete

FOLLOW goes by _distributed_deadlock/rounds.py, a piece by _hosts/child_output.py. KINDS are in
_hosts/host_recorders.py.

Invariants
- A host is told of everything that is wanted, each time, with a number: what is older than it has
  heard is ignored. It answers when its own hosts have answered, and it has sent all that there is.
  A host that starts is told at its start, and again once it is a member if that has changed.
- A host holds at most BLOCK records of an observation back, and for some PERIODs at most. All are
  sent before the result of a call is. They come by the socket of its log records, so they are
  here when the result is (_hosts/child_output.py).
- A record has the path there ("p"), and where that is part of a call of the parent's, the call and
  the path within. At each step up the caller's path takes the place of the call's.
- No process waits for a host here, but who begins or ends an observation does, and who reads a
  measurement: for PATIENCE at most. Who does not answer counts as lost.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft import _helper_threads
from weft._distributed_deadlock import call_names as _call_names
from weft._distributed_deadlock import members as _members
from weft._distributed_deadlock import rounds as _rounds
from weft._watching import observers as _observers

if TYPE_CHECKING:
    from weft._hosts.host_recorders import There

__all__ = ["came", "follow", "join", "settings", "source", "tell"]

PERIOD = 0.2  #: seconds
PATIENCE = 10.0  #: seconds

Wanted = tuple[int, dict[_observers.Key, tuple[str, Any]]]
Source = tuple[int, int]  #: an OS process: its number, and when it began to be observed

_lock = threading.RLock()  # held while hosts are told, and guards what follows
_heard = 0  # the number of what this host was told last
_following: dict[_observers.Key, There] = {}
_ticker: threading.Event | None = None  # set, it ends the thread that sends in between
_source: Source = (0, 0)


# --- for who has hosts --------------------------------------------------------------------------


def settings() -> Wanted:
    """What a host is to be told."""
    with _lock:
        return time.monotonic_ns(), {
            key: (o.kind, o._for_others()) for key, o in list(_observers.wanted.items())
        }


def _tell(whom: list[_members.Member], wanted: Wanted) -> None:
    for member in whom:
        member.follows = set(wanted[1])
    answers, silent = _rounds.ask(whom, _members.FOLLOW, wanted, PATIENCE)
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


def join(member: _members.Member, begun_with: Wanted) -> None:
    """A host is a member from now on; it was told of these at its start."""
    with _lock:
        member.follows = set(begun_with[1])
        wanted = settings()
        if member.follows != wanted[1].keys():
            _tell([member], wanted)


def has_gone(member: _members.Member) -> None:
    """It has died, if it was not let go of, or does not answer. All that it sent has come."""
    if not member.closing:
        for one in list(_observers.known.values()):
            _handed(one._gone, member.pid)


_observers.tell_others = _tell_all
_rounds.has_gone = has_gone


def came(member: _members.Member, piece: Any) -> None:
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
            _call_names.name_here(member, named)
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
            # imported by who is observed, not by every host
            from weft._hosts import host_recorders as _host_recorders

            kind, setting = those[key]
            one = _host_recorders.KINDS[kind](key, setting)
            _following[key] = _observers.known[key] = _observers.wanted[key] = one
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


def source() -> Source:
    """This OS process, and when it began to be observed."""
    return _source


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
    _helper_threads.helps()
    pause = PERIOD
    while not over.wait(pause):
        since = time.monotonic()
        tell()
        pause = max(PERIOD, 9 * (time.monotonic() - since))  # of many channels


def _forget() -> None:
    """In the child of a fork: it observes nothing, and has no hosts."""
    global _lock, _heard, _ticker
    _lock, _heard, _ticker = threading.RLock(), 0, None
    _following.clear()


_observers.in_child_of_fork(_forget)
