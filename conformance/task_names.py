"""The names of `weft` for programs whose processes are tasks of asyncio: every operation in them is
that of a foreign waiter (rules 6.6, 13.7), on a loop whose time is virtual.

A task is not a process: it holds no ends (2.3), spreads no poison (4.3) and belongs to no group
(7). So a process of this module is a coroutine process, a guest of the loop, that holds the ends
and only waits for its task, which runs the body.

    process:  waits for its task ──the task ends──► ends as the task did
       └──Cancelled (of its group)──► task.cancel() ──► waits on

Invariants
- One cancellation of the process is one cancellation of its task. `process.cancel()` cancels the
  task.
- A process on another backend (`on`) is an ordinary process of that backend, without a task.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from weft import coroutines as _weft
from weft.coroutines import *  # noqa: F403

from . import virtual_loop

Cancelled = asyncio.CancelledError  # the exception with which a task is cancelled (rule 13.4)


class Process:
    """A process whose body is a task."""

    def __init__(self, function: Callable[..., Coroutine[Any, Any, Any]], given: Any, named: Any):
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False

        @functools.wraps(function)
        async def waits(*args: Any, **keywords: Any) -> Any:
            loop = asyncio.get_running_loop()
            task = self._task = loop.create_task(function(*args, **keywords))
            if self._cancelled:
                task.cancel()
            bell = loop.create_future()
            task.add_done_callback(lambda _: bell.done() or bell.set_result(None))
            while not task.done():
                try:
                    await bell
                except _weft.Cancelled:
                    bell = loop.create_future()
                    task.cancel()
            try:
                return task.result()
            finally:
                del (
                    args,
                    keywords,
                    task,
                    self._task,
                )  # a traceback must not keep the objects that the process releases

        self.native: Any = _weft.process(waits)(*given, **named)

    def cancel(self) -> None:
        if self._task is None:
            self._cancelled = True
        else:
            self._task.cancel()

    def named(self, name: str) -> Process:
        self.native.named(name)
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.native, name)


class process:
    """A process function: `async def`."""

    def __init__(self, function: Any):
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *given: Any, **named: Any) -> Process:
        return Process(self.function, given, named)

    def on(self, backend: Any) -> Any:
        made = _weft.process(self.function).on(backend)

        def make(*given: Any, **named: Any) -> Any:
            one = made(*given, **named)
            if backend == "threads":
                asyncio.get_running_loop().processes.append(one)  # type: ignore[attr-defined]
            return one

        return make


def _native(one: Any) -> Any:
    if isinstance(one, Process):
        return one.native
    if isinstance(one, Iterable):
        return [_native(other) for other in one]
    return one


class Group:
    def __init__(self) -> None:
        self._group = _weft.Group()

    def start(self, one: Any) -> Any:
        self._group.start(_native(one))
        return one

    def cancel(self) -> None:
        self._group.cancel()

    async def __aenter__(self) -> Group:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *left_by: Any) -> Any:
        return await self._group.__aexit__(*left_by)


def Parallel(*processes: Any) -> Any:
    return _weft.Parallel(*map(_native, processes))


def Sequence(*processes: Any) -> Any:
    return _weft.Sequence(*map(_native, processes))


def watched(one: Any) -> Any:
    _weft.watched(_native(one))
    return one


def run(first: Any, *others: Any, clock: str = "steady") -> Any:
    """Runs the network, in ordinary code, on a loop of its own, whose time is virtual whatever
    `clock` is.
    """

    async def main() -> Any:
        results = await Parallel(first, *others)
        return results[0] if not others and isinstance(first, Process) else results

    return virtual_loop.run(main())


def run_task(main: Coroutine[Any, Any, Any]) -> Any:
    """Runs the coroutine as a task of a loop of its own, without any process."""
    return virtual_loop.run(main)
