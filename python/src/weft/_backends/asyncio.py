"""Weft inside asyncio: the functions of an event loop that the extension module needs, and the
coroutines that an awaiting task runs.

This module is loaded when an operation or a network first meets a running event loop (rules 6.6 and
13).

Invariants
- The Link of an event loop is made once, exists as long as the loop exists, and is woken through
  its reader.
- A cancellation may arrive after the operation that it should cancel has committed. Then it is
  *owed*: it is requested again in the loop's next turn, unless `uncancel` withdrew it meanwhile,
  as `asyncio.timeout` and `TaskGroup` do.
"""

from __future__ import annotations

import asyncio
import asyncio.base_tasks
import contextlib
import signal
import threading
import weakref
from typing import Any, TypeGuard

from weft._backends import unawaited as _unawaited
from weft._extension import native as _native
from weft.errors import BadUse

# In Python 3.12 and later, a function of asyncio sets the current task; in earlier versions the
# current task is an entry of a dictionary.
_swap: Any = getattr(asyncio.tasks, "_swap_current_task", None)
_tasks: Any = getattr(asyncio.tasks, "_current_tasks", None)
_current_task = asyncio.current_task
_native._asyncio_names(asyncio.CancelledError, _tasks if _swap is None else None, _current_task)
_stack: Any = asyncio.base_tasks._task_get_stack
_print_stack: Any = asyncio.base_tasks._task_print_stack

# -------------------------------------------------------------------------------------------- loops

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
                f"{type(loop).__name__} has no add_reader, by which Weft wakes a loop: use a loop that has one"
            ) from None
        _links[loop] = link
        _watches[loop] = _native._watch_signals()
    return link


def running_loops() -> list[Any]:
    """Returns the event loops that have used Weft and are running."""
    return [loop for loop in list(_links) if loop.is_running()]


def running_here() -> Any:
    """Returns the event loop that runs on this thread, or None."""
    return asyncio._get_running_loop()


def _lives(loop: Any, identity: int) -> bool:
    """Returns whether the task whose id() is `identity` has not ended. A task that the garbage
    collector has freed counts as ended: asyncio no longer lists it.
    """
    return not loop.is_closed() and any(
        id(task) == identity and not task.done() for task in asyncio.all_tasks(loop)
    )


def _go_on(future: Any) -> None:
    """Completes the future, so that the task that awaits it goes on. Any thread is allowed to call
    this function."""
    loop = future.get_loop()
    if not loop.is_closed():
        loop.call_soon_threadsafe(lambda: future.done() or future.set_result(None))


def _is_standstill_check(handle: Any) -> bool:
    """Returns whether a callback is the check for a standstill (rule 10.6), which wakes no
    process.
    """
    return getattr(handle._callback, "__name__", None) == "weft_standstill"


def handlers_of(loop: Any) -> dict[int, Any]:
    """Returns the handlers set by `loop.add_signal_handler`, as {signal: (callback, arguments)}."""
    return {n: (h._callback, h._args) for n, h in loop._signal_handlers.items()}


def _alone(loop: Any) -> bool | list[int] | None:
    """Returns whether nothing but networks of Weft can ever run on the event loop.

    Returns:
        True: the loop has no timer, no callback, no socket, and no task but those that wait for a
            network. If signals have handlers that may act (rule 10.3), a list of these signals is
            returned instead of True.
        None: the loop has, besides those, only callbacks that run in its next turn.
        False: something else may run, or the loop does not show its timers and callbacks.
    """
    try:
        handlers = handlers_of(loop)
        if any(
            not handle.cancelled() and not _is_standstill_check(handle)
            for handle in loop._scheduled
        ):
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
    if loop._ready:
        return None
    return (_native._handlers_that_act(handlers) if handlers else []) or True


# ------------------------------------------------------------------------------- cancellations owed

# The dictionary refers to the tasks weakly, because a loop can be closed before it has cancelled
# them.
_owing: weakref.WeakKeyDictionary[Any, None] = weakref.WeakKeyDictionary()


