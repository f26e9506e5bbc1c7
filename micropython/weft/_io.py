"""Calls that block (7.9): on a thread of their own where the port has threads, so that only the
process that called waits."""

from . import _core as core
from . import _time
from ._chan import begin, resume

try:
    from _thread import start_new_thread
except ImportError:
    start_new_thread = None

try:
    from io import IOBase
except ImportError:
    IOBase = object


class _Call(IOBase):
    """A call on its thread, which sets `over` last of all."""

    def __init__(self, fn, args, kw):
        self.fn, self.args, self.kw = fn, args, kw
        self.over = False
        self.p = self.value = self.error = None

    def __repr__(self):
        return "io call"

    def work(self):
        try:
            self.value = self.fn(*self.args, **self.kw)
        except BaseException as e:
            self.error = e
        self.over = True

    def ioctl(self, request, flags):
        return (flags if self.over else 0) if request == 3 else -1  # no file descriptor

    def look(self):
        if not self.over:
            return False
        _time.source(self, False)
        if self.p is not None:
            core.push(self.p)
        return True

    def give_up(self, p):
        if self.over:
            return False  # it has its result, and look() is about to say so (6.3)
        self.p = None  # the call goes on; its result is dropped
        return True


def io(fn):
    """`read = io(file.read)`: in a process `await read()`. Without threads the call simply blocks."""

    async def call(*args, **kw):
        p = core.cur()
        if start_new_thread is None or p is None:
            return fn(*args, **kw)
        begin(p, "io")
        c = _Call(fn, args, kw)
        c.p = p
        try:
            start_new_thread(c.work, ())
        except OSError:
            from ._beside import again

            again(c.work, p.x.path)
        _time.source(c, True)
        p.at = c
        await core.ONCE
        resume(p)
        if c.error is not None:
            raise c.error
        return c.value

    return call
