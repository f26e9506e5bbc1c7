"""Deadlock over several OS processes (rule 10.1, WIRE.md 10).

    a run of some space stands still ──standing()──► its parent, and so on up to the root
    the root ──a round: all spaces are asked──► one can go on: the root asks again later
        │ all wait ──a second round: none has moved──► it declares the deadlock, its runs raise it

A space is one OS process; the root is the space that is not a host of another. Questions go over
sockets of their own, beside the links, so that they change no counter of a session. Over these
sockets hosts are also asked where their processes are, and sent the list of what to observe
(_hosts/remote_observers.py). A root that shares channels with other programs, including C++
programs, answers for all its hosts, and asks these programs by frames (answer_programs(), WIRE.md
10.8). In both cases C++ code finds out whether all spaces stand still.

Invariants
- The second round begins after the first has ended. If no space has sent or received a frame in
  between, there was a moment at which all spaces stood still; and if each has received all frames
  that its peers have sent, no frame was under way. Then no process will ever be woken.
- A space whose calls or threads may still do something reports that it does not wait.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft import _helper_threads
from weft._backends import shared as _shared
from weft._distributed_deadlock import at_work as _at_work
from weft._distributed_deadlock import call_names as _call_names
from weft._distributed_deadlock import programs as _programs
from weft._distributed_deadlock import remote_calls as _remote_calls
from weft._distributed_deadlock.members import (
    ASKED,
    CALL,
    FOLLOW,
    MOMENT,
    STUCK,
    TELL,
    WHERE,
    WITH_MORE,
    Asking,
    Member,
    Space,
)
from weft._extension import native as _native
from weft._readable import readable
from weft._watching import deadlocks as _deadlocks

if TYPE_CHECKING:
    from weft._hosts.pool import State

__all__ = [
    "answer",
    "answer_programs",
    "ask",
    "called",
    "calls_are_over",
    "calls_go_on",
    "declare",
    "join",
    "leave",
    "may_have_calls",
    "members",
    "serves",
]

#: seconds before each round, while some space does not wait yet
AGAIN = (0.05, 0.1, 0.2, 0.4, 0.8)

PATIENCE = 1.0  #: seconds to wait for the answers to all questions but STATE
#: the first limit, in seconds, of silence after which a thread that asks for STATE gives way
SLICE = 0.1


class _Gone(Exception):
    """Raised if a host has ended while it was asked for its state."""


_lock = threading.Lock()  # protects the variables below, except _asking
_members: set[Member] = set()
_calls: dict[int, str] = {}
_late = False  # whether this host may wait once an attending thread waits (at_work.py)
_server: int | None = None  # the process that asks for calls, if this is a host of an Executor
# The Executors of this space; `_lock` does not protect this table.
_executors: dict[int, weakref.ref[State]] = {}
_waiting: set[State] = set()  # Executors with calls when this space last reported that it waits
# In a host: functions that end the calls of Executors to which a deadlock has been reported.
_broken: list[Callable[[], None]] = []
# Whether a round has asked since an Executor's calls were last over. `_lock` does not protect it.
_asked = False
_up: socket.socket | None = None  # the socket to the parent
_answers = False  # whether links announce to other programs that this program answers
_bell: int | None = None  # a descriptor that wakes the watching thread; it is never closed
_asking = Asking()  # the right to read the members' sockets

_shared.linked = lambda: bool(_members) or _up is not None


def may_have_calls(caller: State) -> None:
    """Records that an Executor has been made. `caller.lots` contains the lots of its calls."""
    key = id(caller)
    _executors[key] = weakref.ref(caller, lambda _: _executors.pop(key, None))


def calls_go_on(caller: State, lot: Any) -> None:
    """Records that the Executor has received calls. Takes no lock, like calls_are_over()
    (_hosts/pool.py)."""
    _native._outside(True)  # done first, so that this count is never less than the number of lots
    caller.lots.add(lot)


def calls_are_over(caller: State, lot: Any) -> None:
    """Records that the calls of the lot have ended, or were never added. When all lots of an
    Executor have ended, a parent that has asked this space meanwhile is made to ask again. A second
    call does nothing."""
    global _asked
    try:
        caller.lots.remove(lot)
    except KeyError:
        return
    _native._outside(False)
    if not caller.lots and _asked:
        _asked = False
        standing()


def _with_calls() -> dict[State, int]:
    """Returns the Executors that have calls, each with the number of its lots."""
    those = [ref() for ref in list(_executors.values())]
    return {caller: n for caller in those if caller is not None and (n := len(caller.lots))}


def declare(
    text: str, knot: list[str], rows: list[Any], callers: list[State] | None = None
) -> None:
    """Reports a deadlock to all runs in this space that wait, to the Executors that had calls when
    this space last reported that it waits, and to all such runs and Executors in hosts. The calls
    of Executors are ended last, so that a run that waits for one gets Deadlock.

    Args:
        callers: the Executors; None: those in _waiting.
    """
    broken = [caller.stuck(text) for caller in (list(_waiting) if callers is None else callers)]
    ask(members(), TELL, text, PATIENCE)
    _native._declare_deadlock(text, knot, rows)
    ask(members(), TELL, None, PATIENCE)
    for end in broken:
        end()


def _tell_hosts(text: str | None) -> bool:
    """Runs in a host when its parent reports a deadlock, and again, with None, when the parent's
    runs have raised that deadlock. The runs of a host end together with the calls that they are
    part of; the deadlock is reported to the host's Executors as in declare()."""
    global _waiting
    if text is not None:
        _broken.extend(caller.stuck(text) for caller in list(_waiting))
        _waiting = set()
    ask(members(), TELL, text, PATIENCE / 2)
    if text is None:
        while _broken:
            _broken.pop()()
    return True


