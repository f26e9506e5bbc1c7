"""The thread on which all parts of `weft.net` wait. It runs an event loop as long as the loop has
users.

    use(): the first user starts a thread with its loop
    call(coroutine) runs it on the loop, and waits for its result
    done(): the last user lets go, and the thread ends

Invariants
- `_lock` protects `_loop` and `_users`. In the child of a fork there is neither: they are the
  parent's.
- An object through which another machine may wake a run counts as something outside (rule 10.3;
  WIRE-NETWORKS.md 17.16): the code that makes the object calls outside(True), and outside(False)
  once the object has ended. A user alone does not count. Nor do these threads: they hold no end,
  and the objects for which they wake a run are counted.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import math
import os
import select
import selectors
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from weft import _helper_threads
from weft._extension import native as _native
from weft._watching import observers as _observers
from weft.errors import BadUse, Retired

__all__ = ["THREAD", "Stop", "begin", "call", "done", "outside", "use", "wait", "within"]

THREAD = "weft net"

T = TypeVar("T")

_here = threading.local()  # .stop is the Stop that can end the waits of this thread

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None
_users = 0


#: The descriptors of sessions' sockets. Each maps to a function that receives the bytes that have
#: arrived, and returns true if that needed no step of the loop. The table belongs to the loop's
#: thread.
quickly: dict[int, Callable[[], bool]] = {}


class _Looking(selectors.DefaultSelector):
    """Spins before it sleeps (WIRE-NETWORKS.md 17.25): the selector's own descriptor is readable
    when one of its descriptors is. If only bytes for sessions have arrived, this class passes them
    on, since a turn of the loop takes longer. If a bell was rung too, the loop answers it in its
    turn (native/wire/feed.hpp).
    """

    def __init__(self) -> None:
        super().__init__()
        own = getattr(self, "_selector", None)
        self._epoll: Any = own if isinstance(own, getattr(select, "epoll", ())) else None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            if timeout is None or timeout > 0:
                ms = -1 if timeout is None else math.ceil(timeout * 1000)
                _native._wait_for(self.fileno(), ms)
            if not quickly or self._epoll is None or not self._passed_bytes_on():
                return super().select(0)
            if until is not None:
                timeout = until - time.monotonic()
                if timeout <= 0:  # the loop has callbacks to run
                    return []

    def _passed_bytes_on(self) -> bool:
        """Passes on the bytes that have arrived for sessions. Returns whether there was no other
        work."""
        events = self._epoll.poll(0)
        turns = [quickly.get(fd) if event == select.EPOLLIN else None for fd, event in events]
        if not turns or None in turns:
            return False
        left = [turn for turn in turns if turn is not None and not turn()]
        return not left


def _run(loop: asyncio.AbstractEventLoop) -> None:
    _helper_threads.add_until_end()
    asyncio.set_event_loop(loop)
    # The executor is for calls that block, such as the look-up of the address of a host name.
    loop.set_default_executor(
        concurrent.futures.ThreadPoolExecutor(initializer=_helper_threads.add_until_end)
    )
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


class Stop:
    """Lets other threads end the waits of a thread in wait(): the present wait and later ones.

    `_lock` protects the other fields.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._waits_for: concurrent.futures.Future[Any] | None = None

    @contextlib.contextmanager
    def ends_waits(self) -> Iterator[None]:
        """In the block, this Stop can end the waits of the calling thread."""
        _here.stop = self
        try:
            yield
        finally:
            _here.stop = None

    def begins(self, what: concurrent.futures.Future[Any]) -> None:
        with self._lock:
            self._waits_for = what
            stopped = self._stopped
        if stopped:
            what.cancel()

    def kill(self) -> None:
        with self._lock:
            self._stopped = True
            what = self._waits_for
        if what is not None:
            what.cancel()


