"""Networks as guests of an asyncio loop (rule 13): what processes may await, cancellation both ways, idleness, endings."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import aiohttp.web
import pytest
import uvloop

from weft import threads
from weft.coroutines import (
    BadUse,
    Cancelled,
    Channel,
    Deadlock,
    Group,
    Parallel,
    Sequence,
    Spawn,
    after,
    current_process,
    now,
    process,
    run,
    run_async,
    select,
    sleep,
    yield_,
)

if sys.version_info < (3, 11):
    from exceptiongroup import ExceptionGroup

Runner = Callable[[Awaitable[Any]], Any]
new_in_3_11 = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="asyncio.timeout and TaskGroup are of Python 3.11"
)


def on_uvloop(main: Any) -> Any:
    loop = uvloop.new_event_loop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


@pytest.fixture(params=["asyncio", "uvloop", "debug"])
def play(request: pytest.FixtureRequest) -> Runner:
    if request.param == "asyncio":
        return asyncio.run  # type: ignore[return-value]
    if request.param == "uvloop":
        return on_uvloop
    return lambda main: asyncio.run(main, debug=True)  # type: ignore[arg-type]


async def turns(n: int) -> None:
    for _ in range(n):
        await asyncio.sleep(0)


@process
async def send(w: Any, *values: Any) -> None:
    for v in values:
        await w.write(v)


@process
async def receive(r: Any) -> list[Any]:
    return [v async for v in r]


@process
async def wait(r: Any) -> Any:
    return await r.read()


# -------------------------------------------------------------------------------------------------------- composition


def test_parallel_in_a_task(play: Runner) -> None:
    async def main() -> Any:
        c = Channel()
        return await Parallel(send(c.writer(), 1, 2, 3), receive(c.reader()))

    assert play(main()) == [None, [1, 2, 3]]


def test_run_async_and_sequence(play: Runner) -> None:
    @process
    async def give(v: int) -> int:
        await asyncio.sleep(0)
        return v

    async def main() -> Any:
        one = await run_async(give(1))
        two = await run_async(give(1), give(2))
        three = await run_async([give(3)])
        none = await Parallel()
        return one, two, three, none, await Sequence(give(4), give(5))

    assert play(main()) == (1, [1, 2], [3], [], [4, 5])


def test_a_group_as_a_block(play: Runner) -> None:
    async def main() -> Any:
        c = Channel()
        async with Group() as g:
            p = g.start(send(c.writer(), 1, 2))
            q = g.start(receive(c.reader()))
            await asyncio.sleep(0)
        return p.done, q.result

    assert play(main()) == (True, [1, 2])


def test_a_block_that_is_left_by_an_exception_cancels_its_processes(play: Runner) -> None:
    """Rule 7.5."""

    async def main() -> Any:
        c = Channel()
        keep = c.writer()
        with pytest.raises(ZeroDivisionError):
            async with Group() as g:
                p = g.start(wait(c.reader()))
                await asyncio.sleep(0)
                raise ZeroDivisionError
        return p.done, keep.closed

    assert play(main()) == (True, False)


def test_failures(play: Runner) -> None:
    """Rule 7.2."""

    @process
    async def fail(error: Exception) -> None:
        await yield_()
        raise error

    async def main() -> None:
        c = Channel()
        keep = c.writer()
        blocked = wait(c.reader())
        with pytest.raises(KeyError):
            await Parallel(blocked, fail(KeyError("k")))
        assert blocked.done and not keep.closed
        with pytest.raises(ExceptionGroup) as several:
            await Parallel(fail(KeyError()), fail(ValueError()))
        assert [type(e) for e in several.value.exceptions] == [KeyError, ValueError]

    play(main())


def test_spawn_and_nested_parallel_and_threads(play: Runner) -> None:
    @threads.process
    def square(r: Any, w: Any) -> None:
        for v in r:
            w.write(v * v)

    @process
    async def outer(log: list[Any]) -> Any:
        c, d, e = Channel(), Channel(), Channel()
        Spawn(note(e.reader(), log))
        _, _, got = await Parallel(
            send(c.writer(), 1, 2, 3), square(c.reader(), d.writer()), receive(d.reader())
        )
        await e.writer().write("spawned")
        return got

    @process
    async def note(r: Any, log: list[Any]) -> None:
        log.append(await r.read())
        await asyncio.sleep(0.001)
        log.append("ended")

    async def main() -> Any:
        log: list[Any] = []
        return await run_async(outer(log)), log

    assert play(main()) == ([1, 4, 9], ["spawned", "ended"])


def test_many_networks_on_one_loop(play: Runner) -> None:
    @process
    async def double(r: Any, w: Any) -> None:
        async for v in r:
            await sleep(0.0001)
            await w.write(2 * v)

    async def one(k: int) -> Any:
        c, d = Channel(), Channel()
        *_, got = await Parallel(
            send(c.writer(), *range(k)), double(c.reader(), d.writer()), receive(d.reader())
        )
        return got

    async def main() -> Any:
        return await asyncio.gather(*(one(k) for k in range(20)))

    assert play(main()) == [[2 * v for v in range(k)] for k in range(20)]


def test_run_with_asyncio_as_host() -> None:
    @process
    async def in_asyncio() -> Any:
        await asyncio.sleep(0)
        process = current_process()
        return process.path if process else None

    assert run(in_asyncio(), host="asyncio") == "main/in_asyncio"
    with pytest.raises(BadUse, match="host must be"):
        run(host="trio", first=None)
    with pytest.raises(BadUse, match="run_async is awaited in an asyncio task"):
        run_async(None).send(None)


# ------------------------------------------------------------------------------------------ what asyncio has, in a process


def test_awaitables_of_asyncio(play: Runner) -> None:
    @process
    async def all_of_them() -> Any:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        loop.call_soon(future.set_result, "future")
        out = [await future, await asyncio.sleep(0.001, "slept"), await asyncio.sleep(0, "bare")]
        out.append(await asyncio.create_task(asyncio.sleep(0, "task")))
        out.append(await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0.001, 2)))
        out.append(await asyncio.wait_for(asyncio.sleep(0, "in time"), 50))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.sleep(100), 0.001)
        out.append(await asyncio.shield(asyncio.sleep(0, "shielded")))
        lock, event, queue = asyncio.Lock(), asyncio.Event(), asyncio.Queue[str]()
        loop.call_later(0.001, event.set)
        loop.call_later(0.001, queue.put_nowait, "queued")
        async with lock:
            await event.wait()
        out.append(await queue.get())
        out.append(await asyncio.to_thread(lambda: "thread"))
        condition = asyncio.Condition()
        async with condition:
            waiting = asyncio.create_task(tell(condition))
            await condition.wait()
        await waiting
        future = loop.create_future()
        loop.call_soon(future.set_exception, KeyError("k"))
        with pytest.raises(KeyError):
            await future
        return out

    async def tell(condition: asyncio.Condition) -> None:
        async with condition:
            condition.notify()

    async def main() -> Any:
        return await run_async(all_of_them())

    assert play(main()) == [
        *("future", "slept", "bare", "task", [1, 2], "in time", "shielded", "queued", "thread")
    ]


def test_streams(play: Runner) -> None:
    @process
    async def serve(ready: Any, stop: Any) -> None:
        async def talk(r: asyncio.StreamReader, w: asyncio.StreamWriter) -> None:
            w.write((await r.readline()).upper())
            await w.drain()
            w.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        await ready.write(server.sockets[0].getsockname()[1])
        await stop.read()
        server.close()
        await server.wait_closed()

    @process
    async def call(ready: Any, stop: Any) -> Any:
        r, w = await asyncio.open_connection("127.0.0.1", await ready.read())
        w.write(b"hello\n")
        line = await r.readline()
        w.close()
        await w.wait_closed()
        await stop.write(None)
        return line

    async def main() -> Any:
        c, d = Channel(), Channel()
        return await Parallel(serve(c.writer(), d.reader()), call(c.reader(), d.writer()))

    assert play(main()) == [None, b"HELLO\n"]


def test_the_current_task(play: Runner) -> None:
    @process
    async def look() -> Any:
        task = asyncio.current_task()
        assert task is not None
        await sleep(0.0001)
        await asyncio.sleep(0)
        assert asyncio.current_task() is task
        assert asyncio.isfuture(task) and not task.done() and task.cancelling() == 0
        assert task.get_loop() is asyncio.get_running_loop()
        assert task.get_name().startswith("main/look")
        assert task.get_coro().__name__ == "look"
        assert "look" in [f.f_code.co_name for f in task.get_stack()]
        with pytest.raises(BadUse, match="its own task"):
            await task
        return task

    async def main() -> None:
        mine = asyncio.current_task()
        a, b = await Parallel(look(), look())
        assert a is not b and a is not mine and asyncio.current_task() is mine
        assert a.done() and await b is b.result()
        assert not a.cancel()

    play(main())


def test_no_task_is_current_between_the_turns(play: Runner) -> None:
    async def main() -> Any:
        seen: list[Any] = []
        loop = asyncio.get_running_loop()
        c = Channel()
        network = asyncio.create_task(
            run_async(send(c.writer(), *range(2000)), receive(c.reader()))
        )
        while not network.done():
            loop.call_soon(lambda: seen.append(asyncio.current_task()))
            await asyncio.sleep(0)
        await network
        return set(seen)

    assert play(main()) == {None}


@new_in_3_11
def test_timeouts(play: Runner) -> None:
    @process
    async def several(c: Any) -> Any:
        out = []
        for operation in (
            lambda: asyncio.sleep(100),
            c.read,
            lambda: select(c, after(100)),
            lambda: sleep(100),
            lambda: Parallel(wait(c)),
        ):
            try:
                async with asyncio.timeout(0.001):
                    await operation()
            except TimeoutError:
                out.append("late")
        async with asyncio.timeout(100):
            await asyncio.sleep(0)
        async with asyncio.timeout(100):
            await yield_()
        task = asyncio.current_task()
        assert task is not None and task.cancelling() == 0
        await sleep(0.0001)
        return out

    async def main() -> Any:
        c = Channel()
        keep = c.writer()
        return await run_async(several(c.reader())), keep.closed

    assert play(main()) == (["late"] * 5, False)


@new_in_3_11
def test_a_timeout_around_operations_that_never_wait(play: Runner) -> None:
    """Rules 6.1 and 7.7: they let the loop have its turn by yield_."""

    @process
    async def busy(w: Any) -> str:
        try:
            async with asyncio.timeout(0.002):
                while True:
                    await w.write(0)
                    await yield_()
        except TimeoutError:
            return "late"
        return "never"

    async def main() -> Any:
        c = Channel(capacity=1, overflow="drop_oldest")
        keep = c.reader()
        return await run_async(busy(c.writer())), keep.closed

    assert play(main()) == ("late", False)


@new_in_3_11
def test_a_task_group_in_a_process(play: Runner) -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise KeyError

    @process
    async def groups(r: Any) -> Any:
        async with asyncio.TaskGroup() as g:
            one = g.create_task(asyncio.sleep(0.001, 1))
            two = g.create_task(asyncio.wait_for(r.read(), 100))
        try:
            async with asyncio.TaskGroup() as g:
                g.create_task(fails())
                await r.read()
        except ExceptionGroup as group:
            assert [type(e) for e in group.exceptions] == [KeyError]
        await sleep(0.0001)
        return one.result(), two.result()

    async def main() -> Any:
        c = Channel()
        r, w = c.reader(), c.writer()
        network = asyncio.create_task(run_async(groups(r)))
        await w.write("v")
        return await network

    assert play(main()) == (1, "v")


def test_a_task_cancels_a_process_by_its_task(play: Runner) -> None:
    """asyncio's cancellation is raised at what it awaits, and what it leaves has ended quietly."""

    @process
    async def first(tasks: list[Any], r: Any) -> str:
        tasks.append(asyncio.current_task())
        try:
            await r.read()
        except asyncio.CancelledError as error:
            return f"cancelled {error.args}"
        return "read"

    @process
    async def second(tasks: list[Any]) -> None:
        tasks.append(asyncio.current_task())
        await asyncio.sleep(100)

    async def main() -> Any:
        c = Channel()
        keep = c.writer()
        tasks: list[Any] = []
        network = asyncio.create_task(run_async(first(tasks, c.reader()), second(tasks)))
        while len(tasks) < 2:
            await asyncio.sleep(0)
        assert tasks[0].cancel("why") and tasks[1].cancel()
        return await network, keep.closed

    assert play(main()) == (["cancelled ('why',)", None], False)