def serves(process: int | None) -> None:
    """In a host of an Executor: records the process that asks for calls. Until the host knows that
    process, reports cannot leave that process out (rule 10.3)."""
    global _server
    _server = process


def called(process: int, call: str | None) -> None:
    """Records that the process with the id `process` runs the parent's call `call`, or, if `call` is
    None, that its call has ended."""
    with _lock:
        if call is None:
            _calls.pop(process, None)
        else:
            _calls[process] = call


def members() -> list[Member]:
    """Returns the hosts of this space."""
    with _lock:
        return list(_members)


# _hosts/remote_observers.py sets both functions. `follow` carries out an order FOLLOW in a host;
# `has_gone` records that a host has ended.
follow: Callable[[Any], Any] = lambda what: None  # noqa: E731
has_gone: Callable[[Member], None] = lambda member: None  # noqa: E731


def join(member: Member) -> None:
    """Adds a host, which is asked from now on, until leave() is called. The caller must call
    leave() even if join() raises."""
    # A program with hosts needs this module as soon as it watches for partial deadlock.
    from weft._distributed_deadlock import partial as _partial  # noqa: F401

    _begin()
    with _lock:
        _members.add(member)
    _ring(b".")


def answer_programs() -> None:
    """Makes this program answer the questions of other programs about itself and its hosts, and ask
    such questions (WIRE.md 10.8). Call it before the program makes its links, whose frames announce
    this. In a host, which is not a root, the call does nothing: the host's sessions with other
    programs announce that it does not answer. A second call does nothing."""
    global _answers
    if _up is not None or _answers:
        return
    assert _begin() is not None
    _answers = True
    _native._rounds_answer(_bell, "python")


def _begin() -> int | None:
    """Starts the thread that asks and answers, if it does not run yet. Returns its bell."""
    global _bell
    with _lock:
        if _bell is None:
            bell, ring = socket.socketpair()
            bell.setblocking(False)
            _native._ask_links(standing)
            watches = threading.Thread(
                target=_watch, args=(ring,), name="weft: asks hosts", daemon=True
            )
            try:
                watches.start()
            except BaseException:
                # closing the bell ends the thread, if the thread has begun in spite of the error
                bell.close()
                if watches.ident is None:
                    ring.close()
                raise
            _bell = bell.detach()
        return _bell


