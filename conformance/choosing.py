"""Determines which guards of an operation are ready, and when all guards that decide a select have
retired (rules 5.4 to 5.7).

    off (5.2)     never ready, decides nothing; may hold a select open (5.6)
    open ──▶ ready: a partner, a value, a slot, an end other than retirement
    retired ──▶ silent (5.6), or ready with that end if its guard has `ends`
    all that decide retired ──▶ the select is over: `ended_by`

Invariant: nothing here changes the world.
"""

from __future__ import annotations

from collections.abc import Iterator

from .objects import READ, WRITE, Barrier, Chan, Guard, Op, side_of


class Choosing:
    """The part of `model.World` that inspects guards. This class uses the fields of World that it
    declares.
    """

    chans: list[Chan]
    barriers: list[Barrier]
    ops: dict[int, Op]
    now: float
    gone: frozenset[int]  # processes that have ended and released their ends (7.11)

    def ready(self, op: Op, i: int) -> bool:
        """Returns whether guard i alone could commit now. This does not cover skips and expired
        timers (5.7), nor the end of the whole select (`ended_by`).
        """
        g = op.guards[i]
        if not g.pre:
            return False
        if g.kind in ("in", "out"):
            if self.retired(op, i):
                return g.ends
            c = self.chans[g.on]
            if c.ended(side_of(g)):
                return True
            if g.kind == "in":
                return bool(c.buf or self._offered(c, op.ext))
            return bool(self._wanted(c, g) or c.room() or c.overflow != "block")
        if g.kind == "barrier":  # ready if all other enrolled parties wait (8.4)
            b = self.barriers[g.on]
            return len(b.line) + 1 >= b.enrolled
        return g.kind == "ended" and g.on in self.gone

    def retired(self, op: Op, i: int) -> bool:
        """Returns whether the channel of guard i has retired for this operation. A guard that has
        fallen silent remains silent until the operation has ended (5.6).
        """
        g = op.guards[i]
        return i in op.silent or self.chans[g.on].ended(side_of(g)) == "Retired"

    def open(self, op: Op, i: int) -> bool:
        g = op.guards[i]
        return i not in op.silent and not self.chans[g.on].ended(side_of(g))

    def ended_by(self, op: Op) -> tuple[int, ...]:
        """Returns the guards that decide that the select is ready with `Retired` (5.6); empty if
        the select is not over.
        """
        on: dict[str, list[int]] = {}
        for i, g in enumerate(op.guards):
            if g.pre:
                on.setdefault(g.kind, []).append(i)
        decide = on.get("out") or ([] if on.keys() & {"barrier", "ended"} else on.get("in", []))
        if not all(self.retired(op, i) for i in decide):
            return ()
        # A guard that is off can be switched on later: an output after a value is read, an input
        # after some time.
        for i in op.holding:
            if op.guards[i].kind == "out" and any(self.open(op, k) for k in on.get("in", [])):
                return ()
            if op.guards[i].kind == "in" and ("time" in on or "skip" in on):
                return ()
        return tuple(decide)

    def _offered(self, c: Chan, ext: bool) -> bool:
        """Returns whether a reader can take the value of the first waiting writer. On a buffered
        channel a writer may wait although the buffer is empty, if extended reads or values that are
        being made occupy every slot. An extended read needs a slot, and so does a value from a
        function.
        """
        if not c.lines[WRITE] or c.capacity == 0:
            return bool(c.lines[WRITE])
        pid, i = c.lines[WRITE][0]
        return not self._made(self.ops[pid].guards[i]) and (not ext or c.room())

    def _wanted(self, c: Chan, g: Guard) -> bool:
        """Returns whether a value can go directly to the first waiting reader (1.5)."""
        if not c.lines[READ] or c.capacity == 0:
            return bool(c.lines[READ])
        return not self._made(g) and (not self.ops[c.lines[READ][0][0]].ext or c.room())

    @staticmethod
    def _made(g: Guard) -> bool:
        return g.made or g.raises

    def idle_guards(self, op: Op) -> Iterator[int]:
        """Yields the guards that are skips (including a timeout ≤ 0) or expired timers, that is,
        deadlines that have passed (5.7).
        """
        for i, g in enumerate(op.guards):
            if g.pre and (g.kind == "skip" or (g.kind == "time" and g.value <= self.now)):
                yield i

    def idle_in_turn(self, op: Op) -> list[int]:
        """Returns the guards of idle_guards() in the order of a select with priorities: a skip
        counts at its own place, an expired timer after all other guards.
        """
        skips = [i for i, g in enumerate(op.guards) if g.pre and g.kind == "skip"]
        return skips[:1] or list(self.idle_guards(op))[:1]

    def choices(self, op: Op) -> list[int]:
        """Returns the guards to which the operation may commit immediately, in one atomic step
        (5.4, 5.7). The list is empty if the operation must wait.
        """
        idle = list(self.idle_guards(op))
        hot = [i for i in range(len(op.guards)) if self.ready(op, i)]
        # The end of the whole select competes in the place of each of these guards (5.6).
        last = self.ended_by(op)
        if op.mode == "priority":
            idle = self.idle_in_turn(op)
            first = sorted(hot + [i for i in idle if op.guards[i].kind == "skip"])[:1]
            return sorted({min([i, *first]) for i in last}) or first or idle
        return sorted({*hot, *last}) or idle

    def has_ended(self, op: Op) -> bool:
        """Returns whether a waiting select is over. A select that has not examined all guards that
        decide it can still find another guard ready.
        """
        last = self.ended_by(op) if op.state == "waiting" else ()
        return bool(last) and set(last) <= set(op.seen)
