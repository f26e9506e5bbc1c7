"""weft.processes.Executor: calls with futures over OS processes, like
concurrent.futures.ProcessPoolExecutor.

    Executor.submit(), map() ──► its State (pool.py) ──► feeders: to OS processes of this machine
                                 (feeding.py), or to hosts of a network (weft._net.host_executor)

The arguments of map() that concurrent.futures does not have: retries and time limits are in
watched_calls.py, the bar is in progress_bar.py, the order of the results is here.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor as _Executor
from concurrent.futures import Future
from concurrent.futures import as_completed as _as_completed
from typing import Any

from weft._hosts import feeding as _feeding
from weft._hosts import host as _host
from weft._hosts import hosts as _hosts
from weft._hosts import pool as _pool
from weft._hosts import progress_bar as _progress_bar
from weft._hosts import watched_calls as _watched_calls
from weft.errors import BadUse

__all__ = ["Executor"]


# Reading from objects of these types runs no user code.
_AT_REST = frozenset(map(id, (list, tuple, range, itertools.repeat)))


class _Calls:
    """Collects the calls of one map(), and submits several at a time. If map() submitted each call
    immediately, its thread would keep the GIL busy while the feeders need the GIL.
    """

    def __init__(self, of: Executor, watch: Callable[[int], Any], bar: Any) -> None:
        self._of = of
        self._watch, self._bar = watch, bar
        self._calls: list[_pool.Call] = []
        self._most = 1
        self.count = 0
        self._together: object = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = self._of._state.future_of(fn)
        if self._bar is not None:
            future.add_done_callback(self._bar.one_over)
        watch = self._watch(self.count)
        self._calls.append(_pool.Call(future, fn, args, kwargs, watch, self._together))
        self.count += 1
        if len(self._calls) >= self._most:
            self.put()
            self._most = min(_feeding.MAX_BATCH, 2 * self._most)
        return future

    def put(self) -> None:
        calls, self._calls = self._calls, []
        if calls:
            self._of._put(calls)

    def results(
        self,
        fn: Callable[..., Any],
        iterables: tuple[Any, ...],
        timeout: float | None,
        ordered: bool,
        take: Callable[[Future[Any], float | None], Any],
    ) -> Iterator[Any]:
        """Submits the calls of a map(), and returns an iterator over their results. `take` returns
        the result of a future. If `ordered` is False, each result follows as soon as its call has
        ended.
        """
        until = None if timeout is None else time.monotonic() + timeout
        if all(id(type(one)) in _AT_REST for one in iterables):
            self._together = object()
        futures = deque(self.submit(fn, *args) for args in zip(*iterables, strict=False))
        made = _in_order(futures, until, take)
        return made if ordered else _in_order_of_ends(set(futures), until, take)


def _in_order(
    futures: deque[Future[Any]],
    until: float | None,
    take: Callable[[Future[Any], float | None], Any],
) -> Iterator[Any]:
    """Yields for each future what `take` returns, and drops the future. If the reader stops early,
    cancels the remaining calls.
    """
    try:
        while futures:
            left = None if until is None else until - time.monotonic()
            value = take(futures[0], left)
            futures.popleft()
            yield value
            del value
    finally:
        for future in futures:
            future.cancel()


def _in_order_of_ends(
    futures: set[Future[Any]],
    until: float | None,
    take: Callable[[Future[Any], float | None], Any],
) -> Iterator[Any]:
    """Does what _in_order() does, but yields each result as soon as its call ends."""
    try:
        left = None if until is None else until - time.monotonic()
        for future in _as_completed(futures.copy(), left):
            futures.discard(future)
            value = take(future, None)
            del future
            yield value
            del value
    finally:
        for future in futures:
            future.cancel()


def _result(future: Future[Any], timeout: float | None) -> Any:
    # Future.result is not called, because the future of a call on another machine has its own
    # `result` method.
    return future.result(timeout)


def _exception_or_result(future: Future[Any], left: float | None) -> Any:
    error = future.exception(left)
    return future.result() if error is None else error


def _drawn(results: Iterator[Any], bar: _progress_bar.Bar) -> Iterator[Any]:
    """Yields these results, and ends the progress bar after the last one."""
    try:
        yield from results
    finally:
        bar.end()


_states: weakref.WeakSet[_pool.State] = weakref.WeakSet()
# In the child of a fork there are no feeders, since their threads stay in the parent.
os.register_at_fork(after_in_child=_states.clear)


def _at_exit() -> None:
    # Whether a Ctrl-C has ended the program. (At a prompt this is false: the last exception can be
    # an old one.)
    stopped = getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1")
    for state in list(_states):
        if stopped:
            state.stop()
        state.end()
    for state in list(_states):
        state.join()


# Registered in this way, the function runs before the interpreter waits for the feeders' threads.
threading._register_atexit(_at_exit)  # type: ignore[attr-defined]


def _far_state(on: Any, workers: int | None, working_dir: Any) -> _pool.State:
    """Returns a new state over hosts of a network.

    Raises:
        BadUse: `on` does not name hosts of a network.
    """
    where = _hosts.named(on) if isinstance(on, str) else on
    if where is None:
        raise BadUse(
            f"Executor: on={on!r} is the name of a host of a network, and none is joined: net.join() first"
        )
    # If there are such hosts, the packages that this module needs are installed.
    from weft._net import host_executor as _net_executor

    return _net_executor.State(where, workers, working_dir)


class Executor(_Executor):
    """Makes calls in OS processes that stay warm: a drop-in for
    `concurrent.futures.ProcessPoolExecutor`.

    Args:
        max_workers: the number of processes. None stands for the number of CPUs that this process
            may use.
        mp_context: a context of multiprocessing. If the context starts processes by forkserver, so
            does the Executor; otherwise each process is a fresh interpreter.
        initializer, initargs: called in each process before anything else.
        max_tasks_per_child: after this number of calls a process is replaced by a new one.
        preload: modules that each process imports first.
        threads: the number of threads of BLAS and OpenMP in each process. None leaves that to the
            environment.
        on: hosts of a network (weft.net) whose OS processes take the calls, in place of processes
            of this program: network.hosts(), network.host(name), or the name of a host. Then
            `max_workers` is the number of calls that run at once (None means as many as there are
            OS processes), and the agents choose the other settings.
        working_dir: with `on`: a folder whose files go along with the calls, which run in a copy of
            the folder.
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
        working_dir: Any = None,
    ) -> None:
        workers = len(_host.cpus_of_this_process()) if max_workers is None else max_workers
        if workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        own = (mp_context, initializer, max_tasks_per_child) != (None,) * 3 or initargs or preload
        if on is not None and (own or threads != 1):
            raise ValueError(
                "Executor(on=…): the agent of a host (`weft host`) is told how to start its OS processes: "
                "leave out all arguments but max_workers and working_dir"
            )
        if on is None and working_dir is not None:
            raise ValueError(
                "Executor: working_dir= can be given only with on= (hosts of a network); without on=, calls run in this program's folder"
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
            self._state = _far_state(on, max_workers, working_dir)
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
        ordered: bool = True,
        return_exceptions: bool = False,
        progress: bool | str = False,
        retries: int | None = None,
        retry_on: type[BaseException] | tuple[type[BaseException], ...] = (),
        time_limit: float | None = None,
    ) -> Any:
        """Does what concurrent.futures.Executor.map does. Short calls are sent many at a time,
        except calls with `retries` or `time_limit`.

        Args:
            timeout: the seconds after the call of map() within which the results must be there;
                else the iteration raises concurrent.futures.TimeoutError.
            chunksize: has no effect.
            ordered: False: each result follows as soon as its call has ended, in whatever order.
            return_exceptions: True: an exception of a call is its result, so that the other results
                follow too. False: the exception is raised in place of the result, and ends the
                iteration.
            progress: True: a bar on standard error says how many calls have ended, if standard
                error is a terminal or the program is a notebook; "always": in any case. rich draws
                the bar.
            retries: how often a call is run again after its OS process has died. When no retry is
                left, this call alone raises the death, a `ProcessDied`. None: the death of an OS
                process breaks the pool.
            retry_on: classes of exceptions after which a call is run again too; each time counts as
                one of the `retries`.
            time_limit: how many seconds a call may take, from when it is sent to its OS process. An
                OS process whose call takes longer is killed and replaced. That call raises
                TimeoutError; the other calls go on.
        Raises:
            ValueError, TypeError: an argument makes no sense.
            BadUse: rich is not installed; or the Executor calls on hosts of a network, which have
                neither retries nor time limits.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        watch = _watched_calls.checked(retries, retry_on, time_limit)
        if (retries, time_limit) != (None, None) and not isinstance(self._state, _feeding.State):
            raise BadUse(
                "Executor(on=…).map: retries and time_limit are for OS processes of this machine"
            )
        bar = _progress_bar.begun(getattr(fn, "__name__", "calls"), progress)
        calls = _Calls(self, watch, bar)
        take = _exception_or_result if return_exceptions else _result
        try:
            try:
                results = calls.results(fn, iterables, timeout, ordered, take)
            finally:
                calls.put()
        except BaseException:
            if bar is not None:
                bar.end()
            raise
        if bar is None:
            return results
        bar.total(calls.count)
        return _drawn(results, bar)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuses further calls, and waits for the calls that have not ended, and for the
        processes. A second call does nothing more.

        shutdown() may be called anywhere, also in a signal handler or a finaliser. In a callback of
        a call it does not wait for the process that had this call, since that process waits for the
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
        """Does what shutdown() does. If a Ctrl-C leaves the block, also ends the calls that are
        running, since the user does not want to wait for them.
        """
        if kind is not None and issubclass(kind, KeyboardInterrupt) and os.getpid() == self._maker:
            self._state.stop()
        self.shutdown()
