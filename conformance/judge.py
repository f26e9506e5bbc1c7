"""What is judged about a network in progress: deadlock with its knots (rule 10), the verdict, fairness (rule 5.4).

`Judge` is the part of `interp.Sim` that looks at the state; of it, only `_deadlock` and the starvation counts change
anything.
"""

from __future__ import annotations

from typing import Any

from .model import READ, WRITE, Guard, Op, World
from .program import Code, Proc

QUIET = ("Retired", "Poisoned", "Cancelled")  # leave a process without failing it (3.5, 4.3, 6.5)


class Judge(World):
    """See `interp.Sim`, whose base this is and which has the fields named here."""

    code: Code
    procs: dict[int, Proc]
    root: tuple[int, ...]
    dead: tuple | None

    def blocked(self) -> dict[int, tuple[int, ...]]:
        """Each process that is blocked in an operation or waits for children → the processes for which it
        waits (10.2).
        """
        found: dict[int, tuple[int, ...]] = {}
        for p in self.procs.values():
            if p.st == "join":
                found[p.pid] = tuple(k for k in p.kids if self.procs[k].st != "ended")
            elif p.st == "parked":
                op = self.ops[p.pid]
                for_whom: set[int] = set()
                # A held writer (1.6) waits at its channel, for whoever holds the other side: who of them holds it is not
                # recorded.
                held = op.guards[op.out[1] : op.out[1] + 1] if op.state == "held" and op.out else ()
                for g in op.guards if op.state == "waiting" else held:
                    if g.kind in ("in", "out"):
                        side = WRITE if g.kind == "in" else READ
                        for e in self.ends:
                            if e.chan == g.on and e.side == side and not e.how:
                                for_whom.update(e.holders)
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
        """The smallest sets of processes each of which waits only for processes in the set (10.2). A process that has
        not been started holds ends, but it is not blocked: it is in no knot.
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
        blocked = tuple(p for p in self.blocked() if self.procs[p].st == "parked")
        self.dead = (blocked, tuple(self.knots()))
        for p in self.procs.values():
            if p.st == "new":
                continue
            if p.st not in ("finishing", "ended"):
                p.doomed = True

    @staticmethod
    def _failed(p: Proc) -> bool:
        return p.exc is not None and p.exc[0] not in QUIET

    @staticmethod
    def _failure(failed: list[Proc]) -> tuple | None:
        if not failed:
            return None
        pids = tuple(k.pid for k in failed)
        assert failed[0].exc is not None
        return (failed[0].exc[0] if len(failed) == 1 else "Group", pids)

    def _verdict(self) -> list[Any]:
        failed = self._failure([self.procs[m] for m in self.root if self._failed(self.procs[m])])
        if self.dead is not None:
            return [
                "Deadlock",
                {"blocked": list(self.dead[0]), "knots": [list(k) for k in self.dead[1]]},
            ]
        if failed:
            return [failed[0], {"pids": list(failed[1])}]
        return ["ok"]

    # ------------------------------------------------------------------------------------------------ fairness (5.4)

    def _starves(self, p: Proc, op: Op, i: int) -> bool:
        """Would choosing guard i leave another guard, ready all the time, unchosen for N selects in a row?"""
        if not p.starve or p.starve[0] != p.at:
            return False
        return any(
            k != i and n + 1 >= len(op.guards) and self.ready(op, k)
            for k, n in enumerate(p.starve[1])
        )

    def _count_starvation(self, p: Proc, op: Op, i: Any) -> None:
        old = p.starve[1] if p.starve and p.starve[0] == p.at else (0,) * len(op.guards)
        new = tuple(
            n + 1 if i is not None and k != i and self.ready(op, k) else 0
            for k, n in enumerate(old)
        )
        p.starve = (p.at, new) if any(new) else ()

    def _watch_readiness(self) -> None:
        """A guard that stopped being ready, be it for a moment, starts its count again."""
        for p in self.procs.values():
            if not p.starve or p.st in ("finishing", "ended"):
                continue
            s = self.code.bodies[p.starve[0][0]][p.starve[0][1]]
            counts = []
            for g, n in zip(s[2], p.starve[1], strict=True):
                if n and g["g"] in ("in", "out"):
                    e = self.ends[p.slots[g["end"]]]
                    probe = Op(p.pid, "select", (Guard(g["g"], e.chan, p.slots[g["end"]]),))
                    n = n if not e.how and self.ready(probe, 0) else 0
                else:
                    n = 0
                counts.append(n)
            p.starve = (p.starve[0], tuple(counts)) if any(counts) else ()