def use() -> asyncio.AbstractEventLoop:
    """Adds a user of the loop, and returns the loop. Each user must call done() once."""
    global _loop, _thread, _users
    with _lock:
        if _loop is None:
            loop = asyncio.SelectorEventLoop(_Looking())
            try:
                # The loop's thread must have priority over threads that compute (WIRE-NETWORKS.md
                # 17.24).
                loop.call_soon(_native._be_prompt)
                thread = threading.Thread(target=_run, args=(loop,), name=THREAD, daemon=True)
                thread.start()
            except BaseException:
                # A signal handler has raised. This call ends the thread, if it has begun.
                loop.call_soon_threadsafe(loop.stop)
                raise
            _loop, _thread = loop, thread
        _users += 1
        return _loop


def outside(more: bool) -> None:
    """With True, counts something outside that can wake a run here. With False, removes it from the
    count, once it has woken the run or can no longer do so. Nothing is counted in the child of a
    fork.
    """
    _native._outside(more)


def done(loop: asyncio.AbstractEventLoop) -> None:
    """Removes a user of the loop. When the last user is removed, the thread ends; a caller on
    another thread waits for that. In the child of a fork this does nothing.
    """
    global _loop, _thread, _users
    with _lock:
        if loop is not _loop or _thread is None:
            return
        _users -= 1
        if _users:
            return
        thread = _thread
        _loop = _thread = None
    loop.call_soon_threadsafe(loop.stop)
    if thread is not threading.current_thread():
        thread.join()


def begin(
    loop: asyncio.AbstractEventLoop, what: Coroutine[Any, Any, T]
) -> concurrent.futures.Future[T]:
    """Runs a coroutine on the loop. Returns its future.

    Raises:
        BadUse: the loop has ended, or was left behind by a fork.
    """
    if _loop is not loop:
        what.close()
        raise BadUse(
            "the network, session or door was closed, or was made before a fork: make another one"
        )
    return asyncio.run_coroutine_threadsafe(what, loop)


def call(loop: asyncio.AbstractEventLoop, what: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine on the loop, and blocks until it has ended. If the wait is interrupted,
    cancels the coroutine.

    Raises:
        What the coroutine raises; BadUse, if the loop has ended or was left behind by a fork.
    """
    future = begin(loop, what)
    try:
        return future.result()
    except concurrent.futures.CancelledError:
        raise BadUse("the network or session was closed meanwhile") from None
    except BaseException:
        future.cancel()
        raise


def wait(loop: asyncio.AbstractEventLoop, what: Coroutine[Any, Any, T]) -> T:
    """Does what call() does, in a process, which can be cancelled during the wait. The wait counts
    as outside.
    """
    if _loop is not loop:
        return call(loop, what)
    outside(True)
    show = _observers.hide()
    try:
        return _waited(loop, what)
    finally:
        show()
        outside(False)


def _waited(loop: asyncio.AbstractEventLoop, what: Coroutine[Any, Any, T]) -> T:
    over = _native.Channel("over")
    ended, end = over.reader(), over.writer()
    future = asyncio.run_coroutine_threadsafe(what, loop)
    future.add_done_callback(lambda _: end.retire())
    stop: Stop | None = getattr(_here, "stop", None)
    if stop is not None:
        stop.begins(future)
    try:
        with contextlib.suppress(Retired):
            ended.read()
    except BaseException:
        if not future.cancel() and not future.cancelled() and future.exception() is None:
            close = getattr(future.result(), "close", None)
            if close is not None:
                close()
        raise
    finally:
        with contextlib.suppress(BadUse):
            ended.retire()
    try:
        return future.result()
    except concurrent.futures.CancelledError:
        raise BadUse("the network or session was closed meanwhile") from None


async def within(seconds: float, what: Coroutine[Any, Any, T], drop: Callable[[T], object]) -> T:
    """Does what asyncio.wait_for() does, without losing a result. If `what` completes just when the
    wait is cancelled, its result is passed to drop().

    Raises:
        What the coroutine raised; TimeoutError.
    """
    task = asyncio.ensure_future(what)
    try:
        return await asyncio.wait_for(task, seconds)
    except asyncio.CancelledError:
        if task.done() and not task.cancelled() and task.exception() is None:
            drop(task.result())
        raise


def _forget() -> None:
    global _lock, _loop, _thread, _users
    _lock = threading.Lock()
    _loop = _thread = None
    _users = 0
    quickly.clear()


os.register_at_fork(after_in_child=_forget)
