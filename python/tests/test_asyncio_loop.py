"""Guests of an asyncio loop (rule 13): turns and time, idleness, deadlock, other threads, and how
loops and guests end."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import os
import signal
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
from children import child, until_asleep
from loops import Runner, on_uvloop, receive, turns, wait

from weft.coroutines import (
    Channel,
    Deadlock,
    Parallel,
    after,
    now,
    process,
    run,
    run_async,
    select,
    sleep,
    yield_,
)

if sys.version_info < (3, 11):
    pass


# ---------------------------------------------------------------------------------- turns and time


class Counting(asyncio.SelectorEventLoop):
    """A loop that counts the callbacks scheduled on it."""

    scheduled = 0
    late: float = 0

    def call_soon(self, *args: Any, **kw: Any) -> Any:
        self.scheduled += 1
        return super().call_soon(*args, **kw)

    def call_at(self, *args: Any, **kw: Any) -> Any:
        self.scheduled += 1
        return super().call_at(*args, **kw)

    def call_soon_threadsafe(self, *args: Any, **kw: Any) -> Any:
        self.scheduled += 1
        return super().call_soon_threadsafe(*args, **kw)


def test_an_idle_guest_schedules_nothing() -> None:
    """Rule 13.3: while the processes of a guest wait, the guest schedules no callbacks."""
    loop = Counting()

    async def scheduled_in_a_while() -> int:
        before = loop.scheduled
        # A call in a thread would not do, because the number of callbacks that it schedules is not
        # fixed.
        await asyncio.sleep(0.02)
        return loop.scheduled - before

    async def main() -> Any:
        one = await scheduled_in_a_while()  # includes the callback by which sleep() ends
        c = Channel()
        w = c.writer()
        network = asyncio.ensure_future(Parallel(wait(c.reader()), wait(c.reader())))
        await turns(5)
        idle = await scheduled_in_a_while()
        await w.write(1)
        await w.write(2)
        return one, idle, await network

    try:
        one, idle, results = loop.run_until_complete(main())
    finally:
        loop.close()
    assert results == [1, 2]
    assert idle == one


def test_a_busy_guest_lets_the_loop_go_on(play: Runner) -> None:
    """Rule 13.2: callbacks, tasks and sockets run in turn, although the processes never block."""

    @process
    async def spins(stop: list[bool]) -> int:
        n = 0
        while not stop:
            await yield_()
            n += 1
        return n

    async def main() -> Any:
        stop: list[bool] = []
        network = asyncio.create_task(run_async(spins(stop), spins(stop)))
        for _ in range(20):
            await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        stop.append(True)
        return all(n > 0 for n in await network)

    assert play(main())


def test_timers_of_a_guest_are_never_early(play: Runner) -> None:
    """Rule 8.5: a sleep of a guest does not end before its time."""

    @process
    async def sleeper(span: float) -> bool:
        start = now()
        await sleep(span)
        first = now() - start
        await select(after(span))
        return first >= span and now() - start >= 2 * span

    async def main() -> Any:
        return await Parallel(sleeper(k * 0.0004) for k in range(1, 12))

    assert play(main()) == [True] * 11


def test_virtual_time_in_a_loop_of_its_own() -> None:
    """Rules 8.6 and 13.6: virtual time jumps if nothing else is on the loop."""

    @process
    async def sleeper() -> float:
        await sleep(1000)
        return now()

    assert run(sleeper(), clock="virtual", host="asyncio") == pytest.approx(1000)


# ---------------------------------------------------------------------------------------- deadlock


def test_a_deadlock_is_told_when_nothing_else_is_on_the_loop() -> None:
    """Rules 10.1 and 13.6: a deadlock is raised if nothing else is on the loop, and ends outside
    stay open."""

    async def main() -> None:
        c, d = Channel("c"), Channel("d")
        keep = [c.writer(), d.writer()]
        with pytest.raises(Deadlock) as deadlock:
            await Parallel(wait(c.reader()), wait(d.reader()))
        assert sorted(p.path for p in deadlock.value.processes) == ["main/wait[0]", "main/wait[1]"]
        assert not keep[0].closed

    asyncio.run(main())
    c = Channel()
    keep = c.writer()
    with pytest.raises(Deadlock):
        run(wait(c.reader()), host="asyncio")
    assert not keep.closed


@pytest.mark.parametrize("what", ["task", "timer", "future", "socket"])
def test_no_deadlock_is_told_while_something_else_is_on_the_loop(what: str) -> None:
    """Rule 10.4: no deadlock is raised while a task, a timer, a future or a socket of the loop may
    still act."""

    async def main() -> Any:
        c = Channel()
        w = c.writer()
        loop = asyncio.get_running_loop()
        network = [wait(c.reader())]
        if what == "task":

            async def later() -> None:
                await turns(20)
                await w.write(1)

            keep: Any = asyncio.create_task(later())
        elif what == "timer":
            keep = loop.call_later(0.005, lambda: tasks.append(asyncio.ensure_future(w.write(1))))
        elif what == "socket":
            a, b = os.pipe()
            loop.add_reader(
                a,
                lambda: (loop.remove_reader(a), tasks.append(asyncio.ensure_future(w.write(1)))),
            )
            keep = threading.Thread(target=lambda: os.write(b, b"x"))
            keep.start()
        else:
            future = loop.create_future()

            @process
            async def waits() -> None:
                await future
                await w.write(1)

            network.append(waits())
            keep = threading.Thread(
                target=lambda: loop.call_soon_threadsafe(future.set_result, None)
            )
            keep.start()
        result = await Parallel(network)
        if isinstance(keep, threading.Thread):
            keep.join()
        if what == "socket":
            os.close(a)
            os.close(b)
        await asyncio.gather(*tasks)
        return result

    tasks: list[Any] = []
    assert asyncio.run(main()) in ([1], [1, None])


# ------------------------------------------------------------------------------ from other threads


def test_wake_ups_from_other_threads(play: Runner) -> None:
    async def main() -> Any:
        c = Channel(capacity=10)
        ends = [c.writer() for _ in range(3)]

        def plain(w: Any) -> None:
            for i in range(100):
                w.write(i)
            w.retire()

        workers = [threading.Thread(target=plain, args=(w,)) for w in ends]
        for t in workers:
            t.start()
        try:
            return len(await run_async(receive(c.reader())))
        finally:
            for t in workers:
                t.join()

    assert play(main()) == 300


def test_two_loops_in_two_threads_each_with_its_guest() -> None:
    c, d = Channel(), Channel()

    @process
    async def relay(r: Any, w: Any) -> None:
        async for v in r:
            await asyncio.sleep(0)
            await w.write(v + 1)

    w, r = c.writer(), d.reader()
    there = relay(c.reader(), d.writer())

    @process
    async def ask() -> list[int]:
        out = []
        for i in range(50):
            await w.write(i)
            out.append(await r.read())
        w.retire()
        return out

    async def elsewhere() -> None:
        await run_async(there)

    thread = threading.Thread(target=lambda: on_uvloop(elsewhere()))
    thread.start()
    try:
        assert run(ask(), host="asyncio") == list(range(1, 51))
    finally:
        thread.join()


# ----------------------------------------------------------------------------------------- endings


def test_a_loop_closed_in_the_middle() -> None:
    """Rule 13.5: the processes are cancelled, clean up as far as they can without a loop, and then
    release their ends."""
    c = Channel()
    log: list[Any] = []

    @process
    async def waits(r: Any) -> None:
        try:
            await r.read()
        finally:
            log.append("read")

    @process
    async def sleeps() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            log.append("sleep")

    async def main() -> None:
        await run_async(waits(c.reader()), sleeps())

    loop = asyncio.new_event_loop()
    coroutine = main()
    task = loop.create_task(coroutine)
    loop.run_until_complete(turns(5))
    loop.close()
    assert log == []
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    coroutine.close()
    assert sorted(log) == ["read", "sleep"]
    del task, coroutine
    gc.collect()
    assert c.stats().readers == 0 and c.stats().waiting_readers == 0


@pytest.mark.parametrize("how", ["run(waits(c.reader()), host='asyncio')", "asyncio.run(main())"])
def test_ctrl_c(how: str) -> None:
    source = f"""
        import asyncio
        from weft.coroutines import Channel, process, run, run_async, sleep

        @process
        async def waits(r):
            print("ready", flush=True)
            try:
                await sleep(1000)
            finally:
                print("clean", flush=True)

        async def main():
            await run_async(waits(c.reader()))

        c = Channel()
        try:
            {how}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    with child("-X", "faulthandler", "-c", textwrap.dedent(source)) as p:
        assert p.stdout is not None
        assert p.stdout.readline() == "ready\n"
        until_asleep(
            p.pid
        )  # on 3.10 an earlier Ctrl-C would be raised in the process before its `try`
        p.send_signal(signal.SIGINT)
        out, err = p.communicate()
    assert (out, p.returncode) == ("clean\ninterrupted\n", 0), err


