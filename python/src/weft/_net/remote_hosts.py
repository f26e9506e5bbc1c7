"""Hosts on other machines, as callers use them (WIRE-NETWORKS.md 17.9 to 17.12):
`worker(…).on(network.host("gpu1"))`.

    call(): the arguments are packed ──a session with an OS process of the host──► the ends are
        given, and the call is written ──the result──► call() returns or raises
        the session ends first ──► the agent is asked for the call's fate ──► ProcessDied

Invariants
- The caller is the home of all ends that are sent with the call.
- `_lock` protects the fields of FarHosts about its hosts.
"""

from __future__ import annotations

import abc
import concurrent.futures as cf
import contextlib
import threading
import time
from typing import Any

from weft._distributed_deadlock import remote_calls as _remote_calls
from weft._extension import native as _native
from weft._hosts import host as _host
from weft._hosts import pickling as _pickling
from weft._hosts import user_values as _user_values
from weft._hosts.hosts import Elsewhere, whole
from weft._net import calls as _net_calls
from weft._net import link as _net_link
from weft._net import loop as _net_loop
from weft._net import name_rules as _net_named
from weft._net import parcels as _net_parcels
from weft._watching import observers as _observers
from weft.errors import BadUse, Cancelled, PeerDied, ProcessDied, Retired, WeftError

__all__ = ["FarHost", "FarHosts"]

TRIES = 3  # how often a call is tried if a file changes while it is sent
FRESH = 1.0  # seconds for which the list of hosts is used again if all of them answer


def _channels_of(name: str) -> tuple[Any, Any]:
    return _native.Channel(f"arguments of {name}"), _native.Channel(f"result of {name}")


def _result_of(message: Any, host: str, asked: _net_calls.Asked) -> list[Any]:
    """Returns the value and the failure of a call; one of them is None.

    Raises:
        BadUse: the message is not a result.
    """
    pair = isinstance(message, list) and len(message) == 2
    if pair and (message[1] is None or isinstance(message[1], (dict, _pickling.Failure))):
        return list(message)
    raise BadUse(
        f"host {host} sent something that is not a result of {asked.run}: {message!r:.100}. Has it another version of Weft?"
    )


PATIENCE = 10.0  # seconds


