"""asyncio in a checked function (rule 17.13).

A task that awaits only networks and asyncio.sleep, alone on its loop, does the same as ordinary
code that runs these networks one after the other (rules 13.1, 13.6). So a check runs no loop: the
coroutine given to `asyncio.run` is ordinary code, and `run_async` in it is `run`.

    asyncio.run(main) ──main.send()──► run_async() ──► run()   checked like any other network
                          ├─────────► asyncio.sleep()          virtual time
                          └─────────► anything else of asyncio: refused

Invariants
- main never suspends: each await ends at once, or is refused. So no loop would have an order to
  decide.
- World.driven is true exactly while the coroutine is under way.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from weft._checking.patches import LIBRARY, PACKAGE, Refused, World, by_weft
from weft._extension import native as _native
from weft.errors import BadUse

Replacement = tuple[tuple[Any, str], Any]

_INSTEAD = (
    "a check has no event loop: the coroutine of asyncio.run() may await networks (run_async) and asyncio.sleep; "
    "make other tasks processes of a network, and use Weft's channels and timeouts"
)
_ORDINARY = 0  # the value of _native.where() in ordinary code


def of_weft(world: World) -> Iterator[Replacement]:
    """Yields the replacements in Weft's own modules, for which asyncio need not be imported."""
    shared = importlib.import_module("weft._backends.shared")
    old = shared.run_async

    async def run_async(first: Any, *others: Any, clock: str = "steady") -> Any:
        if world.here and world.driven and _native.where() == _ORDINARY:
            return shared.run(first, *others, clock=clock)
        return await old(first, *others, clock=clock)

    new = functools.wraps(old)(run_async)
    yield (shared, "run_async"), new
    for style in ("coroutines", "greenlets", "threads"):
        yield (importlib.import_module(f"weft.{style}"), "run_async"), new


def replacements(world: World) -> Iterator[Replacement]:
    """Yields the replacements in asyncio, which the program has imported."""
    import asyncio

    run, sleep = _run(world, asyncio.run), _sleep(world, asyncio.sleep)
    for holder in (asyncio.runners, asyncio):
        yield (holder, "run"), run
    for holder in (asyncio.tasks, asyncio):
        yield (holder, "sleep"), sleep
    for module, name in (
        (asyncio.events, "get_running_loop"),
        (asyncio.events, "_get_running_loop"),
        (asyncio.events, "get_event_loop"),
        (asyncio.events, "_get_event_loop"),  # this name exists only until Python 3.11
        (asyncio.tasks, "current_task"),
    ):
        if not hasattr(module, name):
            continue
        refusing = _without_loop(world, getattr(module, name))
        for holder in (module, asyncio):
            if name in vars(holder):
                yield (holder, name), refusing


def _run(world: World, old: Callable[..., Any]) -> Callable[..., Any]:
    def run(main: Any, **named: Any) -> Any:
        if not world.here or not inspect.iscoroutine(main):
            return old(main, **named)
        if world.driven or _native.where() != _ORDINARY:
            main.close()
            raise world.refuse(
                "runs an event loop",
                "asyncio.run() is for ordinary code, not for a process or within another asyncio.run()",
            )
        world.driven = True
        try:
            main.send(None)
        except StopIteration as end:
            return end.value
        except (BadUse, RuntimeError) as error:
            if not _needs_loop(error):
                raise
            raise world.refuse(f"needs an event loop ({error})", _INSTEAD, _last(error)) from None
        finally:
            world.driven = False
        refused = world.refuse("awaits something of asyncio", _INSTEAD, _awaiting(main))
        main.close()
        raise refused

    return functools.wraps(old)(run)


def _sleep(world: World, old: Callable[..., Any]) -> Callable[..., Any]:
    async def sleep(delay: float, result: Any = None) -> Any:
        if not world.here or not world.driven:
            return await old(delay, result)
        if _native.where() == _ORDINARY:
            world.passes(max(delay, 0))
        else:
            await importlib.import_module("weft.coroutines").sleep(max(delay, 0))
        return result

    return functools.wraps(old)(sleep)


def _without_loop(world: World, old: Callable[..., Any]) -> Callable[..., Any]:
    def without_loop(*args: Any, **named: Any) -> Any:
        if world.here and world.driven and not by_weft():
            raise world.refuse("uses the event loop", _INSTEAD)
        return old(*args, **named)

    return functools.wraps(old)(without_loop)


def _needs_loop(error: BaseException) -> bool:
    """Returns whether the error says that there is no event loop: if so, an asyncio task could do
    what raised the error. A BadUse that has passed through Weft's Python code was raised in a
    process.
    """
    if isinstance(error, Refused):
        return False
    if not isinstance(error, BadUse):
        return "event loop" in str(error)
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return not any(file.startswith(PACKAGE) for file in files if file != __file__)


def _last(error: BaseException) -> FrameType:
    """Returns the frame in which the error was raised."""
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-1]


def _awaiting(coroutine: Any) -> FrameType | None:
    """Returns the frame of the innermost awaited coroutine of the program; None if the coroutine
    has ended.
    """
    frame: FrameType | None = coroutine.cr_frame
    while inspect.iscoroutine(coroutine := coroutine.cr_await):
        if coroutine.cr_code.co_filename.startswith((PACKAGE, *LIBRARY)):
            break
        frame = coroutine.cr_frame
    return frame
