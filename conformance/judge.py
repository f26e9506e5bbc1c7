"""Judges a running network: deadlock with its knots (rule 10), the outcome of the run, fairness
(rule 5.4).

`Judge` is the part of `interp.Sim` that inspects the state. Only `_deadlock` and the counts for
starvation change anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .model import World
from .objects import READ, WRITE, Guard, Op
from .program import Code, Proc

QUIET = (
    "Retired",
    "Poisoned",
    "Cancelled",
)  # These ends of an operation end a process without failing it (3.5, 4.3, 6.5).


class Judge(World):
    """A base of `interp.Sim`. This class uses the fields of Sim that it declares."""

    code: Code
    procs: dict[int, Proc]
    root: tuple[int, ...]
    dead: tuple | None

    def blocked(self) -> dict[int, tuple[int, ...]]:
        """Returns, for each process that is blocked in an operation or waits for children, the
        processes for which that process waits (10.2).
        """
        found: dict[int, tuple[int, ...]] = {}
        for p in self.procs.values():
            if p.st == "join":
                found[p.pid] = tuple(k for k in p.kids if self.procs[k].st != "ended")
            elif p.st == "parked":
                op = self.ops[p.pid]
                for_whom: set[int] = set()
                # A held writer (1.6) waits at its channel for all holders of the other side: no
                # record shows which of the holders keeps the writer waiting.
                held = op.guards[op.out[1] : op.out[1] + 1] if op.state == "held" and op.out else ()
                # A guard that is off takes no part (5.2). A silent guard can get no partner (5.6).
                waits = [g for i, g in enumerate(op.guards) if g.pre and i not in op.silent]
                for g in waits if op.state == "waiting" else held:
                    if g.kind in ("in", "out"):
                        side = WRITE if g.kind == "in" else READ
                        for e in self.ends:
                            if e.chan == g.on and e.side == side and not e.how:
                                for_whom.update(e.holders)
                    elif g.kind == "ended":
                        for_whom.add(g.on)
                    elif g.kind == "barrier":
                        waiting = {q for q, _ in self.barriers[g.on].line}
                        for_whom.update(
                            q.pid
                            for q in self.procs.values()
                            if q.st not in ("ended", "new") and q.pid not in waiting
                        )
                found[p.pid] = tuple(sorted(for_whom - {p.pid}))
        return found

    def knots(self) -> list[tuple[int, ...]]:
        """Returns the knots: the smallest sets of processes that wait only for processes in the
        same set (10.2). A process that has not been started holds ends but is not blocked, so no
        knot contains it.
        """
        graph = self.blocked()
        closures = set()
        for start in graph:
            seen, todo = {start}, [start]
            while todo:
                for q in graph.get(todo.pop(), ()):
                    if q in graph and q not in seen:
                        seen.add(q)
                        todo.append(q)
            closures.add(tuple(sorted(seen)))
        least = min(map(len, closures))
        return sorted(c for c in closures if len(c) == least)

    def _deadlock(self) -> None:
        # The report is made only once: a process that the deadlock has cancelled can wait again.
        if self.dead is None:
            blocked = tuple(p for p in self.blocked() if self.procs[p].st == "parked")
            self.dead = (blocked, tuple(self.knots()))
        for p in self.procs.values():
            if p.st == "new":
                continue
            if p.st not in ("finishing", "ended"):
                p.doomed = True

    @staticmethod
    def _failed(p: Proc) -> bool:
        return p.exc is not None and not p.excused and (p.exc[0] not in QUIET or not p.exc[2])

    def how(self, pid: int) -> str:
        """Returns how a process ended (7.11)."""
        p = self.procs[pid]
        if p.exc is None:
            return "returned"
        if p.excused or self._failed(p):
            return "failed"
        return {"Retired": "retired", "Poisoned": "poisoned", "Cancelled": "cancelled"}[p.exc[0]]

    @staticmethod
    def _failure(failed: list[Proc]) -> tuple | None:
        if not failed:
            return None
        pids = tuple(k.pid for k in failed)
        assert failed[0].exc is not None
        return (*failed[0].exc[:1], pids, failed[0].exc[1]) if len(failed) == 1 else ("Group", pids)

    def _verdict(self) -> list[Any]:
        failed = self._failure([self.procs[m] for m in self.root if self._failed(self.procs[m])])
        if self.dead is not None:
            return [
                "Deadlock",
                {"blocked": list(self.dead[0]), "knots": [list(k) for k in self.dead[1]]},
            ]
        if failed:
            return [failed[0], {"pids": list(failed[1])}]
        # 7.1: a run has exactly one process, and raises what that process raised
        left = self.procs[0].exc
        return [left[0]] if left else ["ok"]

    # --- fairness (5.4)
    #
    # These are the counts of a process's present select: for each guard, the number of selects in a
    # row in which it was ready and not chosen; after the guards, the same count for the end of the
    # whole select (5.6). A silent guard does not count in N. When a guard falls silent, all counts
    # start again.

    def _silent(self, op: Op) -> tuple[int, ...]:
        return tuple(
            i
            for i, g in enumerate(op.guards)
            if g.pre and g.kind in ("in", "out") and not g.ends and self.retired(op, i)
        )

    def _all_ready(self, op: Op) -> list[bool]:
        return [*(self.ready(op, k) for k in range(len(op.guards))), bool(self.ended_by(op))]

    def _counts(self, p: Proc, op: Op) -> tuple[int, ...]:
        if p.starve and p.starve[0] == p.at and p.starve[2] == self._silent(op):
            return tuple(p.starve[1])
        return (0,) * (len(op.guards) + 1)

    def _starves(self, p: Proc, op: Op, i: int) -> bool:
        """Returns whether a choice of guard i would pass over another guard, which was ready all
        the time, for the Nth select in a row.
        """
        last = self.ended_by(op)
        n = len(op.guards) - len(self._silent(op)) + bool(last)
        chosen = len(op.guards) if i in last else i
        counts, ready = self._counts(p, op), self._all_ready(op)
        return any(k != chosen and c + 1 >= n and ready[k] for k, c in enumerate(counts))

    def _count_starvation(self, p: Proc, op: Op, i: Any) -> None:
        chosen = len(op.guards) if i in self.ended_by(op) else i
        counts, ready = self._counts(p, op), self._all_ready(op)
        new = tuple(
            c + 1 if i is not None and k != chosen and ready[k] else 0 for k, c in enumerate(counts)
        )
        p.starve = (p.at, new, self._silent(op)) if any(new) else ()

    def _watch_readiness(self) -> None:
        """Restarts the count of each guard that is not ready, even if only for a moment."""
        for p in self.procs.values():
            if not p.starve or p.st in ("finishing", "ended"):
                continue
            at, counts, silent = p.starve
            probe = Op(p.pid, "select", tuple(self._probe(p, at)))
            ready = self._all_ready(probe)
            for k, g in enumerate(probe.guards):
                ready[k] = ready[k] and g.kind in ("in", "out") and not self.ends[g.end].how
            kept = tuple(c if ready[k] else 0 for k, c in enumerate(counts))
            p.starve = (at, kept, silent) if any(kept) and self._silent(probe) == silent else ()

    def _probe(self, p: Proc, at: tuple[int, int]) -> Iterator[Guard]:
        """Yields the guards of a select of the process, to find out which of them are ready."""
        for g in self.code.bodies[at[0]][at[1]][2]:
            kind, pre, ends = g["g"], g.get("pre", True), g.get("ends", False)
            if kind in ("in", "out"):
                end = p.slots[g["end"]]
                yield Guard(kind, self.ends[end].chan, end, pre=pre, ends=ends)
            elif kind == "barrier":
                yield Guard(kind, g["b"], pre=pre)
            elif kind == "ended":
                yield Guard(kind, g["p"], pre=pre)
            else:
                yield Guard("skip", pre=pre)
