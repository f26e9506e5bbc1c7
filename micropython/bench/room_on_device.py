"""Measures how many processes fit in memory, and the cost of a waiting queue: room_on_device.py
WHAT [N]; prints `WHAT: figure`.

pieces: the bytes of each part of a process that waits at a channel of its own, in whole
blocks of the collector.

parked, tasks: the largest number of processes of Weft, or of tasks of asyncio at a future of the
thesis, that can wait in this heap, each with its channel. threads N: the largest number of threads
with stacks of N bytes. list N, deque N: µs for N elements appended, taken from the front, and
filtered."""

import gc
import sys

sys.path.append("/".join(__file__.split("/")[:-1]) or ".")
what = sys.argv[1]
n = int(sys.argv[2]) if len(sys.argv) > 2 else 0
MAX_THREADS = 4000  # a limit on the number of threads, since the machine has other work too
ROUNDS = 10


def parked():
    from weft.coroutines import Channel, Group, process, run

    counted = []

    @process
    async def waits(source):
        await source.read()

    @process
    async def main():
        channels = []
        async with Group() as group:
            try:
                while True:
                    c = Channel("c")
                    channels.append(c)
                    group.start(waits(c.reader()))
            except MemoryError:
                counted.append(len(channels) - 1)
                channels.clear()
                raise

    try:
        run(main())
    except Exception:  # there might be no memory to report the exception
        pass
    print("parked:", counted[0])


def pieces():
    from weft import _core as core
    from weft.coroutines import Channel, process

    async def waits(source):
        await source

    c, made = Channel("c"), process(waits)
    for name, make in (
        ("coroutine", lambda: waits(c)),
        ("Proc", lambda: core.Proc(None)),
        ("Chan", lambda: core.Chan(None)),
        ("reader end", lambda: core.Rd(c.k)),
        ("writer end", lambda: core.Wr(c.k)),
        ("Channel", lambda: Channel("c")),
        ("Process", lambda: made(c)),
    ):
        kept = [None] * 50
        kept[0] = make()
        gc.collect()
        before = gc.mem_alloc()
        for i in range(1, len(kept)):
            kept[i] = make()
        gc.collect()
        print("%s: %d" % (name, round((gc.mem_alloc() - before) / (len(kept) - 1))))


def tasks():
    import asyncio

    import baselines

    Channel = baselines.channels(baselines.Rescheduling)
    count = 0

    async def waits(c):
        await c.read()

    async def main():
        nonlocal count
        made = []
        while True:
            c = Channel()
            made.append((c, asyncio.create_task(waits(c))))
            await asyncio.sleep_ms(0)
            count += 1

    try:
        asyncio.run(main())
    except MemoryError:
        print("tasks:", count)


def threads():
    import _thread

    _thread.stack_size(n)
    gate, count = _thread.allocate_lock(), 0
    gate.acquire()

    def waits():
        gate.acquire()
        gate.release()

    try:
        while count < MAX_THREADS:
            _thread.start_new_thread(waits, ())
            count += 1
    except (OSError, MemoryError, RuntimeError):
        pass
    print("threads:", count)
    gate.release()


def line():
    """Appends elements, takes them from the front, and removes those that a condition names;
    returns ns for each element, the least of ROUNDS rounds."""
    from time import ticks_diff, ticks_us

    def fresh(full):
        if what == "list":
            return list(range(n)) if full else []
        from collections import deque

        return deque(range(n) if full else (), n + 1)

    def append(q):
        for v in range(n):
            q.append(v)

    def first(q):
        if what == "list":
            for _ in range(n):
                q.pop(0)
        else:
            for _ in range(n):
                q.popleft()

    def taking_out(q):
        if what == "list":
            return [v for v in q if v & 1]
        for _ in range(n):  # a deque has no remove, so each element goes around once
            v = q.popleft()
            if v & 1:
                q.append(v)

    parts = []
    for f, full in ((append, False), (first, True), (taking_out, True)):
        least = None
        for _ in range(ROUNDS):
            q = fresh(full)
            gc.collect()
            t = ticks_us()
            f(q)
            us = ticks_diff(ticks_us(), t)
            least = us if least is None else min(least, us)
        parts.append("%d" % least)
    print("%s: %s" % (what, " ".join(parts)))


{"parked": parked, "pieces": pieces, "tasks": tasks, "threads": threads}.get(what, line)()
