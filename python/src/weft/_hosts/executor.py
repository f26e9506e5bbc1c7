"""weft.processes.Executor: calls with futures over OS processes, like
concurrent.futures.ProcessPoolExecutor.

    Executor.submit(), map() ──► its State (pool.py) ──► feeders: to OS processes of this machine
                                 (feeding.py), or to hosts of a network (weft._net.host_executor)
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Executor as _Executor
from concurrent.futures import Future
from typing import Any

from weft._hosts import feeding as _feeding
from weft._hosts import host as _host
from weft._hosts import hosts as _hosts
from weft._hosts import pool as _pool
from weft.errors import BadUse

__all__ = ["Executor"]


class _Calls(_Executor):
    """Collects the calls of one map(), and submits several at a time. If map() submitted each call
    at once, its thread would keep the GIL busy while the feeders want it.
    """

    def __init__(self, of: Executor) -> None:
        self._of = of
        self._calls: list[_pool.Call] = []
        self._most = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = self._of._state.future_of(fn)
        self._calls.append(_pool.Call(future, fn, args, kwargs))
        if len(self._calls) >= self._most:
            self.put()
            self._most = min(_feeding.MOST, 2 * self._most)
        return future

    def put(self) -> None:
        calls, self._calls = self._calls, []
        if calls:
            self._of._put(calls)


_states: weakref.WeakSet[_pool.State] = weakref.WeakSet()
# In the child of a fork there are no feeders, since their threads stay in the parent.
os.register_at_fork(after_in_child=_states.clear)


def _at_exit() -> None:
    # Whether a Ctrl-C has ended the program. (At a prompt the last exception may be long past.)
    stopped = getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1")
    for state in list(_states):
        if stopped:
            state.stop()
        state.end()
    for state in list(_states):
        state.join()


# This must be registered before the feeders' threads are waited for.
threading._register_atexit(_at_exit)  # type: ignore[attr-defined]


def _far_state(on: Any, workers: int | None) -> _pool.State:
    """Returns a new state over hosts of a network.

    Raises:
        BadUse: `on` does not name hosts of a network.
    """
    where = _hosts.named(on) if isinstance(on, str) else on
    if where is None:
        raise BadUse(
            f"Executor: on={on!r} is the name of a host of a network, and none is joined: net.join() first"
        )
    # With such hosts, the packages that this module needs are installed.
    from weft._net import host_executor as _net_executor

    return _net_executor.State(where, workers)


class Executor(_Executor):
    """Makes calls in OS processes that stay warm: a drop-in for
    `concurrent.futures.ProcessPoolExecutor`.

    Args:
        max_workers: how many processes there are. None stands for the number of CPUs that this
            process may use.
        mp_context: a context of multiprocessing. If it starts processes by forkserver, so does the
            Executor; else each process is a fresh interpreter.
        initializer, initargs: called in each process before anything else.
        max_tasks_per_child: after this number of calls a process is replaced by a new one.
        preload: modules that each process imports first.
        threads: the number of threads of BLAS and OpenMP in each process. None leaves that to the
            environment.
        on: hosts of a network (weft.net) whose OS processes take the calls, in place of processes
            of this program: network.hosts(), network.host(name), or the name of a host. Then
            `max_workers` is how many calls run at once (None means as many as there are OS
            processes), and the agents choose the other settings.
    Raises:
        ValueError, TypeError: an argument makes no sense.
        BadUse: `on` is not a host of a network, or there is no such host.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        mp_context: Any = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        max_tasks_per_child: int | None = None,
        preload: Sequence[str] = (),
        threads: int | None = 1,
        on: Any = None,
    ) -> None:
        workers = len(_host.cpus_of_this_process()) if max_workers is None else max_workers
        if workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        own = (mp_context, initializer, max_tasks_per_child) != (None,) * 3 or initargs or preload
        if on is not None and (own or threads != 1):
            raise ValueError(
                "Executor(on=…): the agent of a host (`weft host`) is told how to start its OS processes: "
                "leave out all arguments but max_workers"
            )
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if isinstance(preload, str):
            raise TypeError(f"preload must be a list of modules, as [{preload!r}]")
        if max_tasks_per_child is not None and max_tasks_per_child <= 0:
            raise ValueError("max_tasks_per_child must be >= 1")
        server = mp_context is not None and mp_context.get_start_method() == "forkserver"
        start = "forkserver" if server else "spawn"
        setting = _host.Setting(
            tuple(preload), initializer, tuple(initargs), None, None, 0, threads, start, False
        )
        if on is None:
            self._state: _pool.State = _feeding.State(setting, workers, max_tasks_per_child)
        else:
            self._state = _far_state(on, max_workers)
        self._max_workers = self._state.workers  # dask reads this field of a ProcessPoolExecutor
        self._maker = os.getpid()
        _states.add(self._state)
        self._finalizer = weakref.finalize(self, self._state.end)
        self._finalizer.atexit = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Calls fn(*args, **kwargs) in one of the processes. Returns the future of the call.

        Raises:
            BrokenProcessPool: one of the processes has died, or could not begin.
            RuntimeError: shutdown() was called before.
            BadUse: this is the child of a fork, in which the threads that feed the processes do not
                exist.
        """
        future = self._state.future_of(fn)
        self._put([_pool.Call(future, fn, args, kwargs)])
        return future

    def _put(self, calls: list[_pool.Call]) -> None:
        """Adds these calls, in their order. Raises what submit() raises."""
        if os.getpid() != self._maker:
            raise BadUse(
                "this Executor was made before a fork, and this is the child: its processes belong to the parent. "
                "Make an Executor in the child"
            )
        self._state.put(calls)

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Any,
        timeout: float | None = None,
        chunksize: int = 1,
    ) -> Any:
        """Does what concurrent.futures.Executor.map does. Short calls are sent many at a time by
        themselves; `chunksize` has no effect.

        Raises:
            ValueError: chunksize is less than 1.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        calls = _Calls(self)
        try:
            return calls.map(fn, *iterables, timeout=timeout)
        finally:
            calls.put()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuses further calls, and waits for the calls that there are and for the processes. A
        second call does nothing more.

        It may be called anywhere, also in a signal handler or a finaliser. In a callback of a call
        it does not wait for the process that had this call, since that process waits for the
        callback. In the child of a fork it does nothing: the processes are the parent's.
        """
        if os.getpid() != self._maker:
            return
        self._state.end()
        if cancel_futures:
            self._state.cancel()
        if wait:
            self._state.join()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Does what shutdown() does. If a Ctrl-C leaves the block, it also ends the calls that run,
        since the user does not want to wait for them.
        """
        if kind is not None and issubclass(kind, KeyboardInterrupt) and os.getpid() == self._maker:
            self._state.stop()
        self.shutdown()
