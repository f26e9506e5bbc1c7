"""Lets one test run on every backend: it is written with `await`, through a shim that does nothing
where operations block.

    async def consumer(b, r):
        return await b.op(r.read())   # awaits what a coroutine awaits; passes on a thread's result

The processes of a test are `async def f(b, …)`; `b.process(f)` makes them processes of the backend.
"""

from __future__ import annotations

import functools
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from loops import RUNNERS, Runner

from weft import coroutines, greenlets, threads
from weft._components.build import FLAGS, OPTIMISED, include_dir
from weft._watching import observers as _observers

# This makes modules of tools/ importable, however pytest was started.
sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

import component_header

MODULES: dict[str, Any] = {"coroutines": coroutines, "threads": threads, "greenlets": greenlets}


# Files whose cases each start a program, an OS process or a component. Such a case takes up to a
# second, and a few combinations of parameters show as much as all.
SPREAD = (
    "checking_command",
    "cli",
    "ends_abroad",
    "far_choice",
    "far_left",
    "far_nobody_ready",
    "forks",
    "main_program_ends",
    "native_",
    "processes_",
    "signals",
    "standstill",
    "supervisor",
)


@pytest.hookimpl(tryfirst=True)  # must run before tools/pytest_room.py, which reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name.removeprefix("test_").startswith(SPREAD):
            item.add_marker("spread")
    if any("native" in item.path.name for item in items):
        header = component_header.compiler(Path(include_dir()), [*FLAGS, *OPTIMISED])
        if header and "CXX" not in os.environ:
            os.environ["CXX"] = header  # for this OS process, and for those that tests start


class _Done:
    """An awaitable for an operation that has blocked and has already ended."""

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
        """Makes `async def f(b, …)` a process, which is called without `b`."""
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
def _freeze_earlier_objects() -> None:
    """Freezes the objects that exist before a file's first test. They belong to no test, so the
    collector need not visit them after each test. (Otherwise the remains of earlier files cost 45
    ms for each of the last tests.)
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _collect_garbage() -> Generator[None, None, None]:
    """Runs the garbage collector after each test, so that a warning about an object that was never
    awaited or started belongs to that test.
    """
    yield
    gc.collect()


@pytest.fixture(params=sorted(RUNNERS))
def play(request: pytest.FixtureRequest) -> Runner:
    """Returns a function that runs a coroutine on an event loop."""
    return RUNNERS[request.param]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Generator[Path, None, None]:
    """Makes a runtime directory. The paths of pytest's own directories are too long for a
    socket."""
    path = Path(tempfile.mkdtemp(prefix="weft"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(path))
    monkeypatch.delenv("WEFT_INSPECT", raising=False)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def nobody_observes() -> Generator[None, None, None]:
    """Checks that a test has switched off every observer that it switched on."""
    yield
    assert _observers._observers == []
