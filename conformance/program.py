"""The numbered code of a network, and the state of one of its processes.

Invariant: a `Proc` contains only immutable values, so copying its fields copies it.
"""

from __future__ import annotations

from typing import Any

from .objects import BadUse

BLOCKS = ("ext", "iter", "loop", "limit")  # statements whose third word is a body


class Code:
    """The bodies and processes of a network, numbered, so that a state refers to them by number."""

    def __init__(self, net: dict[str, Any]):
        self.net = net
        self.bodies: list[list[Any]] = []
        self.procs: dict[int, dict[str, Any]] = {}
        self.nest: dict[int, list[int]] = {}  # id of a statement → numbers of its bodies
        self._process(net["main"])

    def _process(self, proc: dict[str, Any]) -> None:
        if proc["id"] in self.procs:
            raise ValueError(f"two processes have the id {proc['id']}")
        self.procs[proc["id"]] = {**proc, "entry": self._body(proc["body"])}

    def _body(self, body: list[Any]) -> int:
        number = len(self.bodies)
        self.bodies.append(body)
        for s in body:
            kind = s[0]
            if kind in BLOCKS:
                self.nest[id(s)] = [self._body(s[2])]
            elif kind == "try":
                self.nest[id(s)] = [self._body(s[1]), self._body(s[3])]
            elif kind in ("par", "seq"):
                for p in s[1]:
                    self._process(p)
            elif kind == "spawn":
                self._process(s[1])
        return number


class Proc:
    """A running process. Its fields are those that __init__ sets, always in this order."""

    def __init__(self, pid: int, parent: int, slots: tuple[int, ...]):
        self.pid, self.parent, self.slots = pid, parent, slots
        self.st = "new"
        self.frames: tuple = ()  # a stack of (kind, body number, next statement, extra)
        self.cancel = self.doomed = self.started = False
        self.unheard = False  # whether a request has not yet reached its scheduler (6.1)
        # the states of the limits on the blocks that the process is in (7.12): open, asked, met
        self.limits: tuple[str, ...] = ()
        self.by = -1  # which of `limits` asked for the last Cancelled; -1: a request from outside
        self.passed = False  # whether the process's group has received its request to end
        self.watchers: tuple[int, ...] = ()  # the processes that wait for its end (7.11)
        self.excused = False  # whether only its watchers learn of its failure (7.11)
        self.n = 0  # the number of values made so far
        self.todo: tuple = ()
        # the exception that unwinds the process or left it: (name, strength, met)
        self.exc: tuple | None = None
        self.out: tuple | None = None
        self.result = False  # whether the process has returned, and so has a result
        self.kids: tuple[int, ...] = ()
        self.join = ""
        self.at: tuple[int, int] = (0, 0)  # (body, statement) of the operation in progress
        self.values: tuple = ()
        self.yielding: tuple[int, ...] = ()
        self.starve: tuple = ()  # ((body, statement), counts, silent guards): judge.py

    def clone(self) -> Proc:
        new = Proc.__new__(Proc)
        # Copying processes is the most frequent work of a search.
        new.__dict__.update(self.__dict__)
        return new

    def key(self) -> tuple:
        return tuple(self.__dict__.values())

    def slot(self, k: int) -> int:
        """Returns the end in a slot. Raises BadUse for a slot that was never filled (its end never
        arrived).
        """
        if k >= len(self.slots):
            raise BadUse(f"there is no end in slot {k}")
        return self.slots[k]