def _wanted(task: Any) -> bool:
    """Returns whether the cancellation of the task is still wanted."""
    return not task.done() and (not hasattr(task, "cancelling") or task.cancelling() > 0)


def _owe() -> None:
    """Records that a cancellation is owed to the running task, whose operation had committed before
    the cancellation arrived.
    """
    task = asyncio.current_task()
    if task is not None:
        _owing[task] = None
        _native._asyncio_owing(len(_owing))
        asyncio.get_running_loop().call_soon(_cancel_if_owed, task)


def _no_longer_owed(task: Any) -> bool:
    """Clears the cancellation that is owed to the task. Returns whether a cancellation was owed."""
    if task not in _owing:
        return False
    del _owing[task]
    _native._asyncio_owing(len(_owing))
    return True


def _cancel_if_owed(task: Any) -> None:
    if _no_longer_owed(task) and _wanted(task):
        task.cancel()
        if hasattr(task, "uncancel"):
            task.uncancel()  # task.cancel() repeats an old request, and must not count as a new one


def _owed() -> bool:
    """Returns, at the start of an operation, whether the running task must be cancelled now (rule
    6.1).
    """
    task = asyncio.current_task()
    return _no_longer_owed(task) and _wanted(task)


# ----------------------------------------------------------------------------------------- networks


class _End(asyncio.Future):  # type: ignore[type-arg]
    """The future that a task awaits while it waits for the end of a network. `_alone` recognises
    such a task by the type of this future.
    """


def _interrupted(error: BaseException | None) -> TypeGuard[BaseException]:
    """Returns whether a signal handler raised the exception, that is, whether the exception is not
    a cancellation.
    """
    return error is not None and not _is(error, asyncio.CancelledError)


def _is(error: BaseException | None, kind: type) -> bool:
    """Does what isinstance() does, but does not read the exception's `__class__`, which can be a
    property that runs code of the program."""
    return issubclass(type(error), kind)


