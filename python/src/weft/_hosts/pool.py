"""The calls of an Executor, and the feeders that run these calls. No lock is used.

    put() ──waits in `waiting`──► take(): a feeder's batch ──run──► future set, Call.over()
       │                      └──cancel(), break_it(): cancelled, or BrokenProcessPool ──┘
       ├──a feeder is idle──► it is woken
       └──else, if there are fewer than `workers`──► one more feeder begins

    a feeder: begins ─► take() ─► batch ─► take() … idle ──woken──► take() … no more calls ─► over

A thread that submits or shuts down may be interrupted anywhere, by a signal handler or a finaliser
that submits, shuts down or waits for a result itself (rule 12.1). If the thread held a lock then,
the threads for which the handler waits could not go on. So there is no lock. Each step is one
operation of a deque, a set or a queue, which is done completely or not at all. No thread waits for
a thread that is between two steps. The start of an OS process, which takes time, is left to another
thread.

Invariants
- A call is in `waiting`, or belongs to the holder that took it out: a feeder, or a thread that
  cancels or breaks the pool. This holder calls over(), once. A holder that is not a feeder sets the
  call's future first.
- A feeder sleeps only while it is in `idle`, and checks `waiting`, `ended` and `broken` between
  joining `idle` and sleeping. Code that changes one of these three checks `idle` afterwards. A
  feeder that wakes checks them again.
- Code that adds to `waiting` checks afterwards whether the pool has ended or is broken. Code that
  ends or breaks the pool records that first, and checks `waiting` afterwards. So no call is left
  behind.
- Of `feeders` the first `workers` may begin. Code that finds one without a thread gives it a
  thread. A feeder that does not begin is taken out again.
"""

from __future__ import annotations

import _thread
import abc
import contextlib
import contextvars
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from weft import _helper_threads, _patched
from weft._distributed_deadlock import rounds as _rounds
from weft._hosts import foreign_exceptions as _foreign_exceptions
from weft._hosts import user_values as _user_values
from weft._hosts import watched_calls as _watched_calls
from weft.errors import BadUse

__all__ = ["Call", "Feeder", "State", "tell", "tell_result"]


class _Lot:
    """Calls that were submitted together. Until all of them have ended, the lot counts as something
    outside that can act (rule 10.3).
    """

    __slots__ = ("_others", "_state")

    def __init__(self, state: State, calls: int) -> None:
        self._state = state
        self._others = [None] * (calls - 1)

    def one_over(self) -> None:
        try:
            self._others.pop()
        except IndexError:
            _rounds.calls_are_over(self._state, self)


class Call:
    __slots__ = ("args", "function", "future", "keywords", "large", "lot", "together", "watch")

    def __init__(
        self,
        future: Future[Any],
        function: Any,
        args: Any,
        keywords: Any,
        watch: _watched_calls.Watch | None = None,
        together: Any = None,
    ) -> None:
        self.watch = watch  # if it is not None, the call is sent alone
        # Calls have the same object in this field if no user code has run between their submits.
        self.together = together
        self.future, self.function, self.args, self.keywords = future, function, args, keywords
        # The lot of the calls that were submitted together with this call; None once this call has
        # ended.
        self.lot: _Lot | None = None
        self.large: list[Any] = []  # the large arguments of the call (large_arguments.py)

    def in_a(self, lot: _Lot) -> None:
        self.lot = lot

    def over(self) -> None:
        """The holder of this call must call over() after it has set the call's future. A second
        call of over() does nothing.
        """
        lot, self.lot = self.lot, None
        self.large = []
        if lot is not None:
            lot.one_over()


def tell(future: Future[Any], value: Any = None, error: BaseException | None = None) -> None:
    """Sets the value or the error of a call's future. A future that is already set is not changed.
    An exception of a callback is reported, and does not reach any other call.
    """
    try:
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
    except InvalidStateError:
        pass
    except BaseException as wrong:
        _foreign_exceptions.report(wrong)


def tell_result(future: Future[Any], value: Any, error: BaseException | None) -> None:
    """Sets a call's future to the value or error that a host has sent (_hosts/user_values.py)."""
    try:
        value = _user_values.opened(value)
    except BaseException as wrong:
        value, error = None, wrong
    tell(future, value, error)


