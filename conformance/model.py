"""Implements the rules of SEMANTICS.md Part I as one small, slow, obvious state machine.

A `World` holds channels, ends, barriers, timers and the operations in progress. It knows nothing of
programs: `interp.py` gives it processes, `checker.py` compares it with the history of a runtime.
The model uses no threads; each public method is one atomic step.

Invariants, true between any two steps:
  * A process has at most one operation. The operation is `waiting`, `held` (a writer inside an
    extended read, 1.6), `making` (its outcome is certain, but the value of its output guard is yet
    to be made, 5.8), `fed` (a reader that will get the value of such a writer) or `done` (it has an
    outcome).
  * A party (pid, guard index) stands in a waiting queue only while its operation is waiting (5.10,
    6.2).
  * A reader and a writer do not wait at one channel at the same time (1.1), unless one of them
    needs a slot of the buffer while extended reads, or values that are being made, occupy all
    slots. While a reader waits the buffer is empty (1.5).
  * The channel of a waiting party has not ended for it (3.1, 3.3, 4.2, 4.5). A guard that fell
    silent (5.6) is not a party.
  * An operation that is over (5.6) and has examined all the guards that decide it does not wait.
  * Every value is in exactly one place: with its writer, in a buffer, with its reader, or counted
    as dropped.

  operation:   begin ─▶ waiting ──commit, cancel, fire, _settle: by _decide──▶ done ──take──▶ (gone)
                           ├──_hand_over to an extended read──▶ held ──release──▶ done
                           └──_feed, _give: a value from a function──▶ making, fed ──make──▶ done
                              (passing.py)

Where the rules leave a question open, the model allows every answer.
"""

from __future__ import annotations

import math

from .objects import (
    READ,
    WRITE,
    BadUse,
    Barrier,
    Chan,
    End,
    Op,
    Outcome,
    any_of,
    side_of,
)
from .passing import Passing


