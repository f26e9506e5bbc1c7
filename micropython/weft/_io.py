"""Blocking calls (7.9). Where the port has threads, a call runs on a thread of its own, so that
only the calling process waits."""

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
    """A call that runs on a thread. The thread sets `over` after all other fields."""

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
            return False  # the call has its result, and look() is about to wake its process (6.3)
        self.p = None  # the call continues, and its result is dropped
        return True


def io(fn):
    """Returns a coroutine function that calls fn on a thread: `read = io(file.read)`, and then
    `await read()` in a process. On a port without threads the call blocks all processes. The
    coroutine function raises NoRoom if there is no thread left."""

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