class _Once:
    """An object whose take() returns true once, to the first caller."""

    __slots__ = ("_it",)

    def __init__(self) -> None:
        self._it = [None]

    def take(self) -> bool:
        try:
            self._it.pop()
        except IndexError:
            return False
        return True

    def is_there(self) -> bool:
        return bool(self._it)


class _Gate:
    """A gate that is closed until the first call of open()."""

    __slots__ = ("_lock", "_once")

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._lock.acquire()
        self._once = _Once()

    def open(self) -> None:
        if self._once.take():
            self._lock.release()

    def pass_through(self) -> None:
        """Waits until the gate is open. A signal handler that runs meanwhile can wait here too."""
        with self._lock:
            pass


class Feeder(abc.ABC):
    """A thread that makes hosts run calls. Subclasses define how."""

    def __init__(self, state: State) -> None:
        self.state = state
        # The channel of results, if this channel shows whether a host waits, otherwise None.
        self.results: Any = None
        self.over = False
        # The right to begin. Either the feeder's thread takes this right, or the code that gives up
        # starting the feeder.
        self._begins = _Once()
        self._begun, self._over, self._rests = _Gate(), _Gate(), _Gate()
        self._error: BaseException | None = None

    @abc.abstractmethod
    def begin(self) -> None:
        """Prepares the feeder. The thread that submits a call waits for begin(), and raises the
        exception of begin().
        """

    @abc.abstractmethod
    def feed(self) -> None:
        """Makes hosts run calls until there are no more calls."""

    def start(self) -> None:
        """Gives the feeder a thread, and waits until it has begun.

        Raises:
            What begin() raises.
            RuntimeError: the system can start no thread for the feeder.
            BadUse: the threads of this program are greenlets.
        """
        # the program was patched after the import of weft.processes
        if why := _patched.why_not("an Executor"):
            raise BadUse(why)
        self.launch()
        self._begun.pass_through()
        if self._error is not None:
            raise self._error

    def launch(self) -> None:
        """Gives the feeder a thread. Any code that finds a feeder without a thread may call this: a
        second thread ends at once.

        The start of a Thread takes a lock of `threading`. It is done on a thread of its own, so
        that no signal handler interrupts the thread that holds the lock.
        """
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=self._main, args=(context,), name="weft: feeds a host", daemon=False
        )
        _thread.start_new_thread(self._run, (thread,))

    def lacks_thread(self) -> bool:
        return self._begins.is_there()

    def give_up(self) -> None:
        """Ends the feeder, if it has not begun."""
        if self._begins.take():
            self._leave()

    def _run(self, thread: threading.Thread) -> None:
        try:
            thread.start()
        except BaseException as error:
            if self._begins.take():
                self._failed(error)

    def _failed(self, error: BaseException) -> None:
        self._error = error
        self._leave()

    def _leave(self) -> None:
        for those in (self.state.begun, self.state.feeders):
            with contextlib.suppress(ValueError):
                those.remove(self)
        self._end()

    def _main(self, context: contextvars.Context) -> None:
        if not self._begins.take():
            return
        self.state.begun.append(self)
        _helper_threads.add_until_end()
        _here.feeder = self
        try:
            context.run(self.begin)
        except BaseException as error:
            self._failed(error)
            return
        self._begun.open()
        try:
            self.feed()
        except BaseException as error:
            self.state.break_it(_foreign_exceptions.text_of(error), error)
            _foreign_exceptions.report(error)
        finally:
            self._end()

    def _end(self) -> None:
        self.over = True
        for gate in (self._begun, self._rests, self._over):
            gate.open()

    def waits(self) -> bool:
        """Returns whether the feeder has ended, or waits for a host that computes and has sent
        nothing new.
        """
        results = self.results
        return self.over or (results is not None and bool(results.stats().waiting_readers))

    def join(self) -> None:
        """Waits until the feeder has ended. On the thread of another feeder, in a callback of a
        call, waits until this feeder has ended or is itself in join().
        """
        here: Feeder | None = getattr(_here, "feeder", None)
        if here is None or here.state is not self.state:
            self._over.pass_through()
        elif here is not self:
            here._rests.open()
            self._rests.pass_through()


_here = threading.local()  # `.feeder` is the feeder that runs on this thread


