"""Partial deadlock over several OS processes: a knot with processes in different OS processes,
beside others that run (rules 14.3, 14.7, WIRE.md 10.9).

    deadlocks() ─► found() ─► three rounds of MOMENT, by _distributed_deadlock/rounds.py ─► a Round
        finds who is stuck ─► those stuck in all three, with nothing moved, are reported
    watching: an executor falls idle, here or in a host ─► fell_idle() ─► the thread of _Looks
        ─► the same three rounds ─► the check is told

Invariants
- A Moment is one moment of its OS process (python/native/rounds/network.cpp, _moment()). The
  Moments of a round are of different OS processes, and each is later than all those of the round
  before.
- A process that waits was not woken, and nothing under way will wake it, if three conditions hold:
  the process waits at the same places in all three rounds; the figures of these places are the
  same; and at each round, both sides of each session with the home of such a place have received
  what the peer had sent by the round before.
- An end without a known holder, and an end of an OS process that has not answered, may belong to
  any process: a process that waits at the channel of such an end may go on.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from weft import _helper_threads
from weft._distributed_deadlock import members as _members
from weft._distributed_deadlock import rounds as _rounds
from weft._extension import native as _native
from weft._watching import deadlocks as _deadlocks
from weft._watching.deadlocks import Place, Stuck, Waiter

__all__ = ["Moment", "Round", "Spaces", "found", "moments"]

ROUNDS = 3

_Node = tuple[int, int]  # the incarnation of a space, and a process of the space
# The home of a channel, and its place there; a place below 0 is not known there.
_Key = tuple[int, int]


class Moment(NamedTuple):
    """The state of an OS process at one moment, as the OS process reports it."""

    pid: int
    incarnation: int
    #: for each session: incarnation of the peer, frames sent, frames received
    sessions: list[tuple[int, int, int]]
    #: Ends that peers hold: the peer's incarnation, name (WIRE.md 10.7), place, whether it is a
    #: writer, the number of open ends of that channel.
    lent: list[tuple[int, int, int, bool, int]]
    #: for each far channel: place, incarnation of the home, name, open ends here
    far: list[tuple[int, int, int, int]]
    #: for each end held: process, place, whether it is a writer, the end
    held: list[tuple[int, int, bool, int]]
    facts: list[tuple[Any, Any]]  #: the facts of each run, as _watching/deadlocks.py describes them
    figures: dict[int, tuple[int, int, int]]  #: place → values passed, dropped, in the buffer
    shared: list[int]  #: places of far channels with an end in a value, or under way
    calls: dict[int, str]  #: process → the call that it runs, if this OS process is a host
    away: dict[tuple[int, str], int]  #: (pid of a host, call) → process that waits


def moments(patience: float) -> tuple[list[Moment], list[int]]:
    """Returns the Moments of this OS process and of its hosts, and the pids of hosts that do not
    answer.
    """
    members = _rounds.members()
    answers, unheard = _rounds.ask(members, _members.MOMENT, None, patience)
    silent = [member.pid for member in unheard]
    calls, away = _rounds.calls_and_callers(members)
    network, facts, figures, shared = _native._moment()
    incarnation, _, sessions, lent, far, held = network
    for _, places in facts:
        figures.update({key: raw[6] for key, raw in places.items() if raw[6] is not None})
    mine = Moment(
        os.getpid(),
        incarnation,
        sessions,
        lent,
        far,
        held,
        facts,
        figures,
        shared,
        calls,
        away,
    )
    all_of_them = [mine]
    for _, (theirs, no_answer) in answers:
        all_of_them += theirs
        silent += no_answer
    return all_of_them, silent


class _Waits(NamedTuple):
    """A process that waits, as one round has found it."""

    waiter: Waiter
    state: str  #: the state of a Waiter; or "call": the process waits for a call elsewhere
    #: The places where the process waits, each with whether the process writes there.
    places: frozenset[tuple[_Key, bool]]
    names: tuple[str, ...]
    seen: tuple[Any, ...]  #: equal in each round if the process was not woken
    #: The sessions with the homes of these places, as (this space, the home).
    sessions: frozenset[tuple[int, int]]


class Spaces:
    """The combined answers of several OS processes. A channel has one key in all of them: its home,
    and its place there. A process in a call has the path of its caller.
    """

    def __init__(
        self, spaces: Sequence[Any], doubled: Collection[tuple[int, int]] = frozenset()
    ) -> None:
        self.holders: dict[tuple[_Key, bool], set[_Node]] = {}
        self.waiters: dict[_Node, Waiter] = {}
        self.facts: list[tuple[Any, Waiter, dict[int, Place]]] = []
        #: Ends that peers hold. `doubled` contains the pairs of spaces with two sessions. The ends
        #: of these spaces cannot be distinguished, and are left out.
        self.lent = {
            (s.incarnation, peer, name): (s.incarnation, place)
            for s in spaces
            for peer, name, place, _, _ in s.lent
            if (s.incarnation, peer) not in doubled
        }
        self._far = {
            (s.incarnation, place): self.far_key(s, home, name)
            for s in spaces
            for place, home, name, _ in s.far
        }
        calls = {(s.pid, call): (s.incarnation, p) for s in spaces for p, call in s.calls.items()}
        #: A process that waits for a call → the process that runs the call; None: that process has
        #: ended.
        self.callees = {
            (s.incarnation, process): calls.get(call)
            for s in spaces
            for call, process in s.away.items()
        }
        self._callers = {node: caller for caller, node in self.callees.items() if node is not None}
        for s in spaces:
            for process, place, writes, _ in s.held:
                self._add_holder(s, process, place, writes)
            for facts in s.facts:
                waiters, places = _deadlocks.parsed(facts)
                # A process that other processes wait for counts as a holder of an end.
                for place, at in places.items():
                    for process in at.writers:
                        self._add_holder(s, process, place, True)
                self.waiters.update(((s.incarnation, w.id), w) for w in waiters)
                self.facts += [(s, w, places) for w in waiters]

    def _add_holder(self, s: Any, process: int, place: int, writes: bool) -> None:
        of = self.holders.setdefault((self.key(s, place), writes), set())
        of.add((s.incarnation, process))

    def far_key(self, s: Any, home: int, name: int) -> _Key:
        return self.lent.get((home, s.incarnation, name), (home, -name - 1))

    def key(self, s: Any, place: int) -> _Key:
        return self._far.get((s.incarnation, place), (s.incarnation, place))

    def path(self, node: _Node) -> str:
        space, at = node
        while (space, at) in self.waiters:
            caller = self._callers.get((space, at))
            if caller in self.waiters:
                within = self.waiters[node].path[len(self.waiters[space, at].path) :]
                return self.path(caller) + within
            at = self.waiters[space, at].parent
        return self.waiters[node].path


class Round(Spaces):
    """The answers of all OS processes in one round, and which processes can go on."""

    def __init__(self, spaces: list[Moment]) -> None:
        self.spaces = {s.incarnation: s for s in spaces}
        self.waits: dict[_Node, _Waits] = {}
        self._barriers: set[_Key] = set()
        self.counters: dict[tuple[int, int], tuple[int, int]] = {}
        super().__init__(spaces, self._sessions())
        self._open = self._unknown()
        for one in self.facts:
            self._add(*one)

    def _sessions(self) -> set[tuple[int, int]]:
        """Records the counters of each session. Returns the pairs of spaces with two sessions."""
        seen: Counter[tuple[int, int]] = Counter()
        for s in self.spaces.values():
            for peer, sent, received in s.sessions:
                seen[s.incarnation, peer] += 1
                self.counters[s.incarnation, peer] = sent, received
        doubled = {(a, b) for (a, b), n in seen.items() if n > 1 or seen[b, a] > 1}
        for pair in doubled:
            del self.counters[pair]
        return doubled | {(b, a) for a, b in doubled}

    def _unknown(self) -> set[_Key]:
        """Returns the channels of which at least one end has no known holder."""
        free: Counter[_Key] = Counter()
        known = set()  # names of ends that the OS process of their holder knows
        for s in self.spaces.values():
            held = Counter(place for place, _ in {(place, end) for _, place, _, end in s.held})
            counted = {place: count for _, _, place, _, count in s.lent}
            lent_away = Counter(place for _, _, place, _, _ in s.lent)
            for place, count in counted.items():
                free[s.incarnation, place] += count - held[place] - lent_away[place]
            for _, places in s.facts:
                for key, raw in places.items():
                    at = Place(*raw)
                    if at.is_channel and key not in counted:
                        free[s.incarnation, key] += at.unknown_readers + at.unknown_writers
            for place, home, name, count in s.far:
                known.add((home, s.incarnation, name))
                free[self.key(s, place)] += count - held[place] + (place in s.shared)
        for end, key in self.lent.items():
            if end not in known:
                free[key] += 1
        # The holders of ends that are not in self.lent are not known: two sessions join their
        # spaces, or a space was not asked.
        for s in self.spaces.values():
            for peer, name, place, _, _ in s.lent:
                if (s.incarnation, peer, name) not in self.lent:
                    free[s.incarnation, place] += 1
        return {key for key, n in free.items() if n > 0 or key[1] < 0}

    def _add(self, s: Moment, w: Waiter, places: dict[int, Place]) -> None:
        node = (s.incarnation, w.id)
        state = "call" if node in self.callees and w.state == "places" else w.state
        keys = {key: self.key(s, key) for key, _ in w.places}
        homes = {home for home, _ in keys.values()} - {s.incarnation}
        here = {key: self.figures(key) if places[k].is_channel else None for k, key in keys.items()}
        self.waits[node] = _Waits(
            w,
            state,
            frozenset((keys[key], writes) for key, writes in w.places),
            w.names(places),
            (state, w.operation, sorted((keys[k], writes) for k, writes in w.places), here)
            if state == "places"
            else (state,),
            frozenset((s.incarnation, home) for home in homes),
        )
        self._barriers |= {keys[k] for k in keys if not places[k].is_channel}

    def figures(self, key: _Key) -> tuple[int, int, int] | None:
        home = self.spaces.get(key[0])
        return None if home is None else home.figures.get(key[1])

    # --- who may go on (rule 14.3) ----------------------------------------------------------------

    def stuck(self, able: Iterable[_Node] = ()) -> set[_Node]:
        """Returns the processes that cannot go on, by the rules of runtime/going_on.hpp. Waiting
        for a call counts as waiting at a channel of which the call holds an end.

        Args:
            able: processes that are known to go on.
        """
        number: defaultdict[Hashable, int] = defaultdict(itertools.count(1).__next__)
        facts = [("able", number[node], 0) for node in able]
        for node, w in self.waits.items():
            me = number[node]
            facts.append(("process", me, number[node[0], w.waiter.parent]))
            callee = self.callees.get(node)
            if w.state == "able" or (w.state == "call" and callee not in self.waits):
                facts.append(("able", me, 0))
            elif w.state == "children":
                facts.append(("waits_for", me, me))
            elif w.state == "call":
                call = number["call", callee]
                facts += [("waits_at", me, call), ("holds", number[callee], call)]
            else:
                facts += [(self._kind_of_wait(*place), me, number[place[0]]) for place in w.places]
        for (key, _), nodes in self.holders.items():
            facts += [("holds", number[node], number[key]) for node in nodes]
        going_on = set(_native._going_on(facts))
        return {node for node in self.waits if number[node] not in going_on}

    def _kind_of_wait(self, key: _Key, writes: bool) -> str:
        if key in self._barriers:
            return "waits_at_barrier"
        unknown = key in self._open or not self.holders.get((key, not writes))
        return "able" if unknown else "waits_at"

    # --- as text ----------------------------------------------------------------------------------

    def row(self, node: _Node) -> Stuck:
        w = self.waits[node]
        others: set[_Node] = set()
        for key, writes in w.places:
            others |= self.holders.get((key, not writes), set())
        pid = self.spaces[node[0]].pid
        return Stuck(
            self.path(node),
            w.waiter.operation,
            w.names,
            w.waiter.at,
            tuple(sorted({self.path(other) for other in others if other in self.waits})),
            None if pid == os.getpid() else pid,
        )


def _all_received(before: int, now: int) -> bool:
    """Compares two 32-bit counters. Returns whether everything that was sent before the earlier
    round has now been received.
    """
    return (now - before) % (1 << 32) < 1 << 31


def _settled(before: Round, now: Round, pair: tuple[int, int]) -> bool:
    here, there = pair
    try:
        sent_here, _ = before.counters[here, there]
        sent_there, _ = before.counters[there, here]
        _, received_here = now.counters[here, there]
        _, received_there = now.counters[there, here]
    except KeyError:
        return False
    return _all_received(sent_there, received_here) and _all_received(sent_here, received_there)


def judge(rounds: list[Round]) -> tuple[Round, set[_Node]]:
    """Returns the last round, and the processes that are stuck: the processes that each round has
    found stuck, and that nothing has touched between the rounds.
    """
    last = rounds[-1]
    stuck = set.intersection(*(r.stuck() for r in rounds))
    able = last.waits.keys() - stuck
    for node in stuck:
        each = [r.waits[node] for r in rounds]
        same = all(w.seen == each[-1].seen and w.sessions == each[-1].sessions for w in each)
        if not same or not all(
            _settled(before, now, pair)
            for before, now in itertools.pairwise(rounds)
            for pair in each[-1].sessions
        ):
            able.add(node)
    return last, last.stuck(able)


def _look(patience: float) -> tuple[Round, set[_Node]] | None:
    rounds = []
    for _ in range(ROUNDS):
        answers, silent = moments(patience)
        if silent:
            return None
        rounds.append(Round(answers))
    return judge(rounds)


def _shown(last: Round, stuck: set[_Node]) -> list[_Node]:
    """Leaves out the processes that only wait for others, and the processes that their own OS
    process can find alone.
    """
    each = ((node, last.waits[node]) for node in stuck)
    return [node for node, w in each if w.state == "places" and w.waiter.may_go_on]


def found() -> list[Stuck]:
    """Returns the processes of this program that are stuck, as far as its OS processes can find
    them only together.
    """
    looked = _look(_rounds.PATIENCE)
    if looked is None:
        return []
    last, stuck = looked
    return [last.row(node) for node in _shown(last, stuck)]


# --- for code that watches ------------------------------------------------------------------------


class _Looks:
    """A thread that searches for stuck processes several times after an executor has fallen idle,
    in this OS process or in a host. It does not count as a thread that can wake a run (rule 10.3).
    """

    def __init__(self) -> None:
        self._idle = threading.Event()
        threading.Thread(target=self._watch, name="weft: looks for knots", daemon=True).start()

    def ring(self) -> None:
        self._idle.set()

    def _watch(self) -> None:
        _helper_threads.add_until_end()
        while True:
            self._idle.wait()
            self._idle.clear()
            for seconds in _rounds.AGAIN:
                time.sleep(seconds)  # a value that is under way can still wake a process
                if not _deadlocks.begun_here() or not _rounds.members():
                    break
                since = time.monotonic()
                self._look_and_tell()
                # The searches take at most a twentieth of the time.
                time.sleep(20 * (time.monotonic() - since))

    def _look_and_tell(self) -> None:
        looked = _look(_rounds.PATIENCE)
        if looked is None:
            return
        last, stuck = looked
        shown = _shown(last, stuck)
        mine = _native._moment()[0][0]
        for check in _deadlocks.begun_here():
            if set(shown) <= check.told_beyond:
                continue
            check.told_beyond |= set(shown)
            try:
                check._found([last.row(node) for node in shown], frozenset())
            except Exception as error:
                # `error` is a Deadlock, or a warning that a filter turns into an exception
                _native._end_runs({process for space, process in stuck if space == mine}, error)


_looks: _Looks | None = None


def fell_idle() -> None:
    global _looks
    if not _rounds.members():
        return
    if _looks is None:
        with contextlib.suppress(RuntimeError):  # the interpreter is shutting down
            _looks = _Looks()
    if _looks is not None:
        _looks.ring()


def _forget() -> None:
    global _looks
    _looks = None


_deadlocks.fell_idle = fell_idle
os.register_at_fork(after_in_child=_forget)
