"""The standing Alternative, whose guards stay enrolled (rule 5.9).

Invariant
- `ready` contains the nodes that may be ready, in the order in which they became ready. A node is
  in `ready` once or not at all, and `queued` says which.
"""

from builtins import StopIteration, len

from . import _core as core
from ._alt import ENDED, IN, READY, SILENT, TIME, Alt
from ._chan import begin
from ._full import Node
from .errors import BadUse


class Alternative(Alt):
    """A choice whose guards stay enrolled between selects, within a `with` block (5.9)."""

    mode = "fair"  # the mode of a select outside the block

    def __init__(self, *guards, ended="silent"):
        super().__init__(guards, ended)
        self.ready = []
        self.checked = False
        self.steps = None

    def __enter__(self):
        self.standing = True
        for n in self.nodes:
            if n.kind < TIME and not n.end.x:
                n.c.link(n.out, n)
                self.note(n)
        return self

    def __exit__(self, *_):
        self.standing = False
        for n in self.nodes:
            if n.kind < TIME:
                n.c.unlink(n.out, n)

    def note(self, n):
        if not n.queued and n.on:
            n.queued = True
            self.ready.append(n)

    def enable(self, index, on):
        n = self.nodes[index]
        was, n.on = n.on, bool(on)
        self.checked = False
        try:
            self.check()
        except BadUse as e:
            if n.on:
                n.on = was
                raise e
        if n.on and n.kind < TIME:
            self.note(n)

    def select(self):
        """Returns an awaitable that waits for one of the guards. Its result is that of `select`."""
        self.steps = None
        return self

    def __iter__(self):
        return self

    __await__ = __iter__

    def __next__(self):
        if self.steps is None:
            p = core.cur()
            if self.standing and self.checked and self.ready and p is not None and p.at is None:
                n = self.ready[0]
                c = n.c
                if n.on and n.kind == IN and not (c.pz or c.cap or c.over or n.end.x):
                    w = c.k.w
                    # A plain writer that waits is usual, and needs no coroutine.
                    if w is not None and w.__class__ is not Node:
                        self.ready.pop(0)
                        n.queued = False
                        c.unlink(True, w)
                        w.at = None
                        core.push(w)
                        if c.k.w is not None:
                            self.note(n)
                        raise StopIteration((n.i, w.v))
            self.steps = self.selecting()
            if hasattr(self.steps, "__await__"):  # CPython
                self.steps = self.steps.__await__()
        return self.steps.send(None)

    def throw(self, e, value=None, traceback=None):
        return self.steps.throw(e)

    async def selecting(self):
        p = core.cur()
        begin(p, "select")
        if not self.checked:
            self.check()
            self.checked = self.standing
        i = self.next() if self.standing else self.scan(self.mode)
        result = None
        try:
            result = await self.outcome(i, p)
        finally:
            if self.won >= 0:
                self.rot = (self.won + 1) % len(self.nodes)
                n = self.nodes[self.won]
                if self.standing and n.kind < TIME and self.state(n) in (READY, ENDED):
                    self.note(n)
        return result

    def next(self):
        """Returns the index of the guard that became ready first and still is, or -1."""
        ready = self.ready
        silent = timed = False
        while ready:
            n = ready.pop(0)
            n.queued = False
            if n.on:
                s = self.state(n)
                if s == READY or s == ENDED:
                    return n.i
                n.gone = s == SILENT
        for n in self.nodes:
            silent = silent or (n.gone and n.on)
            timed = timed or (n.kind >= TIME and n.on)
        if silent:
            self.holds()
            if self.whole():
                for n in self.nodes:
                    if n.gone and n.on and self.decides(n):
                        self.note(n)
                        return n.i
        return self.scan("fair") if timed else -1