class _Far(Elsewhere, abc.ABC):
    _way = "network"

    def __init__(self, network: Any, patience: float, working_dir: Any = None) -> None:
        self._network, self._patience = network, patience
        self._working_dir = working_dir

    @abc.abstractmethod
    def _begun(self, asked: _net_calls.Asked) -> tuple[str, Any]:
        """Returns the host's name, and a session with one of its OS processes."""

    def _asked_and_begun(
        self, function: Any, many: bool = False, working_dir: Any = None
    ) -> tuple[_net_calls.Asked, str, Any]:
        """Returns the request for the function, and the result of _begun() for it. If a file
        changes while it is sent, the call is tried again with the new file, TRIES times in all.
        """
        tries = TRIES
        while True:
            asked = _net_calls.asked_of(function, working_dir or self._working_dir)
            asked = asked._replace(many=many)
            try:
                return (asked, *self._begun(asked))
            except _net_parcels.Changed:
                tries -= 1
                if not tries:
                    raise

    def _over(self, host: str, home: str, died: bool) -> None:
        """Records that a call on that host has ended."""

    @abc.abstractmethod
    def _processes(self) -> int:
        """Returns how many OS processes there are.

        Raises:
            BadUse: there is no host.
        """

    def _session(self, name: str, asked: _net_calls.Asked, soon: float | None = None) -> Any:
        meeting = self._network._meeting
        if self._network._closed:
            raise BadUse("this program has left the network: join again")
        begins = meeting.begin_call(name, asked.request(), self._patience, soon, asked.parcel)
        return _net_loop.wait(self._network._loop, begins)

    def call(
        self,
        function: Any,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        attempt: _host.Attempt | None = None,
    ) -> Any:
        """Runs function(*args, **keywords) on a host, as a process. The ends in the arguments go
        with the process.

        Raises:
            What the function raised, with its traceback as the cause; Cancelled, once the
            cancellation has ended the process; ProcessDied; ConnectionError, if no host answers;
            BadUse, if the host refuses, or something in the call cannot be sent.
        """
        asked, host, session = self._asked_and_begun(function)
        died = False
        try:
            call = self._far_call(host, session)
            with _remote_calls.give_up_by(session._give_up), _remote_calls.called(call):
                return self._run(asked, host, session, args, keywords, attempt)
        except ProcessDied:
            died = True
            raise
        finally:
            self._over(host, session._answer_fields["home"], died)
            session._link.close("the call is over")
            self._hear_out(session)

    def _hear_out(self, session: Any) -> None:
        """Reads the text that the call has printed, if it is to be printed here. _hear_out is
        called when the call has ended.
        """

    def _run(
        self,
        asked: _net_calls.Asked,
        host: str,
        session: Any,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        attempt: _host.Attempt | None,
    ) -> Any:
        given: dict[str, Any] = {}  # the ends, by their names in the host

        def lend(end: Any) -> str:
            name = f"{_host.KEPT if attempt else 'end'}{len(given) + 1}"
            given[name] = end
            return name

        link = session._link
        cancelled: Cancelled | None = None
        orders, result = _channels_of(asked.name)
        orders_out, answer = orders.writer(), result.reader()
        show = _observers.elsewhere(f"host {host}", orders, result)
        try:
            packed = _net_calls.packed(asked.name, args, keywords, lend, session.trusted)
            del args, keywords
            try:
                for name in list(given):
                    if attempt is None:
                        link.give(given.pop(name), name)
                    else:
                        attempt.give(link, given.pop(name), name)
                link.give(orders.reader(), "orders")
                link.give(result.writer(), "result")
            except BadUse:
                if not session._carried.done():
                    raise
                raise PeerDied("the session ended before the call had begun") from None
            while True:  # repeated until the host knows of the call and will release the ends
                try:
                    orders_out.write(packed)
                    break
                except Cancelled as error:
                    cancelled = error
            if cancelled is not None:
                orders_out.retire()
            while True:
                try:
                    value, failure = _result_of(answer.read(), host, asked)
                    break
                except Cancelled as error:
                    cancelled = error
                    with contextlib.suppress(BadUse):
                        orders_out.retire()
        except (PeerDied, Retired):
            if attempt is not None:
                attempt.died, attempt.cancelled = True, cancelled
            raise self._died(asked.name, host, session) from None
        finally:
            show()
            for end in (answer, orders_out):
                with contextlib.suppress(BadUse):  # the end is already retired
                    end.retire()
        if failure is not None:
            raise _pickling.of_call(_net_calls.exception_of(failure, asked), cancelled)
        return _user_values.opened(value)

    def _far_call(self, host: str, session: Any) -> _remote_calls.FarCall:
        """Returns the session's call, in the form in which its agent can be asked where the call
        is.
        """
        network, call = self._network, str(session._answer_fields.get("call"))

        def ask() -> cf.Future[list[str] | None]:
            if network is None:
                raise BadUse("it was reached without a network, and has no agent to ask")
            return _net_loop.begin(network._loop, network._meeting.where(host, call))

        return _remote_calls.FarCall(
            host, session._answer_fields.get("pid"), ask, _native.current_process()
        )

    def _died(self, name: str, host: str, session: Any) -> WeftError:
        """Returns the error of a call whose session ended before the call had a result."""
        if (other := session._other_version()) is not None:
            return other  # type: ignore[no-any-return]
        fate = None
        call = str(session._answer_fields.get("call"))
        with contextlib.suppress(BadUse):
            if not session._given_up:  # a call that was given up has not died
                fate = _net_loop.call(self._network._loop, self._network._meeting.fate(host, call))
        pid = session._answer_fields.get("pid")
        with contextlib.suppress(KeyError, TypeError, ValueError):
            if fate is not None:
                return ProcessDied(
                    name,
                    int(fate["pid"]),
                    int(fate["returncode"]),
                    str(fate["stack"]),
                    fate["memory"] is True,
                    str(fate["stderr"]),
                    host,
                )
        return ProcessDied(name, pid, None, host=host)


class FarHost(_Far):
    """A host on another machine. `Network.host` returns one: `worker(…).on(network.host("gpu1"))`.

    Attributes:
        name: the name of the host.
    """

    def __init__(self, network: Any, name: str, patience: float, working_dir: Any = None) -> None:
        super().__init__(network, patience, working_dir)
        self.name = _net_named.checked(name)

    def _begun(self, asked: _net_calls.Asked) -> tuple[str, Any]:
        return self.name, self._session(self.name, asked)

    def _processes(self) -> int:
        until = time.monotonic() + self._patience
        while True:
            for host in _net_loop.wait(self._network._loop, self._network._meeting.hosts()):
                if host.name == self.name:
                    return max(int(host.hosts), 1)
            if time.monotonic() > until:
                raise BadUse(
                    f"there was no host {self.name!r} within {self._patience:g} seconds: "
                    "`weft host --name` starts one, `weft net ls` shows them"
                )
            _native.sleep(0.1)

    def __repr__(self) -> str:
        return f"<host {self.name!r} of {self._network!r}>"


