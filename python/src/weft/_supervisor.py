"""Workers that are started again when they die (rule 7.13): `worker.on(Supervisor(...))`.

    call(): an attempt ──it ends──► its result, or what it raised
            └─its OS process dies──► back-off ──► the next attempt … the last: its death is raised

Invariants
- Who supervises holds the call's ends during all attempts but the last, and an attempt's death is
  none of theirs: see SupervisedPort in native/far.hpp. The last attempt has the ends alone, as a
  call that nobody supervises.
- A value that was in hand has gone back, or is in the attempt's list, before the attempt's death is
  known here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from weft import _host, _hosts
from weft._extension import native as _native
from weft.errors import BadUse, ProcessDied

__all__ = ["Supervisor"]

_logger = logging.getLogger("weft")

LONGEST = 10.0  #: seconds between two attempts, at most


def _unpacked(value: Any) -> Any:
    try:
        return _native._unpacked(value)
    except Exception as error:  # the death and the other values are to be reported
        return error


class Supervisor:
    """Where processes run that are started again when their OS process dies:
    `worker.on(Supervisor(restarts=3))(…)`.

    A process there has an OS process of its own, or runs on `hosts`. Its ends stay open until it
    has ended for good, so nobody on the other side of a channel learns of a death before that. It
    begins anew each time, with the same arguments.

    A value in whose block (`with reader.extended() as value:`) the worker died is the next to be
    read, before what was written later; or it is reported. A plain read has taken its value: that
    is lost with the worker. So a job may be done twice, if the worker died between its work and the
    end of the block, and none is lost.

    Args:
        hosts: Hosts, or one of them; None: an OS process of its own for each attempt.
        restarts: how often a process is started again; None: always.
        backoff: seconds before the first of them; doubled each time, at most 10.
        report: called with the ProcessDied and the list of values that were in hand, in place of
            giving them back; also for the last death. A value that cannot be unpickled here is in
            the list as the error that says why. What it raises ends the supervision.
    Raises:
        BadUse: an argument that makes no sense.
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
                "Supervisor: Hosts(start='fork') start nobody again, for there are threads by then: "
                "use start='forkserver'"
            )
        _hosts.whole("Supervisor: restarts", restarts, 0)
        _hosts.seconds("Supervisor: backoff", backoff)
        if report is not None and not callable(report):
            raise BadUse(f"Supervisor: report must be a function, not {report!r}")
        self._run = _host.run_away if hosts is None else hosts.call
        self._restarts, self._backoff, self._report = restarts, backoff, report

    def __repr__(self) -> str:
        often = "always" if self._restarts is None else f"{self._restarts} times"
        return f"<a Supervisor that restarts {often}>"

    def call(self, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Runs function(*args, **keywords) until it ends, or has died once too often.

        Raises:
            what it raised; the last ProcessDied; Cancelled; BadUse; what the report raised.
        """
        deaths = 0
        while True:
            in_hand: list[Any] | None = None if self._report is None else []
            attempt = _host.Attempt(deaths == self._restarts, in_hand)
            try:
                return self._run(function, args, keywords, attempt)
            except ProcessDied as error:
                if not attempt.died:  # of a process that this one started
                    raise
                if self._report is not None:
                    self._report(error, [_unpacked(value) for value in in_hand or ()])
                if attempt.last:
                    raise
                deaths += 1
                _logger.warning(
                    "%s; it is started again (%d%s)",
                    str(error).partition("\n")[0].rstrip(":"),
                    deaths,
                    "" if self._restarts is None else f" of {self._restarts}",
                )
            wait = min(LONGEST, self._backoff * 2 ** min(deaths - 1, 20))
            if wait > 0:
                _native.sleep(wait)