class _Saying:
    """Makes Ctrl-C print where the processes are, while tasks of the main thread's event loop wait
    for networks. After that, Ctrl-C does what it would have done without this class.

    The handler of this class replaces only asyncio's handler and Python's default handler, and
    never a handler of the program (rule 6.7).

    A wait may end on another thread than it began on, if the loop has dropped the task and the
    garbage collector frees the task there. No handler can be set on that other thread. Then the
    handler of this class is removed by the loop's next turn, by the next wait or by the next
    Ctrl-C, whichever is first.
    """

    def __init__(self) -> None:
        self._waiting: set[object] = set()
        self._before: Any = None

    def begin(self, loop: Any, wait: object) -> None:
        """Records that a wait begins. The caller must call `end` even if `begin` raises."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._waiting.add(wait)
        if len(self._waiting) == 1:
            self._stop(None)  # removes the handler that an earlier wait might have left
            self._start(loop)

    def _start(self, loop: Any) -> None:
        before = signal.getsignal(signal.SIGINT)
        runners = getattr(getattr(before, "func", None), "__name__", "") == "_on_sigint"
        if runners or before is signal.default_int_handler:
            self._before = before  # set first, because the handler reads this field
            self._set(self._say, loop)

    def end(self, loop: Any, wait: object) -> None:
        if wait not in self._waiting:
            return
        self._waiting.discard(wait)
        if threading.current_thread() is threading.main_thread():
            self._stop_if_unused(loop)
        else:
            with contextlib.suppress(RuntimeError):  # raised if the loop is closed
                loop.call_soon_threadsafe(self._stop_if_unused, loop)

    def _stop_if_unused(self, loop: Any) -> None:
        if not self._waiting:
            self._stop(loop)

    def _stop(self, loop: Any) -> None:
        before = self._before
        if before is not None and not (loop and loop.is_running()):
            # The loop has dropped this task, and asyncio's runner has ended. The runner has not
            # removed its own handler, because that handler was not in place.
            before = signal.default_int_handler
        if before is not None and signal.getsignal(signal.SIGINT) == self._say:
            self._set(before, loop)
        # cleared last, because the handler of an earlier Ctrl-C still needs `_before`
        self._before = None

    def _set(self, handler: Any, loop: Any) -> None:
        # ValueError is raised if Python considers another thread the main thread.
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, handler)
            if loop in _watches:
                # The watch is set again, because Ctrl-C must be held back wherever other signals
                # are held back.
                _watches[loop] = _native._watch_signals()

    def _say(self, number: int, frame: Any) -> None:
        before, loop = self._before, asyncio._get_running_loop()
        self._stop(loop)  # restores the earlier handler: the processes are printed only once
        if before is not None and self._waiting:
            _native._say_where()
        if before is None or loop is None:
            raise KeyboardInterrupt
        before(number, frame)


_saying = _Saying()


async def _drive(guest: Any, block: BaseException | None = None) -> Any:
    """Waits for a network that is a guest. Returns its results, or raises what failed in it."""
    loop = asyncio.get_running_loop()
    wait = object()
    raised: BaseException | None = None
    try:
        try:
            _saying.begin(loop, wait)
        except BaseException as error:  # a signal handler has raised the exception
            raised = error
        return await _wait_for(guest, block, loop, raised)
    except Exception as error:
        _unawaited.network_failed(error)
        raise
    finally:
        raised = None
        _saying.end(loop, wait)


async def _wait_for(
    guest: Any, block: BaseException | None, loop: Any, cancelled: BaseException | None
) -> Any:
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
                    # The network receives only one request to cancel, since a second one would
                    # disturb the clean-up.
                    if cancelled is None:
                        guest.cancel()
                    if not _interrupted(cancelled):
                        cancelled = error
            break
        except GeneratorExit:  # the loop was closed, or has dropped the task
            guest.abandon()
            raise
        except BaseException as error:  # a signal handler has raised the exception
            # The first such exception cancels the network, and is raised after the network has
            # ended. A second such exception is raised immediately.
            if _interrupted(cancelled):
                guest.abandon()
                raise
            cancelled = error
    try:
        results = guest.finish(block, cancelled is not None)
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
    """Runs at the end of the block of an `async with Group()`. `block` is the exception that left
    the block, or None.
    """
    if _is(block, GeneratorExit):
        guest.abandon()
        return False
    if guest.told:
        # A failed process has cancelled this task. The cancellation is withdrawn here, and the
        # failure is raised below.
        task: Any = asyncio.current_task()
        _no_longer_owed(task)
        if hasattr(task, "uncancel"):
            task.uncancel()
        if _is(block, asyncio.CancelledError):
            block = None
    await _drive(guest, block)
    return False


async def parallel(*processes: Any) -> list[Any]:
    results: list[Any] = await _drive(_native.Guest(processes, False, False))
    return results


parallel.__name__ = parallel.__qualname__ = "Parallel"  # Python prints this if it is not awaited


async def run(first: Any, others: tuple[Any, ...], virtual: bool) -> Any:
    alone = not others and isinstance(first, _native.Process)
    results = await _drive(_native.Guest((first, *others), virtual, alone))
    return results[0] if alone else results


# ---------------------------------------------------------------------------- the task of a process


class ProcessTask(asyncio.Future):  # type: ignore[type-arg]
    """The object that `asyncio.current_task()` returns in a process of a guest.

    It behaves like an `asyncio.Task` for code that uses one: `asyncio.timeout`, `TaskGroup`,
    libraries that ask for the current task. Its `cancel()` raises `asyncio.CancelledError` in the
    process, where the process awaits something. If this exception leaves the process, the process
    has ended quietly. The ProcessTask is done when the process has ended.
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
        """Completes this future, once the process has ended."""
        if self.done():
            return
        try:
            if not failed:
                super().set_result(outcome)
            elif _is(outcome, StopIteration):  # a future refuses StopIteration
                super().set_exception(RuntimeError("the process was left by StopIteration"))
            else:
                super().set_exception(outcome)
                # the process's group reports the failure, so asyncio must not report it too
                self._log_traceback = False
        except RuntimeError:
            pass  # the loop is closed, so nothing waits for this future any more


