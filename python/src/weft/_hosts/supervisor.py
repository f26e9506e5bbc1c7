"""Workers that are started again when they die (rule 7.13): `worker.on(Supervisor(...))`.

    call(): an attempt ──it ends──► its result, or what it raised
        └─its OS process dies──► a pause ──► the next attempt … the last: its death is raised
             └─the call was cancelled before: Cancelled

Invariants
- The supervisor holds the call's ends during all attempts except the last, so that they survive the
  death of an attempt: see SupervisedPort in native/wire/far.hpp. The last attempt has the ends to
  itself, as a call without a supervisor.
- Before the death of an attempt is known here, any value that it had in hand has gone back or is in
  the attempt's list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft._extension import native as _native
from weft._hosts import host as _host
from weft._hosts import hosts as _hosts
from weft._watching import deaths as _deaths
from weft.errors import BadUse, ProcessDied

__all__ = ["Supervisor"]

LONGEST = 10.0  #: the longest time between two attempts, in seconds


def _unpacked(value: Any) -> Any:
    try:
        return _native._unpacked(value)
    except Exception as error:  # the death and the remaining values must still be reported
        return error


class Supervisor:
    """A place for processes that are started again when their OS process dies:
    `worker.on(Supervisor(restarts=3))(…)`.

    A process there has an OS process of its own, or runs on `hosts`. Its ends stay open until it
    has ended for good, so that the other sides of its channels learn of no death before that. Each
    time it starts from the beginning, with the same arguments.

    If the worker dies inside a block `with reader.extended() as value:`, that value is the next to
    be read, before those written later; or it is reported. A plain read has taken its value, which
    is lost with the worker. So with such blocks no job is lost; but one may be done twice, if the
    worker dies between its work and the end of the block.

    Args:
        hosts: Hosts, or one of them; None: each attempt has an OS process of its own.
        restarts: how often a process is started again. None means without end.
        backoff: seconds before the first restart. The pause is doubled each time, up to 10 seconds.
        report: called with the ProcessDied and the list of values that were in hand, instead of
            giving them back; also for the last death. For a value that cannot be unpickled here the
            list has the error that says why. An exception that it raises ends the supervision.
    Raises:
        BadUse: an argument makes no sense.
    """

    def __init__(
        self,
        hosts: _hosts.Elsewhere | None = None,
        *,
        restarts: int | None = 3,
        backoff: float = 0.1,
        report: Callable[[ProcessDied, list[Any]], object] | None = None,
    ) -> None:
        if hosts is not None and not isinstance(hosts, _hosts.Elsewhere):
            raise BadUse(f"Supervisor({hosts!r}): give it Hosts, one of them, or nothing")
        if hosts is not None and hosts._way == "fork":
            raise BadUse(
                "Supervisor: Hosts(start='fork') cannot start a host again, because there are threads by then: "
                "use start='forkserver'"
            )
        _hosts.whole("Supervisor: restarts", restarts, 0)
        _hosts.seconds("Supervisor: backoff", backoff)
        if report is not None and not callable(report):
            raise BadUse(f"Supervisor: report must be a function, not {report!r}")
        self._run = _host.run_away if hosts is None else hosts.call
        self._way = "spawn" if hosts is None else hosts._way
        self._restarts, self._backoff, self._report = restarts, backoff, report

    def __repr__(self) -> str:
        often = "always" if self._restarts is None else f"{self._restarts} times"
        return f"<a Supervisor that restarts {often}>"

    def call(self, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Runs function(*args, **keywords) until it ends, or has died once too often.

        Raises:
            What the function raised; the last ProcessDied; Cancelled; BadUse; what the report
            raised.
        """
        deaths = 0
        while True:
            in_hand: list[Any] | None = None if self._report is None else []
            attempt = _host.Attempt(deaths == self._restarts, in_hand)
            try:
                return self._run(function, args, keywords, attempt)
            except ProcessDied as error:
                if not attempt.died:  # an OS process that the function has started died
                    raise
                if self._report is not None:
                    self._report(error, [_unpacked(value) for value in in_hand or ()])
                if attempt.last:
                    raise
                if attempt.cancelled is not None:  # the process was asked to end, and has ended
                    raise attempt.cancelled from error
                deaths += 1
                _deaths.note("restarts")
                import logging

                logging.getLogger("weft").warning(
                    "%s; it is started again (%d%s)",
                    str(error).partition("\n")[0].rstrip(":"),
                    deaths,
                    "" if self._restarts is None else f" of {self._restarts}",
                )
            wait = min(LONGEST, self._backoff * 2 ** min(deaths - 1, 20))
            if wait > 0:
                _native.sleep(wait)
