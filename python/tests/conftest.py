"""One test, every backend: written with `await`, through a shim that makes nothing of it where
operations block.

    async def consumer(b, r):
        return await b.op(r.read())        # b.op awaits what a coroutine awaits, and passes on what a thread has done

The processes of a test are `async def f(b, …)`; `b.process(f)` makes them processes of the backend.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Generator
from typing import Any

import pytest
from loops import RUNNERS, Runner

from weft import coroutines, greenlets, threads
from weft._watching import observers as _observers

MODULES: dict[str, Any] = {"coroutines": coroutines, "threads": threads, "greenlets": greenlets}


class _Done:
    """An awaitable that is done: what blocked has happened already."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __await__(self) -> Generator[Any, None, Any]:
        return self.value
        yield


class Backend:
    def __init__(self, name: str) -> None:
        self.name = name
        self.blocking = name != "coroutines"
        self.one_scheduler = name != "threads"
        self.weft: Any = MODULES[name]

    def process(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`async def f(b, …)` as a process; called without `b`."""
        if not self.blocking:

            @self.weft.process
            @functools.wraps(function)
            async def run_coroutine(*args: Any) -> Any:
                return await function(self, *args)

            return run_coroutine

        @self.weft.process
        @functools.wraps(function)
        def run_calling(*args: Any) -> Any:
            coroutine = function(self, *args)
            try:
                coroutine.send(None)
            except StopIteration as end:
                return end.value
            coroutine.close()
            raise AssertionError("a process that blocks awaited something that was not done")

        return run_calling

    def op(self, operation: Any) -> Any:
        return _Done(operation) if self.blocking else operation

    async def each(self, reader: Any) -> Any:
        if self.blocking:
            for value in reader:
                yield value
        else:
            async for value in reader:
                yield value

    def enter(self, manager: Any) -> Any:
        return _Done(manager.__enter__()) if self.blocking else manager.__aenter__()

    def leave(self, manager: Any, error: BaseException | None = None) -> Any:
        given = (None, None, None) if error is None else (type(error), error, error.__traceback__)
        return _Done(manager.__exit__(*given)) if self.blocking else manager.__aexit__(*given)

    def run(self, *processes: Any, **how: Any) -> Any:
        return self.weft.run(*processes, **how)

    def __repr__(self) -> str:
        return self.name


@pytest.fixture(params=list(MODULES))
def b(request: pytest.FixtureRequest) -> Backend:
    return Backend(request.param)


@pytest.fixture(autouse=True, scope="module")
def _what_was_there_before() -> None:
    """What is there before a file's first test is no test's: the collector need not look at it
    after each. (All that the files before have left behind is 45 ms a test at last.)"""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _nothing_left() -> Generator[None, None, None]:
    """A warning about something never awaited or started belongs to the test that made it."""
    yield
    gc.collect()


@pytest.fixture(params=sorted(RUNNERS))
def play(request: pytest.FixtureRequest) -> Runner:
    """What runs a coroutine on an event loop."""
    return RUNNERS[request.param]


@pytest.fixture
def nobody_observes() -> Generator[None, None, None]:
    """What a test switched on it has switched off."""
    yield
    assert _observers._observers == []
