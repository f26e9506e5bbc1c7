"""The pure core: the run queue, resuming a process, a plain read or write at an open rendezvous. README.md, *Inside*,
says what each does; weft_native has the same.

Invariants
- A Proc is in the run queue once at most, and either there, in a line, or running.
- A Chan whose `ok` is True has only Procs in its lines, and in one of them at most.
- Nothing here allocates but the StopIteration of an awaited read, the iterator over ONCE, and a queue that grows.
- `_cur` is `_nobody` while no process runs; its `at` is not None, so that every operation goes to its hook.
"""

from collections import deque

ABI = 1
NATIVE = False
REQ = "cancelled"  # the `at` of a process that is asked to end and waits nowhere


class Proc:
    def __init__(self, x):
        self.x = x
        self.at = self.nx = self.v = self.go = self.g = self.gs = self.y = self.gt = self.e = None

    def start(self, g):
        self.g = g
        self.go = self.gs = g.send

    def throw(self, e):
        self.e = e
        self.go = self._boom

    def _boom(self, _):
        e, self.e, self.go = self.e, None, self.gs
        return self.g.throw(e)

    def _got(self, _):
        """Goes on after `yield rd` that had to wait."""
        r, self.go = self.y, self.gs
        if self.at is r:
            self.at = None
            return self.gs(self.v)
        return self.gs(_read(r, self)[0])


class Chan:
    def __init__(self, x):
        self.x = x
        self.ok = True
        self.r = self.rt = self.w = self.wt = None


class Rd:
    def __init__(self, c):
        self.c = c
        self.h = 0
        self.x = None

    def read(self):
        return self

    @property
    def closed(self):
        return self.x is not None

    @property
    def channel(self):
        return self.x[1] if self.x else self.c.x

    __call__ = __iter__ = __await__ = read

    def __next__(self):
        p = _cur
        at = p.at
        if at is None:
            c = self.c
            if c.ok:
                w = c.w
                if w is not None:
                    c.w = w.nx
                    w.at = None
                    _push(w)
                    raise StopIteration(w.v)
                p.at = self
                p.nx = None
                if c.r is None:
                    c.r = p
                else:
                    c.rt.nx = p
                c.rt = p
                return None
        elif at is self:
            p.at = None
            raise StopIteration(p.v)
        v = _read(self, None if p is _nobody else p)
        if v is not None:
            raise StopIteration(v[0])


class Wr:
    def __init__(self, c):
        self.c = c
        self.h = 0
        self.x = None

    def write(self, v):
        p = _cur
        if p.at is None:
            c = self.c
            if c.ok and not isinstance(v, ENDS):
                r = c.r
                if r is not None:
                    c.r = r.nx
                    r.v = v
                    _push(r)
                    return DONE
                p.at = self
                p.v = v
                p.nx = None
                if c.w is None:
                    c.w = p
                else:
                    c.wt.nx = p
                c.wt = p
                return ONCE
        return _write(self, v, None if p is _nobody else p)

    @property
    def closed(self):
        return self.x is not None

    @property
    def channel(self):
        return self.x[1] if self.x else self.c.x

    __call__ = write


ENDS = (Rd, Wr)
CLOSED = Chan(None)
CLOSED.ok = False

try:
    from micropython import const  # noqa: F401

    def _ended():
        return
        yield

    DONE = _ended()  # a generator that has ended: awaiting it costs nothing
    for _ in DONE:
        pass
    ONCE = (None,)
except ImportError:  # CPython

    class _Awaitable:
        def __init__(self, steps):
            self._steps = steps

        def __await__(self):
            return iter(self._steps)

    DONE = _Awaitable(())
    ONCE = _Awaitable((None,))

_nobody = Proc(None)
_nobody.at = _nobody
_cur = _nobody
_size = 16
_queue = deque((), _size)
_push = _queue.append
_read = _write = _quiet = _loud = None


def hooks(read, write, ended, failed):
    global _read, _write, _quiet, _loud
    _read, _write, _quiet, _loud = read, write, ended, failed


def methods(reader, writer):
    for to, of in ((Rd, reader), (Wr, writer)):
        for name in dir(of):
            if name[:2] != "__" or name == "__aiter__":
                setattr(to, name, getattr(of, name))


def push(p):
    _push(p)


def cur():
    return None if _cur is _nobody else _cur


def setcur(p):
    global _cur
    _cur = _nobody if p is None else p


def waiting():
    return len(_queue)


def room(n):
    global _queue, _push, _size
    if n > _size:
        try:
            size = n + n // 2
            q = deque((), size)
        except MemoryError:
            size = n
            q = deque((), size)
        while _queue:
            q.append(_queue.popleft())
        _queue, _push, _size = q, q.append, size


def _step(p, y):
    """The process yielded something: a reader to read from, or what a write gave."""
    while y is not None and y is not ONCE:
        if y is DONE:
            y = p.gs(None)
        elif isinstance(y, Rd):
            c = y.c
            if p.at is None and c.ok:
                w = c.w
                if w is not None:
                    c.w = w.nx
                    w.at = None
                    _push(w)
                    y = p.gs(w.v)
                    continue
                p.at = y
                p.nx = None
                if c.r is None:
                    c.r = p
                else:
                    c.rt.nx = p
                c.rt = p
            else:
                try:
                    v = _read(y, p)
                except BaseException as e:
                    y = p.g.throw(e)
                    continue
                if v is not None:
                    y = p.gs(v[0])
                    continue
            p.y = y
            if p.gt is None:
                p.gt = p._got
            p.go = p.gt
            return
        else:
            raise TypeError("a process yields a read or a write of Weft, or awaits")


def loop(limit):
    global _cur
    n = limit
    while True:
        q, p = _queue, None
        pop = q.popleft
        e = None
        try:
            while q:
                p = _cur = pop()
                y = p.go(None)
                if y is not None:
                    _step(p, y)
                if limit:
                    n -= 1
                    if n == 0:
                        _cur = _nobody
                        return
        except StopIteration as stop:
            _cur = _nobody
            _quiet(p, stop.value)
            continue
        except BaseException as error:
            e = error
        _cur = _nobody
        if e is not None:
            _loud(p, e)
        elif not _queue:
            return