# ----------------------------------------------------------------------------------------- timeouts

# In Python 3.10 this text distinguishes Weft's request to cancel from other requests.
_EXPIRED = "a timeout of Weft has expired"


class TaskLimit:
    """The limit of a `timeout` in an asyncio task. When the time is reached, the limit cancels the
    task. The limit recognises its own request by the task's count of requests, and in Python 3.10
    by the message.
    """

    def __init__(self) -> None:
        self._task: Any = None
        self._timer: Any = None
        self._asked = False
        self._open = False
        self._mine = False
        self._requests = 0
        self._outer: TaskLimit | None = None

    @property
    def expired(self) -> bool:
        return self._asked if self._open else self._mine

    def enter(self, when: float | None, relative: bool, again: bool) -> None:
        assert not again  # Timeout refuses again=True in an asyncio task
        self._task = asyncio.current_task()
        if self._task is None:
            raise BadUse("a timeout outside any task: use it in a coroutine that a task runs")
        self._requests = self._task.cancelling() if hasattr(self._task, "cancelling") else 0
        self._arm(when, relative)
        self._open = True
        self._outer = _limits.get(self._task)
        _limits[self._task] = self

    def leave(self, error: BaseException | None) -> bool:
        self._check("leaving")
        if _limits.get(self._task) is not self:
            raise BadUse(
                "leaving a timeout before one that was entered within it: leave the inner one first"
            )
        if self._outer is None:
            del _limits[self._task]
        else:
            _limits[self._task] = self._outer
        self._disarm()
        self._open = False
        cancelled = _is(error, asyncio.CancelledError)
        self._mine = self._asked and self._take_back(cancelled) and cancelled
        if self._mine and not hasattr(self._task, "uncancel"):
            self._mine = error is not None and error.args == (_EXPIRED,)
        return self._mine

    def move(self, seconds: float | None) -> None:
        self._check("reschedule")
        if self._asked:
            raise BadUse("reschedule of a timeout that has expired already: make another")
        self._disarm()
        self._arm(seconds, True)

    def _check(self, what: str) -> None:
        if not self._open:
            raise BadUse(f"{what} of a timeout whose block is not open: do it within the block")
        if asyncio.current_task() is not self._task:
            raise BadUse(f"{what} of a timeout that another task has entered: do it in that task")

    def _arm(self, when: float | None, relative: bool) -> None:
        if when is None:
            return
        left = when if relative else when - _native.now()
        loop = asyncio.get_running_loop()
        if left <= 0:
            self._timer = loop.call_soon(self._ask)
        elif left < _NEVER:
            self._timer = loop.call_later(left, self._look, _native.now() + left)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, at: float) -> None:
        """Runs when the time `at` should have been reached. The loop's clock can be coarse, so the
        call can be too early.
        """
        left = at - _native.now()
        if left > 0:
            self._timer = asyncio.get_running_loop().call_later(max(left, 0.001), self._look, at)
        else:
            self._ask()

    def _ask(self) -> None:
        self._timer = None
        if self._task.done():
            return
        if not hasattr(self._task, "uncancel") and _is_cancelled(self._task):
            # in Python 3.10, another request that is under way would be mistaken for Weft's
            return
        self._asked = True
        self._task.cancel(_EXPIRED)

    def _take_back(self, delivered: bool) -> bool:
        """Withdraws Weft's request to cancel. Returns whether the number of requests is no larger
        than it was when the block was entered.
        """
        alone = not hasattr(self._task, "uncancel") or self._task.uncancel() <= self._requests
        if alone and not delivered:
            _no_longer_owed(self._task)
        return alone


_NEVER = 1e9  # seconds; a timer of an event loop cannot be set for much longer
_limits: weakref.WeakKeyDictionary[Any, TaskLimit] = weakref.WeakKeyDictionary()


def _is_cancelled(task: Any) -> bool:
    waiter = getattr(task, "_fut_waiter", None)
    return bool(
        getattr(task, "_must_cancel", False)
        or (waiter is not None and waiter.cancelled())
        or task in _owing
    )