def test_a_process_is_cancelled_while_it_awaits_asyncio(play: Runner) -> None:
    """Rules 6.1 and 13.4: the future is cancelled as asyncio does, and the process gets Weft's own exception."""

    @process
    async def waits(seen: list[Any]) -> None:
        future = asyncio.get_running_loop().create_future()
        seen.append(future)
        try:
            await future
        except Cancelled:
            seen.append("Cancelled")
            raise

    async def main() -> Any:
        seen: list[Any] = []
        p = waits(seen)
        network = asyncio.create_task(run_async(p))
        while not seen:
            await asyncio.sleep(0)
        p.cancel()
        await network
        return seen[0].cancelled(), seen[1], p.result

    assert play(main()) == (True, "Cancelled", None)


def test_the_task_that_waits_is_cancelled(play: Runner) -> None:
    """Rule 13.4: the network is cancelled and ends first."""

    @process
    async def cleans_up(r: Any, log: list[str]) -> None:
        try:
            await r.read()
        finally:
            await asyncio.sleep(0.001)
            log.append("clean")

    async def main() -> Any:
        c = Channel()
        keep = c.writer()
        log: list[str] = []
        hold = c.reader()
        network = asyncio.create_task(run_async(cleans_up(c.reader(), log)))
        await turns(3)
        network.cancel()
        await turns(1)
        network.cancel()
        with pytest.raises(asyncio.CancelledError):
            await network
        started = asyncio.ensure_future(Parallel(cleans_up(c.reader(), log)))
        await turns(3)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(started, 0.001)
        return log, keep.closed or hold.closed

    assert play(main()) == (["clean", "clean"], False)