class World(Passing):
    """All channels, ends, barriers, timers and operations of one run."""

    def __init__(self) -> None:
        self.chans: list[Chan] = []
        self.ends: list[End] = []
        self.barriers: list[Barrier] = []
        self.ops: dict[int, Op] = {}  # pid → its operation
        # reader pid → ("writer", pid) | ("slot", channel): open extended reads (a stack)
        self.holds: dict[int, tuple] = {}
        # pid of a writer that is making a value → the reader that waits for it
        self.feeds: dict[int, int] = {}
        self.now = 0
        self.gone: frozenset[int] = frozenset()
        self.timers: list[
            tuple[int, int, int]
        ] = []  # (deadline, pid, guard; < 0: a limit of the process, 7.12), in firing order (8.5)
        self._dirty: list[int] = []

    # --- copies, for searches

    def _clone_into(self, new: World) -> None:
        new.chans = [c.clone() for c in self.chans]
        new.ends = self.ends[:]
        new.barriers = [b.clone() for b in self.barriers]
        new.ops = {p: o.clone() for p, o in self.ops.items()}
        new.holds = dict(self.holds)
        new.feeds = dict(self.feeds)
        new.now, new.timers, new._dirty = self.now, self.timers[:], []
        new.gone = self.gone

    def world_key(self) -> tuple:
        return (
            tuple([c.key() for c in self.chans]),
            tuple(self.ends),
            tuple([b.key() for b in self.barriers]),
            tuple([self.ops[p].key() for p in sorted(self.ops)]),
            tuple(sorted(self.holds.items())),
            tuple(sorted(self.feeds.items())),
            self.now,
            tuple(self.timers),
            self.gone,
        )

    # ------------------------------------------------------------------------------ ends (2, 3, 4)

    def make_end(self, chan: int, side: int) -> tuple[int, str]:
        """Makes a new end (2.1). Returns (its number, ""), or (-1, exception name) if the channel
        has ended for this side (2.5).
        """
        c = self.chans[chan]
        if c.ended(side):
            return -1, c.ended(side)
        if (
            c.made[side] and not c.live[side]
        ):  # a side whose last end is closed stays closed: a new end could reach no process
            return -1, "PeerDied" if c.died[side] else "Retired"
        self.ends.append(End(chan, side))
        c.made[side] += 1
        c.live[side] += 1
        return len(self.ends) - 1, ""

    def hold(self, end: int, pid: int) -> None:
        e = self.ends[end]
        self.ends[end] = e._replace(holders=(*e.holders, pid))

    def let_go(self, end: int, pid: int) -> None:
        """Makes a finished process release an end (2.3). The end is closed when its last holder
        releases it.
        """
        e = self.ends[end]
        if pid in e.holders:
            holders = tuple(h for h in e.holders if h != pid)
            self.ends[end] = e._replace(holders=holders)
            if not holders:
                self.close(end, "let go by the last process that held it")

    def close(self, end: int, how: str, died: bool = False) -> None:
        """Closes an end (2.2, 4.5). Closing a closed end changes nothing."""
        e = self.ends[end]
        if e.how:
            return
        self.ends[end] = e._replace(how=how)
        c = self.chans[e.chan]
        c.live[e.side] -= 1
        c.died[e.side] |= died
        self._dirty.append(e.chan)
        self._settle()

    def poison(self, chan: int, strength: int = 1) -> None:
        """Poisons a channel (4.1–4.4)."""
        if strength < 1:
            raise BadUse(f"poison of strength {strength}: give a strength >= 1")
        c = self.chans[chan]
        if strength < c.immunity or strength <= c.poison:
            return
        c.poison = strength
        self._dirty.append(chan)
        self._settle()

    # --------------------------------------------------------------------------- operations (1, 5)

    def begin(self, op: Op) -> None:
        """Starts an operation (`commit` and `enrol` add its guards).

        A guard that is off takes no part in the checks (5.2).

        Raises:
            BadUse: the operation is not allowed; nothing has changed (5.5, 11.2).
        """
        live = [g for g in op.guards if g.pre]
        if not live:
            raise BadUse(
                "a select with no guards"
                if not op.guards
                else "a select with no guard whose precondition holds"
            )
        sides: dict[int, str] = {}
        barriers: set[int] = set()
        for g in live:
            if g.kind in ("in", "out"):
                e = self.ends[g.end]
                if e.how:
                    raise BadUse(f"operation on an end that was closed: {e.how}")
                if e.side != side_of(g):
                    raise BadUse(
                        "reading a writer end" if g.kind == "in" else "writing a reader end"
                    )
                if sides.setdefault(g.on, g.kind) != g.kind:
                    raise BadUse("both ends of one channel in one select")
            elif g.kind == "barrier":
                if self.barriers[g.on].enrolled == 0:
                    raise BadUse("a sync with nobody enrolled")
                if g.on in barriers:
                    raise BadUse("one barrier twice in one select: a process is one party")
                barriers.add(g.on)
        op.holding = tuple(
            i
            for i, g in enumerate(op.guards)
            if not g.pre
            and g.kind in ("in", "out")
            and not self.ends[g.end].how
            and self.open(op, i)
        )
        self.ops[op.pid] = op

    def commit(self, pid: int, i: int) -> None:
        """Commits guard i of an operation that has begun. The guard is ready, or idle, or one of
        the guards that end the select.
        """
        op = self.ops[pid]
        g = op.guards[i]
        if g.kind in ("skip", "time", "ended"):
            self._decide(op, ("ok", i))
        elif g.kind == "barrier":
            b = self.barriers[g.on]
            if (pid, i) not in b.line:
                b.line.append((pid, i))
            self._phase(b)
        else:
            c = self.chans[g.on]
            if c.ended(side_of(g)) or i in op.silent:
                self._fail(op, i, c)
            elif g.kind == "in":
                self._take(op, i, c)
            else:
                self._give(op, i, c)
        self._settle()

    def conclude(self, pid: int) -> None:
        """Decides a select that is over (5.6). Its outcome may name any of the guards that decided
        it.
        """
        self._conclude(self.ops[pid])
        self._settle()

    def _conclude(self, op: Op) -> None:
        self._decide(op, ("Retired", any_of(self.ended_by(op))))

    def enrol(self, pid: int, i: int) -> None:
        """Puts guard i into its waiting queue (1.2), unless the guard is silent (5.6). Its
        operation waits.
        """
        op = self.ops[pid]
        g = op.guards[i]
        self.examine(pid, i)
        if not g.pre:
            return
        if g.kind in ("in", "out"):
            if i not in op.silent:
                self.chans[g.on].lines[side_of(g)].append((pid, i))
        elif g.kind == "barrier":
            self.barriers[g.on].line.append((pid, i))
        elif (
            g.kind == "time" and g.value < math.inf
        ):  # a time at or beyond the end of the clock is never reached (8.5)
            self.arm(g.value, pid, i)

    def arm(self, deadline: int, pid: int, i: int) -> None:
        """Sets a timer. Timers with equal deadlines fire in the order in which they were set
        (8.5).
        """
        at = len([t for t in self.timers if t[0] <= deadline])
        self.timers.insert(at, (deadline, pid, i))

    def examine(self, pid: int, i: int) -> None:
        """Notes that guard i was examined and cannot commit."""
        op = self.ops[pid]
        op.seen += (i,)
        g = op.guards[i]
        if g.pre and g.kind in ("in", "out") and self.retired(op, i):
            op.silent += (i,)

    def cancel(self, pid: int) -> bool:
        """Withdraws a waiting operation (6.2, 6.3). Returns False if the process has no operation,
        or if its operation is held or has committed.
        """
        op = self.ops.get(pid)
        if op is None or op.state != "waiting":
            return False
        self._decide(op, ("Cancelled",))
        self._settle()
        return True

    def take(self, pid: int) -> Outcome:
        """Makes the process continue. Returns the outcome of its operation."""
        op = self.ops.pop(pid)
        assert op.state == "done" and op.out is not None
        return op.out

    def release(self, pid: int) -> None:
        """Ends the block of the innermost extended read of `pid` (1.6)."""
        stack = self.holds[pid]
        kind, what = stack[-1]
        if stack[:-1]:
            self.holds[pid] = stack[:-1]
        else:
            del self.holds[pid]
        if kind == "writer":
            op = self.ops[what]
            op.state = "done"
        elif kind == "slot":
            self.chans[what].slots -= 1
            self._dirty.append(what)
            self._settle()

    def has_gone(self, pid: int) -> None:
        """Called when a process has ended: completes the operations that wait for its end
        (7.11)."""
        self.gone |= {pid}
        for op in list(self.ops.values()):
            for i in op.seen:
                if (
                    op.state == "waiting"
                    and op.guards[i][:2] == ("ended", pid)
                    and op.guards[i].pre
                ):
                    self._decide(op, ("ok", i))
        self._settle()

    # --- barriers and time (8)

    def enrol_party(self, barrier: int) -> None:
        self.barriers[barrier].enrolled += 1

    def resign(self, barrier: int) -> None:
        """Lets a party leave the barrier (8.2)."""
        b = self.barriers[barrier]
        if b.enrolled == 0:
            raise BadUse("resign with nobody enrolled")
        b.enrolled -= 1
        self._phase(b)
        self._settle()

    def due(self) -> list[int]:
        """Returns the timers that can go off now, in their order (8.5). But a limit can go off
        before or after the event for which its process waits (7.12).
        """
        now = [k for k, t in enumerate(self.timers) if t[0] <= self.now]
        return [k for k in now if self.timers[k][2] < 0] + [
            k for k in now if self.timers[k][2] >= 0
        ][:1]

    def fire(self, which: int = 0) -> None:
        """Lets a timer go off. Under virtual time, only a timer that is `due` may go off."""
        _, pid, i = self.timers[which]
        self._decide(self.ops[pid], ("ok", i))
        self._settle()

    def advance(self) -> None:
        """Lets virtual time jump to the earliest deadline (8.6). The caller has made sure that no
        process can run.
        """
        assert self.timers and self.timers[0][0] > self.now
        self.now = self.timers[0][0]

    # --------------------------------------------------------------------------------- inner steps

    def _decide(self, op: Op, out: Outcome) -> None:
        """Decides the outcome: the operation leaves every waiting queue (5.10), and the channels
        that the operation has left are checked again (3.2).
        """
        op.state, op.out = "done", out
        for g in op.guards:
            if g.kind in ("in", "out"):
                line = self.chans[g.on].lines[side_of(g)]
                if any(p == op.pid for p, _ in line):
                    line[:] = [party for party in line if party[0] != op.pid]
                self._dirty.append(g.on)
            elif g.kind == "barrier":
                b = self.barriers[g.on]
                b.line = [party for party in b.line if party[0] != op.pid]
        self.timers = [t for t in self.timers if t[1] != op.pid or t[2] < 0]

    def _fail(self, op: Op, i: int, c: Chan) -> None:
        """Decides an operation for which the channel of guard i has ended. The operation raises
        that end and names the guard (5.6); a writer keeps its value (3.3, 4.2).
        """
        why = "Retired" if i in op.silent else c.ended(side_of(op.guards[i]))
        more = (c.poison, op.guards[i].on) if why == "Poisoned" else ()
        self._decide(op, (why, i, *more))

    def _told(self, pid: int, i: int, c: Chan) -> None:
        """Called when the channel at which guard i waits has ended: the guard falls silent (5.6),
        or the operation raises the end.
        """
        op = self.ops[pid]
        side = side_of(op.guards[i])
        if c.ended(side) != "Retired":
            self._fail(op, i, c)
        # A guard with `ends` is ready alone, or as a part of the end of the whole select.
        elif op.guards[i].ends:
            self._decide(op, ("Retired", any_of((i, *self.ended_by(op)))))
        else:
            c.lines[side].remove((pid, i))
            op.silent += (i,)

    def _phase(self, b: Barrier) -> None:
        """Ends the phase if all enrolled parties wait (8.1). The syncs of all parties commit at the
        same instant (8.4).
        """
        if b.line and len(b.line) >= b.enrolled:
            parties, b.line = b.line, []
            b.phase += 1
            for pid, i in parties:
                self._decide(self.ops[pid], ("ok", i))

    def _settle(self) -> None:
        """Runs after each step: moves values into free slots, and handles parties that wait at a
        channel that has ended.
        """
        while self._dirty or self._conclude_one():
            if not self._dirty:
                continue
            c = self.chans[self._dirty.pop()]
            if c.buf and (
                c.poison or c.ended(WRITE)
            ):  # 3.3, 4.2: buffered values are dropped and counted
                values, c.buf = c.buf, []
                for v in values:
                    self._drop(c, v)
            for side in (READ, WRITE):
                while c.lines[side] and c.ended(side):
                    self._told(*c.lines[side][0], c)
            while c.lines[WRITE] and c.room():
                pid, i = c.lines[WRITE][0]
                self._give(self.ops[pid], i, c)
            while c.lines[READ] and c.buf:
                pid, i = c.lines[READ][0]
                self._take(self.ops[pid], i, c)
            while c.lines[READ] and self._offered(c, self.ops[c.lines[READ][0][0]].ext):
                pid, i = c.lines[READ][0]
                self._take(self.ops[pid], i, c)

    def _conclude_one(self) -> bool:
        """Concludes one waiting select that is over (5.6). Returns whether there was such a
        select."""
        for op in self.ops.values():
            if self.has_ended(op):
                self._conclude(op)
                return True
        return False

    # ----------------------------------------------------------------------------------- for tests

    def check_invariants(self) -> None:
        """Asserts the invariants at the head of this file."""
        for c in self.chans:
            assert not (c.lines[READ] and c.lines[WRITE]) or (c.capacity and not c.room()), (
                "a reader and a writer wait at one channel"
            )
            assert not (c.lines[READ] and c.buf), (
                "a reader waits while the buffer holds a value (1.5)"
            )
            assert c.overflow == "unbounded" or len(c.buf) <= c.capacity, "the buffer is over-full"
            for side in (READ, WRITE):
                assert not (c.lines[side] and c.ended(side)), (
                    "a party waits at a channel that has ended for it"
                )
                assert c.live[side] >= 0
                assert c.live[side] == sum(
                    1 for e in self.ends if not e.how and self.chans[e.chan] is c and e.side == side
                )
        for line in [ln for c in self.chans for ln in c.lines] + [b.line for b in self.barriers]:
            for pid, _ in line:
                assert self.ops[pid].state == "waiting", (
                    "a party of a decided operation stands in a line (5.10)"
                )
        for op in self.ops.values():
            assert not self.has_ended(op), "a select waits that is over (5.6)"
        for b in self.barriers:
            assert not b.line or len(b.line) < b.enrolled, "a complete phase waits"
        assert self.timers == sorted(self.timers, key=lambda t: t[0])
