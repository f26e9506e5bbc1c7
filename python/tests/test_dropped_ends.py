"""Rules 2.2, 3.1, 3.3, 12.2: code outside Weft drops an end while all processes that wait for that
sleep."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest

from weft import coroutines, threads
from weft.coroutines import Channel, process, run_async
from weft.observe import deadlocks


class Dropped:
    """Holds an end in a list. On request it drops the end at the place that `where` names; its
    thread then exists until `over` is set."""

    def __init__(self, end):
        self.ends = [end]
        self.dropped = threading.Event()
        self.over = threading.Event()

    def drop(self, *_):
        self.ends.clear()
        self.dropped.set()

    def in_a_thread(self):
        def drops():
            wait_until_asleep()
            self.drop()
            self.over.wait()

        return drops

    def in_a_handler(self):
        signal.signal(signal.SIGUSR1, self.drop)

        def drops():
            wait_until_asleep()
            os.kill(os.getpid(), signal.SIGUSR1)
            self.over.wait()

        return drops

    def in_a_thread_that_ends(self):
        def drops():
            wait_until_asleep()
            self.drop()

        return drops


def wait_until_asleep():
    """Waits until two checks in a row have found the main thread waiting in the kernel. Then the
    thread is not waiting for the interpreter's lock.
    """
    before = None
    while True:
        status = Path(f"/proc/self/task/{os.getpid()}/status").read_text(encoding="ascii")
        now = [line for line in status.splitlines() if line.startswith(("State:\tS", "voluntary"))]
        if len(now) == 2 and now == before:
            return
        before = now
        threading.Event().wait(0.02)


@pytest.fixture(params=["in_a_thread", "in_a_handler", "in_a_thread_that_ends"])
def dropping(request):
    """Yields a function: dropping(end) returns a Dropped whose thread runs. The fixture waits for
    the thread after the test.
    """
    before = signal.getsignal(signal.SIGUSR1)
    made = []

    def drops(end):
        d = Dropped(end)
        thread = threading.Thread(target=getattr(d, request.param)())
        made.append((d, thread))
        thread.start()
        return d

    yield drops
    for d, thread in made:
        d.over.set()
        thread.join()
    signal.signal(signal.SIGUSR1, before)


async def reads_all(b, r, seen):
    async for v in b.each(r):
        seen.append(v)
    seen.append("ended")


async def writes_on(b, w, seen):
    try:
        while True:
            await b.op(w.write(1))
    finally:
        seen.append("ended")


def test_the_last_writer_of_a_network_that_sleeps(b, dropping):  # rules 3.1, 12.2
    c, seen = b.weft.Channel(), []
    d = dropping(c.writer())
    b.run(b.process(reads_all)(c.reader(), seen), b.process(reads_all)(c.reader(), seen))
    assert seen == ["ended"] * 2
    assert d.dropped.is_set()


def test_the_last_reader_of_a_network_that_sleeps(b, dropping):  # rules 3.3, 12.2
    c, seen = b.weft.Channel(), []
    dropping(c.reader())
    b.run(b.process(writes_on)(c.writer(), seen), b.process(writes_on)(c.writer(), seen))
    assert seen == ["ended"] * 2


def test_an_end_among_the_arguments_of_a_thread_that_ends(b):  # rules 3.1, 12.2
    c, seen = b.weft.Channel(), []
    thread = threading.Thread(target=lambda end: wait_until_asleep(), args=(c.writer(),))
    thread.start()
    b.run(b.process(reads_all)(c.reader(), seen))
    thread.join()
    assert seen == ["ended"]


def test_an_end_in_a_variable_of_a_process_that_was_looked_at():  # rules 3.1, 12.2
    """The thread that looked up the place of the process sleeps when the process ends."""
    c, go = Channel(), Channel()

    @threads.process
    def holds(inp):
        w = c.writer()
        inp.read()
        assert not w.closed

    @threads.process
    def looks(out):
        r = c.reader()
        while threads.statistics(go).waiting_readers == 0:
            threads.yield_()
        for _ in range(20):  # the process may still be about to sleep
            deadlocks()
            threads.yield_()
        out.write(None)
        return list(r)

    assert threads.run(holds(go.reader()), looks(go.writer())) == [None, []]


def test_what_ordinary_code_waits_for(dropping):  # rules 3.1, 11.2
    c = threads.Channel()
    r = c.reader()
    dropping(c.writer())
    with pytest.raises(threads.Retired):
        r.read()


def test_in_a_block_of_ordinary_code(dropping):  # rules 3.1, 7.5
    c, seen = Channel(), []

    @process
    async def reads(r):
        async for _ in r:
            pass
        seen.append("ended")

    dropping(c.writer())
    with coroutines.Group() as g:
        g.start(reads(c.reader()))
    assert seen == ["ended"]


def test_by_a_process_of_another_run(b):
    """Rules 3.1, 15.6: a thread process drops the end, and then waits for something else."""
    c, seen, over = b.weft.Channel(), [], threading.Event()
    ends = [c.writer()]

    @threads.process
    def drops():
        wait_until_asleep()
        ends.clear()
        over.wait()

    other = threading.Thread(target=lambda: threads.run([drops()]))
    other.start()
    b.run(b.process(reads_all)(c.reader(), seen))
    over.set()
    other.join()
    assert seen == ["ended"]


@pytest.mark.parametrize("how", ["guest", "task", "both"])
@pytest.mark.parametrize("by", ["thread", "callback"])
def test_under_asyncio(how, by):  # rules 3.1, 13.1, 13.7
    c, seen, over = Channel(), [], threading.Event()
    ends = [c.writer()]

    @process
    async def reads(r):
        async for _ in r:
            pass
        seen.append("guest")

    async def task(r):
        async for _ in r:
            pass
        seen.append("task")

    def drops():
        wait_until_asleep()
        ends.clear()
        over.wait()

    async def main():
        waiting = []
        if how != "task":
            waiting.append(run_async([reads(c.reader())]))
        if how != "guest":
            waiting.append(task(c.reader()))
        thread = threading.Thread(target=drops if by == "thread" else over.wait)
        thread.start()
        if by == "callback":
            asyncio.get_running_loop().call_later(0.01, ends.clear)
        try:
            await asyncio.gather(*waiting)
        finally:
            over.set()
            thread.join()

    asyncio.run(main())
    assert sorted(seen) == sorted(
        {"guest": ["guest"], "task": ["task"], "both": ["guest", "task"]}[how]
    )


def test_no_deadlock_while_an_end_goes(b):
    """Rules 10.1, 12.2: the end is dropped by a thread that ends immediately afterwards."""
    for _ in range(20):
        c, seen = b.weft.Channel(), []
        ends = [c.writer()]
        network = b.process(reads_all)(c.reader(), seen)
        threading.Thread(target=ends.clear).start()
        b.run([network])
        assert seen == ["ended"]