class FarHosts(_Far):
    """All hosts of a network that run the called function. `Network.hosts` returns this object. The
    first call of a function waits until the requested number of hosts may run it. A call goes to
    the host on which this program has the fewest calls for each of the host's OS processes. A host
    that does not answer, or whose certificate does not grant its name, is skipped until it is
    announced again. A host that has left, or has no ticket, is skipped while the call asks others.
    """

    def __init__(self, network: Any, n: int, patience: float, working_dir: Any = None) -> None:
        super().__init__(network, patience, working_dir)
        whole("hosts: how many", n, 1)
        # a signal handler can make a call on a thread that holds the lock
        self._lock = threading.RLock()
        self._least = n
        self._enough: set[str] = set()  # the functions for which n hosts were found
        self._looked = 0.0
        self._agents: list[_net_named.Host] = []
        self._lost: set[str] = set()  # the homes of agents that do not answer
        self._running: dict[str, int] = {}  # home of an agent → calls that run at that agent
        until = time.monotonic() + patience
        while len(self._look(fresh=True)) < n:
            if time.monotonic() > until:
                raise BadUse(
                    f"there are {len(self._agents)} hosts, and {n} were asked for, after {patience:g} seconds: `weft host` starts one, "
                    "`weft net ls` shows them"
                )
            _native.sleep(0.1)

    def _look(self, fresh: bool) -> list[_net_named.Host]:
        """Returns the announced hosts, as far as this program knows."""
        with self._lock:
            known = [h for h in self._agents if h.home not in self._lost]
            if known and not fresh and time.monotonic() < self._looked + FRESH:
                return known
        try:
            available = _net_loop.wait(self._network._loop, self._network._meeting.hosts())
        except BadUse:  # the server is down, so the known hosts stay in use
            if not known:
                raise
            return known
        with self._lock:
            self._agents, self._looked = available, time.monotonic()
            return [h for h in available if h.home not in self._lost]

    def _begun(self, asked: _net_calls.Asked) -> tuple[str, Any]:
        until = time.monotonic() + self._patience
        fresh = False
        asked_before: set[str] = set()
        # the error of the last host that closed the connection, or whose certificate has the name
        # of another host
        closed: BadUse | None = None
        while True:
            available = self._look(fresh)
            able = [h for h in available if asked.runs_on(h.allow)]
            if available and not able:
                there = ", ".join(h.name for h in available)
                what = "source" if asked.parcel is not None and asked.parcel.folder else asked.run
                raise BadUse(
                    f"{asked.run} is allowed on none of the hosts that are there ({there}): start their agents with --allow {what}"
                )
            if able and len(able) < self._least and asked.run not in self._enough:
                if time.monotonic() > until:
                    raise BadUse(
                        f"{asked.run} is allowed on {len(able)} of the hosts that are there ({', '.join(h.name for h in able)}), "
                        f"and {self._least} were asked for, after {self._patience:g} seconds: start more agents with --allow {asked.run}"
                    )
                _native.sleep(0.1)
                fresh = True
                continue
            if able:
                self._enough.add(asked.run)
                others = [h for h in able if h.home not in asked_before]
                if not others:
                    asked_before.clear()
                with self._lock:
                    host = min(
                        others or able,
                        key=lambda h: self._running.get(h.home, 0) / max(h.hosts, 1),
                    )
                    self._running[host.home] = self._running.get(host.home, 0) + 1
                try:
                    session = self._session(host.name, asked, _net_named.SOON)
                    if (
                        session._answer_fields["home"] != host.home
                    ):  # another agent has taken the name over
                        with self._lock:
                            self._running[session._answer_fields["home"]] = (
                                self._running.get(session._answer_fields["home"], 0) + 1
                            )
                            self._running[host.home] -= 1
                    return host.name, session
                except _net_named.NotYet:  # the host might have left since the list was made
                    self._over(host.name, host.home, died=False)
                    if time.monotonic() > until:
                        raise
                    asked_before.add(host.home)
                except (ConnectionError, _net_link.Closed, _net_link.NameNotGranted) as error:
                    closed = error if isinstance(error, BadUse) else closed
                    self._over(host.name, host.home, died=False)
                    with self._lock:
                        self._lost.add(host.home)
                except BaseException:
                    self._over(host.name, host.home, died=False)
                    raise
            elif time.monotonic() > until:
                raise closed or BadUse(
                    f"no host was there within {self._patience:g} seconds: `weft host` starts one, `weft net ls` shows them"
                )
            else:
                _native.sleep(0.1)  # no notification arrives when a host joins
            fresh = True

    def _over(self, host: str, home: str, died: bool) -> None:
        with self._lock:
            self._running[home] -= 1

    def _processes(self) -> int:
        return sum(h.hosts for h in self._look(fresh=True)) or 1

    def __enter__(self) -> FarHosts:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing: the hosts belong to their agents, and the network stays joined. So `with
        Hosts(4) as hosts` can be replaced by `with net.join().hosts(4) as hosts`.
        """

    def __len__(self) -> int:
        return len(self._look(fresh=False))

    @property
    def names(self) -> list[str]:
        """The names of the hosts that are announced now."""
        return [h.name for h in self._look(fresh=True)]

    def __repr__(self) -> str:
        return f"<the hosts of {self._network!r}>"


class OwnHosts(FarHosts):
    """All hosts of a network that this object has joined: Hosts("nats://HOST:PORT") returns it. The
    program leaves that network at the end of the `with` block.
    """

    def __init__(self, network: Any) -> None:
        try:
            super().__init__(network, 1, PATIENCE)
        except BaseException:
            network.close()
            raise

    def close(self) -> None:
        """Leaves the network. A second call does nothing."""
        self._network.close()

    def __exit__(self, *_: object) -> None:
        self.close()
