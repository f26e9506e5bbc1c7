"""Reimplements the thesis's own channels, with which Weft is compared, for today's asyncio and
_thread: aPyCSP's channels over a yielding or a rescheduling future (uaPyCSP), and
PyCSP-locksharing's over a CFuture and a re-entrant lock (uPyCSP).
"""

import asyncio
from asyncio import core

POISON = object()


class Poisoned(Exception):
    pass


class Yielding:
    """A future whose task polls it in each turn."""

    def __init__(self):
        self.done = False
        self.result = None

    def __iter__(self):
        while not self.done:
            core._task_queue.push(core.cur_task)
            yield
        return self.result

    def set_result(self, result):
        self.done = True
        self.result = result


class Rescheduling:
    """A future that takes its task out of the queue, and puts the task back when the future is
    done."""

    def __init__(self):
        self.done = False
        self.result = None
        self.waiters = []

    def __iter__(self):
        while not self.done:
            self.waiters.append(core.cur_task)
            core.cur_task.data = self
            yield
        return self.result

    def remove(self, task):
        self.waiters.remove(task)

    def set_result(self, result):
        self.done = True
        self.result = result
        for task in self.waiters:
            task.data = None
            core._task_queue.push(task)


class Op:
    def __init__(self, cmd, obj=None, alt=None):
        self.cmd, self.obj, self.alt = cmd, obj, alt
        self.fut = None


class Alt:
    def __init__(self):
        self.fut = None


def channels(Future):
    """Makes aPyCSP's channel and alternative over a kind of future."""

    class Channel:
        def __init__(self, name=""):
            self.wqueue, self.rqueue = [], []
            self.poisoned = False

        async def write(self, obj):
            if self.poisoned:
                raise Poisoned
            if self.rqueue:
                op = self.rqueue.pop(0)
                if op.cmd == "ALT":
                    withdraw(op.alt, (op.obj, obj))
                else:
                    op.fut.set_result(obj)
                return 0
            op = Op("write", obj)
            op.fut = Future()
            self.wqueue.append(op)
            return check(await op.fut)

        async def read(self):
            if self.poisoned:
                raise Poisoned
            if self.wqueue:
                op = self.wqueue.pop(0)
                op.fut.set_result(0)
                return op.obj
            op = Op("read")
            op.fut = Future()
            self.rqueue.append(op)
            return check(await op.fut)

        def poison(self):
            self.poisoned = True
            for op in self.wqueue + self.rqueue:
                (op.alt or op).fut.set_result(POISON)
            self.wqueue, self.rqueue = [], []

    def withdraw(alt, result):
        for ch in alt.channels:
            ch.rqueue = [op for op in ch.rqueue if op.alt is not alt]
        alt.fut.set_result(result)

    async def select(*chans):
        for ch in chans:
            if ch.poisoned:
                raise Poisoned
            if ch.wqueue:
                op = ch.wqueue.pop(0)
                op.fut.set_result(0)
                return ch, op.obj
        alt = Alt()
        alt.channels = chans
        alt.fut = Future()
        for ch in chans:
            ch.rqueue.append(Op("ALT", ch, alt))
        return check(await alt.fut)

    Channel.select = staticmethod(select)
    return Channel


def check(result):
    if result is POISON:
        raise Poisoned
    return result


async def quiet(coro):
    try:
        return await coro
    except Poisoned:
        return None


async def parallel(*coros):
    """Runs coroutines as gather() does in the thesis: a poisoned task raises nothing."""
    return await asyncio.gather(*[quiet(c) for c in coros])


# threads


def locked():
    """Makes PyCSP-locksharing's channel over a CFuture and one re-entrant lock for all channels.
    Needs _thread.
    """
    from _thread import allocate_lock, get_ident, start_new_thread

    class RLock:
        def __init__(self):
            self.block = allocate_lock()
            self.owner = None
            self.count = 0

        def __enter__(self):
            me = get_ident()
            if self.owner == me:
                self.count += 1
                return
            self.block.acquire()
            self.owner = me
            self.count = 1

        def __exit__(self, *_):
            self.count -= 1
            if not self.count:
                self.owner = None
                self.block.release()

        def release_all(self):
            n, self.count, self.owner = self.count, 0, None
            self.block.release()
            return n

        def restore(self, n):
            self.block.acquire()
            self.owner, self.count = get_ident(), n

    lock = RLock()

    class CFuture:
        def __init__(self):
            self.gate = allocate_lock()
            self.gate.acquire()
            self.result = None

        def set_result(self, result):
            self.result = result
            self.gate.release()

        def wait(self):
            n = lock.release_all()
            self.gate.acquire()
            lock.restore(n)
            return check(self.result)

    class Channel:
        def __init__(self, name=""):
            self.wqueue, self.rqueue = [], []
            self.poisoned = False

        def write(self, obj):
            with lock:
                if self.poisoned:
                    raise Poisoned
                if self.rqueue:
                    self.rqueue.pop(0).fut.set_result(obj)
                    return 0
                op = Op("write", obj)
                op.fut = CFuture()
                self.wqueue.append(op)
                return op.fut.wait()

        def read(self):
            with lock:
                if self.poisoned:
                    raise Poisoned
                if self.wqueue:
                    op = self.wqueue.pop(0)
                    op.fut.set_result(0)
                    return op.obj
                op = Op("read")
                op.fut = CFuture()
                self.rqueue.append(op)
                return op.fut.wait()

        def poison(self):
            with lock:
                self.poisoned = True
                for op in self.wqueue + self.rqueue:
                    op.fut.set_result(POISON)
                self.wqueue, self.rqueue = [], []

    def run(*functions):
        gates = []

        def body(f, gate):
            try:
                f()
            except Poisoned:
                pass
            gate.release()

        for f in functions:
            gate = allocate_lock()
            gate.acquire()
            gates.append(gate)
            start_new_thread(body, (f, gate))
        for gate in gates:
            gate.acquire()

    return Channel, run
