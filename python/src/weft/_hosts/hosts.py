"""Hosts: OS processes that stay alive and run many processes of a program, several at a time.

    Hosts(n) ──starts them at once──► call() on the host with the fewest calls
        ──the host dies──► ProcessDied; the next call gets a new host
        ──max_tasks calls, or a module was edited──► the host gets no more calls, and is released
          after its last call

Invariants (of `_lock`)
- A place has at most one host for new calls. A host that was replaced is released when its last
  call ends, by the thread of that call.
- A host's `running` counts the calls that were promised to it; a place's `coming` counts the calls
  that wait for its next host.
- A host is started without the lock, since the user's code runs then (rule 12.1). The one thread
  that starts it is the place's `starter`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

from weft._extension import native as _native
from weft._hosts import host as _host
from weft.errors import BadUse, ProcessDied

__all__ = ["Elsewhere", "Hosts", "OneHost"]


class Elsewhere:
    """A place outside this OS process where processes can run. `worker.on(…)` and a Supervisor
    accept it.
    """

    _stops = False  # whether the place can end one call without ending others
    _way = ""  # how the OS processes of this place start: one of _host.WAYS, or "network"; "board"

    def call(
        self,
        function: Any,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        attempt: _host.Attempt | None = None,
    ) -> Any:
        """Runs function(*args, **keywords) in the place. Raises what the function raises,
        ProcessDied or BadUse.
        """
        raise NotImplementedError

    def placed(self, function: Any) -> Any:
        """Returns the process function for this place, which is a board (weft.boards)."""
        raise NotImplementedError

    def placed_component(
        self, component: Any, name: str, signature: Any, parameters: list[Any]
    ) -> Any:
        """Returns the process function for this place, which is a board, of a component's
        process. Raises BadUse: this board runs no components."""
        raise BadUse(
            f"{name}.on({self!r}): this board runs MicroPython, and no processes in C++: use a board "
            "without MicroPython (weft.boards.bare)"
        )


# Returns the host of that name if the program has joined a network (weft.net), otherwise None.
named: Callable[[str], Elsewhere | None] = lambda name: None  # noqa: E731


class _Place:
    """The place of one host. A host that dies is replaced by a new one."""

    def __init__(self, setting: _host.Setting) -> None:
        self.setting = setting
        self.host: _host.Host | None = None
        self.starter: int | None = None  # the identifier of the thread that starts the next host
        self.coming = 0  # how many calls wait for the next host
        self.failures = 0  # how many hosts of this place have died in a row
        self.deaths = 0


def whole(what: str, value: Any, least: int | None) -> None:
    """Checks a number, which `what` names in the error.

    Raises:
        BadUse: the value is neither None nor a whole number of at least `least`.
    """
    if value is None:
        return
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or (least is not None and value < least)
    ):
        these = "a whole number" if least is None else f"a whole number from {least} on"
        raise BadUse(f"{what} must be {these}, not {value!r}")


def seconds(what: str, value: Any) -> None:
    """Checks a time in seconds, which `what` names in the error.

    Raises:
        BadUse: the value is not a time of 0 seconds or more.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not value >= 0
        or (isinstance(value, int) and value > sys.float_info.max)
    ):
        raise BadUse(f"{what} must be seconds from 0 on, not {value!r}")