class State(abc.ABC):
    """The state that an executor shares with its feeders. Feeders refer only to the State, so that
    they do not keep the executor alive.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.waiting: deque[Call] = deque()
        self.idle: deque[Feeder] = deque()
        self.feeders: deque[Feeder] = deque()
        self.begun: deque[Feeder] = deque()  # the feeders that have a thread
        # Each item wakes one sleeping feeder.
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.hosts: set[Any] = set()  # the hosts to kill if the pool breaks
        self.ended = False  # whether the pool takes no more calls
        self.lots: set[_Lot] = set()  # the lots with calls that have not ended
        self._whys: deque[str] = deque()  # why the pool is broken; the first reason counts
        # contains an item for each holder of calls that is not a feeder
        self._others: deque[None] = deque()
        _rounds.may_have_calls(self)

    @abc.abstractmethod
    def feeder(self) -> Feeder:
        """Returns a new feeder, which has not begun yet."""

    def future_of(self, function: Any) -> Future[Any]:
        """Returns a future for a call of the function."""
        return Future()

    @property
    def broken(self) -> str | None:
        return self._whys[0] if self._whys else None

    @property
    def going_on(self) -> bool:
        """Whether any call has not ended yet."""
        return bool(self.lots)

    # --- for code that submits --------------------------------------------------------------------

    def check(self) -> None:
        """Checks that the executor still accepts calls.

        Raises:
            BrokenProcessPool: the pool is broken.
            RuntimeError: the executor was shut down.
        """
        if self._whys:
            raise BrokenProcessPool(self.broken)
        if self.ended:
            raise RuntimeError("cannot schedule new futures after shutdown")

    def put(self, calls: list[Call]) -> None:
        """Adds the calls, in their order.

        Raises:
            What check() raises; what the start of an OS process or a signal handler raises. After
            any of these, the calls that have not begun are dropped again.
        """
        self.check()
        lot = _Lot(self, len(calls))
        for call in calls:
            call.in_a(lot)
        added = dropped = False
        try:
            _rounds.calls_go_on(self, lot)
            self.waiting.extend(calls)
            added = True
            # If the pool has ended meanwhile, perhaps no feeder is left to take the calls.
            if self.ended or self._whys:
                dropped = self._drop(calls)
                if dropped:
                    self.check()
            self._wake(len(calls))
            for _ in range(min(len(calls), len(self.waiting) - len(self.idle))):
                if not self._grow():
                    break
        except BaseException as error:
            dropped = self._drop(calls) or dropped
            usual = issubclass(type(error), Exception)
            if not added:
                _rounds.calls_are_over(self, lot)
            if not self.feeders:  # the calls of other callers need the feeder too
                why = "the call that started its OS process was interrupted"
                wrong = error if usual else BrokenProcessPool(why)
                self._fail_all(lambda: wrong)
            if dropped or not usual:
                raise

    def _drop(self, calls: list[Call]) -> bool:
        """Removes those of the calls that no holder has taken yet. Returns whether there were
        any."""
        any_was = False
        for call in calls:
            try:
                self.waiting.remove(call)
            except ValueError:
                continue
            call.over()
            any_was = True
        return any_was

    def _wake(self, most: int) -> None:
        """Wakes up to `most` idle feeders."""
        for _ in range(min(most, len(self.idle))):
            self._wakes.put(None)

    def _grow(self) -> bool:
        """Begins one more feeder. Returns false if no more feeders are allowed."""
        if len(self.feeders) >= self.workers:
            self._launch_all()
            return False
        feeder = self.feeder()
        try:
            self.feeders.append(feeder)
            # If other threads have added their feeders first, this feeder is one too many.
            if self.feeders.index(feeder) >= self.workers:
                return False
            feeder.start()
            return True
        finally:
            feeder.give_up()

    def _launch_all(self) -> None:
        """Gives a thread to each feeder without one. The code that added such a feeder might have
        been interrupted, by the handler that calls this method, before it gave the feeder a thread.
        """
        if len(self.begun) < len(self.feeders):
            for feeder in self.feeders.copy():
                if feeder.lacks_thread():
                    feeder.launch()

    # --- for feeders ------------------------------------------------------------------------------

    def take(self, by: Feeder, most: Callable[[Call], int], same: bool = False) -> list[Call]:
        """Waits for calls, and returns some of them to be run. An empty list means that there will
        be no more calls.

        Args:
            most: returns how many calls may be taken together with the first one. Fewer are
                returned if other feeders need calls too.
            same: whether all calls must be of one function.
        """
        while not self._whys:
            ended = self.ended  # `ended` must be read before `waiting`
            if batch := self._batch(most, same):
                return batch
            if ended:
                break
            self.idle.append(by)
            if not (self.waiting or self.ended or self._whys):
                self._wakes.get()
            self.idle.remove(by)
        return []

    def _batch(self, most: Callable[[Call], int], same: bool) -> list[Call]:
        batch: list[Call] = []
        number = 1
        with contextlib.suppress(IndexError):
            while len(batch) < number:
                call = self.waiting.popleft()
                if not batch:
                    fair = -(-(len(self.waiting) + 1) // (2 * self.workers))
                    number = 1 if call.watch else min(most(call), fair)
                elif call.watch or (same and call.function is not batch[0].function):
                    self.waiting.appendleft(call)
                    break
                try:
                    runs = call.future.set_running_or_notify_cancel()
                except Exception:  # the program itself has set the future
                    runs = False
                if runs:
                    batch.append(call)
                else:
                    call.over()
        return batch

    # --- the end ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _in_hand(self) -> Iterator[None]:
        """Marks a block in which the caller, which is not a feeder, can hold calls."""
        self._others.append(None)
        try:
            yield
        finally:
            self._others.pop()

    def end(self) -> None:
        """Refuses further calls. This method does not wait, so the garbage collector can call it on
        any thread.
        """
        self.ended = True
        self._wake(self.workers)

    def join(self) -> None:
        """Waits for all feeders. When a callback calls join() on the thread of a feeder, waits
        neither for that feeder nor for a feeder that is itself in join().
        """
        self._launch_all()
        for feeder in self.feeders.copy():
            feeder.join()

    def cancel(self) -> None:
        """Cancels the calls that no holder has taken yet."""
        with self._in_hand():
            for call in self.waiting.copy():
                call.future.cancel()
                if self._drop([call]):
                    with contextlib.suppress(Exception):  # the program has set the future itself
                        call.future.set_running_or_notify_cancel()

    def stop(self) -> None:
        """Ends the pool after a Ctrl-C: cancels the calls that wait, and ends the running calls
        together with their OS processes.
        """
        self.cancel()
        self.break_it("the executor was stopped by Ctrl-C")

    def break_it(self, why: str, cause: BaseException | None = None) -> None:
        """Breaks the pool, because a host has died: no more calls are taken, and all calls that
        wait fail. The feeders fail the calls that run: see broken_now().
        """
        with self._in_hand():
            self._whys.append(why)
            for host in list(self.hosts):
                host.kill()
            self._wake(self.workers)
            self._fail_all(lambda: self.broken_now(cause))

    def _fail_all(self, error: Callable[[], BaseException]) -> None:
        """Fails the calls that no holder has taken yet."""
        while calls := self.waiting.copy():
            for call in calls:
                tell(call.future, error=error())
                self._drop([call])

    def broken_now(self, cause: BaseException | None = None) -> BrokenProcessPool:
        """Returns the error of a call that had not ended when the pool broke."""
        error = BrokenProcessPool(self.broken)
        error.__cause__ = cause
        return error

    # --- for the search for a deadlock ------------------------------------------------------------

    def waits_for_hosts(self) -> bool:
        """Returns whether all calls run in hosts that have sent nothing new. If so, the hosts will
        report whether there is a deadlock (rule 10.3).
        """
        idle, feeders, others = then = self._picture()
        waits = (
            not others
            and not (self.waiting and idle)
            and all(feeder in idle or feeder.waits() for feeder in feeders)
        )
        return waits and then == self._picture()

    def _picture(self) -> tuple[list[Feeder], list[Feeder], int]:
        return list(self.idle.copy()), list(self.feeders.copy()), len(self._others)

    def stuck(self, why: str) -> Callable[[], None]:
        """Records that the calls are part of a deadlock: no more calls are taken. Returns a
        function that ends the calls.
        """
        self._whys.append(f"calls wait for ever: {why}")
        self._wake(self.workers)
        hosts = list(self.hosts)

        def end() -> None:
            for host in hosts:  # the feeders of these hosts fail the calls
                host.kill()

        return end
