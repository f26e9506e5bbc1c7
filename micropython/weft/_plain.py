"""The core in Python: the run queue, resuming a process, and a plain read or write at an open
rendezvous. README.md, *Inside*, specifies each part; weft_native contains the same parts in C.

Invariants
- A Proc is at most once in the run queue. It is in the run queue, or in a channel's waiting queue,
  or running.
- A Chan whose `ok` is True has only Procs in its waiting queues, and one of the two is empty.
- `rt` and `wt` are the last Proc of a queue of two or more. In a queue of one Proc they are not
  set, since the head is the last Proc. This saves one store in each communication.
- `y` of a Proc is the reader at which it waits by `yield`, else None.
- Only three things allocate here: the StopIteration of an awaited read, the iterator over ONCE, and
  a run queue that grows.
- `q` of a Chan is None, or the buffer of a channel to which nothing but Procs and a full or empty
  buffer can happen; `n` is then its capacity, and `ok` is False. While a reader waits, the buffer
  is empty; while a writer waits, it is full.
- `_cur` is `_nobody` while no process runs. The `at` of `_nobody` is not None, so that every
  operation goes to its hook.
"""

from collections import deque

ABI = 2
NATIVE = False


class Proc:
    """The core's part of a process. It has few fields, and rarely used ones are defaults of the
    class, because each field of an instance slows down every look-up."""

    e = None

    def __init__(self, x):
        self.x = x
        self.at = self.nx = self.v = self.go = self.g = self.y = None

    def start(self, g):
        self.g = g
        self.go = g.send

    def throw(self, e):
        self.e = e
        self.y = None
        self.go = self._boom

    def _boom(self, v):
        e, self.e, self.go = self.e, None, self.g.send
        return self.g.throw(e) if e else self.go(v)


class Chan:
    rt = wt = q = None

    def __init__(self, x):
        self.x = x
        self.ok = True
        self.r = self.w = None


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
                if w is None:
                    p.at = self
                    p.nx = None
                    w = c.r
                    if w is None:
                        c.r = p
                    else:
                        _last(w, c.rt).nx = c.rt = p
                    return ONCE
                c.w = w.nx
                w.at = None
                _push(w)
                raise _Stop(w.v)
            if c.q is not None:
                w = _from_buffer(c, p, self)
                if w is None:
                    return ONCE
                raise _Stop(p.v)
        elif at is self:
            p.at = None
            raise _Stop(p.v)
        v = _read(self, None if p is _nobody else p)
        if v is not None:
            raise _Stop(v[0])
        return ONCE


class Wr:
    def __init__(self, c):
        self.c = c
        self.h = 0
        self.x = None

    def write(self, v):
        p = _cur
        if p.at is None:
            c = self.c
            # Most values are numbers, and comparing the class is by far the fastest test of a type.
            if c.ok and (v.__class__ is _int or (v.__class__ is not Rd and v.__class__ is not Wr)):
                r = c.r
                if r is None:
                    p.at = self
                    p.v = v
                    p.nx = None
                    r = c.w
                    if r is None:
                        c.w = p
                    else:
                        _last(r, c.wt).nx = c.wt = p
                    return ONCE
                c.r = r.nx
                r.v = v
                _push(r)
                return DONE
            if c.q is not None and v.__class__ is not Rd and v.__class__ is not Wr:
                r = _into_buffer(c, p, self, v)
                if r is not None:
                    return r
        return _write(self, v, None if p is _nobody else p)

    closed, channel = Rd.closed, Rd.channel
    __call__ = write


def Buf(k, n):
    """Returns a buffer for at most n values. It has the methods `append` and `popleft`, and a
    length.
    """
    k.n = n
    return deque((), n)


AT_ONCE = 1000  # the limit on operations of a process in a row that complete at once
_who = None  # the process that did the last such operation
_left = 0  # how many more such operations that process may do


def at_once(p):
    """Counts an operation of p that completed immediately, for which no other process waited.
    Returns True if p has completed too many such operations in a row, so that other processes must
    run first (7.7)."""
    global _who, _left
    if _who is not p:
        _who, _left = p, AT_ONCE
    _left -= 1
    if _left >= 0:
        return False
    _left = AT_ONCE
    return True


def _from_buffer(c, p, rd):
    """Reads at a channel with a buffer. The value is then p.v. Returns None if p waits."""
    global _who, _left
    q = c.q
    if not q:
        p.at = rd
        p.nx = None
        w = c.r
        if w is None:
            c.r = p
        else:
            _last(w, c.rt).nx = c.rt = p
        return None
    v = q.popleft()
    w = c.w
    if w is not None:
        c.w = w.nx
        w.at = None
        _push(w)
        q.append(w.v)
    if v.__class__ is Rd or v.__class__ is Wr:
        v.h += 1
        p.x.ends.append(v)
    p.v = v
    if _who is p and _left:
        _left -= 1
    elif at_once(p):
        p.at = rd  # as if p had waited and a writer had arrived
        _push(p)
        return None
    return p


