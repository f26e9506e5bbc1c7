"""weft.processes.Executor over hosts of a network (WIRE-NETWORKS.md 17.14):
`Executor(on=network.hosts())`.

    submit() ──waits in `_State`──► a feeder's batch of calls of one function ──its _Line──► futures
        ├─the host refuses, or does not answer──► these calls fail
        └─the session ends──► all calls that are not over: BrokenProcessPool

A _Line is a session with one OS process of a host, for one function. A feeder is a thread; it keeps
its lines until there are no more calls. An agent refuses functions that it does not allow, as it
does for single calls.

Invariants: those of _hosts/pool.py. A line belongs to its feeder; other threads may only kill() the
line, or the Stop for which the feeder waits until there is a line. A line over which the first
calls have been sent does not count as something outside (rule 10.3); a call counts until it is
over. Rounds do not ask whether a call waits; when that matters, its host's agent is asked where the
call is (17.12).
"""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import time
from concurrent.futures import Future
from typing import Any

from weft._distributed_deadlock import remote_calls as _remote_calls
from weft._hosts import feeding as _feeding
from weft._hosts import foreign_exceptions as _foreign_exceptions
from weft._hosts import pool as _pool
from weft._hosts import user_values as _user_values
from weft._net import calls as _net_calls
from weft._net import link as _net_link
from weft._net import loop as _net_loop
from weft._net.remote_hosts import FarHost, FarHosts, _channels_of
from weft.errors import BadUse, ChannelEnd, ProcessDied

__all__ = ["State"]

ASKS = 1.0  # seconds within which an agent must report where a call is
GIVEN_UP = "its calls were given up by a second Ctrl-C"


class _Future(Future[Any]):
    """A future whose TimeoutError says where the call is, since rounds cannot notice that a thread
    waits forever for such a future.
    """

    def __init__(self, function: Any, state: State) -> None:
        super().__init__()
        self._name = _foreign_exceptions.name_of(function)
        self._workers, self._over = state.workers, state.over
        self._where = ""  # set once the call has begun
        self._call: _remote_calls.FarCall | None = None

    def _late(self, seconds: float | None) -> cf.TimeoutError:
        where, call = self._where, self._call
        if not self.running():
            where = f"it waits for one of the executor's {self._workers} workers"
        elif not where or call is None:
            where = f"it waits for {self._over!r} to begin it"
        elif seconds is not None and seconds > 0:
            where += _said_by(call, min(seconds, ASKS))
        # map() passes the remaining time, which can be negative.
        when = "in time" if seconds is None or seconds < 0 else f"within {seconds:.3g} seconds"
        return cf.TimeoutError(f"no result of {self._name} {when}: {where}")

    def result(self, timeout: float | None = None) -> Any:
        try:
            return super().result(timeout)
        except cf.TimeoutError:
            if self.done():  # the call itself has raised this TimeoutError
                raise
            raise self._late(timeout) from None

    def exception(self, timeout: float | None = None) -> BaseException | None:
        try:
            return super().exception(timeout)
        except cf.TimeoutError:
            raise self._late(timeout) from None

    def begins_at(self, where: str, call: _remote_calls.FarCall) -> None:
        self._where, self._call = where, call


def _said_by(call: _remote_calls.FarCall, seconds: float) -> str:
    try:
        found = _remote_calls.answer_within(call, call.ask(), seconds)
    except BadUse:  # raised if this program has left the call's network
        return ""
    if found is None:
        return ", which does not say where"
    return "".join(f"; {line}" for line in found)


