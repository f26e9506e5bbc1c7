"""Runs a network under the model, either once with a seeded scheduler, or under every schedule, to
find all its outcomes.
"""

from __future__ import annotations

import contextlib
import gc
import random
from collections.abc import Iterator
from typing import Any

from .interp import Record, Sim


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Turns the garbage collector off for a search. States contain no cycles, so each state is
    freed with its last reference. The collector would only traverse all pending states again and
    again.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def run(
    net: dict[str, Any],
    seed: int = 0,
    grain: str = "atomic",
    limit: int = 100_000,
    check: bool = False,
    clock: str = "virtual",
) -> list[Record]:
    """Runs a network under a seeded scheduler and returns its history (README.md, "Histories").

    In the atomic grain an operation arrives in the turn in which it was called, as on one
    scheduler.

    Args:
        clock: with "real", timers may go off at any moment.
        check: assert the model's invariants after every step.

    Raises:
        RuntimeError: the network does not end within `limit` steps.
    """
    rng = random.Random(seed)
    sim = Sim(net, grain, clock=clock)
    history: list[Record] = []
    for _ in range(limit):
        steps = sim.steps()
        if not steps:
            history.append({"e": "stat", "dropped": [c.dropped for c in sim.chans]})
            return history
        if grain == "atomic":
            steps = [s for s in steps if s[0] == "arrive"] or steps
        record = sim.apply(rng.choice(steps))
        if check:
            sim.check_invariants()
        if record is not None:
            history.append(record)
    raise RuntimeError(f"the network did not end within {limit} steps (seed {seed})")


def frozen(x: Any) -> Any:
    """Turns lists and dictionaries into tuples, which can be put into sets."""
    if isinstance(x, dict):
        return tuple((k, frozen(v)) for k, v in sorted(x.items()))
    return tuple(frozen(v) for v in x) if isinstance(x, (list, tuple)) else x


@uncollected()
def outcomes(
    net: dict[str, Any], grain: str = "atomic", limit: int = 200_000, check: bool = True
) -> set[tuple]:
    """Returns all outcomes of a small network: a set of tuples of (pid or "run", what its
    operations returned, in order).

    Raises:
        RuntimeError: there are more than `limit` states.
    """
    start = Sim(net, grain)
    todo: list[tuple[Sim, dict[Any, tuple]]] = [(start, {})]
    seen = set()
    results = set()
    while todo:
        sim, log = todo.pop()
        steps = sim.steps()
        if not steps:
            log = {**log, "dropped": tuple(c.dropped for c in sim.chans)}
            results.add(tuple(sorted(log.items(), key=lambda kv: str(kv[0]))))
            continue
        if grain == "atomic":
            arrive = [s for s in steps if s[0] == "arrive"]
            steps = [s for s in arrive if s[1] == arrive[0][1]] if arrive else steps
        for k, step in enumerate(steps, 1):
            # The last step changes the state in place: nothing uses the state afterwards.
            new = sim if k == len(steps) else sim.clone()
            record = new.apply(step)
            if check:
                new.check_invariants()
            new_log = log
            if record is not None and record["e"] in ("ret", "run", "end"):
                who = record.get("p", "run")
                entry = frozen(record["out"]) if record["e"] != "end" else ("end", record["out"][0])
                new_log = {**log, who: (*log.get(who, ()), entry)}
            mark = hash((new.key(), tuple(sorted(new_log.items(), key=lambda kv: str(kv[0])))))
            if mark not in seen:
                if len(seen) >= limit:
                    raise RuntimeError(f"more than {limit} states: make the network smaller")
                seen.add(mark)
                todo.append((new, new_log))
    return results
