"""weft.processes.Executor: calls with futures over OS processes, like
concurrent.futures.ProcessPoolExecutor.

    submit() ──waits in `_State`──► a feeder's batch ──► its host computes it, in_order() ──► futures
                                          └─the host dies──► all that is not over: BrokenProcessPool

Each host has a feeder: a thread which writes batches to its host and reads results, beside one that
waits for the process there to end. Both are Weft's own and of no run, so they keep no deadlock from
being told; calls do, unless their hosts say that they wait too (rule 10.3).

Short calls are sent many at a time: as many as take about eight milliseconds together. A
longer call is sent alone. A host sends its results after two milliseconds, so that no result waits
long for the rest of its batch.

Invariants (of `_State.lock`)
- A call is in `waiting`, or in the batch of one feeder, or over.
- `going_on` is what was said last of whether any is not over. Who may have a batch, or is about to
  say that calls have failed, is in `working`; so it is still so while what waits for them is told.
- Once `broken` is set no call is waiting, and no more are accepted.
- An OS process is started without the lock, since that runs the user's code (rule 12.1). It is
  counted in `starting` until its feeder is in `feeders`.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor as _Executor
from concurrent.futures import Future, InvalidStateError
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from weft import _own_threads
from weft._extension import native as _native
from weft._hosts import apart as _apart
from weft._hosts import host as _host
from weft._hosts import hosts as _hosts
from weft._hosts import pickling as _pickling
from weft._hosts import safely as _safely
from weft._rounds import rounds as _rounds
from weft.errors import BadUse, ChannelEnd

__all__ = ["Executor"]

BATCH = 0.008  # the seconds that a batch should take
LONG = 0.002  # the seconds for which results are kept back
MOST = 256  # the most calls in a batch
ARGUMENTS, RESULT = "a call's arguments", "the result"  # in the text of an error


class _Call:
    __slots__ = ("args", "function", "future", "keywords")

    def __init__(self, future: Future[Any], function: Any, args: Any, keywords: Any) -> None:
        self.future, self.function, self.args, self.keywords = future, function, args, keywords


class _State:
    """What an executor and its feeders share. So the feeders do not keep the executor alive."""

    def __init__(self, setting: Any, workers: int, max_tasks: int | None) -> None:
        self.setting, self.workers, self.max_tasks = setting, workers, max_tasks
        # re-entrant: a signal's handler, or a finaliser, may call on a thread that has it
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.waiting: deque[_Call] = deque()
        self.idle = 0  # feeders that wait for calls
        self.working: set[int] = set()  # threads that may have calls in hand
        self.reads: dict[int, Any] = {}  # the channel at which such a thread waits for results
        self.going_on = False
        self.starting = 0  # OS processes that have no feeder yet
        self.ended = False  # no more calls come
        self.broken: str | None = None
        self.feeders: list[threading.Thread] = []
        self.hosts: set[Any] = set()  # the hosts to kill if it breaks

    def future_of(self, function: Any) -> Future[Any]:
        """For a call of it."""
        return Future()

    def see(self) -> None:
        """Called with the lock, when `waiting` or `working` has changed."""
        so = bool(self.waiting or self.working)
        if so != self.going_on:
            self.going_on = so
            _rounds.calls_go_on(self, so)

    def waits_for_hosts(self) -> bool:
        """Do all calls run in hosts that have said nothing new? Then they will tell (rule 10.3)."""
        with self.lock:
            if self.waiting and (self.idle or self.starting):
                return False
            reads = [self.reads.get(thread) for thread in self.working]
        return all(c is not None and c.stats().waiting_readers for c in reads)

    def stuck(self, why: str) -> Callable[[], None]:
        """The calls are part of a deadlock: no more are taken; what is returned ends these."""
        with self.lock:
            self.broken = self.broken or f"calls wait for ever: {why}"
            hosts = list(self.hosts)
            self.changed.notify_all()

        def end() -> None:
            for host in hosts:  # whoever waits for them sees to the rest
                host.kill()

        return end

    @contextlib.contextmanager
    def in_hand(self) -> Iterator[None]:
        """In the block the calling thread may have calls in hand, but not while it is in take(). A
        block within another, as where a call's callback shuts the executor down, changes nothing.
        """
        me = threading.get_ident()
        with self.lock:
            within = me in self.working
            self.working.add(me)
            self.see()
        try:
            yield
        finally:
            if not within:
                with self.lock:
                    self.working.discard(me)
                    self.see()

    def take(self, most: Callable[[_Call], int], same: bool = False) -> list[_Call]:
        """Waits for a call, and gives calls to run: at most as many as `most` says for the first
        one, and leaving enough for idle feeders. An empty list: there are no more. `same`: only
        calls of one function. In an in_hand() block.
        """
        batch: list[_Call] = []
        me = threading.get_ident()
        with self.lock:
            self.working.discard(me)
            while not batch:
                while not self.waiting:
                    if self.ended or self.broken:
                        self.working.add(me)
                        return []
                    self.see()
                    self.idle += 1
                    self.changed.wait()
                    self.idle -= 1
                fair = -(-len(self.waiting) // (2 * self.workers))
                function, number = self.waiting[0].function, min(most(self.waiting[0]), fair)
                while self.waiting and len(batch) < number:
                    if same and self.waiting[0].function is not function:
                        break
                    call = self.waiting.popleft()
                    with contextlib.suppress(Exception):  # the program has told it something itself
                        if call.future.set_running_or_notify_cancel():
                            batch.append(call)
            self.working.add(me)
        return batch

    def end(self) -> None:
        with self.lock:
            self.ended = True
            self.changed.notify_all()

    def collected(self) -> None:
        """end(), by the collector: it comes on any thread, which may have any lock, and so must not
        wait for one."""
        if self.lock.acquire(blocking=False):
            try:
                self.end()
            finally:
                self.lock.release()
        else:
            _thread.start_new_thread(self.end, ())

    def join(self) -> None:
        """Waits for all feeders, also for those whose OS process is still being started."""
        with self.lock:
            while self.starting:
                self.changed.wait()
            feeders = list(self.feeders)
        for feeder in feeders:
            feeder.join()

    def start(self, call: _Call) -> None:
        """Starts one more OS process with its feeder, for a call that waits. Called without the
        lock, by who has counted it in `starting`. If it cannot be started, the call is dropped
        again.

        Raises:
            what Host.begin() raises, unless another feeder has taken the call already; what a signal's
            handler raises.
        """
        host: _host.Host | None = None
        feeder: threading.Thread | None = None
        try:
            host = _host.Host(self.setting)
            host.begin()
            feeder = threading.Thread(target=_feed, args=(self, host), name="weft: feeds a host")
            with self.lock:
                if self.broken is None:
                    self.hosts.add(host)
                    self.feeders.append(feeder)
                    feeder.start()
        except BaseException as error:
            with self.lock:
                waits = call in self.waiting
                if waits:
                    self.waiting.remove(call)
                    self.see()
            if waits or not isinstance(error, Exception):
                raise
        finally:
            if host is not None and (feeder is None or feeder.ident is None):
                with self.lock:
                    self.hosts.discard(host)
                    self.feeders = [f for f in self.feeders if f is not feeder]
                host.kill()
                host.close()

    def cancel(self) -> None:
        with self.in_hand():
            with self.lock:
                calls, self.waiting = list(self.waiting), deque()
            for call in calls:
                call.future.cancel()
                call.future.set_running_or_notify_cancel()

    def stop(self) -> None:
        """By Ctrl-C: what waits is cancelled, and what runs is ended with its OS process."""
        self.cancel()
        self.break_it("the executor was stopped by Ctrl-C", [])

    def break_it(self, why: str, batch: list[_Call], cause: BaseException | None = None) -> None:
        """A host has died: the executor is broken, all calls fail."""
        with self.in_hand():
            with self.lock:
                self.broken = self.broken or why
                calls, self.waiting = [*batch, *self.waiting], deque()
                hosts = list(self.hosts)
                self.changed.notify_all()
            for host in hosts:
                host.kill()
            for call in calls:
                if not call.future.done():
                    error = BrokenProcessPool(self.broken)
                    error.__cause__ = cause
                    tell(call.future, error=error)


def tell(future: Future[Any], value: Any = None, error: BaseException | None = None) -> None:
    """Tells who waits for a call what it has come to. Who has heard of it already, hears of nothing
    more. What a callback raises is reported, and reaches no other call.
    """
    try:
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
    except InvalidStateError:
        pass
    except BaseException as wrong:
        _safely.report(wrong)


def tell_result(future: Future[Any], value: Any, error: BaseException | None) -> None:
    """Tells who waits what has come from a host: see apart.py."""
    try:
        value = _apart.opened(value)
    except BaseException as wrong:
        value, error = None, wrong
    tell(future, value, error)


# --- in the host ----------------------------------------------------------------------------------


def in_order(
    batch: Sequence[Any],
    compute: Callable[..., Any],
    send: Callable[[list[tuple[int, Any, _pickling.Failure | None]]], None],
) -> None:
    """Runs compute(*call) for each call of a batch. Every LONG seconds, and at the end, send() gets
    what is done: (the call's place in the batch, its value, its failure) for each.
    """
    done: list[tuple[int, Any, _pickling.Failure | None]] = []
    last = time.monotonic()
    for number, call in enumerate(batch):
        try:
            done.append((number, compute(*call), None))
        except BaseException as error:
            done.append((number, None, _pickling.Failure(error)))
        if time.monotonic() - last > LONG:
            send(done)
            done, last = [], time.monotonic()
    if done:
        send(done)


def next_size(size: int, calls: int, seconds: float) -> int:
    """The size of the next batch, after a batch (of at most `size`) whose `calls` took so many
    seconds."""
    each = seconds / calls
    return max(1, min(MOST, 2 * size, int(BATCH / max(each, 1e-6))))


def _compute(tasks: Any, results: Any) -> None:
    """The process in the host: reads batches of calls, and writes their results."""
    functions: dict[bytes, Any] = {}
    me = _native.current_process()
    assert me is not None

    def call(packed: bytes, given: Any) -> Any:
        args, keywords = _apart.opened(given)
        function = functions.get(packed)
        if function is None:
            function = functions[packed] = _pickling.load_function(packed)
        return _apart.apart(RESULT, function(*args, **keywords))

    results.write([])  # it is here: from now on a call that cannot be sent is told at its own write
    _rounds.serves(me.id)
    for batch in tasks:
        _rounds.serves(None)
        in_order(batch, call, lambda done: send_each(results.write, done))
        del batch
        _rounds.serves(me.id)


def send_each(
    write: Callable[[list[tuple[int, Any, _pickling.Failure | None]]], None],
    done: list[tuple[int, Any, _pickling.Failure | None]],
) -> None:
    """Writes results together; where that cannot be, each by itself, and of one that cannot go even
    so why not.
    """
    try:
        write(done)
    except (BadUse, MemoryError):
        for one in done:
            try:
                write([one])
            except (BadUse, MemoryError) as error:
                write([(one[0], None, _pickling.Failure(error))])


# --- feeders --------------------------------------------------------------------------------------


class _Feeder:
    """Feeds one host, and then the next when that one has had all its calls."""

    def __init__(self, state: _State, host: _host.Host) -> None:
        self.state, self.host = state, host
        self.batch: list[_Call] = []
        self.size = 1
        self.names: weakref.WeakKeyDictionary[Any, bytes] = weakref.WeakKeyDictionary()
        self.why: BaseException | None = None
        self.fed = 0

    def _call(self, tasks: Any, results: Any) -> None:
        """On a thread of its own."""
        _own_threads.helps()
        try:
            self.host.call(_compute, (tasks, results), {})
        except BaseException as error:
            self.why = error
            text = f"a process of the pool failed: {_safely.text_of(error)}"
            self.state.break_it(text, self.batch)
        finally:  # the traceback keeps this frame, but not its ends
            _let_go(tasks, results)

    def _packed(self, function: Any) -> bytes:
        try:
            packed = self.names.get(function)
        except TypeError:  # no weak references to it
            return _pickling.dump_function(function)
        if packed is None:
            packed = self.names[function] = _pickling.dump_function(function)
        return packed

    def _sends(self, tasks: Any, calls: list[_Call]) -> list[_Call]:
        """Sends the calls: those of them whose results come, in this order. Others have failed.

        Raises:
            MemoryError: there is not enough for all of them at once.
        """
        good: list[_Call] = []
        sent: list[tuple[bytes, Any]] = []
        last: Any = self  # most calls of a batch are of one function
        packed = b""
        for call in calls:
            try:
                if call.function is not last:
                    packed, last = self._packed(call.function), call.function
            except BaseException as error:
                tell(call.future, error=error)
                continue
            sent.append((packed, _apart.apart(ARGUMENTS, (call.args, call.keywords))))
            good.append(call)
        tasks.write(sent)
        for call, (_, given) in zip(good, sent, strict=True):
            if type(given) is _apart.Apart and given.error is not None:
                tell(call.future, error=given.error)  # it goes on in its place there, and fails
        return good

    @staticmethod
    def _hear(results: Any, sent: list[_Call]) -> None:
        """Tells who waits for these calls of each result as it comes."""
        left = len(sent)
        while left:
            got = results.read()
            left -= len(got)
            for number, value, failure in got:
                error = None if failure is None else failure.exception()
                tell_result(sent[number].future, value, error)

    def _pump(self, tasks: Any, results: Any) -> None:
        limit = self.state.max_tasks
        with contextlib.suppress(ChannelEnd):
            results.read()  # the process is there, and `tasks` has its other end there
            while limit is None or self.fed < limit:
                most = self.size if limit is None else min(self.size, limit - self.fed)
                self.batch = self.state.take(lambda _, most=most: most)  # type: ignore[misc]
                if not self.batch:
                    return
                began = time.monotonic()
                self.fed += len(self.batch)
                try:
                    sent = self._sends(tasks, self.batch)
                except MemoryError:
                    for call in self.batch:
                        self._alone(tasks, results, call)
                else:
                    self._hear(results, sent)
                took = time.monotonic() - began
                self.size = next_size(self.size, len(self.batch), took)
                self.batch = []

    def _alone(self, tasks: Any, results: Any, call: _Call) -> None:
        try:
            sent = self._sends(tasks, [call])
        except MemoryError as error:
            tell(call.future, error=error)
        else:
            self._hear(results, sent)

    def run(self) -> bool:
        """Feeds the host until there is nothing left for it. False: it died."""
        tasks, results = _native.Channel("tasks"), _native.Channel("results")
        told, answers = tasks.writer(), results.reader()
        there = tasks.reader(), results.writer()
        call = threading.Thread(target=self._call, args=there, name="weft: calls a host")
        call.start()
        del there
        self.state.reads[threading.get_ident()] = results
        try:
            self._pump(told, answers)
        except BaseException as error:
            self.state.break_it(_safely.text_of(error), self.batch, error)
            raise
        finally:
            del self.state.reads[threading.get_ident()]
            _let_go(told, answers)
            call.join()
        if self.why is None and self.batch:  # else who waits for them would wait for ever
            self.why = BadUse("a process of the pool ended before its calls")
            self.state.break_it(str(self.why), self.batch)
        return self.why is None


def _let_go(*ends: Any) -> None:
    for end in ends:
        with contextlib.suppress(BadUse):  # it is the host's now
            end.retire()


def _feed(state: _State, host: _host.Host) -> None:
    """What the thread of a feeder runs."""
    _own_threads.helps()
    with state.in_hand():
        _feed_hosts(state, host)


def _feed_hosts(state: _State, host: _host.Host) -> None:
    feeder = None
    try:
        while True:
            feeder = _Feeder(state, host)
            good = feeder.run()
            if not good:
                state.break_it("", feeder.batch)
            host.close()
            with state.lock:
                state.hosts.discard(host)
                if not good or state.broken or (state.ended and not state.waiting):
                    return
            host = _host.Host(state.setting)
            host.begin()
            with state.lock:
                broken = state.broken
                if broken is None:
                    state.hosts.add(host)
            if broken is not None:
                host.kill()
                host.close()
                return
    except BaseException as error:
        state.break_it(_safely.text_of(error), feeder.batch if feeder else [])
        raise


# --- the executor ---------------------------------------------------------------------------------


class _Calls(_Executor):
    """Calls of one map(), put several at a time: its thread would else keep the interpreter's lock
    busy while the feeders want it.
    """

    def __init__(self, of: Executor) -> None:
        self._of = of
        self._calls: list[_Call] = []
        self._most = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = self._of._state.future_of(fn)
        self._calls.append(_Call(future, fn, args, kwargs))
        if len(self._calls) >= self._most:
            self.put()
            self._most = min(MOST, 2 * self._most)
        return future

    def put(self) -> None:
        calls, self._calls = self._calls, []
        if calls:
            self._of._put(calls)


_states: weakref.WeakSet[_State] = weakref.WeakSet()
os.register_at_fork(after_in_child=_states.clear)  # their threads are the parent's


def _at_exit() -> None:
    # by a Ctrl-C that nobody met; at a prompt it may be long past
    stopped = getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1")
    for state in list(_states):
        if stopped:
            state.stop()
        state.end()
    for state in list(_states):
        state.join()


threading._register_atexit(_at_exit)  # type: ignore[attr-defined]  # before it waits for the feeders


def _far_state(on: Any, workers: int | None) -> _State:
    """
    Raises:
        BadUse: `on` does not name hosts of a network.
    """
    where = _hosts.named(on) if isinstance(on, str) else on
    if where is None:
        raise BadUse(
            f"Executor: on={on!r} is the name of a host of a network, and none is joined: net.join() first"
        )
    from weft._net import executor as _net_executor  # with such hosts, what it needs is installed

    return _net_executor.State(where, workers)


class Executor(_Executor):
    """Calls in OS processes that stay warm: a drop-in for `concurrent.futures.ProcessPoolExecutor`.

    Args:
        max_workers: how many processes; None: as many as the CPUs that this one may use.
        mp_context: a context of multiprocessing. If that starts processes by forkserver, so does
            this; else each process is a fresh interpreter.
        initializer, initargs: called in each process before anything else.
        max_tasks_per_child: after so many calls a process is replaced by a fresh one.
        preload: modules that each process imports first.
        threads: of BLAS and OpenMP in each; None: what the environment says.
        on: hosts of a network (weft.net) whose OS processes take the calls, in place of processes
            of this program's: network.hosts(), network.host(name), or the name of one. Then
            `max_workers` is how many calls run at once, as many as there are OS processes if it is
            None; the other arguments are the agents' business.
    Raises:
        ValueError, TypeError: an argument that makes no sense.
        BadUse: `on` is no host of a network; none is there.
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
                "Executor(on=…): how the OS processes of a host are started is said to its agent "
                "(`weft host`): leave all arguments but max_workers out"
            )
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if isinstance(preload, str):
            raise TypeError(f"preload is a list of modules: [{preload!r}]")
        if max_tasks_per_child is not None and max_tasks_per_child <= 0:
            raise ValueError("max_tasks_per_child must be >= 1")
        server = mp_context is not None and mp_context.get_start_method() == "forkserver"
        start = "forkserver" if server else "spawn"
        setting = _host.Setting(
            tuple(preload), initializer, tuple(initargs), None, None, 0, threads, start, False
        )
        if on is None:
            self._state = _State(setting, workers, max_tasks_per_child)
        else:
            self._state = _far_state(on, max_workers)
        self._max_workers = self._state.workers  # as ProcessPoolExecutor's, for which dask asks
        self._down = False
        self._maker = os.getpid()
        _states.add(self._state)
        self._finalizer = weakref.finalize(self, self._state.collected)
        self._finalizer.atexit = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Has fn(*args, **kwargs) called in one of the processes.

        Raises:
            BrokenProcessPool: one of them has died, or could not begin.
            RuntimeError: after shutdown().
            BadUse: in the child of a fork, where the threads that feed its processes are not.
        """
        future = self._state.future_of(fn)
        self._put([_Call(future, fn, args, kwargs)])
        return future

    def _put(self, calls: list[_Call]) -> None:
        """Has them called, in their order; as submit()."""
        if os.getpid() != self._maker:
            raise BadUse(
                "this Executor was made before a fork, and this is the child: its processes stay the parent's. "
                "Make an Executor in the child"
            )
        state = self._state
        starts = 0  # those that this thread has counted in `starting`
        try:
            with state.lock:
                if state.broken:
                    raise BrokenProcessPool(state.broken)
                if self._down or state.ended:
                    raise RuntimeError("cannot schedule new futures after shutdown")
                state.waiting.extend(calls)
                state.see()
                beyond = len(state.waiting) - state.idle  # calls for which nobody is idle
                most = min(state.workers - len(state.feeders) - state.starting, beyond, len(calls))
                most = max(0, most)
                if most < len(calls) and state.idle:
                    state.changed.notify(len(calls) - most)
                state.starting += most
                starts = most
            for call in calls[: -1 - starts : -1]:
                try:
                    state.start(call)
                finally:
                    with state.lock:
                        state.starting -= 1
                        starts -= 1
                        state.changed.notify_all()
        finally:
            if starts:  # a signal's handler has raised, or one could not be started
                with state.lock:
                    state.starting -= starts
                    state.changed.notify_all()

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Any,
        timeout: float | None = None,
        chunksize: int = 1,
    ) -> Any:
        """As Executor.map. Calls that are short go many at a time of themselves; `chunksize` is
        looked at by nobody.

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
        """No more calls; waits for those that there are, and for the processes. A second time:
        nothing more.

        In the child of a fork, nothing: they are the parent's.
        """
        self._down = True
        if os.getpid() != self._maker:
            return
        if cancel_futures:
            self._state.cancel()
        self._state.end()
        if wait:
            self._state.join()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """As shutdown(). A Ctrl-C that leaves the block ends what runs: who presses it does not wait
        for calls."""
        if kind is not None and issubclass(kind, KeyboardInterrupt) and os.getpid() == self._maker:
            self._state.stop()
        self.shutdown()