def _into_buffer(c, p, wr, v):
    """Writes at a channel with a buffer. Returns DONE, ONCE, or None: the hook must do it."""
    global _who, _left
    if _who is not p:
        _who, _left = p, AT_ONCE
    if not _left:
        return None
    r = c.r
    if r is not None:
        c.r = r.nx
        r.v = v
        _push(r)
    elif len(c.q) < c.n:
        c.q.append(v)
    else:
        p.at = wr
        p.v = v
        p.nx = None
        r = c.w
        if r is None:
            c.w = p
        else:
            _last(r, c.wt).nx = c.wt = p
        return ONCE
    _left -= 1
    return DONE


def _last(head, last):
    """Returns the last Proc of a queue that is not empty; `last` is the queue's `rt` or `wt`."""
    return head if head.nx is None else last


_int = int
_Stop = StopIteration  # looking up a builtin name costs 1,500 instructions on a Cortex-M3
ENDS = (Rd, Wr)
CLOSED = Chan(None)
CLOSED.ok = False

try:
    from micropython import const  # noqa: F401

    def _ended():
        return
        yield

    DONE = _ended()  # a generator that has ended: awaiting it takes no time
    for _ in DONE:
        pass
    ONCE = [None]  # awaiting ONCE yields ONCE; the loop checks for it before it checks for None
    ONCE[0] = ONCE
except ImportError:
    from ._awaitables import DONE, ONCE

_nobody = Proc(None)
_nobody.at = _nobody
_cur = _nobody
_size = 16
_queue = deque((), _size)
_push = _queue.append
_pop = _queue.popleft
_read = _write = _quiet = _loud = _strange = None


def hooks(read, write, ended, failed, strange):
    global _read, _write, _quiet, _loud, _strange
    _read, _write, _quiet, _loud, _strange = read, write, ended, failed, strange


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
    global _queue, _push, _pop, _size
    if n > _size:
        try:
            size = n + n // 2
            q = deque((), size)
        except MemoryError:
            size = n
            q = deque((), size)
        while _queue:
            q.append(_queue.popleft())
        _queue, _push, _pop, _size = q, q.append, q.popleft, size


def _hooked(p, y):
    """Does a `yield` of the reader y that needs the hook. Returns what the process yields next, or
    None if it waits."""
    try:
        v = _read(y, p)
    except BaseException as e:
        return p.g.throw(e)
    if v is not None:
        return p.go(v[0])
    p.y = y
    return None


def _odd(p, y):
    """Handles a process p that has yielded y, which is not an object of the core. Raises the error
    of the hook `strange` in p, and returns what p yields next; ONCE if p has suspended itself by
    means of Weft after all.
    """
    if y is None and (p.g is None or p.e is not None or _queued(p)):
        return ONCE
    return p.g.throw(_strange(p, y))


def _queued(p):
    found = False
    for _ in range(len(_queue)):
        x = _pop()
        found = found or x is p
        _push(x)
    return found


def _counted(pop, left):
    def take():
        if not left[0]:
            raise IndexError
        x = pop()
        left[0] -= 1
        return x

    return take


def loop(limit):
    """Runs processes until the run queue is empty, or, if `limit` is not 0, until `limit` of them
    have run. For a process that yields a reader the loop does the work of Rd.__next__, without a
    call. An IndexError shows that the queue is empty; a test each time would take longer.
    """
    global _cur
    left = [limit]
    once, done, reader = ONCE, DONE, Rd
    while True:
        p = None
        pop = _counted(_pop, left) if limit else _pop
        e = None
        try:
            while True:
                p = None
                p = _cur = pop()
                go = p.go
                y = p.y
                if y is None:
                    y = go(None)
                else:
                    p.y = None
                    if p.at is y:
                        p.at = None
                        y = go(p.v)
                    else:
                        y = go(_read(y, p)[0])
                while True:
                    if y is done:
                        y = go(None)
                    elif y is once:
                        break
                    elif y.__class__ is reader:
                        c = y.c
                        if p.at is None and c.ok:
                            w = c.w
                            if w is None:
                                p.at = p.y = y
                                p.nx = None
                                w = c.r
                                if w is None:
                                    c.r = p
                                else:
                                    _last(w, c.rt).nx = c.rt = p
                                break
                            c.w = w.nx
                            w.at = None
                            _push(w)
                            y = go(w.v)
                        elif c.q is not None and p.at is None:
                            if _from_buffer(c, p, y) is None:
                                p.y = y
                                break
                            y = go(p.v)
                        else:
                            y = _hooked(p, y)
                    elif y is None and p.at is not None:
                        break
                    else:
                        y = _odd(p, y)
        except StopIteration as stop:
            _cur = _nobody
            _quiet(p, stop.value)
            continue
        except BaseException as error:
            e = error
        _cur = _nobody
        if p is not None:
            _loud(p, e)
        elif not isinstance(e, IndexError):  # Ctrl-C between two processes
            raise e
        elif not _queue or (limit and not left[0]):  # otherwise `room` has made a new queue
            return