def test_contextvars(play: Runner) -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="none")

    @process
    async def inside(label: str) -> Any:
        before = name.get()
        name.set(label)
        await asyncio.sleep(0)
        seen: list[str] = []
        asyncio.get_running_loop().call_soon(lambda: seen.append(name.get()))
        await asyncio.create_task(see(seen))
        await sleep(0.0001)
        return before, name.get(), seen

    async def see(seen: list[str]) -> None:
        seen.append(name.get())

    async def main() -> Any:
        name.set("main")
        both = await Parallel(inside("a"), inside("b"))
        return both, name.get()

    assert play(main()) == ([("main", x, [x, x]) for x in ("a", "b")], "main")


def test_what_cannot_be_awaited(play: Runner) -> None:
    class Odd:
        def __await__(self) -> Any:
            yield "odd"

    other = asyncio.new_event_loop()

    @process
    async def tries() -> str:
        with pytest.raises(BadUse, match="awaited a str"):
            await Odd()
        with pytest.raises(RuntimeError, match="another event loop"):
            await other.create_future()
        return "told"

    async def main() -> Any:
        return await run_async(tries())

    try:
        assert play(main()) == "told"
    finally:
        other.close()


# ------------------------------------------------------------------------------------------------ http, with its own loop


def test_an_http_server_whose_handlers_talk_to_processes(play: Runner) -> None:
    @process
    async def counter(requests: Any) -> int:
        n = 0
        async for reply, amount in requests:
            n += amount
            await reply.write(n)
        return n

    async def main() -> Any:
        c = Channel()
        w = c.writer()

        async def add(request: aiohttp.web.Request) -> aiohttp.web.Response:
            reply = Channel()
            answer = reply.reader()
            await w.write((reply.writer(), int(request.match_info["n"])))
            return aiohttp.web.json_response(await answer.read())

        network = asyncio.create_task(run_async(counter(c.reader())))
        app = aiohttp.web.Application()
        app.add_routes([aiohttp.web.get("/add/{n}", add)])
        runner = aiohttp.web.AppRunner(app)
        await runner.setup()
        site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]

        @process
        async def client(out: Any, session: Any, n: int) -> None:
            for _ in range(5):
                async with session.get(f"http://127.0.0.1:{port}/add/{n}") as response:
                    await out.write(await response.json())

        async with aiohttp.ClientSession() as session:
            d = Channel()
            clients = [client(d.writer(), session, n) for n in (1, 10, 100)]
            *_, answers = await Parallel(*clients, receive(d.reader()))
        await runner.cleanup()
        w.retire()
        return await network, len(answers), max(answers)

    assert play(main()) == (555, 15, 555)


