"""Checks the reduced search of `weft check`: for random networks, compares the outcomes of its few
schedules with those of all schedules, and with the model's.

    python -m conformance.checking SEEDS [--features A,B] [--size N] [--time any] [--model]
                                         [--most N]
    python -m conformance.checking 0-2000 --model          # the soak

An outcome is what each process saw and how it ended; the sets of outcomes are compared. A network
with more schedules than N of --most is left out, and counted.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import explore, networks
from .explore import frozen
from .python_driver import PythonDriver

#: What random networks have here, unless others are asked for.
FEATURES = frozenset({"select", "output guards", "buffer", "retire", "try", "priority", "ends"})
#: Groups of features, for the slice of the tests and for the soak.
GROUPS: tuple[tuple[str, frozenset[str]], ...] = (
    ("quiet", FEATURES),
    (
        "quiet",
        FEATURES | {"overflow", "poison", "barrier", "nested", "extended", "strength", "fail"},
    ),
    ("quiet", FEATURES | {"mobile", "sequence", "spawn", "fail", "time"}),
    ("any", FEATURES | {"time"}),
    ("any", frozenset({"select", "output guards", "buffer", "retire", "limit", "try"})),
    ("quiet", frozenset({"select", "buffer", "retire", "limit", "cancel", "ended", "try"})),
    ("quiet", networks.FEATURES - {"yield"}),
    ("any", networks.FEATURES - {"yield"}),
)

Outcome = Any


def _plain(out: Any) -> Any:
    """Returns the outcome of an operation, without the details of its exception."""
    out = list(out)
    if out[0] != "ok":
        return (out[0],)
    return frozen(
        [
            tuple(None if isinstance(y, dict) else y for y in x)
            if isinstance(x, (list, tuple))
            else x
            for x in out
        ]
    )


def outcome_of(history: list[dict[str, Any]]) -> Outcome:
    """Returns the outcomes of each process's operations, and how the run ended."""
    log: dict[str, list[Any]] = {}
    for r in history:
        if r["e"] not in ("ret", "run", "end"):
            continue
        who, out = r.get("p", "run"), r["out"]
        log.setdefault(str(who), []).append(
            out[0] if who == "run" else ("end", out[0]) if r["e"] == "end" else _plain(out)
        )
    return tuple(sorted((who, tuple(seen)) for who, seen in log.items()))


@dataclass
class Searched:
    """The outcomes that a search has found."""

    outcomes: set[Outcome]
    runs: int
    complete: bool
    kinds: set[str]


def searched(
    net: dict[str, Any], features: frozenset[str], search: str, **options: Any
) -> Searched:
    """Returns all outcomes that a search finds."""
    from weft._checking.engine import Options, Search

    driver = PythonDriver("coroutines", features)
    s = Search(lambda: outcome_of(driver.run(net, 0)), Options(search, **options))
    found = Searched(set(), 0, False, set())
    for outcome in s:
        found.kinds.add(outcome.kind)
        if outcome.value is not None:
            found.outcomes.add(outcome.value)
    found.runs, found.complete = s.runs + s.blocked, s.complete or s.cut == {"early"}
    return found


def modelled(net: dict[str, Any], limit: int = 300_000) -> set[Outcome]:
    """Returns the model's outcomes.

    Raises:
        RuntimeError: the network has more than `limit` states.
    """

    def seen(log: Any) -> Outcome:
        return tuple(
            sorted(
                (
                    str(who),
                    tuple(x[0] if who == "run" else x if x[0] == "end" else _plain(x) for x in out),
                )
                for who, out in log
                if who != "dropped"
            )
        )

    return {seen(log) for log in explore.outcomes(net, grain="cores", limit=limit, check=False)}


def _ended_well(outcomes: set[Outcome]) -> set[Outcome]:
    """Returns the outcomes. Of a run that did not end well it keeps only how the run ended."""
    return {x if ("run", ("ok",)) in x else dict(x)["run"] for x in outcomes}


