"""Composition in a running network (rule 7): processes are made with their ends, are started and
cancelled, and end.

  make ─_start▶ ready … its body is over ─_leave▶ finishing ─_finish (drops one end a step)▶ ended
  a request: _doom ─▶ doomed ─(a step)▶ _request_cancel (limiting.py)

Invariant: the request to end reaches a process in a separate step, so the request may arrive at any
moment after it was made.
"""

from __future__ import annotations

from typing import Any

from .limiting import Limiting
from .objects import READ, WRITE, Outcome
from .program import Proc

Record = dict[str, Any]


class Composing(Limiting):
    """The part of `interp.Sim` that handles groups. This class uses the fields of Sim that it
    declares.
    """

    failing: bool

    def _stmt(self, p: Proc) -> list[Any]:
        return self.code.bodies[p.at[0]][p.at[1]]

    def _make(self, proc: dict[str, Any], parent: int, slots: tuple[int, ...]) -> None:
        self.procs[proc["id"]] = Proc(proc["id"], parent, slots)
        for e in slots:
            self.hold(e, proc["id"])

    def _make_all(self, procs: list[dict[str, Any]], parent: int, maker: Proc) -> Outcome | None:
        """Makes process objects with their ends, all or none (2.5). Returns None, or the outcome
        (name, (), strength) that making an end raises.
        """
        planned: list[tuple[dict[str, Any], tuple[int, ...]]] = []
        fresh: list[int] = []
        for proc in procs:
            slots: list[int] = []
            for e in proc["ends"]:
                if isinstance(e, int) and e < len(maker.slots):
                    slots.append(maker.slots[e])
                    continue
                end, why = (
                    (-1, "BadUse")
                    if isinstance(e, int)
                    else self.make_end(e[0], READ if e[1] == "r" else WRITE)
                )
                if why:
                    for f in fresh:
                        self.close(f, "dropped")
                    return (why, (), 0 if isinstance(e, int) else self.chans[e[0]].poison)
                fresh.append(end)
                slots.append(end)
            planned.append((proc, tuple(slots)))
        for proc, ends in planned:
            self._make(proc, parent, ends)
        return None

    def _start(self, p: Proc) -> None:
        p.st = "ready"
        p.frames = (("body", self.code.procs[p.pid]["entry"], 0, None),)

    def _compose(self, p: Proc) -> None:
        s = self._stmt(p)
        why = self._make_all(s[1], p.pid, p)
        if why:
            p.st, p.out = "decided", why
            return
        p.kids, p.join, p.st = tuple(q["id"] for q in s[1]), s[0], "join"
        for k in p.kids if s[0] == "par" else p.kids[:1]:
            self._start(self.procs[k])
        p.passed = False
        if self._asked(p):
            self._pursue(p)

    def _joined(self, p: Proc, how: tuple) -> tuple:
        """Returns what Parallel or Sequence returns or raises once all children have ended
        (7.1–7.3).
        """
        kids = [self.procs[k] for k in p.kids]
        failed = [k for k in kids if self._failed(k)]
        p.kids, p.join = (), ""
        if how == ("cancel",):
            self._meet(p)
            return ("Cancelled",)
        return self._failure(failed) or ("ok", tuple(map(self._result, kids)))

    def _result(self, p: Proc) -> Any:
        """Returns the result of a process: its number if it has returned; otherwise how it ended,
        such as "<retired>" (7.1).
        """
        if not p.result:
            return "<cancelled>" if p.exc is None else f"<{self.how(p.pid)}>"
        return p.pid

    def _doom(self, pids: tuple[int, ...]) -> None:
        for k in pids:
            q = self.procs[k]
            if q.st == "new":
                self._leave(q, None)  # this process will never be started
            elif q.st not in ("finishing", "ended"):
                q.doomed = True

    def _end(self, p: Proc, _: None) -> Record:
        """Ends the process, whose body has returned or has been left by an exception. Returns the
        record."""
        out = [p.exc[0]] if p.exc else ["ok"]
        self._leave(p, p.exc)
        return {"p": p.pid, "e": "end", "out": out}

    def _leave(self, p: Proc, exc: tuple | None) -> None:
        """Ends a process (2.3, 4.3, 4.6, 7.7): poison spreads first, then the ends are released,
        then the group is informed.
        """
        ran = p.st != "new" and p.started
        p.exc = exc
        p.result = exc is None and ran
        p.st, p.cancel, p.doomed, p.unheard = "finishing", False, False, False
        spread = (
            tuple(("poison", e, exc[1]) for e in p.slots) if exc and exc[0] == "Poisoned" else ()
        )
        p.todo = (*spread, *(("let go", e) for e in dict.fromkeys(p.slots)), ("done",))

    def _finish(self, p: Proc) -> None:
        step, p.todo = p.todo[0], p.todo[1:]
        if step[0] == "poison":
            if not self.ends[step[1]].how:
                self.poison(self.ends[step[1]].chan, step[2])
        elif step[0] == "let go":
            self.let_go(step[1], p.pid)
        else:
            p.st = "ended"
            watched = self.code.procs[p.pid].get("watched", False)
            alive = any(self.procs[w].st != "ended" for w in p.watchers)
            p.excused = watched and alive and self._failed(p)
            self.has_gone(p.pid)
            siblings = self.root if p.parent < 0 else self.procs[p.parent].kids
            parent = self.procs.get(p.parent)
            if self._failed(p):
                self.failing |= parent is None
                others = tuple(k for k in siblings if k != p.pid)
                if not any(
                    self.procs[k].st == "ended" and self._failed(self.procs[k]) for k in others
                ):
                    self._doom(others)  # only the first failure ends the others (7.2)
            elif parent is not None and parent.join == "seq" and not self._asked(parent):
                rest = [k for k in parent.kids if self.procs[k].st == "new"]
                if rest:
                    self._start(self.procs[rest[0]])
            if parent is not None and parent.join == "seq" and self._asked(parent):
                self._doom(tuple(k for k in parent.kids if self.procs[k].st == "new"))
