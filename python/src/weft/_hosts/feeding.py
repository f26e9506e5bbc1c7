"""The feeders of an Executor over OS processes of this machine (pool.py), and the code that these
processes run.

    a feeder ──tasks: batches of calls──► its host computes them, in_order() ──results──► futures
        └─the host dies──► all calls that are not over: BrokenProcessPool

Each host has a feeder: a thread that writes batches to its host and reads results. A second thread
waits for the process in the host to end. Both are helper threads and belong to no run, so they do
not prevent the report of a deadlock. Calls prevent that report, unless their hosts report that they
wait too (rule 10.3).

Short calls are sent many at a time: as many as take about eight milliseconds together. A longer
call is sent alone. A host sends its results after two milliseconds, so that no result waits long
for the rest of its batch.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from weft import _helper_threads
from weft._distributed_deadlock import rounds as _rounds
from weft._extension import native as _native
from weft._hosts import foreign_exceptions as _foreign_exceptions
from weft._hosts import forked_child as _forked_child
from weft._hosts import host as _host
from weft._hosts import large_arguments as _large_arguments
from weft._hosts import pickling as _pickling
from weft._hosts import pool as _pool
from weft._hosts import user_values as _user_values
from weft._hosts import watched_calls as _watched_calls
from weft.errors import BadUse, ChannelEnd, ProcessDied

__all__ = ["ARGUMENTS", "RESULT", "State", "in_order", "next_size", "send_each"]

BATCH = 0.008  # the time that a batch should take, in seconds
LONG = 0.002  # the longest time, in seconds, for which a host keeps results back
MAX_BATCH = 256  # the largest number of calls in a batch
ARGUMENTS, RESULT = "a call's arguments", "the result"  # these words appear in the text of an error

# What a host sends about each call: its place in the batch, its value, its failure.
Done = list[tuple[int, Any, "_pickling.Failure | None"]]


class State(_pool.State):
    """The state of an executor over OS processes of its own."""

    def __init__(self, setting: _host.Setting, workers: int, max_tasks: int | None) -> None:
        super().__init__(workers)
        self.setting, self.max_tasks = setting, max_tasks
        self.large = _large_arguments.Table()

    def put(self, calls: list[_pool.Call]) -> None:
        for call in calls:
            call.large = self.large.of(call.args, call.keywords)
        super().put(calls)

    def feeder(self) -> _pool.Feeder:
        return _Feeder(self)


# --- in the host ----------------------------------------------------------------------------------


def in_order(
    batch: Sequence[Any],
    compute: Callable[..., Any],
    send: Callable[[Done], None],
) -> None:
    """Runs compute(*call) for each call of a batch. Every LONG seconds, and at the end, passes the
    finished calls to send(): for each its place in the batch, its value and its failure.
    """
    done: Done = []
    here = os.getpid()
    last = time.monotonic()
    for number, call in enumerate(batch):
        try:
            done.append((number, compute(*call), None))
        except BaseException as error:
            _forked_child.end_if_forked(here, error)
            done.append((number, None, _pickling.Failure(error)))
        _forked_child.end_if_forked(here, None)
        if time.monotonic() - last > LONG:
            send(done)
            done, last = [], time.monotonic()
    if done:
        send(done)


def next_size(size: int, calls: int, seconds: float) -> int:
    """Returns the size of the next batch. The last batch could hold `size` calls; it held `calls`
    calls, which took `seconds` seconds.
    """
    each = seconds / calls
    return max(1, min(MAX_BATCH, 2 * size, int(BATCH / max(each, 1e-6))))


def executor(tasks: Any, results: Any) -> None:
    """The process in the host: reads batches of calls, and writes their results."""
    functions: dict[bytes, Any] = {}
    me = _native.current_process()
    assert me is not None

    def call(packed: bytes, given: Any) -> Any:
        args, keywords = _user_values.opened(given)
        function = functions.get(packed)
        if function is None:
            function = functions[packed] = _pickling.load_function(packed)
        return _user_values.apart(RESULT, function(*args, **keywords))

    # This empty list informs the feeder that the process runs. From now on a call that cannot be
    # sent fails alone.
    results.write([])
    _rounds.serves(me.id)
    for batch in tasks:
        _rounds.serves(None)
        in_order(batch, call, lambda done: send_each(results.write, done))
        del batch
        _rounds.serves(me.id)


# A report of a death names the call in this way, since calls that were sent together cannot be
# distinguished.
executor._weft_called = lambda tasks, results: "an Executor"  # type: ignore[attr-defined]


def send_each(
    write: Callable[[Done], None],
    done: Done,
) -> None:
    """Writes results together. If they cannot be sent together, each is sent separately; a result
    that cannot be sent is replaced by the reason.
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