@dataclass
class Compared:
    """The comparison of one network."""

    seed: int
    #: It has a yield. In the reduced search the others need not go first then (SEMANTICS 7.7), so that
    #: search may have outcomes that "all" has not.
    yields: bool = False
    all: Searched | None = None  # None if the network has too many schedules
    reduced: Searched | None = None
    # None if this was not asked for, or if there are too many states.
    model: set[Outcome] | None = None

    @property
    def wrong(self) -> str:
        """What is wrong with the search; "" if nothing is."""
        if self.all is None or self.reduced is None:
            return ""
        if not self.reduced.complete:
            return f"the reduced search does not end within {self.reduced.runs} runs, all schedules are {self.all.runs}"
        if "not the same" in self.all.kinds | self.reduced.kinds:
            return "it is not the same twice"
        missing = self.all.outcomes - self.reduced.outcomes
        extra = set() if self.yields else self.reduced.outcomes - self.all.outcomes
        if missing or extra:
            return f"{len(missing)} outcomes are missing, such as {next(iter(missing | extra))}"
        if self.model is not None and (
            more := _ended_well(self.reduced.outcomes) - _ended_well(self.model)
        ):
            return f"the model has not {next(iter(more))}"
        return ""


def _has(part: Any, statement: list[Any]) -> bool:
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return part == statement or any(_has(it, statement) for it in inner)


def compare(
    seed: int,
    features: frozenset[str] = FEATURES,
    *,
    size: int = 3,
    times: str = "quiet",
    most: int = 20_000,
    seconds: float = 8.0,
    model: bool = False,
) -> Compared:
    """Compares the searches of one random network."""
    net = networks.generate(seed, size, features)
    result = Compared(seed, yields=_has(net, ["yield"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        every = searched(net, features, "all", time=times, early=1, schedules=most, seconds=seconds)
        if not every.complete and "not the same" not in every.kinds:
            return result
        result.all = every
        result.reduced = searched(
            net, features, "reduced", time=times, early=1, schedules=2 * most, seconds=2.5 * seconds
        )
    if model:
        try:
            result.model = modelled(net)
        except RuntimeError:
            result.model = None
    return result


def _seeds(text: str) -> Iterator[int]:
    first, _, last = text.partition("-")
    return iter(range(int(first), int(last or int(first) + 1)))


def main() -> int:
    p = argparse.ArgumentParser(
        description="The reduced search against all schedules and the model."
    )
    p.add_argument("seeds", help="such as 0-2000")
    p.add_argument("--features", help="those of the networks (else the groups in turn)")
    p.add_argument("--size", type=int, default=3)
    p.add_argument("--time", choices=("quiet", "any"), default="quiet")
    p.add_argument("--most", type=int, default=20_000)
    p.add_argument("--seconds", type=float, default=8.0)
    p.add_argument("--model", action="store_true")
    a = p.parse_args()
    compared = left_out = wrong = every = reduced = 0
    begun = time.monotonic()
    for seed in _seeds(a.seeds):
        times, features = (
            (a.time, frozenset(a.features.split(","))) if a.features else GROUPS[seed % len(GROUPS)]
        )
        c = compare(
            seed,
            features,
            size=a.size,
            times=times,
            most=a.most,
            seconds=a.seconds,
            model=a.model and times == "quiet",
        )
        if c.all is None or c.reduced is None:
            left_out += 1
            continue
        compared, every, reduced = compared + 1, every + c.all.runs, reduced + c.reduced.runs
        if c.wrong:
            wrong += 1
            print(f"seed {seed} ({times}; {', '.join(sorted(features))}): {c.wrong}", flush=True)
    print(
        f"{compared} networks compared, {left_out} with too many schedules left out, {wrong} wrong; "
        f"{every} schedules, reduced {reduced}; {time.monotonic() - begun:.0f} s"
    )
    print(f"{compared - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