# ------------------------------------------------------------------------------------------------------ turns and time


class Counting(asyncio.SelectorEventLoop):
    """Counts what is scheduled on it."""

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
    """Rule 13.3."""
    loop = Counting()

    async def main() -> Any:
        c = Channel()
        w = c.writer()
        network = asyncio.ensure_future(Parallel(wait(c.reader()), wait(c.reader())))
        await turns(5)
        before = loop.scheduled
        await asyncio.to_thread(
            lambda: None
        )  # a while of the loop's own doing, which schedules as much each time
        one = loop.scheduled - before
        before = loop.scheduled
        await asyncio.to_thread(time.sleep, 0.02)
        idle = loop.scheduled - before
        await w.write(1)
        await w.write(2)
        return one, idle, await network

    try:
        one, idle, results = loop.run_until_complete(main())
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    assert results == [1, 2]
    assert idle == one


def test_a_busy_guest_lets_the_loop_go_on(play: Runner) -> None:
    """Rule 13.2: callbacks, tasks and sockets have their turns while processes never block."""

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
    """Rule 8.5."""

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
    """Rules 8.6 and 13.6: it jumps if nothing else is on the loop."""

    @process
    async def sleeper() -> float:
        await sleep(1000)
        return now()

    assert run(sleeper(), clock="virtual", host="asyncio") == pytest.approx(1000)


# --------------------------------------------------------------------------------------------------------- deadlock


def test_a_deadlock_is_told_when_nothing_else_is_on_the_loop() -> None:
    """Rules 10.1 and 13.6."""

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
    """Rule 10.4."""

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


# ---------------------------------------------------------------------------------------------------- from other threads


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


# ---------------------------------------------------------------------------------------------------------- endings


def test_a_loop_closed_in_the_middle() -> None:
    """Rule 13.5: the processes are cancelled, clean up as far as they can without a loop, and let go of their ends."""
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


def child(source: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(source)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("how", ["run(waits(c.reader()), host='asyncio')", "asyncio.run(main())"])
def test_ctrl_c(how: str) -> None:
    p = child(
        f"""
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
    )
    assert p.stdout is not None
    assert p.stdout.readline() == "ready\n"
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=30)
    assert (out, p.returncode) == ("clean\ninterrupted\n", 0), err


def test_nothing_is_left_behind() -> None:
    """A program that made many guests and tasks at channels ends with as many objects of each kind as after the first."""

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
