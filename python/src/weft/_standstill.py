"""A standstill (rule 10.6): nothing can run, nothing is due, and yet no deadlock is proven.

Told once a run for the same places, as a warning of the logger ``weft``. From the facts of one moment
(python/native/partial.cpp); who notices it is said in cpp/include/weft/runtime/run.hpp.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from typing import Any

from weft._deadlocks import Place, Waiter

_LINES = 40  #: of processes, in a text

_logger = logging.getLogger("weft")


def text(waiters: list[Waiter], places: dict[int, Place], others: list[str], seconds: float) -> str:
    """What is told: who waits where, and what might still wake it. `others`: threads that are no processes."""
    paths = {w.id: w.path for w in waiters}
    waiting = sorted(
        (w for w in waiters if w.state == "places"), key=lambda w: (w.path, w.operation, w.id)
    )
    n = len(waiting)
    lines = [
        f"standstill: nothing has run for {seconds:g} s, and no timer, io call or socket is due; "
        f"{n} process{' waits' if n == 1 else 'es wait'}"
    ]
    for w in waiting[:_LINES]:
        holders: set[int] = set()
        unknown = []
        for key, writing in w.places:
            place = places[key]
            holders.update(place.readers if writing else place.writers)
            if (place.unknown_readers if writing else place.unknown_writers) or (
                place.is_channel and not (place.readers if writing else place.writers)
            ):
                unknown.append(place.name)
        names = (*(places[key].name for key, _ in w.places), *(f"{s} (ended)" for s in w.silent))
        line = f"  {w.path}: {w.operation} {', '.join(names)}".rstrip() + f" at {w.at}"
        if holders:
            line += (
                f"; held by {' and '.join(sorted(paths.get(i, 'another run') for i in holders))}"
            )
        if unknown:
            line += f"; an end of {', '.join(unknown)} is held by no process"
        lines.append(line)
    if n > _LINES:
        lines.append(f"  … and {n - _LINES} more")
    threads = f" ({', '.join(others)})" if others else ""
    lines.append(
        f"what may still wake them: a thread that is no process of this run{threads}, if it has an end that no process holds"
    )
    return "\n".join(lines)


def tell(facts: tuple[Any, Any], idents: Iterable[int], seconds: float) -> None:
    raw_waiters, raw_places = facts
    names = {t.ident: t.name for t in threading.enumerate()}
    others = sorted({names.get(i, f"thread {i}") for i in idents})
    _logger.warning(
        "%s",
        text(
            [Waiter(*raw) for raw in raw_waiters],
            {key: Place(*raw) for key, raw in raw_places.items()},
            others,
            seconds,
        ),
    )
