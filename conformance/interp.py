"""Processes over `model.World`: runs a network given as data, one step at a time, under any
scheduler.

A network is plain JSON (see README.md, "Networks as data"). `Sim.steps()` lists every step that
could happen next; `Sim.apply(step)` does one step and returns the record that it makes, if any.
`explore.run` (a seeded scheduler), `explore.outcomes` (all schedules) and `checker.check` (the
schedule of a recorded history) drive `Sim`.

Two grains. `atomic` (one scheduler): an operation arrives in one step. `cores` (threads): a select
examines its guards one by one, in any order, with steps of other processes in between, because no
lock covers two channels.

Two clocks. `virtual` (8.6). `real`: an armed timer may go off at any moment.

  process:   new ─_go▶ called ─_arrive▶ parked ─▶ decided ─_ret▶ ready ─_go▶ …
             … ready ─_go (its body is over)▶ finishing ─_finish (drops one end a step)▶ ended
             called ─_arrive (par, seq)▶ join ─(all children ended) _ret▶ ready
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from .composing import Composing, Record
from .objects import BadUse, Barrier, Chan, Guard, Op, Outcome
from .program import Code, Proc

Step = tuple
INSTANT = (
    "retire",
    "poison",
    "die",
    "enrol",
    "resign",
    "yield",
    "cancel",
    "fail",
    "spawn",
    "release",
    "limit",
    "reschedule",
    "leave",
)  # these operations take effect immediately and never wait
LEFT = {"ext": "release", "limit": "leave"}  # blocks, each with the operation that ends the block


class Sim(Composing):
    """A running network. Its state consists of immutable values in lists and dictionaries, so that
    a search can copy the network.
    """

    def __init__(
        self,
        net: dict[str, Any] | Code,
        grain: str = "atomic",
        fairness: bool = True,
        clock: str = "virtual",
    ):
        super().__init__()
        assert grain in ("atomic", "cores") and clock in ("virtual", "real")
        self.clock = clock
        self.code = net if isinstance(net, Code) else Code(net)
        self.grain, self.fairness = grain, fairness and grain == "atomic"
        self.chans = [
            Chan(c.get("capacity", 0), c.get("overflow", "block"), c.get("immunity", 1))
            for c in self.code.net["channels"]
        ]
        self.barriers = [Barrier(n) for n in self.code.net.get("barriers", [])]
        self.procs: dict[int, Proc] = {}
        self.root: tuple[int, ...] = (
            0,
        )  # the members of the outermost group: main and the spawned processes (7.4)
        self.failing = False
        self.dead: tuple | None = (
            None  # (blocked processes, smallest knots) once a deadlock was found
        )
        self.over = False
        self._make(self.code.procs[0], -1, ())
        self._start(self.procs[0])

    def clone(self) -> Sim:
        new = Sim.__new__(Sim)
        self._clone_into(new)
        new.code, new.grain, new.fairness, new.clock = (
            self.code,
            self.grain,
            self.fairness,
            self.clock,
        )
        new.procs = {p: q.clone() for p, q in self.procs.items()}
        new.root, new.failing, new.dead, new.over = self.root, self.failing, self.dead, self.over
        return new

    def key(self) -> tuple:
        return (
            self.world_key(),
            tuple([q.key() for q in self.procs.values()]),
            self.root,
            self.failing,
            self.dead,
            self.over,
        )

    # --- the steps that can come next

    def steps(self) -> list[Step]:
        """Returns every step that could happen next; empty when the run has ended."""
        if self.over:
            return []
        found: list[Step] = []
        for p in self.procs.values():
            found.extend(self._steps_of(p))
        if (
            self.clock == "real"
        ):  # Processes take time too, so the order in which timers fire is unknown.
            found.extend(("fire", k) for k in range(len(self.timers)))
        else:
            found.extend(("fire", k) for k in self.due())
        if found:
            return found
        if self.timers:
            return [("advance",)]  # nothing can run, so the time advances (8.6)
        if all(self.procs[m].st == "ended" for m in self.root):
            return [("run",)]
        stuck = self.dead and all(op.state != "waiting" for op in self.ops.values())
        assert not stuck, "a cancelled network hangs: the model is wrong"
        return [("deadlock",)]

    def _steps_of(self, p: Proc) -> Iterator[Step]:
        if p.doomed:
            yield ("cancel", p.pid)
        if p.unheard:
            yield ("hear", p.pid)
        if p.st == "ready":
            yield ("go", p.pid)
            if (
                not p.started and p.cancel
            ):  # 6.5: a process cancelled before it ran may run to its first operation, or not at all
                yield ("skip", p.pid)
        elif p.st == "called":
            yield from (("arrive", p.pid, i) for i in self._arrivals(p))
        elif p.st == "parked" and self.ops[p.pid].state == "done":
            if self.ops[p.pid].out == ("Cancelled",):
                yield self._meeting(p)
                return
            named = (self.ops[p.pid].out or ())[1:2]
            if named and isinstance(named[0], tuple):  # any of these guards may be named (5.6)
                yield from (("ret", p.pid, "guard", i) for i in named[0])
            else:
                yield from self._rets(p, self.ops[p.pid].out)
        elif p.st == "decided" and not p.yielding:
            yield from self._rets(p, p.out)
        elif p.st == "join" and all(self.procs[k].st == "ended" for k in p.kids):
            # 7.2: if the children finished in spite of the request, the process may receive the
            # result or Cancelled.
            if self._asked(p):
                yield self._meeting(p, "cancel")
            yield ("ret", p.pid)
        elif p.st == "parked" and self.ops[p.pid].state == "making":
            yield ("make", p.pid)
        elif p.st == "finishing":
            yield ("finish", p.pid)

    def _rets(self, p: Proc, out: Outcome | None) -> Iterator[Step]:
        """Yields the ways in which an operation returns. `Poisoned` has the strength that the
        channel has when the process continues (4.2), and on threads that moment can be some time
        before the record is made.
        """
        if out is None or out[0] != "Poisoned" or len(out) < 4:
            yield ("ret", p.pid)
            return
        now = self.chans[out[3]].poison
        for strength in range(out[2] if self.grain == "cores" else now, now + 1):
            yield ("ret", p.pid, "strength", strength)

    def _meeting(self, p: Proc, *how: str) -> Step:
        """Makes the process continue with Cancelled. On threads another request can arrive between
        the moment at which the process continues and its record.
        """
        return ("meet" if self.grain == "cores" else "ret", p.pid, *how)

    def _arrivals(self, p: Proc) -> Iterator[Any]:
        kind = self._kind(p)
        if kind in INSTANT or kind in ("par", "seq"):
            yield None
            if (
                self._asked(p) and kind == "yield"
            ):  # 7.7: yield_ may or may not be a point of cancellation
                yield "cancel"
            return
        if p.pid not in self.ops:  # the operation has not begun
            asked = self._asked(p)
            if asked:
                yield "cancel"  # Cancelled takes the place of the operation (6.1)
            try:
                op = self._op(p)
                self.begin(op)
            except BadUse:
                yield "bad"  # This is bad use, even if the process has been asked to end (11.1).
                return
            finally:
                self.ops.pop(p.pid, None)
            if asked and self.grain == "atomic":
                # on threads the request can arrive just after the operation has checked for
                # requests
                return
        else:
            op = self.ops[p.pid]
            if op.state != "waiting":
                yield None
                return
        if self.grain == "atomic" or len(op.guards) == 1:
            hot = self.choices(op)
            if kind == "select" and self.fairness and op.mode == "fair" and len(hot) > 1:
                hot = [i for i in hot if not self._starves(p, op, i)] or hot
            yield from hot or self._orders(op)
            return
        timed = ("time", "skip")
        unseen = [
            i for i, g in enumerate(op.guards) if i not in op.seen and g.pre and g.kind not in timed
        ]
        idle = list(self.idle_guards(op))
        if op.mode == "priority" and idle:  # 5.7: no guard after a skip is ever chosen
            idle = self.idle_in_turn(op)
            if op.guards[idle[0]].kind == "skip":
                unseen = [i for i in unseen if i < idle[0]]
                # The end of the whole select counts at only one place, which can be after the skip
                # (5.6).
                if max(self.ended_by(op), default=-1) > idle[0] and not any(
                    self.ready(op, i) for i in unseen
                ):
                    yield from idle
        yield from unseen or idle or [None]

    @staticmethod
    def _orders(op: Op) -> Iterator[Any]:
        """Yields the orders in which a select that must wait can enrol its guards: the order of the
        guards (None) and, unless the select has priorities, any other. The order matters only if
        several of its guards are at the same channel.
        """
        yield None
        lines = [(g.kind, g.on) for g in op.guards if g.pre and g.kind in ("in", "out")]
        if op.mode != "priority" and len(set(lines)) < len(lines):
            yield from itertools.islice(itertools.permutations(range(len(op.guards))), 1, None)

    def _kind(self, p: Proc) -> str:
        s = self._stmt(p)
        if p.frames and p.frames[-1][0] in LEFT.values():
            return str(p.frames[-1][0])
        return "read" if s[0] == "iter" else str(s[0])

    # ------------------------------------------------------------------------------------ one step

    def apply(self, step: Step) -> Record | None:
        """Does one step of `steps()`; returns the record that it makes, or None."""
        kind = step[0]
        record: Record | None = None
        if kind == "fire":
            self.fire(step[1])
        elif kind == "advance":
            self.advance()
        elif kind == "deadlock":
            self._deadlock()
        elif kind == "run":
            self.over = True
            record = {"e": "run", "out": self._verdict(), "t": self.now}
        else:
            p = self.procs[step[1]]
            if kind == "go":
                record = self._go(p)
            elif kind == "arrive":
                self._arrive(p, step[2])
            elif kind == "ret":
                record = self._ret(p, step[2:])
            elif kind == "make":
                self.make(p.pid)
            elif kind == "meet":
                p.out, p.st = self._cancelled(p, step[2:]), "decided"
            elif kind == "finish":
                self._finish(p)
            elif kind == "skip":
                self._leave(p, ("Cancelled", 0, True))
            elif kind == "cancel":
                p.doomed = False
                self._request_cancel(p)
            elif kind == "hear":
                self._hear(p)
            if kind in ("go", "ret", "skip"):
                for q in self.procs.values():
                    if p.pid in q.yielding:
                        q.yielding = tuple(y for y in q.yielding if y != p.pid)
        if self.fairness:
            self._watch_readiness()
        return record

    def _go(self, p: Proc) -> Record:
        """Runs the process up to its next operation, or to its end."""
        p.started = True
        while p.frames:
            kind, body, pc, extra = p.frames[-1]
            if kind in LEFT.values():
                p.at = extra
                return self._call(p)
            if pc >= len(self.code.bodies[body]):
                rest = p.frames[:-1]
                if kind == "loop" and extra > 1:
                    p.frames = (*rest, (kind, body, 0, extra - 1))
                elif kind == "iter":
                    at, turns = extra
                    s = self.code.bodies[at[0]][at[1]]
                    if len(s) > 3 and turns >= s[3]:  # the loop ends after this number of turns
                        p.frames = rest
                        continue
                    p.frames = (
                        *rest,
                        ("iter", body, 0, (at, min(turns + 1, s[3]) if len(s) > 3 else 0)),
                    )
                    p.at = at
                    return self._call(p)
                elif kind in LEFT:
                    p.frames = (*rest, (LEFT[kind], body, 0, extra))
                else:
                    p.frames = rest
                continue
            s = self.code.bodies[body][pc]
            p.frames = (*p.frames[:-1], (kind, body, pc + 1, extra))
            if s[0] == "loop":
                if s[1] > 0:
                    p.frames += (("loop", self.code.nest[id(s)][0], 0, s[1]),)
            elif s[0] == "try":
                inner, handler = self.code.nest[id(s)]
                p.frames += (("try", inner, 0, (tuple(s[2]), handler)),)
            elif s[0] == "iter":
                p.frames += (
                    ("iter", self.code.nest[id(s)][0], 10**9, ((body, pc), 0)),
                )  # The loop begins as if a turn had ended, with the read.
            else:
                p.at = (body, pc)
                return self._call(p)
        return self._end(p, None)

    def _call(self, p: Proc) -> Record:
        p.st = "called"
        s = self._stmt(p)
        kind = self._kind(p)
        made: list[Any] = []
        if kind == "write":
            made = [f"{p.pid}.{p.n}"]
        elif kind == "select":
            made = [f"{p.pid}.{p.n + k}" for k in range(sum(g["g"] == "out" for g in s[2]))]
        p.n += len(made)
        p.values = tuple(made)
        return {"p": p.pid, "e": "call", "op": [kind, *made]}

    def _op(self, p: Proc) -> Op:
        """Returns the operation of the process's present statement."""
        s, kind = self._stmt(p), self._kind(p)

        def plain(
            what: str,
            slot: int,
            value: Any = None,
            raises: bool = False,
            pre: bool = True,
            made: bool = False,
            ends: bool = False,
        ) -> Guard:
            end = p.slot(slot)
            return Guard(what, self.ends[end].chan, end, value, raises, pre, made, ends)

        if kind in ("read", "ext"):
            return Op(p.pid, kind, (plain("in", s[1]),), ext=kind == "ext")
        if kind == "write":
            return Op(p.pid, kind, (plain("out", s[1], p.values[0]),))
        if kind == "send":
            return Op(p.pid, kind, (plain("out", s[1], ("end", p.slot(s[2]))),))
        if kind == "sync":
            return Op(p.pid, kind, (Guard("barrier", s[1]),))
        if kind == "sleep":
            return Op(p.pid, kind, (Guard("time", value=self.now + s[1]),))
        if kind == "ended":
            return Op(p.pid, kind, (self._end_of(p, s[1]),))
        guards, values = [], iter(p.values)
        for g in s[2]:
            pre, ends = g.get("pre", True), g.get("ends", False)
            if g["g"] == "in":
                guards.append(plain("in", g["end"], pre=pre, ends=ends))
            elif g["g"] == "out":
                raises, made = g.get("fn") == "raise", "fn" in g
                guards.append(plain("out", g["end"], next(values), raises, pre, made, ends))
            elif g["g"] == "timeout":
                guards.append(
                    Guard("time", value=self.now + g["t"], pre=pre)
                    if g["t"] > 0
                    else Guard("skip", pre=pre)  # a timeout that is not above 0 is a skip (5.7)
                )
            elif g["g"] == "deadline":
                guards.append(Guard("time", value=g["t"], pre=pre))
            elif g["g"] == "barrier":
                guards.append(Guard("barrier", g["b"], pre=pre))
            elif g["g"] == "ended":
                guards.append(self._end_of(p, g["p"], pre))
            else:
                guards.append(Guard("skip", pre=pre))
        return Op(p.pid, kind, tuple(guards), mode=s[1])

    @staticmethod
    def _end_of(p: Proc, pid: int, pre: bool = True) -> Guard:
        """Returns the end of a process as a guard (7.11). A process that names itself makes bad
        use, even if the guard is off.
        """
        if pid == p.pid:
            raise BadUse("the end of the process itself")
        return Guard("ended", pid, pre=pre)

    def _watches(self, p: Proc, op: Op) -> None:
        """Registers a process that waits for the end of another process as a watcher of that
        process (7.11).
        """
        for g in op.guards:
            if g.kind == "ended" and g.on in self.procs:
                q = self.procs[g.on]
                q.watchers = tuple(sorted({*q.watchers, p.pid}))

    def _arrive(self, p: Proc, i: Any) -> None:
        kind = self._kind(p)
        if i == "cancel":
            self._meet(p)
            p.st, p.out = "decided", ("Cancelled",)
        elif i == "bad":
            p.st, p.out = "decided", ("BadUse",)
        elif kind in ("par", "seq"):
            self._compose(p)
        elif kind in INSTANT:
            p.st, p.out = "decided", ("ok",)
            try:
                self._instant(p, kind, self._stmt(p))
            except BadUse:
                p.out = ("BadUse",)
        else:
            if p.pid not in self.ops:
                self.begin(self._op(p))
                self._watches(p, self.ops[p.pid])
            op = self.ops[p.pid]
            if op.state != "waiting":
                p.st = "parked"
            elif self.grain == "atomic" or len(op.guards) == 1:
                if kind == "select" and self.fairness:
                    self._count_starvation(p, op, None if isinstance(i, tuple) else i)
                if i is None or isinstance(i, tuple):
                    for k in i or range(len(op.guards)):
                        self.enrol(p.pid, k)
                else:
                    self.commit(p.pid, i)
                    if op.state == "making" and self.grain == "atomic":
                        # The process that owns the guard runs, and so makes its value immediately.
                        self.make(p.pid)
                p.st = "parked"
            elif i is None:  # all guards are enrolled: arm the timers and park
                for k, g in enumerate(op.guards):
                    if g.kind == "time":
                        self.enrol(p.pid, k)
                p.st = "parked"
            elif op.guards[i].kind in ("time", "skip") or self.ready(op, i):
                self.commit(p.pid, i)
                p.st = "parked"
            elif i in self.ended_by(op):
                self.conclude(p.pid)
                p.st = "parked"
            elif any(True for _ in self.idle_guards(op)):
                self.examine(p.pid, i)  # a select with a skip enrols nothing
            else:
                self.enrol(p.pid, i)
        if p.st == "parked" and self._asked(p):
            self._pursue(p)

    def _instant(self, p: Proc, kind: str, s: list[Any]) -> None:
        if kind == "release":
            self.release(p.pid)
        elif kind in ("retire", "die"):
            self.close(p.slot(s[1]), "retired" if kind == "retire" else "died", died=kind == "die")
        elif kind == "poison":
            end = self.ends[p.slot(s[1])]
            if end.how:
                raise BadUse(f"poison at an end that was closed: {end.how}")  # 4.1
            self.poison(end.chan, s[2])
        elif kind == "enrol":
            self.enrol_party(s[1])
        elif kind == "resign":
            self.resign(s[1])
        elif kind == "fail":
            p.out = ("Fail",)
        elif kind == "limit":
            self._open(p, s[1], s[3])
        elif kind == "reschedule":
            self._move(p, s[1])
        elif kind == "leave":
            p.out = self._close(p, s[1])
        elif kind == "spawn":
            why = self._make_all([s[1]], -1, p)
            if why:
                p.out = why
            else:
                self.root += (s[1]["id"],)
                self._start(self.procs[s[1]["id"]])
                self.procs[s[1]["id"]].doomed = self.failing
        elif kind == "cancel":
            q = self.procs.get(s[1])
            if q is not None and q is not p:
                if self.grain == "cores":
                    self._request_from_elsewhere(q)
                else:
                    self._request_cancel(q)
        # 7.7: yield_ gives precedence only to processes that are certainly runnable
        elif kind == "yield" and self.fairness:
            p.yielding = tuple(
                q.pid
                for q in self.procs.values()
                if q.st == "decided"
                or (q.st == "parked" and self.ops[q.pid].state in ("done", "making"))
                if q is not p
            )

    def _ret(self, p: Proc, how: tuple) -> Record:
        """Makes the process continue with the outcome of its operation."""
        kind = self._kind(p)
        s = self._stmt(p)
        if p.st == "join":
            out = self._joined(p, how)
        elif p.st == "parked" and self.ops[p.pid].out == ("Cancelled",):
            out = self._cancelled(p, how)
        elif p.st == "parked":
            out = self.take(p.pid)
            if how[:1] == ("guard",):
                out = (out[0], how[1])
        else:
            assert p.out is not None
            out = p.out
        if how[:1] == ("strength",):
            out = (*out[:2], how[1])
        name, shown, details = out[0], [out[0]], {}
        guarded = kind in ("read", "ext", "write", "send", "select")
        if kind in ("par", "seq"):
            if name == "ok":
                shown.append(list(out[1]))
            elif len(out) > 1 and out[1]:
                details["pids"] = list(out[1])
        elif kind == "select" and name == "ok":
            shown.append(out[1])
        if (ended := self._ended_at(kind, s, out)) >= 0:
            details["how"] = self.how(ended)
        if guarded and name == "ok" and len(out) > 2:
            value = out[2]
            if isinstance(value, tuple):
                p.slots += (value[1],)
                value = "end"
            shown.append(value)
        elif kind == "leave" and name == "ok":
            details["expired"] = out[1]
        elif guarded and name != "ok" and len(out) > 1:
            if kind == "select":
                details["guard"] = out[1]
            if name == "Poisoned":
                details["strength"] = out[2]
            if name in ("Retired", "Poisoned", "PeerDied") and kind == "write":
                details["value"] = p.values[0]
        if details:
            shown.append(details)
        p.st, p.out = "ready", None
        self_iter = s[0] == "iter" and kind == "read"
        if kind == "release" or (kind == "leave" and name == "ok"):
            p.frames = p.frames[:-1]
            if p.exc:
                self._unwind(p)
        elif name == "ok":
            if kind in ("ext", "limit"):
                p.frames += ((kind, self.code.nest[id(s)][0], 0, p.at),)
        elif self_iter and name == "Retired":
            p.frames = p.frames[:-1]  # a retirement ends the loop (3.4)
            shown = ["stop"]
        else:
            if self_iter or kind == "leave":
                p.frames = p.frames[:-1]
            # Whether the process met the end in an operation (3.5). It did not if a composition
            # raises the end: then the end was raised when this composition, or one inside it, made
            # a new end (2.5).
            met = kind not in ("par", "seq", "spawn") or name == "Cancelled"
            p.exc = (name, out[2] if len(out) > 2 else 0, met)
            self._unwind(p)
        p.values = ()
        return {"p": p.pid, "e": "ret", "out": shown, "t": self.now}

    def _cancelled(self, p: Proc, how: tuple) -> Outcome:
        """Raises Cancelled in the operation in which the process waited, or ends its composition.
        Returns the outcome."""
        if p.st == "join":
            return self._joined(p, how)
        self._meet(p)
        return self.take(p.pid)

    @staticmethod
    def _ended_at(kind: str, s: list[Any], out: tuple) -> int:
        """Returns the process whose end this outcome reports; -1 if the outcome is not the end of a
        process."""
        if out[0] != "ok":
            return -1
        if kind == "ended":
            return int(s[1])
        g = s[2][out[1]] if kind == "select" else {}
        return int(g["p"]) if g.get("g") == "ended" else -1

    def _unwind(self, p: Proc) -> None:
        """Propagates an exception until a block catches it. On its way the exception leaves blocks
        of extended reads (1.6).
        """
        assert p.exc is not None
        while p.frames:
            kind, body, _, extra = p.frames[-1]
            rest = p.frames[:-1]
            if kind in LEFT:
                p.frames = (*rest, (LEFT[kind], body, 0, extra))
                return
            if kind == "try" and p.exc[0] in extra[0]:
                p.frames = (*rest, ("body", extra[1], 0, None))
                p.exc = None
                return
            p.frames = rest
