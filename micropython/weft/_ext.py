"""Extended reads (rule 1.6). This module is loaded when a program makes its first extended read."""

from . import _core as core
from ._chan import HELD, LATER, NOTHING, REQ, begin, closed, fail, keep, moved, resume
from ._full import Node


class Ext:
    """An extended read. Until its `async with` block ends it holds the writer or, at a buffer, the
    slot."""

    ext = True
    live = True
    quick = False

    def __init__(self, rd):
        self.rd = rd
        self.writer = None
        self.slot = False

    def note(self, node):
        pass

    def withdraw(self):
        self.c.unlink(False, self.node)

    def commit(self, node, ext=None):
        self.withdraw()
        core.push(self.p)

    def give_up(self, p):
        return self.c.unlink(False, self.node)

    def told(self, node):
        self.withdraw()
        self.p.at = None
        fail(self.p, self.c.error(True))

    def given(self, v, e):
        if e is None:
            self.v = keep(self.p, moved(v))
            core.push(self.p)
        else:
            self.p.at = None
            fail(self.p, e)

    async def __aenter__(self):
        p = self.p = core.cur()
        begin(p, "extended read")
        rd = self.rd
        if rd.x:
            raise closed(rd, "%s: extended read" % p.x.where)
        c = self.c = rd.c.x
        self.name = c.name
        v = NOTHING if c.pz else c.get(p, self.given, self)
        if v is NOTHING:
            if c.ended(False):
                e = c.error(True)
                e.met = True
                raise e
            self.node = Node(self, 0, c, False)
            c.link(False, self.node)
            c.note(True)
        elif v is not LATER:
            return v
        p.at = self
        await core.ONCE
        resume(p)
        return self.v

    async def __aexit__(self, *_):
        w, c = self.writer, self.c
        if w is not None:
            self.writer = None
            if w.at is HELD:
                w.at = REQ if w.x.asked else None
            core.push(w)
        if self.slot:
            self.slot = False
            c.held -= 1
            c._look()
            if not c.pz:
                c.refill()
                c.serve()
