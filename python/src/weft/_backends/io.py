"""`@io`, and the threads on which its calls run (rule 7.9).

Invariants
 1 A thread of the pool either runs a call or is idle; a thread that has been idle for IDLE seconds
   ends.
 2 There are at most LIMIT threads (and one more for each start that was interrupted). Further calls
   wait in the order in which they were made.
 3 All running calls may depend on a call that still waits. So while calls wait for a thread,
   another thread watches. Whenever no call has ended for PATIENCE seconds, the watcher starts one
   thread beyond LIMIT, which ends after one call. The watcher cannot distinguish such calls from
   slow ones, so it starts only one thread at a time: thousands of slow calls must not become
   thousands of threads at once.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from weft import _patched
from weft._backends.functions import is_coroutine, yields
from weft._extension import native as _native
from weft.errors import BadUse

__all__ = ["IDLE", "LIMIT", "io", "workers"]

LIMIT = 64  #: the largest number of threads of the pool
IDLE = 5.0  #: the seconds after which an idle thread ends
PATIENCE = 0.05  #: the seconds between two checks of whether a call waits and no running call ends

# The main thread can submit a call, and in the main thread a signal handler can raise an exception
# between any two steps. So no lock is used: each method of these queues takes effect completely or
# not at all.
# the calls that wait for a thread; None ends the thread that receives it
_waiting: SimpleQueue[Any] = SimpleQueue()
_idle: SimpleQueue[None] = SimpleQueue()  # contains an item for each thread that waits for a call
# contains an item for each thread that the pool can still start
_permits: SimpleQueue[None] = SimpleQueue()
for _ in range(LIMIT):
    _permits.put(None)
_watch: SimpleQueue[None] = SimpleQueue()  # one permit, unless a thread runs _help_waiting_calls
_watch.put(None)
# how many calls have ended; the figure is approximate, since two threads can count at the same time
_ended = 0


def workers() -> int:
    """Returns how many threads the pool has at this moment."""
    return LIMIT - _permits.qsize()


def _took_item(one: SimpleQueue[None]) -> bool:
    try:
        one.get_nowait()
    except Empty:
        return False
    return True


def _submit(call: Any) -> None:
    _waiting.put(call)
    _add_thread_if_needed()


def _add_thread_if_needed() -> None:
    """Starts a thread if more calls wait than threads are idle. At the limit, starts the watcher.

    A thread calls this function after it has added a call, and after it has stopped being idle. So
    if two threads make such changes at once, at least one of them sees both changes.
    """
    if _waiting.qsize() > _idle.qsize():
        if _took_item(_permits):
            _start(_work, _permits)
        elif _took_item(_watch):
            _start(_help_waiting_calls, _watch)


def _start(does: Callable[[SimpleQueue[None]], None], permits: SimpleQueue[None]) -> None:
    """Starts a thread. The caller has taken a permit from `permits`; the thread puts the permit
    back when it ends.
    """
    started = False
    try:
        # The program might have been patched after the function was decorated.
        if why := _patched.why_not("@io"):
            raise BadUse(why)
        threading.Thread(target=does, args=(permits,), name="weft io", daemon=True).start()
        started = True
    except RuntimeError:
        if permits is _permits and workers() == 1:
            raise
        # Another thread of the pool will run the call.
    except KeyError as error:
        # a signal handler's exception within start() can be turned into a KeyError
        if error.__context__ is None:
            raise
        raise error.__context__ from None
    finally:
        if not started:
            permits.put(None)


def _next() -> Any:
    """Returns the next call. Returns None if this thread has been idle for IDLE seconds."""
    try:
        return _waiting.get_nowait()
    except Empty:
        _idle.put(None)
    try:
        call = _waiting.get(timeout=IDLE)
    except Empty:
        call = None
    _took_item(_idle)
    if call is None:
        try:
            return _waiting.get_nowait()  # a call arrived while this thread still counted as idle
        except Empty:
            return None
    _add_thread_if_needed()
    return call


def _work(permits: SimpleQueue[None]) -> None:
    global _ended
    _native._worker(True)
    try:
        while (call := _next()) is not None:
            call.run()
            del call  # otherwise the result of the call would be kept alive
            _ended += 1
    finally:
        _native._worker(False)
        permits.put(None)
    _add_thread_if_needed()  # a call made before the permit was put back has started no thread


def _work_once(permits: SimpleQueue[None]) -> None:
    """Runs one call, if a call still waits."""
    global _ended
    _native._worker(True)
    try:
        try:
            call = _waiting.get_nowait()
        except Empty:
            return
        if call is None:
            return
        call.run()
        _ended += 1
    finally:
        _native._worker(False)
        permits.put(None)


def _help_waiting_calls(watch: SimpleQueue[None]) -> None:
    """Starts further threads as long as calls wait for a thread and no running call ends (invariant
    3).
    """
    _native._worker(True)
    try:
        while _waiting.qsize() > _idle.qsize():
            before = _ended
            time.sleep(PATIENCE)
            if _ended == before and _waiting.qsize() > _idle.qsize():
                _start(_work_once, SimpleQueue())
    finally:
        _native._worker(False)
        watch.put(None)
    _add_thread_if_needed()  # a call made before this watcher ended has started no other watcher


def _forget() -> None:
    """Resets the pool in the child of a fork, where the threads of the pool do not exist."""
    for one in (_waiting, _idle):
        while not one.empty():
            one.get_nowait()
    while workers() > 0:
        _permits.put(None)
    if _watch.empty():
        _watch.put(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
_native._set_pool(_submit)


def io(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function that blocks safe to call from any process: only the process that calls it
    waits (rule 7.9).

    A coroutine process awaits the call, a greenlet process makes it as a plain call; for both, the
    function runs on a thread of a pool. A thread process and ordinary code simply call the
    function. An asyncio task awaits the call, which runs on a thread of asyncio.

    Raises:
        BadUse: `function` is not a plain function. The call raises what the function raises, or
        Cancelled: after a Cancelled the process no longer waits, but the function goes on.
    """
    if why := _patched.why_not("@io"):
        raise BadUse(why)
    if isinstance(function, _native.ProcessFunction):
        raise BadUse(
            f"@io on {function!r}: it is a process function; @io is for functions that a process calls"
        )
    if isinstance(function, type) or not callable(function):
        raise BadUse(f"@io must decorate a function, not {function!r}")
    if is_coroutine(function):
        raise BadUse(f"@io on {function!r}: an `async def` does not block; await it")
    if yields(function):
        raise BadUse(f"@io on {function!r}: a generator gives its values one by one; return a list")

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        where = _native.where()
        if where == 1:
            return _native.Call(function, args, keywords)
        if where == 3:
            return _native.Call(function, args, keywords).wait()
        if where == 4:
            import asyncio

            return asyncio.to_thread(function, *args, **keywords)
        return function(*args, **keywords)

    return call
