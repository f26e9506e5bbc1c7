"""Ordinary code in other OS processes, for test_processes_ordinary.py: threads that are not
processes, and tasks of asyncio, at far ends.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import weft.coroutines as co
import weft.threads as th
from weft.processes import Output, Poisoned, Retired, after, process, select


def on_a_thread(body: Callable[[], Any]) -> Any:
    """Runs `body` on a thread that is not a process. Returns the result of `body`, or the name of
    its exception.
    """
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(body())
        except BaseException as error:
            results.append(type(error).__name__)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]


def in_a_task(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Runs a coroutine in a task of asyncio, on a thread that is not a process. Returns the
    coroutine's result, or the name of its exception."""
    try:
        return asyncio.run(main())
    except BaseException as error:
        return type(error).__name__


@process
def thread_iterates(inp: Any, out: Any) -> Any:
    def body() -> str:
        for value in inp:
            out.write(2 * value)
        return "done"

    return on_a_thread(body)


@process
def thread_chooses(inp: Any, out: Any) -> Any:
    def body() -> str:
        while True:
            try:
                _, value = select(inp, after(280))
            except Retired:
                return "done"
            select(Output(out, make=lambda v=value: 2 * v))

    return on_a_thread(body)


@process
def thread_holds(inp: Any, out: Any) -> Any:
    def body() -> str:
        while True:
            try:
                with inp.extended() as value:
                    out.write(2 * value)
            except Retired:
                return "done"

    return on_a_thread(body)


@process
def task_iterates(inp: Any, out: Any) -> Any:
    async def main() -> str:
        async for value in inp:
            await out.write(2 * value)
        return "done"

    return in_a_task(main)


@process
def task_chooses(inp: Any, out: Any) -> Any:
    async def main() -> str:
        while True:
            try:
                _, value = await co.select(inp, co.after(280))
            except Retired:
                return "done"
            await co.select(Output(out, make=lambda v=value: 2 * v))

    return in_a_task(main)


@process
def task_holds(inp: Any, out: Any) -> Any:
    async def main() -> str:
        while True:
            try:
                async with inp.extended() as value:
                    await out.write(2 * value)
            except Retired:
                return "done"

    return in_a_task(main)


@process
def two_tasks(inp: Any, out: Any) -> int:
    """Runs two tasks that pass values on at the same pair of ends."""

    async def pass_on() -> int:
        n = 0
        async for value in inp:
            await out.write(2 * value)
            n += 1
        return n

    async def main() -> int:
        return sum(await asyncio.gather(pass_on(), pass_on()))

    return asyncio.run(main())


@process
def task_gives_up(inp: Any, ready: Any, out: Any) -> Any:
    """Cancels a read, which must have taken nothing (rule 6.2)."""

    async def main() -> str:
        task = asyncio.ensure_future(inp.read())
        await ready.write("not yet")
        task.cancel()
        answer = "cancelled" if isinstance(await _outcome(task), asyncio.CancelledError) else "read"
        await ready.write("now")
        await out.write(await inp.read())
        return answer

    return in_a_task(main)


async def _outcome(task: Any) -> BaseException | None:
    try:
        await task
    except asyncio.CancelledError as error:
        return error
    return None


@process
def meet_poison(inp: Any, how: str) -> Any:
    if how == "thread":
        return on_a_thread(inp.read)

    async def main() -> Any:
        return await inp.read()

    return in_a_task(main)


@process
def poisons(out: Any, how: str) -> Any:
    if how == "thread":
        return on_a_thread(out.poison)

    async def main() -> None:
        out.poison()

    return in_a_task(main)


@process
def offers_and_reads(out: Any, signal: Any) -> None:
    """Makes a channel and sends its writer away. When the channel ends, writes all values that it
    has read.
    """
    mine = th.Channel("mine")
    reader = mine.reader()
    out.write(mine.writer())
    got: list[Any] = []
    try:
        for value in reader:
            got.append(value)
    except Poisoned:
        got.append("poison")
    signal.write(got)