def leave(member: Member) -> None:
    """Removes a host that has ended, or that its Hosts has released: the host is no longer asked. A
    thread that is asking the host stops waiting for it. (A process that the host has forked can
    keep the host's socket open.)"""
    member.hang_up()
    with _asking, _asking.lock, _lock:
        _members.discard(member)
        member.close()


def answer(by: socket.socket) -> None:
    """Answers the parent until the parent has ended. This function runs on a thread of a host."""
    global _up
    _helper_threads.add()
    _up = by
    _native._ask_links(standing)
    with contextlib.suppress(OSError):
        while question := _question(by):
            if question[:1] in WITH_MORE:
                (size,) = struct.unpack("!I", by.recv(4, socket.MSG_WAITALL))
                does = {FOLLOW: follow, CALL: _where_of}.get(question[:1], _tell_hosts)
                packed = pickle.dumps(does(pickle.loads(by.recv(size, socket.MSG_WAITALL))))
            elif question[:1] == STUCK:
                packed = pickle.dumps(_stuck())
            elif question[:1] == MOMENT:
                from weft._distributed_deadlock import partial as _partial

                packed = pickle.dumps(_partial.moments(PATIENCE / 2))
            elif question[:1] == WHERE:
                packed = pickle.dumps(where(_native._where(), PATIENCE / 2))
            else:
                try:
                    packed = pickle.dumps(_all_spaces())
                except _Gone:
                    packed = pickle.dumps([])  # the parent draws no conclusion from an empty answer
            with _lock:
                by.sendall(question + struct.pack("!I", len(packed)) + packed)


def _question(by: socket.socket) -> bytes:
    while _late and not readable([by], AGAIN[0]):
        standing()  # no run will report that it waits, since all of them already wait
    return by.recv(ASKED, socket.MSG_WAITALL)


def where_in(pid: int, call: str, patience: float) -> list[str] | None:
    """Returns where this call's processes are in the host `pid`; None: the host does not answer."""
    answers, _ = ask([m for m in members() if m.pid == pid], CALL, call, patience)
    return answers[0][1] if answers else None


def _where_of(call: str) -> list[str]:
    """Returns where the processes of the parent's call `call` are."""
    rows = _call_names.rows_of(call)
    return _call_names.lines(where(rows, PATIENCE / 2, {number for number, _, _ in rows}))


def where(
    rows: list[_call_names.Row], patience: float, only: set[int] | None = None
) -> list[_call_names.Named]:
    """Returns where these processes are, and where the processes are that run for this program in
    hosts and on other machines (rule 6.7). A signal handler may call this function between any two
    steps of other code.

    Args:
        patience: seconds to wait for answers.
        only: if it is given, only the processes elsewhere that run for these processes are
            included.
    """
    until, far = time.monotonic() + patience, _remote_calls.asked()
    answers, silent = ask(list(_members), WHERE, None, patience)
    answers += [(member, None) for member in silent]
    return _call_names.once_each(rows, answers, _remote_calls.lines(far, until), only)


def ask(
    whom: list[Member], what: bytes, more: Any, patience: float
) -> tuple[list[tuple[Member, Any]], list[Member]]:
    """Asks these hosts. Returns the answers, and the hosts without one after `patience` seconds."""
    answers: list[tuple[Member, Any]] = []
    asked = list(whom)
    # A signal handler can ask while this thread itself is asking.
    if not whom or _asking.lock._is_owned():  # type: ignore[attr-defined]
        return answers, asked
    with _asking:
        try:  # an exception of a signal handler can be raised as soon as this thread has the lock
            if not _asking.lock.acquire(timeout=patience):
                return answers, asked
            # A member that has left has no socket; the answers of the others must be read anyway.
            asked = [member for member in whom if member.fileno() >= 0]
            until = time.monotonic() + patience
            for member in asked:
                member.ask(what, more)
            while asked and (rest := until - time.monotonic()) > 0:
                for member in readable(asked, rest):
                    packed = member.take()
                    if packed is not None:
                        answers.append((member, packed))
                    if member.gone or packed is not None:
                        asked.remove(member)
        except (OSError, ValueError, RuntimeError):  # the set of members is changing
            pass
        finally:
            try:  # noqa: SIM105  # suppress() would be one more call before release()
                _asking.lock.release()
            except RuntimeError:  # this thread does not hold the lock
                pass
    return answers, asked