class Hosts(Elsewhere):
    """OS processes that stay warm and run many processes: `worker.on(hosts)(…)`,
    `worker(…).on(hosts[0])`.

    Args:
        n: the number of hosts; None: as many as the CPUs that this process may use. With the URL of
            a network, "nats://HOST:PORT", this program joins the network (`weft.net.join`), and the
            result is what its `hosts()` gives; at the end of its `with` block, or by `close()`,
            the program leaves the network. There are no other arguments then.
        preload: modules that each host imports first.
        initializer, initargs: called in each host before anything else; if it raises, so does every
            call on that host.
        affinity: for each host in turn the CPUs on which it may run; or "spread": one CPU for each
            host.
        memory_limit: bytes of address space of each host (RLIMIT_AS).
        nice: added to the niceness of each host.
        max_tasks: the number of calls after which a host is replaced by a fresh one.
        threads: the number of threads of BLAS and OpenMP in each host (OMP_NUM_THREADS and the
            like); None: as set in the environment.
        restarts: how often in all each host is replaced after its death; None: always.
        start: "spawn": each host is a fresh interpreter. "forkserver": a copy of a server that has
            imported the preloaded modules, which takes some milliseconds; the copy has the
            environment with which the server started. "fork": a copy of this program, with all that
            is in its memory; this is possible only while this program has one thread, and a host
            that died is not replaced.
        backoff: seconds before the second start in a row that follows a death; doubled each time,
            at most 10.
    Raises:
        BadUse: an argument makes no sense; there is no such network, or no host in it within 10
            seconds.
        OSError: the system cannot start a process.
    """

    def __new__(cls, n: int | str | None = None, **settings: Any) -> Any:
        """Returns the hosts of a network if `n` is its URL."""
        if not isinstance(n, str) or "://" not in n:
            return super().__new__(cls)
        if settings:
            raise BadUse(
                f"Hosts({n!r}): {', '.join(settings)} are for OS processes that this program starts. Those of a "
                "network are started by their agents (`weft host`)"
            )
        from weft import net

        return net._hosts_at(n)

    def __init__(
        self,
        n: int | str | None = None,
        *,
        preload: Sequence[str] = (),
        initializer: Any = None,
        initargs: tuple[Any, ...] = (),
        affinity: str | Sequence[Iterable[int]] | None = None,
        memory_limit: int | None = None,
        nice: int = 0,
        max_tasks: int | None = None,
        threads: int | None = 1,
        start: str = "spawn",
        restarts: int | None = None,
        backoff: float = 0.1,
    ) -> None:
        mine = sorted(_host.cpus_of_this_process())
        n = len(mine) if n is None else n
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise BadUse(
                f"Hosts({n!r}): the number of OS processes must be a whole number from 1 on"
            )
        whole("Hosts: max_tasks", max_tasks, 1)
        whole("Hosts: threads", threads, 1)
        whole("Hosts: memory_limit", memory_limit, 1)
        whole("Hosts: restarts", restarts, 0)
        whole("Hosts: nice", nice, None)
        seconds("Hosts: backoff", backoff)
        if initializer is not None and not callable(initializer):
            raise BadUse(f"Hosts: initializer must be a function, not {initializer!r}")
        if start not in _host.WAYS:
            raise BadUse(f"Hosts: start must be one of {', '.join(_host.WAYS)}, not {start!r}")
        if start == "fork" and max_tasks is not None:
            raise BadUse(
                "Hosts: start='fork' cannot start a fresh host after max_tasks, because there are threads by then: "
                "leave max_tasks out, or use start='forkserver'"
            )
        if isinstance(preload, str):
            raise BadUse(f"Hosts: preload must be a list of modules, as [{preload!r}]")
        if affinity == "spread":
            affinity = [[cpu] for cpu in mine]
        if isinstance(affinity, str) or (affinity is not None and not affinity):
            raise BadUse(f"Hosts: affinity must be 'spread' or sets of CPUs, not {affinity!r}")
        setting = _host.Setting(
            tuple(preload), initializer, initargs, None, memory_limit, nice, threads, start, True
        )
        _host.check_room(n)
        self._max_tasks, self._restarts, self._backoff = max_tasks, restarts, backoff
        self._way = start
        # The lock is re-entrant: a signal handler or a finaliser can acquire the lock on the thread
        # that already holds it.
        self._lock = threading.Condition(threading.RLock())
        self._closed = False
        self._places = [
            _Place(
                setting._replace(
                    affinity=None if affinity is None else _host.cpus(affinity[i % len(affinity)])
                )
            )
            for i in range(n)
        ]
        try:
            for place in self._places:
                place.host = host = self._new_host(place)
                host.begin(later=start == "fork")
            for place in self._places if start == "fork" else ():
                assert place.host is not None
                place.host.join()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, i: int) -> OneHost: ...

    @overload
    def __getitem__(self, i: slice) -> list[OneHost]: ...

    def __getitem__(self, i: int | slice) -> OneHost | list[OneHost]:
        """Returns one of the hosts, or for a slice a list of hosts.

        Raises:
            IndexError: there are fewer hosts.
        """
        if isinstance(i, slice):
            return [OneHost(self, place) for place in self._places[i]]
        return OneHost(self, self._places[i])

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{len(self)} hosts{' that are closed' if self._closed else ''}>"

    @property
    def pids(self) -> list[int]:
        """The pids of the OS processes that exist at this moment."""
        with self._lock:
            return [p.host.pid for p in self._places if p.host is not None]

    def close(self) -> None:
        """Releases all hosts, and waits until they have ended: a host ends when its calls have
        ended. A second call does nothing.

        If a call is starting a host at that moment, that call ends the host and is refused.
        """
        with self._lock:
            self._closed = True
            self._lock.notify_all()
            hosts = [p.host for p in self._places if p.host is not None]
        for host in hosts:  # all hosts are released first, so that they end at the same time
            host.let_go()
        for host in hosts:
            host.close()
        with self._lock:
            for place in self._places:
                place.host = None

    def call(
        self,
        function: Any,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        attempt: _host.Attempt | None = None,
    ) -> Any:
        """Runs function(*args, **keywords) on the host that has the fewest calls.

        Raises:
            What the function raised; ProcessDied; Cancelled; BadUse.
        """
        return self._call(None, function, args, keywords, attempt)

    def _call(
        self,
        place: _Place | None,
        function: Any,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        attempt: _host.Attempt | None,
    ) -> Any:
        place, host = self._begin(place, function)
        died = False
        try:
            return host.call(function, args, keywords, attempt)
        except ProcessDied as error:
            died = error.pid == host.pid
            raise
        finally:
            self._end(place, host, died)

    def _new_host(self, place: _Place) -> _host.Host:
        # This import is late, because a program without Hosts needs neither a parser nor digests.
        with _host.told_what_to_do():
            from weft._hosts import edits as _edits

        host = _host.Host(place.setting)
        # a forked host already has the modules that this program has imported
        if self._way != "fork":
            host.edits = _edits.Edits()
        return host

    def _begin(self, place: _Place | None, function: Any) -> tuple[_Place, _host.Host]:
        with self._lock:
            if place is None:
                place = min(self._places, key=lambda p: p.host.running if p.host else p.coming)
            place.coming += 1
            wait = (
                self._backoff * 2 ** min(place.failures - 2, 20)
                if place.host is None and place.failures > 1
                else 0.0
            )
        try:
            if wait:
                _native.sleep(min(10.0, wait))  # the process can be cancelled during this sleep
            while True:
                while (host := self._promised(place)) is None:
                    self._fill(place)
                try:
                    edited = [] if host.edits is None else host.edits.stale(function)
                except BaseException:  # raised by a signal handler, or by the function's attributes
                    self._end(place, host, died=False)
                    raise
                if not edited:
                    return place, host
                self._replace(place, host)
                host.edits.forget_compiled(edited)
        finally:
            with self._lock:
                place.coming -= 1

    def _promised(self, place: _Place) -> _host.Host | None:
        """Returns the place's host, after promising it one more call; or None if the caller must
        start a host.
        """
        me = threading.get_ident()
        with self._lock:
            if place.starter == me:
                raise BadUse(
                    "a call on a host while that host is being started, made from the arguments of its initializer: "
                    "make the call before, or on other Hosts"
                )
            self._lock.wait_for(lambda: place.starter is None or self._closed)
            if self._closed:
                raise BadUse("these Hosts are closed: make others, with Hosts(n)")
            if place.host is not None:
                place.host.running += 1
                place.host.begun += 1
                return place.host
            if self._restarts is not None and place.deaths > self._restarts:
                raise BadUse(
                    f"a host has died {place.deaths} times; restarts={self._restarts} allows {self._restarts}: "
                    "raise restarts=, or see its standard error for why it dies"
                )
            place.starter = me
            return None

    def _replace(self, place: _Place, host: _host.Host) -> None:
        """Takes back a call that was promised to a host, and lets the place start a fresh host."""
        with self._lock:
            host.running -= 1
            if place.host is host:
                place.host = None
            last = host.running == 0
        if last:
            host.close()

    def _fill(self, place: _Place) -> None:
        made, host = None, self._new_host(place)
        try:
            host.begin()
            made = host
        finally:
            with self._lock:
                place.starter = None
                if not self._closed:
                    place.host, made = made, None
                self._lock.notify_all()
            if made is not None:
                made.close()

    def _end(self, place: _Place, host: _host.Host, died: bool) -> None:
        with self._lock:
            host.running -= 1
            enough = self._max_tasks is not None and host.begun >= self._max_tasks
            if place.host is host:
                if died:
                    place.failures += 1
                    place.deaths += 1
                else:
                    place.failures = 0
                if died or enough:
                    place.host = None
            last = place.host is not host and host.running == 0 and not self._closed
        if last:
            host.close()


class OneHost(Elsewhere):
    """One of several hosts: `worker(…).on(hosts[0])`. If this host dies, a new one runs the next
    call."""

    def __init__(self, of: Hosts, place: _Place) -> None:
        self._of = of
        self._place = place
        self._way = of._way

    @property
    def pid(self) -> int | None:
        """The pid of the OS process, or None if it has died and no call has been made since."""
        host = self._place.host
        return None if host is None else host.pid

    def call(
        self,
        function: Any,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        attempt: _host.Attempt | None = None,
    ) -> Any:
        """Runs function(*args, **keywords) on this host: see Hosts.call()."""
        return self._of._call(self._place, function, args, keywords, attempt)
