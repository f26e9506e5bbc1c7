"""Tests that asyncio's features work in a process of a guest network (rule 13): futures, streams,
tasks, timeouts, cancellation.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
import time
from typing import Any

import pytest
from loops import Runner, new_in_3_11, receive, send, turns, wait
from parts import hows

from weft import threads
from weft.coroutines import (
    BadUse,
    Cancelled,
    Channel,
    Parallel,
    Spawn,
    after,
    process,
    run_async,
    select,
    sleep,
    yield_,
)

if sys.version_info < (3, 11):
    from exceptiongroup import ExceptionGroup

# ------------------------------------------------------------------ what asyncio has, in a process


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
    """Rules 6.1 and 7.7: processes that use yield_ let the loop run, so the timeout expires."""

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


@threads.process
def held(go: threading.Event) -> None:
    go.wait()


def test_spawned_ones_that_end_again_and_again_within_one_turn(play: Runner) -> None:
    """Rules 7.4 and 13.1: a guest is notified once of each process's end, even if the next process
    ends before the guest has handled the previous end.
    """

    def spend() -> None:  # longer than a turn lasts
        until = time.perf_counter() + 0.0005
        while time.perf_counter() < until:
            pass

    @process
    async def spawns() -> int:
        for _ in range(20):
            go = threading.Event()
            thread = held(go)
            Spawn(thread)
            spend()
            await yield_()
            go.set()
            while not thread.done:
                time.sleep(0)
            spend()
        return 20

    @process
    async def yields() -> int:
        for _ in range(100):
            await yield_()
        return 100

    async def main() -> Any:
        return await run_async(spawns(), yields(), yields())

    assert play(main()) == [20, 100, 100]


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
    """asyncio's cancellation is raised in the await, and a process ends quietly by this
    exception."""

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
        return hows(await network), keep.closed

    assert play(main()) == (["cancelled ('why',)", "<cancelled>"], False)


def test_a_process_is_cancelled_while_it_awaits_asyncio(play: Runner) -> None:
    """Rules 6.1 and 13.4: the future is cancelled as asyncio would cancel it, and the process
    receives Weft's own exception."""

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
        with pytest.raises(Cancelled):  # rule 7.1
            await network
        return seen[0].cancelled(), seen[1], p.result.how

    assert play(main()) == (True, "Cancelled", "cancelled")


def test_the_task_that_waits_is_cancelled(play: Runner) -> None:
    """Rule 13.4: the network is cancelled, and ends before the task continues."""

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


# ------------------------------------------------------------------------- http, with its own loop


def test_an_http_server_whose_handlers_talk_to_processes(play: Runner) -> None:
    pytest.importorskip("aiohttp", reason="it has no wheel for this Python")
    import aiohttp.web

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

        async def add(request: Any) -> Any:
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
