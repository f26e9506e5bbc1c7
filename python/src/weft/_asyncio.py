"""Weft inside asyncio: what the extension module asks of a loop, and what an awaiting task runs.

Loaded when an operation or a network first meets a running loop; the rules are 6.6 and 13.

Invariants
- A loop's Link is made once, lives as long as the loop, and is woken through its reader.
- A cancellation that found its operation committed is owed: it is asked for again in the loop's next turn, unless
  somebody took it back meanwhile (`uncancel`, as `asyncio.timeout` and `TaskGroup` do).
"""

from __future__ import annotations

import asyncio
import asyncio.base_tasks
import weakref
from typing import Any, TypeGuard

from weft._extension import native as _native
from weft.errors import BadUse

_native._asyncio_names(asyncio.CancelledError)

# How the current task is set: by the function of 3.12 and later, before that in a dictionary.
_swap: Any = getattr(asyncio.tasks, "_swap_current_task", None)
_tasks: Any = getattr(asyncio.tasks, "_current_tasks", None)
_current_task = asyncio.current_task
_stack: Any = asyncio.base_tasks._task_get_stack
_print_stack: Any = asyncio.base_tasks._task_print_stack

# ------------------------------------------------------------------------------------------------ loops

_links: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
_watches: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def _link_of(loop: Any) -> Any:
    link = _links.get(loop)
    if link is None:
        link = _native.Link(loop, getattr(loop, "virtual_time", False))
        try:
            loop.add_reader(link.fileno(), link.bell())
        except NotImplementedError:
            raise BadUse(
                f"{type(loop).__name__} has no add_reader, by which Weft wakes a loop: use a loop that has"
            ) from None
        _links[loop] = link
        _watches[loop] = _native._watch_signals()
    return link


def _alone(loop: Any) -> bool | None:
    """Whether nothing on the loop but networks of Weft could ever run: no task but those that wait for a network, no
    timer, no callback, no socket. Of a loop that does not show this: False. None: but for callbacks that run next."""
    try:
        if loop._signal_handlers:
            return False
        if any(not handle.cancelled() for handle in loop._scheduled):
            return False
        ours = {loop._ssock.fileno(), _links[loop].fileno()}
        if set(loop._selector.get_map()) - ours:
            return False
    except (AttributeError, KeyError, RuntimeError):
        return False
    if not all(
        isinstance(getattr(task, "_fut_waiter", None), _End) for task in asyncio.all_tasks(loop)
    ):
        return False
    return None if loop._ready else True


# ------------------------------------------------------------------------------------------------ cancellations owed

_owing: weakref.WeakKeyDictionary[Any, None] = (
    weakref.WeakKeyDictionary()
)  # a loop may be closed before it pays


def _wanted(task: Any) -> bool:
    """Whether a cancellation of the task is still asked for."""
    return not task.done() and (not hasattr(task, "cancelling") or task.cancelling() > 0)


def _owe() -> None:
    """The running task was cancelled when its operation had committed already."""
    task = asyncio.current_task()
    if task is not None:
        _owing[task] = None
        _native._asyncio_owing(len(_owing))
        asyncio.get_running_loop().call_soon(_pay, task)


def _no_longer_owed(task: Any) -> bool:
    """Whether it was."""
    if task not in _owing:
        return False
    del _owing[task]
    _native._asyncio_owing(len(_owing))
    return True


def _pay(task: Any) -> None:
    if _no_longer_owed(task) and _wanted(task):
        task.cancel()
        if hasattr(task, "uncancel"):
            task.uncancel()  # the same request, not another one


def _owed() -> bool:
    """At the start of an operation: is the running task to be cancelled now (rule 6.1)?"""
    task = asyncio.current_task()
    return _no_longer_owed(task) and _wanted(task)


# ------------------------------------------------------------------------------------------------ networks


class _End(asyncio.Future):  # type: ignore[type-arg]
    """What a task awaits that waits for the end of a network: `_alone` knows it by this."""


def _interrupted(error: BaseException | None) -> TypeGuard[BaseException]:
    """Whether it is what a signal's handler raised."""
    return error is not None and not isinstance(error, asyncio.CancelledError)


