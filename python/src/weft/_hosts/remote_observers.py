"""Observes the processes in other OS processes, for the observers in this one (rule 14.7).

    begin_everywhere() ──FOLLOW: all that is wanted──► a host: one of its KINDS observes there
        a record in the host ──a piece──► receive() makes its path the one of the network
            ──► the observation here, or the parent
    end_everywhere() ──FOLLOW without it──► the host's last piece, its answer
        ──► ChildOutput.take() ──► the observation is complete

FOLLOW goes by _distributed_deadlock/rounds.py, a piece by _hosts/child_output.py. KINDS are in
_hosts/host_recorders.py.

Invariants
- Each time, a host is sent the list of all observations that are wanted, with a number: a list
  older than the last is ignored. The host answers when its own hosts have answered and it has sent
  all its records. A host that starts receives the list at its start, and again once it is a member,
  if the list has changed.
- A host holds back at most BLOCK records of an observation, and for some PERIODs at most. All
  records are sent before the result of a call. Records are sent over the socket of the host's log
  records, so they have arrived when the result arrives (_hosts/child_output.py).
- A record contains the path of the process in its OS process ("p"), and, if the process is part of
  a call of the parent, the call and the path within it. At each step up the caller's path takes the
  place of the call's.
- No process waits for a host here. Only a thread that begins or ends an observation, or reads a
  measurement, waits, for PATIENCE at most. A host that does not answer counts as lost.
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
    from weft._hosts.host_recorders import HostObserver

__all__ = ["follow", "join", "receive", "settings", "source", "tell"]

PERIOD = 0.2  #: seconds between two times at which records are sent
PATIENCE = 10.0  #: seconds

Wanted = tuple[int, dict[_observers.Key, tuple[str, Any]]]
Source = tuple[int, int]  #: an OS process: its pid, and the time at which its observation began

_lock = threading.RLock()  # held while lists are sent to hosts; guards the variables below
_last_number = 0  # the number of the last list that this host has received
_following: dict[_observers.Key, HostObserver] = {}
# When this event is set, the thread that sends records regularly ends.
_ticker: threading.Event | None = None
_source: Source = (0, 0)


# --- in an OS process that has hosts ------------------------------------------------------------


def settings() -> Wanted:
    """Returns the list of the observations that are wanted, for a host."""
    with _lock:
        return time.monotonic_ns(), {
            key: (o.kind, o._for_others()) for key, o in list(_observers.wanted.items())
        }


def _tell(whom: list[_members.Member], wanted: Wanted) -> None:
    for member in whom:
        member.follows = set(wanted[1])
    answers, silent = _rounds.ask(whom, _members.FOLLOW, wanted, PATIENCE)
    for member, _ in answers:
        member.output.take()
    for member in silent + [m for m in whom if m.gone and not m.away]:
        has_gone(member)


def _tell_all() -> None:
    """Sends the list of the observations that are wanted now to all hosts, also to those that have
    nothing to change. When this function returns, all records of the hosts have arrived.
    """
    with _lock:
        wanted = settings()
        _tell([m for m in _rounds.members() if m.follows or wanted[1]], wanted)


def join(member: _members.Member, begun_with: Wanted) -> None:
    """Makes a host a member. `begun_with` is the list that the host received when it started."""
    with _lock:
        member.follows = set(begun_with[1])
        wanted = settings()
        if member.follows != wanted[1].keys():
            _tell([member], wanted)


def has_gone(member: _members.Member) -> None:
    """Reports that a host has died, unless it was released, or that it does not answer. By then
    everything that the host has sent has arrived.
    """
    if not member.closing:
        for one in list(_observers.known.values()):
            _call_reporting(one._host_ended, member.pid)


_observers.tell_others = _tell_all
_rounds.has_gone = has_gone


def receive(member: _members.Member, piece: Any) -> None:
    """Processes a piece that has arrived from a host, or, through that host, from one of the hosts
    of that host.
    """
    key, source, records = piece
    one = _observers.known.get(key)
    if one is None:
        return
    if records is None:
        _call_reporting(one._host_ended, source[0])
        return
    for record in records:
        for named in (record, *record.get("others", ())):
            _call_names.name_here(member, named)
    _call_reporting(one._add_records, source, records)


def _call_reporting(f: Callable[..., None], *args: Any) -> None:
    """Calls f. An exception of f is reported, because it must not reach the observed process (rule
    14.2).
    """
    try:
        f(*args)
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)


# --- in a host ----------------------------------------------------------------------------------


def follow(wanted: Wanted) -> bool:
    """Begins the observations that the parent wants, and ends those that it no longer wants.
    Returns true as the answer to the parent: this is done, or the list was out of date.
    """
    global _last_number, _source
    with _lock:
        number, those = wanted
        if number < _last_number:
            return True
        _last_number = number
        if not _following:
            _source = os.getpid(), time.monotonic_ns()
        for key in those.keys() - _following.keys():
            # This import is late, because only a host that is observed needs the module.
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
    """Returns the Source of this OS process."""
    return _source


def tell() -> None:
    """Sends all that has been recorded."""
    for one in list(_following.values()):
        one.send()


def _tick(on: bool) -> None:
    """Starts (True) or ends (False) the thread that sends records every PERIOD."""
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
    _helper_threads.add_until_end()
    pause = PERIOD
    while not over.wait(pause):
        since = time.monotonic()
        tell()
        # If sending takes long, because there are many channels, the pause grows.
        pause = max(PERIOD, 9 * (time.monotonic() - since))


def _forget() -> None:
    """Resets the module in the child of a fork, which observes nothing and has no hosts."""
    global _lock, _last_number, _ticker
    _lock, _last_number, _ticker = threading.RLock(), 0, None
    _following.clear()


_observers.in_child_of_fork(_forget)