class _Line:
    """A session in which lists of calls of one function, one list after another, go to one OS
    process of a host.
    """

    def __init__(self, hosts: FarHost | FarHosts, function: Any, working_dir: Any = None) -> None:
        """Opens the session.

        Raises:
            BadUse: the function cannot be found by its name, or the host refuses it.
            ConnectionError: no program answers.
        """
        self.hosts, self.function = hosts, function
        self.size = 1  # the number of calls in the next list
        self.asked, self.host, self.session = hosts._asked_and_begun(
            function, many=True, working_dir=working_dir
        )
        self.call = hosts._far_call(self.host, self.session)
        self.died = False
        orders, results = _channels_of(self.asked.name)
        self.told, self.answer = orders.writer(), results.reader()
        try:
            self.session._link.give(orders.reader(), "orders")
            self.session._link.give(results.writer(), "result")
        except BaseException as error:
            other = self.session._other_version()  # if the session has ended already
            self.close()
            if other is not None:
                raise other from error
            raise

    def begin(self, batch: list[_pool.Call]) -> None:
        where = f"it runs on host {self.host!r}, in its OS process {self.call.pid}"
        if len(batch) > 1:
            where += f", or waits there for the {len(batch) - 1} that were sent with it"
        for call in batch:
            if isinstance(call.future, _Future):
                call.future.begins_at(where, self.call)

    def compute(self, batch: list[_pool.Call]) -> bool:
        """Makes the calls run in the line's OS process, and sets each future when its result
        arrives. Returns false if a result has arrived that this program does not accept. The line
        cannot be used after that.

        Raises:
            ProcessDied: the OS process has ended, and with it the calls that had no result yet.
        """
        began = time.monotonic()
        try:
            if (wrong := self._write(batch)) is None:
                self._results(batch)
            else:  # part of a call cannot be sent, so each call is sent separately
                for call in batch:
                    wrong = wrong if len(batch) == 1 else self._write([call])
                    if wrong is None:
                        self._results([call])
                    else:
                        _pool.tell(call.future, error=wrong)
        except (ChannelEnd, LookupError, TypeError, ValueError, AttributeError):
            self.died = True
            raise self.hosts._died(self.asked.name, self.host, self.session) from None
        except BaseException as error:
            # the exception was raised by a class that this program accepts
            wrong = _user_values.not_rebuilt(_feeding.RESULT, error)
            for call in batch:
                _pool.tell(call.future, error=wrong)
            return False
        self.size = _feeding.next_size(self.size, len(batch), time.monotonic() - began)
        with contextlib.suppress(BadUse):  # the link was closed in the meantime
            self.session._link.of_calls()
        return True

    def _write(self, batch: list[_pool.Call]) -> BaseException | None:
        """Sends the calls. Returns the reason why they cannot be sent, or None."""
        calls = [_net_calls.as_sent(c.args, c.keywords, self.session.trusted) for c in batch]
        try:
            self.told.write(calls)
        except (BadUse, MemoryError) as error:
            return error
        for call, (given, *_) in zip(batch, calls, strict=True):
            if type(given) is _user_values.Apart and given.error is not None:
                _pool.tell(call.future, error=given.error)
        return None

    def _results(self, batch: list[_pool.Call]) -> None:
        """Reads the results of the calls, and sets their futures.

        Raises:
            LookupError, TypeError, ValueError, AttributeError: a message is not a result.
            BadUse: a result is of a class that is not accepted.
        """
        left = set(range(len(batch)))
        while left:
            for number, value, failure in self.answer.read():
                those = left.copy() if number == _net_calls.ALL else (number,)
                if failure is not None:
                    failure = _net_calls.exception_of(failure, self.asked)
                for n in those:
                    left.remove(n)
                    _pool.tell_result(batch[n].future, value, failure)

    def kill(self) -> None:
        with contextlib.suppress(BadUse):
            self.session._give_up("its executor is broken")

    def close(self) -> None:
        """Closes the line, because there are no more calls."""
        for end in (self.told, self.answer):
            with contextlib.suppress(BadUse):  # the end is already retired
                end.retire()
        self.hosts._over(self.host, self.session._answer_fields["home"], self.died)
        self.kill()


class State(_pool.State):
    """The state that an executor over a network shares with its feeders."""

    def __init__(self, hosts: Any, workers: int | None, working_dir: Any = None) -> None:
        """Makes the state of an executor with at most `workers` calls at once; None: as many as the
        hosts have OS processes. All files of the folder `working_dir` go along.

        Raises:
            BadUse: `hosts` is not a host or a set of hosts of a network, or there are no hosts.
        """
        if not isinstance(hosts, (FarHost, FarHosts)):
            raise BadUse(
                "Executor: on= takes hosts of a network, as network.hosts() or network.host('gpu1') "
                f"are, not {hosts!r}; on this machine it has OS processes of its own: leave on= out"
            )
        super().__init__(hosts._processes() if workers is None else workers)
        self.over, self.working_dir = hosts, working_dir

    def future_of(self, function: Any) -> _Future:
        return _Future(function, self)

    def feeder(self) -> _pool.Feeder:
        return _Feeder(self)


class _Feeder(_pool.Feeder):
    state: State

    def begin(self) -> None:
        pass

    def feed(self) -> None:
        lines: dict[int, _Line] = {}
        state = self.state
        try:
            while batch := state.take(self, lambda call: _most(lines, call), same=True):
                try:
                    if not self._feed(lines, batch):
                        return
                finally:
                    for call in batch:
                        _pool.tell(call.future, error=state.broken_now())
                        call.over()
        finally:
            state.hosts.difference_update(lines.values())
            for line in lines.values():
                line.close()

    def _feed(self, lines: dict[int, _Line], batch: list[_pool.Call]) -> bool:
        """Runs a batch. Returns false if the pool is broken."""
        state = self.state
        with _remote_calls.give_up_by(lambda: state.break_it(GIVEN_UP)):
            line = self._line_for(lines, batch)
            if line is None:
                return True
            try:
                line.begin(batch)
                with _remote_calls.called(line.call):
                    usable = line.compute(batch)
            except BaseException as error:
                state.break_it(f"a host of the pool failed: {_foreign_exceptions.text_of(error)}")
                if isinstance(error, (ProcessDied, _net_link.OtherVersion)):
                    return False  # break_it() has failed all waiting calls
                raise
        if not usable:
            del lines[id(line.function)]
            state.hosts.discard(line)
            line.close()
        return True

    def _line_for(self, lines: dict[int, _Line], batch: list[_pool.Call]) -> _Line | None:
        """Returns the line of the batch's function, or None if there is no line: then the calls
        have failed.
        """
        function, state = batch[0].function, self.state
        line = lines.get(id(function))
        if line is not None:
            return line
        stop = _net_loop.Stop()
        state.hosts.add(stop)
        if state.broken is not None:  # break_it() might have run too early to kill this line
            stop.kill()
        try:
            with stop.ends_waits():
                line = _Line(state.over, function, state.working_dir)
        except Exception as error:
            for call in batch:
                wrong = error if state.broken is None else state.broken_now()
                _pool.tell(call.future, error=wrong)
            return None
        finally:
            state.hosts.discard(stop)
        lines[id(function)] = line
        state.hosts.add(line)
        if state.broken is not None:
            line.kill()
        return line


def _most(lines: dict[int, _Line], call: _pool.Call) -> int:
    line = lines.get(id(call.function))
    return 1 if line is None else line.size
