"""Guests of asyncio, and tasks, together with other parts of a network: other backends, io calls,
observers (rules 7.9, 13 and 14)."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from loops import Runner, receive, send, wait

from weft import greenlets, io, threads
from weft.coroutines import BadUse, Channel, Parallel, process, run
from weft.observe import deadlocks, tracing


@io
def thread_of(value: Any) -> tuple[Any, threading.Thread]:
    return value, threading.current_thread()


@process
async def by_io(w: Any, value: int) -> None:
    answer, thread = await thread_of(value)
    assert thread is not threading.current_thread()
    await w.write(answer)


def test_all_backends_and_io_calls_in_a_guest(play: Runner) -> None:
    @greenlets.process
    def greenlet(w: Any) -> None:
        answer: Any = thread_of(2)  # in a thread process the call blocks (rule 7.9)
        w.write(answer[0])

    @threads.process
    def thread(w: Any) -> None:
        answer: Any = thread_of(3)
        w.write(answer[0])

    async def main() -> Any:
        c: Channel[Any] = Channel()
        w = c.writer
        return (await Parallel(by_io(w(), 1), greenlet(w()), thread(w()), receive(c.reader())))[3]

    assert sorted(play(main())) == [1, 2, 3]


def test_an_io_call_in_a_task_stops_no_loop(play: Runner) -> None:
    """Rule 7.9: while the call blocks its thread, the loop continues."""
    go_on = threading.Event()

    @io
    def blocks() -> str:
        assert go_on.wait(280)
        return "done"

    async def main() -> Any:
        call = asyncio.ensure_future(blocks())
        await asyncio.sleep(0)
        go_on.set()  # the loop, which continues during the call, runs this line
        assert (await thread_of(1))[1] is not threading.current_thread()
        return await call

    assert play(main()) == "done"


def test_a_trace_has_guests_and_tasks(play: Runner, tmp_path: Path) -> None:
    """Rule 14.6: the trace contains the operations of a task and of the process of a guest."""
    file = tmp_path / "trace"

    async def read(r: Any) -> Any:
        return await r.read()

    async def main() -> Any:
        c: Channel[Any] = Channel()
        task = asyncio.ensure_future(read(c.reader()))
        await Parallel(send(c.writer(), 7))
        return await task

    with tracing(file):
        assert play(main()) == 7
    events = [json.loads(line) for line in file.read_text().splitlines()[1:]]
    assert sorted(e["op"] for e in events if e["e"] == "begin") == ["read", "write"]
    assert sorted(e["op"] for e in events if e["e"] == "commit") == ["read", "write"]
    assert [e["e"] for e in events if e["p"] == "main/send" and "op" not in e] == ["start", "end"]


def test_a_partial_deadlock_of_a_guest_is_reported_on_demand(play: Runner) -> None:
    """Rules 10.5 and 14.3: a process that awaits an event of the loop can still continue."""

    @process
    async def holds(r: Any, w: Any) -> None:
        await r.read()

    @process
    async def asks() -> Any:
        await asyncio.sleep(0)
        report = deadlocks()
        raise LookupError(str(report))

    async def main() -> Any:
        c: Channel[Any] = Channel("knot")
        loop = asyncio.get_running_loop()
        future = loop.create_future()

        @process
        async def may_go_on() -> None:
            await future

        await Parallel(holds(c.reader(), c.writer()), may_go_on(), asks())

    with pytest.raises(LookupError, match=r"(?s)1 process is stuck.*holds: read 'knot'"):
        play(main())


def test_what_run_observes_on_asyncio(tmp_path: Path) -> None:
    file = tmp_path / "trace"
    c: Channel[Any] = Channel()
    two = send(c.writer(), 5), wait(c.reader())
    with pytest.raises(BadUse, match="deadlocks\\(\\)"):
        run(*two, host="asyncio", partial="warn")
    assert run(*two, host="asyncio", trace=file, watchdog=60.0) == [None, 5]
    assert '"main/wait"' in file.read_text()