def _stuck() -> tuple[list[_call_names.Named], list[int]]:
    """Returns, for the parent, the processes that are stuck in this host and its hosts, and the
    pids of the silent hosts."""
    rows, silent = _stuck_in_hosts(PATIENCE / 2)
    here = [
        _deadlocks.to_tell(row, os.getpid()) for row in _deadlocks.stuck_here(_call_names.named)[0]
    ]
    return here + rows, silent


def _stuck_in_hosts(patience: float) -> tuple[list[_call_names.Named], list[int]]:
    rows: list[_call_names.Named] = []
    answers, unheard = ask(members(), STUCK, None, patience)
    silent = [member.pid for member in unheard]
    for member, (found, no_answer) in answers:
        for row in found:
            for one in (row, *row["others"]):
                _call_names.name_here(member, one)
        rows += found
        silent += no_answer
    return rows, silent


def _stuck_elsewhere() -> tuple[list[_deadlocks.Stuck], list[int]]:
    rows, silent = _stuck_in_hosts(PATIENCE)
    stuck = [_deadlocks.stuck_from(row) for row in rows]
    if members() and not silent:
        from weft._distributed_deadlock import partial as _partial

        stuck += _partial.found()
    return stuck, silent


_deadlocks.stuck_elsewhere = _stuck_elsewhere


def _everywhere(rows: list[_call_names.Row]) -> list[str]:
    return _call_names.lines(where(rows, PATIENCE))


def _end_elsewhere() -> None:
    """Kills the OS processes of this program, and gives up the OS processes of other machines that
    run for this program (rule 6.7). A thread does this, since a signal handler might have
    interrupted code that holds a lock that these steps need."""

    def end(those: list[Member], calls: list[Callable[[], object]]) -> None:
        for member in those:
            if member.kill is not None:
                member.kill()
        for give_up in calls:
            give_up()

    # The thread is given copies, as in where().
    all_of_them = list(_members), _remote_calls.ways_out()
    threading.Thread(target=end, args=all_of_them, name="weft: kills", daemon=True).start()


_native._ask_everywhere(_everywhere, _end_elsewhere)


def standing() -> None:
    """Reports that a run waits for other spaces. The extension calls standing() on any thread."""
    if _up is not None:
        with _lock, contextlib.suppress(OSError):
            _up.sendall(b"!")
    else:
        _ring(b"!")


def _ring(how: bytes) -> None:
    if _bell is not None:
        with contextlib.suppress(OSError):  # if the socket is full, the watcher is already awake
            os.write(_bell, how)


def _watch(ring: socket.socket) -> None:
    _helper_threads.add_until_end()  # this thread outlives the hosts
    # EOFError means that the code that started this thread was interrupted, and the bell is closed.
    with ring, contextlib.suppress(EOFError):
        while True:
            _attend(ring)


def _attend(ring: socket.socket) -> None:
    with _lock:
        members = list(_members)
    try:
        ready = readable([ring, *members])
    except (OSError, ValueError):  # a socket was closed meanwhile
        return
    stands = ring in ready and _read_bell(ring)
    with _asking, _asking.lock:
        for member in _here(ready):
            member.take()
            stands = stands or member.stands or member.gone
            member.stands = False
            if member.gone:
                # If a call waits for the host, the call reports the death of the host, once it has
                # read what the host has sent.
                if not member.away:
                    has_gone(member)
                    member.end()
                with _lock:
                    _members.discard(member)
    if stands and _up is not None:
        standing()
    elif stands:
        _look(ring)