async def _drive(guest: Any, block: BaseException | None = None) -> Any:
    """Wait for a network that is a guest: its results, or raises what failed in it."""
    loop = asyncio.get_running_loop()
    cancelled: BaseException | None = None
    while True:
        try:
            if cancelled is not None:
                guest.cancel()
            while not guest.ended:
                end = _End(loop=loop)
                guest.wait(end)
                try:
                    await end
                except asyncio.CancelledError as error:
                    if (
                        cancelled is None
                    ):  # one request: a second one must not disturb the cleaning up
                        guest.cancel()
                    if not _interrupted(cancelled):
                        cancelled = error
            break
        except GeneratorExit:  # the loop was closed, or forgot its task
            guest.abandon()
            raise
        except BaseException as error:  # what the handler of a signal raised here: as a cancellation; at the second there is no waiting
            if _interrupted(cancelled):
                guest.abandon()
                raise
            cancelled = error
    try:
        results = guest.finish(block)
        if cancelled is not None and block is None:
            raise cancelled
        return results
    finally:
        try:
            if _interrupted(cancelled):
                raise cancelled
        finally:
            cancelled = None


async def _leave(guest: Any, block: BaseException | None) -> bool:
    """The end of the block of an `async with Group()`."""
    if isinstance(block, GeneratorExit):
        guest.abandon()
        return False
    if guest.told:
        # A failure cancelled this task; that is taken back, and what failed is raised below.
        task: Any = asyncio.current_task()
        _no_longer_owed(task)
        if hasattr(task, "uncancel"):
            task.uncancel()
        if isinstance(block, asyncio.CancelledError):
            block = None
    await _drive(guest, block)
    return False


async def parallel(*processes: Any) -> list[Any]:
    results: list[Any] = await _drive(_native.Guest(processes, False))
    return results


async def run(first: Any, others: tuple[Any, ...], virtual: bool) -> Any:
    results = await _drive(_native.Guest((first, *others), virtual))
    return results[0] if not others and isinstance(first, _native.Process) else results


# ------------------------------------------------------------------------------------------------ the task of a process


class ProcessTask(asyncio.Future):  # type: ignore[type-arg]
    """What `asyncio.current_task()` gives in a process of a guest.

    It behaves as an `asyncio.Task` towards those who use one: `asyncio.timeout`, `TaskGroup`, libraries that ask for the
    current task. Cancelling it raises `asyncio.CancelledError` in the process, at what it awaits; the process that this
    leaves has ended quietly. It is done when the process has ended.
    """

    def __init__(self, process: Any, loop: Any) -> None:
        super().__init__(loop=loop)
        self._process = process
        self._requests = 0
        self._name: str | None = None

    def cancel(self, msg: Any = None) -> bool:
        if self.done():
            return False
        self._requests += 1
        return bool(_native._task_cancel(self._process, msg))

    def cancelling(self) -> int:
        return self._requests

    def uncancel(self) -> int:
        if self._requests > 0:
            self._requests -= 1
            if self._requests == 0:
                _native._task_uncancel(self._process)
        return self._requests

    @property
    def _must_cancel(self) -> bool:
        return bool(_native._task_state(self._process)[1])

    @property
    def _fut_waiter(self) -> Any:
        return _native._task_state(self._process)[0]

    @property
    def _coro(self) -> Any:
        return _native._task_coroutine(self._process)

    def get_coro(self) -> Any:
        return self._coro

    def get_name(self) -> str:
        return self._name or self._process.path

    def set_name(self, value: object) -> None:
        self._name = str(value)

    def get_stack(self, *, limit: int | None = None) -> Any:
        return _stack(self, limit)

    def print_stack(self, *, limit: int | None = None, file: Any = None) -> None:
        _print_stack(self, limit, file)

    def set_result(self, result: object) -> None:
        raise RuntimeError("the task of a process does not support set_result")

    def set_exception(self, exception: object) -> None:
        raise RuntimeError("the task of a process does not support set_exception")

    def __repr__(self) -> str:
        return f"<ProcessTask of {self._process!r}>"

    def _end(self, outcome: Any, failed: bool) -> None:
        """Its process has ended."""
        if self.done():
            return
        try:
            if not failed:
                super().set_result(outcome)
            elif isinstance(outcome, StopIteration):
                super().set_exception(RuntimeError(repr(outcome)))
            else:
                super().set_exception(outcome)
                self._log_traceback = False  # the group knows
        except RuntimeError:
            pass  # the loop is closed: there is nobody to be told