class _Feeder(_pool.Feeder):
    """Feeds one host, and a new host whenever the host has run max_tasks calls."""

    state: State

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._host: Any = None
        self._batch: list[_pool.Call] = []
        self._size = 1
        self._names: weakref.WeakKeyDictionary[Any, bytes] = weakref.WeakKeyDictionary()
        self._why: BaseException | None = None
        self._up = False  # whether the process in the host has begun
        self._sent = False  # whether the batch has been sent to the host
        # the Watch of the last batch, if that was a single call
        self._watch: _watched_calls.Watch | None = None
        self._limit: _watched_calls.Limit | None = None  # the limit of the call that is under way
        self._clock = _watched_calls.Clock()

    def begin(self) -> None:
        self._host = host = _host.Host(self.state.setting)
        host.begin()
        self.state.hosts.add(host)
        if self.state.broken is not None:  # break_it() might have run too early to kill this host
            host.kill()

    def feed(self) -> None:
        state = self.state
        try:
            while True:
                good = self._feed_host()
                self._host.close()
                state.hosts.discard(self._host)
                no_more = state.ended and not state.waiting and not self._batch
                if not good or state.broken or no_more:
                    return
                self.begin()
        except BaseException as error:
            self._why = error
            raise
        finally:
            self._give_up_batch()
            if self._limit is not None:
                self._limit.end()
            self._clock.end()
            # The memory that is kept for copies of large arguments. Another Executor makes new
            # memory.
            _native._free_unused_shared()

    def waits(self) -> bool:
        # A call with a time limit does not wait forever.
        return super().waits() and self._limit is None

    def _feed_host(self) -> bool:
        """Feeds the host until there are no calls left for it. Returns false if the host died,
        which breaks the pool. After the death of a host that does not break the pool, `_batch`
        contains the calls that are to be run again.
        """
        self._why, self._up, self._sent = None, False, False
        tasks, results = _native.Channel("tasks"), _native.Channel("results")
        orders, answers = tasks.writer(), results.reader()
        host_ends = tasks.reader(), results.writer()
        call = threading.Thread(target=self._call, args=host_ends, name="weft: calls a host")
        call.start()
        del host_ends
        self.results = results
        try:
            with contextlib.suppress(ChannelEnd):
                self._pump(orders, answers)
        except BaseException as error:
            self.state.break_it(_foreign_exceptions.text_of(error), error)
            raise
        finally:
            _let_go(orders, answers)
            call.join()
            if self._why is not None and self._is_spared():
                self._after_death(self._why)
                self._why = None
            else:
                self._give_up_batch()
            self.results = None
        return self._why is None

    def _is_spared(self) -> bool:
        """Returns whether the pool remains in use after the death of this host."""
        watch = self._watch
        if watch is None or not self._up or self.state.broken:
            return False
        return watch.retries is not None or (self._limit is not None and self._limit.late)

    def _after_death(self, why: BaseException) -> None:
        """Keeps in `_batch` only the calls that are to be run again."""
        late = self._limit is not None and not self._limit.end()
        self._limit = None
        self._batch = [call for call in self._batch if not call.future.done()]
        if not self._sent or not self._batch:
            return  # the host died before the calls were sent to it
        (call,) = self._batch
        assert call.watch is not None
        name = (
            f"{_foreign_exceptions.name_of(call.function)}, call {call.watch.number} of its map()"
        )
        if late:
            error: BaseException = TimeoutError(
                f"{name}, was not over within its time_limit of {call.watch.seconds:.3g} s: "
                f"its OS process was killed"
            )
            again = call.watch.after(error)
        else:
            error, again = _died_in(name, why), call.watch.once_more()
        if again:
            return
        self._batch = []
        _fail(call, error)

    def _call(self, tasks: Any, results: Any) -> None:
        """Runs the process in the host, and waits for its end. This method runs on a thread of its
        own.
        """
        _helper_threads.add_until_end()
        try:
            self._host.call(executor, (tasks, results), {})
        except BaseException as error:
            self._why = error
            if not self._is_spared():
                self.state.break_it(
                    f"a process of the pool failed: {_foreign_exceptions.text_of(error)}", error
                )
        finally:  # a traceback can keep this frame alive, but must not keep its ends alive
            _let_go(tasks, results)

    def _give_up_batch(self) -> None:
        """Fails the calls of the batch that have not ended yet."""
        if self._batch and not self.state.broken:
            self._why = self._why or BadUse("a process of the pool ended before its calls")
            self.state.break_it(_foreign_exceptions.text_of(self._why))
        for call in self._batch:
            _pool.tell(call.future, error=self.state.broken_now(self._why))
            call.over()
        self._batch = []

    def _pump(self, tasks: Any, results: Any) -> None:
        limit = self.state.max_tasks
        fed = 0
        results.read()  # the process runs, and has the other end of `tasks`
        self._up = True
        while limit is None or fed < limit:
            if not self._batch:  # otherwise the previous host has died with this batch
                most = self._size if limit is None else min(self._size, limit - fed)
                self._batch = self.state.take(self, lambda _, most=most: most)  # type: ignore[misc]
            if not self._batch:
                return
            self._sent = False
            self._watch = self._batch[0].watch
            began = time.monotonic()
            fed += len(self._batch)
            if self._watch is not None:
                if not self._watched(tasks, results, self._batch[0], self._watch):
                    self._batch = []
                continue
            try:
                sent = self._send(tasks, self._batch)
            except MemoryError:  # the calls are too large to be sent together
                for call in self._batch:
                    self._alone(tasks, results, call)
            else:
                self._hear(results, sent)
            took = time.monotonic() - began
            self._size = next_size(self._size, len(self._batch), took)
            self._batch = []

    def _watched(
        self, tasks: Any, results: Any, call: _pool.Call, watch: _watched_calls.Watch
    ) -> bool:
        """Runs a call that is watched. Returns whether the call is to be run again.

        Raises:
            ChannelEnd: the host has died, or was killed because the call took too long.
        """
        if watch.seconds is not None:
            self._limit = self._clock.begin(watch.seconds, self._host.kill)
        try:
            if not self._send(tasks, [call]):
                got: Done = []
            else:
                got = results.read()
        except MemoryError as error:
            got = []
            _fail(call, error)
        if self._limit is not None and not self._limit.end():
            results.read()  # the host was killed, so this read raises
        self._limit = None
        for _, value, failure in got:
            wrong = None if failure is None else failure.exception()
            if not call.future.done() and watch.after(wrong):
                return True
            _pool.tell_result(call.future, value, wrong)
            call.over()
        return False

    def _alone(self, tasks: Any, results: Any, call: _pool.Call) -> None:
        try:
            sent = self._send(tasks, [call])
        except MemoryError as error:
            _fail(call, error)
        else:
            self._hear(results, sent)

    def _send(self, tasks: Any, calls: list[_pool.Call]) -> list[_pool.Call]:
        """Sends the calls. Returns the calls whose results will arrive, in the order of the
        results. The other calls have failed.

        Raises:
            MemoryError: there is not enough memory to send all the calls at once.
        """
        good: list[_pool.Call] = []
        sent: list[tuple[bytes, Any]] = []
        last: Any = self  # most calls of a batch are of one function
        packed = b""
        for call in calls:
            try:
                if call.function is not last:
                    packed, last = self._packed(call.function), call.function
                sent.append((packed, self._given(call)))
            except BaseException as error:
                _fail(call, error)
                continue
            good.append(call)
        tasks.write(sent)
        self._sent = True
        for call, (_, given) in zip(good, sent, strict=True):
            if type(given) is _user_values.Apart and given.error is not None:
                # The error was sent in place of the arguments, so the call fails in the host too.
                _pool.tell(call.future, error=given.error)
        return good

    def _given(self, call: _pool.Call) -> Any:
        args, keywords = call.args, call.keywords
        if call.large or _large_arguments.may_be_frames():
            args = tuple(map(_large_arguments.in_buffers, args))
            keywords = {k: _large_arguments.in_buffers(v) for k, v in keywords.items()}
        instead = self.state.large.share(call)
        return _user_values.call_apart(ARGUMENTS, args, keywords, instead)

    def _packed(self, function: Any) -> bytes:
        try:
            packed = self._names.get(function)
        except TypeError:  # the function does not support weak references
            return _pickling.dump_function(function)
        if packed is None:
            packed = self._names[function] = _pickling.dump_function(function)
        return packed

    @staticmethod
    def _hear(results: Any, sent: list[_pool.Call]) -> None:
        """Sets the result of each of these calls in its future when the result arrives."""
        left = len(sent)
        while left:
            got = results.read()
            left -= len(got)
            for number, value, failure in got:
                error = None if failure is None else failure.exception()
                _pool.tell_result(sent[number].future, value, error)
                sent[number].over()


def _died_in(name: str, why: BaseException) -> BaseException:
    """Returns the error of a call of this name whose host has died."""
    if type(why) is not ProcessDied:
        return why
    _, (_, *how) = why.__reduce__()
    return ProcessDied(name, *how)


def _fail(call: _pool.Call, error: BaseException) -> None:
    _pool.tell(call.future, error=error)
    call.over()


def _let_go(*ends: Any) -> None:
    for end in ends:
        with contextlib.suppress(BadUse):  # the end already belongs to the host
            end.retire()