def _here(ready: list[Any]) -> list[Member]:
    """Returns the members in `ready` that are still members and still have data to read."""
    with _lock:
        those = [m for m in _members if m in ready]
    return readable(those, 0)


def _all_spaces() -> list[Space]:
    """Asks one round. Returns the states of this space, of its hosts and of their hosts.

    Raises:
        _Gone: a host has ended, or could not report its state.
    """
    with _asking, _asking.lock:
        seconds = SLICE
        # The loop asks again if other threads have asked meanwhile: a stopped host never answers.
        while True:
            with _lock:
                asked = list(_members)
            for member in asked:
                member.ask()
            found = [_mine(asked)]
            if _heard_all(asked, found, seconds):
                return found
            _asking.give_way()
            # The next wait is longer, because a slow host does answer in the end.
            seconds = min(2 * seconds, 2.0)


def _heard_all(asked: list[Member], found: list[Space], seconds: float) -> bool:
    """Adds the answers of `asked` to `found`. Returns False if other threads want to ask."""
    while asked:
        if not (ready := readable(asked, seconds)) and _asking.is_wanted():
            return False
        for member in ready:
            packed = member.take()
            if member.gone or packed == []:
                raise _Gone
            if packed:
                found += packed
                asked.remove(member)
    return True


def calls_and_callers(members: list[Member]) -> tuple[dict[int, str], dict[tuple[int, str], int]]:
    """Returns which process here runs which call of the parent; and which process here waits for
    which call of a host, by the host's pid."""
    with _lock:
        away = {(m.pid, call): p.id for m in members for call, p in list(m.away.items()) if p}
        return dict(_calls), away


def _mine(members: list[Member]) -> Space:
    global _asked, _late, _waiting
    _asked = True  # set before the look, because the calls that the look finds will end later
    callers = _with_calls()
    before = _at_work.look()
    incarnation, waits, sessions, lent, far, held = _native._network(sum(callers.values()))
    waits = waits and all(caller.waits_for_hosts() for caller in callers)
    foreign, outside = _helper_threads.foreign_threads(), _other_outside()
    now = _at_work.look()
    waits = waits and callers == _with_calls()
    _late = waits and now.may_rest and not (now.at_rest and now == before)
    waits = waits and now.at_rest and now == before
    _waiting = set(callers) if waits else set()
    calls, away = calls_and_callers(members)
    facts = _native._facts(True) if waits else []
    if _server is not None:
        facts = [([w for w in rows if w[0] != _server], places) for rows, places in facts]
    return Space(os.getpid(), incarnation, waits, sessions, lent, far, held, facts, foreign, calls, away, outside)  # fmt: skip


def _other_outside() -> tuple[str, ...]:
    tokens = _native._open_tokens()
    if not tokens and not _native._handlers_that_act({}):
        return ()
    # This import is late, because the module imports logging.
    from weft._watching import standstill as _standstill

    return tuple(_standstill.signals_and_tokens(_standstill.handlers(), tokens))


def _look(ring: socket.socket) -> None:
    """At the root, asks rounds until it is clear whether the network stands still."""
    again = False
    for seconds in AGAIN:
        until = time.monotonic() + seconds
        while (rest := until - time.monotonic()) > 0:
            if readable([ring], rest):
                again = _read_bell(ring) or again
        with contextlib.suppress(_Gone):
            first = _all_spaces()
            if _still(first):
                second = _all_spaces()
                if _still(second) and not _moved(first, second):
                    from weft._distributed_deadlock import knots as _knots

                    _knots.tell(second)
                    break
            elif _answers and all(s.waits for s in first) and _ask_beyond_hosts(ring):
                break
    if again:
        _ring(b"!")


def _still(spaces: list[Space]) -> bool:
    return _programs.still(_programs.packed_spaces(spaces))


def _moved(first: list[Space], second: list[Space]) -> bool:
    return _programs.moved(_programs.packed_spaces(first), _programs.packed_spaces(second))


