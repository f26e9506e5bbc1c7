"""`@io`, and the threads on which its calls run (rule 7.9).

Invariants
 1 A thread of the pool either runs a call or is idle; one that has been idle for IDLE seconds ends.
 2 There are at most LIMIT threads (one more for each start that was interrupted); further calls
   wait their turn, first come, first served.
 3 But all the calls that run may wait for one that waits its turn. So while calls wait for a
   thread, a thread of another kind watches. Whenever no call has ended for PATIENCE seconds, the
   watcher starts one thread beyond LIMIT, which ends after one call. Calls that are only slow look
   the same, so it is one thread and not more: thousands of slow calls do not become thousands of
   threads at once.
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

LIMIT = 64  #: threads
IDLE = 5.0  #: seconds
PATIENCE = 0.05  #: seconds

# A call may be submitted by the main thread, where a signal's handler may raise between any two
# steps. So there is no lock: each of these queues' methods does one thing completely, or not at
# all.
_waiting: SimpleQueue[Any] = SimpleQueue()  # calls
_idle: SimpleQueue[None] = SimpleQueue()  # one for each thread that waits for a call
_permits: SimpleQueue[None] = SimpleQueue()  # one for each thread that may still be started
for _ in range(LIMIT):
    _permits.put(None)
_watch: SimpleQueue[None] = SimpleQueue()  # one permit, unless a thread watches
_watch.put(None)
_ended = 0  # about how many calls have ended: two threads may count at once


def workers() -> int:
    """How many threads the pool has at this moment."""
    return LIMIT - _permits.qsize()


def _took(one: SimpleQueue[None]) -> bool:
    try:
        one.get_nowait()
    except Empty:
        return False
    return True


def _submit(call: Any) -> None:
    _waiting.put(call)
    _man()


def _man() -> None:
    """Starts a thread if more calls wait than threads are idle; at the limit, the watching thread.

    A thread that adds a call asks this afterwards; so does a thread that ceases to be idle. So one
    of the two sees both changes.
    """
    if _waiting.qsize() > _idle.qsize():
        if _took(_permits):
            _start(_work, _permits)
        elif _took(_watch):
            _start(_see_to_it, _watch)


def _start(does: Callable[[SimpleQueue[None]], None], permits: SimpleQueue[None]) -> None:
    """Starts a thread; its caller has taken a permit, which the thread gives back."""
    started = False
    try:
        if why := _patched.why_not("@io"):  # patched after the function was decorated
            raise BadUse(why)
        threading.Thread(target=does, args=(permits,), name="weft io", daemon=True).start()
        started = True
    except RuntimeError:
        if permits is _permits and workers() == 1:
            raise
        # else one of the other threads will do the call
    except KeyError as error:  # what a signal's handler raised within start() may end as this
        if error.__context__ is None:
            raise
        raise error.__context__ from None
    finally:
        if not started:
            permits.put(None)


def _next() -> Any:
    """The next call; None: this thread has been idle for long enough, or was told to end."""
    try:
        return _waiting.get_nowait()
    except Empty:
        _idle.put(None)
    try:
        call = _waiting.get(timeout=IDLE)
    except Empty:
        call = None
    _took(_idle)
    if call is None:
        try:
            return _waiting.get_nowait()  # it came while we still counted as idle
        except Empty:
            return None
    _man()
    return call


def _work(permits: SimpleQueue[None]) -> None:
    global _ended
    _native._worker(True)
    try:
        while (call := _next()) is not None:
            call.run()
            del call  # do not keep its result alive
            _ended += 1
    finally:
        _native._worker(False)
        permits.put(None)
    _man()  # a call that came meanwhile may have found no permit


def _work_once(permits: SimpleQueue[None]) -> None:
    """Does one call, if one still waits."""
    global _ended
    _native._worker(True)
    try:
        try:
            call = _waiting.get_nowait()
        except Empty:
            return
        call.run()
        _ended += 1
    finally:
        _native._worker(False)
        permits.put(None)


def _see_to_it(watch: SimpleQueue[None]) -> None:
    """Watches as long as calls wait for a thread (invariant 3)."""
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
    _man()  # a call that came meanwhile may have found no thread to watch


def _forget() -> None:
    """In the child of a fork: none of the threads are there."""
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

    In a coroutine process the call is awaited, in a greenlet process it is called; both run it on a
    thread of a pool. A thread process and ordinary code simply call it. In an asyncio task the call
    is awaited; it runs on a thread of asyncio's.

    Raises:
        BadUse: it is not a plain function. The call raises what the function raises; or Cancelled:
            then the process no longer waits, but the function goes on.
    """
    if why := _patched.why_not("@io"):
        raise BadUse(why)
    if isinstance(function, _native.ProcessFunction):
        raise BadUse(
            f"@io on {function!r}: a process is started; @io is for functions that it calls"
        )
    if isinstance(function, type) or not callable(function):
        raise BadUse(f"@io on {function!r}: decorate a function")
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