class Stop(SystemExit):
    """The exception of sys.exit(), or KeyboardInterrupt: within a callback asyncio swallows any
    other exception of a handler.
    """


def stop(*_: Any) -> None:
    raise Stop


# The warnings are about coroutines that were never awaited. They are expected, because the
# exception may end the program anywhere.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["call_soon", "call_later", "create_future"])
def test_a_handler_that_raises_in_a_method_of_the_loop(method: str) -> None:
    """Rule 6.7: the loop's methods are Python code, so a signal's handler may run in them, even
    when Weft calls them. The handler's exception must end the loop, whichever call it
    interrupts."""

    class Loop(asyncio.SelectorEventLoop):
        left = -1

        def tick(self, name: str) -> None:
            if name == method and self.left >= 0:
                self.left -= 1
                if self.left < 0:
                    signal.raise_signal(signal.SIGUSR1)

        def call_soon(self, *args: Any, **kw: Any) -> Any:
            self.tick("call_soon")
            return super().call_soon(*args, **kw)

        def call_later(self, *args: Any, **kw: Any) -> Any:
            self.tick("call_later")
            return super().call_later(*args, **kw)

        def create_future(self) -> Any:
            self.tick("create_future")
            return super().create_future()

    @process
    async def relays(r: Any, w: Any) -> None:
        async for v in r:
            await w.write(v)
            await sleep(0.0001)

    async def main(loop: Loop, k: int) -> None:
        c, d = Channel(), Channel()
        w, r = c.writer(), d.reader()

        async def put() -> None:
            for i in range(4):
                await w.write(i)
            w.retire()

        loop.left = k
        writing = asyncio.ensure_future(put())
        network = asyncio.ensure_future(run_async(relays(c.reader(), d.writer())))
        assert [v async for v in r] == [0, 1, 2, 3]
        await asyncio.gather(writing, network)
        loop.left = -1

    before = signal.signal(signal.SIGUSR1, stop)
    ends = []
    try:
        for k in range(60):
            loop = Loop()
            # A log would keep alive the objects that the exception cut off.
            loop.set_exception_handler(lambda *_: None)
            task = loop.create_task(main(loop, k))
            faulthandler.dump_traceback_later(280, exit=True)  # a faulty Weft would wait forever
            try:
                loop.run_until_complete(task)
                ends.append("done")
            except Stop:
                ends.append("stopped")
            finally:
                faulthandler.cancel_dump_traceback_later()
                loop.left = -1
                for t in asyncio.all_tasks(loop):
                    t.cancel()
                    t._log_destroy_pending = False  # type: ignore[attr-defined]
                loop.close()
    finally:
        signal.signal(signal.SIGUSR1, before)
        loop = task = t = None  # type: ignore[assignment]
        gc.collect()
    reached = ends.index("done")
    assert reached > 2 and set(ends[:reached]) == {"stopped"} and set(ends[reached:]) == {"done"}, (
        ends
    )


def test_nothing_is_left_behind() -> None:
    """A program that made many guests and tasks at channels has, in the end, as many objects of
    each kind as after the first."""

    @process
    async def pair(w: Any, r: Any) -> None:
        await asyncio.gather(w.write(1), r.read())

    async def main() -> None:
        c = Channel()
        await run_async(pair(c.writer(), c.reader()))

    def count() -> dict[str, int]:
        gc.collect()
        kinds = ("Process", "ProcessTask", "Guest", "Link", "Operation", "Reader", "Writer")
        names = [type(o).__name__ for o in gc.get_objects()]
        return {k: names.count(k) for k in kinds}

    asyncio.run(main())
    before = count()
    for _ in range(20):
        asyncio.run(main())
    assert count() == before
    assert len(list(Path("/proc/self/fd").iterdir())) < 60