# --- with other programs --------------------------------------------------------------------------


def _answer_program(asker: int, number: int) -> None:
    """Answers for this space and its hosts. A space with a foreign thread does not count as
    waiting, since other programs do not examine whether the thread holds an end. Nor does a space
    in which something else can act."""
    whole = True
    try:
        spaces = [
            s._replace(waits=s.waits and not s.foreign_threads and not s.outside)
            for s in _all_spaces()
        ]
    except _Gone:
        spaces, whole = [], False
    waits = whole and all(s.waits for s in spaces)
    _native._rounds_say(asker, number, _programs.packed_spaces(spaces), waits, whole)


def _read_bell(ring: socket.socket) -> bool:
    """Reads the bell, and answers other programs. Returns whether a run stands still.

    Raises:
        EOFError: the bell was closed.
    """
    rung = ring.recv(4096)
    if not rung:
        raise EOFError
    if b"?" in rung:
        _hear_other_programs()
    return b"!" in rung


def _hear_other_programs() -> tuple[int, bytes, bool] | None:
    """Answers the questions of other programs, and carries out the deadlocks that they have
    announced. Returns the result of this program's own round, if that round has ended."""
    questions, found, verdicts = _native._rounds_news()
    for asker, number in questions:
        _answer_program(asker, number)
    for what, who in verdicts:
        answers = _native._rounds_told(what)
        if answers is not None:
            _declare(*answers, who=who)
    return found


def _ask_beyond_hosts(ring: socket.socket) -> bool:
    """Asks all programs twice, and declares a deadlock if nothing has moved. Returns False if there
    is no deadlock, or none yet."""
    first, whole = _ask_programs(ring)
    if not _programs.still(first, whole):
        return False
    second, whole = _ask_programs(ring)
    if not _programs.still(second, whole) or _programs.moved(first, second):
        return False
    knot, verdict = _native._rounds_knot(second)
    _declare(*knot, verdict)
    return True


def _ask_programs(ring: socket.socket) -> tuple[bytes, bool]:
    """Asks a round. Returns the answers, and whether all programs have answered."""
    me, number = _native._rounds_ask()
    _answer_program(me, number)
    until = time.monotonic() + PATIENCE
    stands = False
    found = _hear_other_programs()
    while (found is None or found[0] != number) and (rest := until - time.monotonic()) > 0:
        if readable([ring], rest):
            stands = b"!" in ring.recv(4096) or stands
            found = _hear_other_programs()
    if stands:
        _ring(b"!")
    return found[1:] if found is not None and found[0] == number else (b"", False)


def _declare(text: str, knot: list[str], tell: bytes = b"", who: list[Any] | None = None) -> None:
    """Raises Deadlock in each run here that waits for others.

    Args:
        tell: the announcement for the other programs; empty if they have announced the deadlock.
        who: if other programs have announced it: the processes that waited in the runs here; these
            runs are condemned already.
    """
    from weft._distributed_deadlock import knots as _knots

    # while a run is condemned, this space counts as one that runs
    rows, callers = [], list(_waiting)
    try:
        mine, *others = _all_spaces()
        if who:
            mine = mine._replace(facts=who)
        rows = [row.blocked() for row in _knots.report([mine, *others])[2]]
    except _Gone:
        if tell:
            return
    if tell:
        _native._rounds_tell(tell)
    declare(text, knot, rows, callers)


def _forget() -> None:
    """Resets the module in the child of a fork: its hosts and links belong to the parent."""
    global _lock, _asking, _late, _server, _asked, _up, _bell, _answers
    _lock, _asking = threading.Lock(), Asking()
    _members.clear()
    _remote_calls.forget()
    _calls.clear()
    _executors.clear()
    _waiting.clear()
    _broken.clear()
    _call_names.forget()
    if _bell is not None:
        os.close(_bell)
    _late, _server, _asked = False, None, False
    _up, _bell, _answers = None, None, False


os.register_at_fork(after_in_child=_forget)
