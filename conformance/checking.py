"""Checks the reduced search of `weft check`: for random networks, compares the outcomes of its few
schedules with those of all schedules, and with the model's.

    python -m conformance.checking SEEDS [--features A,B] [--size N] [--time any] [--model]
                                         [--ways] [--most N] [--for SECONDS] [--on BACKEND]
    python -m conformance.checking 0-2000 --model --ways   # the soak

An outcome is the observations of each process, and how it ended; the sets of outcomes are compared.
A network with more schedules than the N of --most has no set of all outcomes, and is counted
separately. With --ways the other searches are compared too: none of them may find an outcome that
neither the search of all schedules nor the model finds; and the schedule of each outcome is
replayed, by names and by numbers. With --on pool+coroutines the processes of a network are dealt to
coroutines of a native component (native_driver.py) and of Python.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from . import explore, native_driver, networks
from .explore import frozen

#: The features of the random networks, unless the caller names others.
FEATURES = frozenset({"select", "output guards", "buffer", "retire", "try", "priority", "ends"})
#: Groups of features, for the slice of the tests and for the soak.
Group = tuple[str, frozenset[str]]  # when times pass, and the features of a network
GROUPS: tuple[Group, ...] = (
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
    #: An outcome that the replay of its schedule does not show; "" if there is none, or if no
    # replay was requested.
    lost: str = ""


#: The searches that draw schedules, or leave some out: (search, options).
WAYS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("walk", {"schedules": 60}),
    ("pct", {"schedules": 30, "depth": 2}),
    ("pct", {"schedules": 30, "depth": 4}),
    ("few", {"schedules": 100}),
    ("auto", {"schedules": 60, "seconds": 0.2}),
    ("walk", {"schedules": 30, "grain": "park"}),
    ("reduced", {"schedules": 60, "grain": "park"}),
)


def searched(
    net: dict[str, Any],
    features: frozenset[str],
    search: str,
    *,
    replays: int = 0,
    on: str = "coroutines",
    **options: Any,
) -> Searched:
    """Returns all outcomes that a search finds. The schedules of the first `replays` of them are
    replayed.
    """
    from weft._checking.engine import Options, Search, decided, replay

    from .python_driver import PythonDriver

    driver = PythonDriver(on, features)
    s = Search(lambda: outcome_of(driver.run(net, 0)), Options(search, **options))
    found = Searched(set(), 0, False, set())
    schedules: list[tuple[Any, Options]] = []
    for outcome in s:
        found.kinds.add(outcome.kind)
        if outcome.value is None:
            continue
        if outcome.value not in found.outcomes and len(schedules) < replays:
            schedules.append((decided(outcome), replace(s.options, time=outcome.time)))
        found.outcomes.add(outcome.value)
    for outcome, how in schedules:
        for deviations in (outcome.deviations, outcome.numbers):
            again = replay(s.function, deviations, how)
            if again.value != outcome.value and not found.lost:
                found.lost = (
                    f"{search} has {outcome.value}; the replay of {deviations} has {again.value} "
                    f"{again.difference}"
                )
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
    """Returns `outcomes`; an outcome whose run did not end well is reduced to how the run ended."""
    return {x if ("run", ("ok",)) in x else dict(x)["run"] for x in outcomes}


@dataclass
class Compared:
    """The comparison of one network."""

    seed: int
    all: Searched | None = None  # None: too many schedules
    reduced: Searched | None = None
    # None if the caller did not request the model, or if it has too many states.
    model: set[Outcome] | None = None
    ways: list[tuple[str, Searched]] = field(default_factory=list)  # the other searches

    @property
    def wrong(self) -> str:
        """Returns the differences between the searches, or "" if the searches agree."""
        return self._wrong_reduced() or next(filter(None, map(self._wrong_way, self.ways)), "")

    def _wrong_way(self, way: tuple[str, Searched]) -> str:
        name, found = way
        if "not the same" in found.kinds:
            return f"{name}: it is not the same twice"
        if found.lost:
            return found.lost
        # In some of its schedules the search "auto" lets times pass early, so `all` must have been
        # searched with early times too.
        if self.all is not None and (more := found.outcomes - self.all.outcomes):
            return f"{name}: all schedules have not {next(iter(more))}"
        if self.model is not None and (
            more := _ended_well(found.outcomes) - _ended_well(self.model)
        ):
            return f"{name}: the model has not {next(iter(more))}"
        return ""

    def _wrong_reduced(self) -> str:
        if self.all is None or self.reduced is None:
            return ""
        if not self.reduced.complete:
            return f"the reduced search does not end within {self.reduced.runs} runs, all schedules are {self.all.runs}"
        if "not the same" in self.all.kinds | self.reduced.kinds:
            return "it is not the same twice"
        missing = self.all.outcomes - self.reduced.outcomes
        extra = self.reduced.outcomes - self.all.outcomes
        if missing or extra:
            return f"{len(missing)} outcomes are missing, such as {next(iter(missing | extra))}"
        if self.model is not None and (
            more := _ended_well(self.reduced.outcomes) - _ended_well(self.model)
        ):
            return f"the model has not {next(iter(more))}"
        return ""


def compare(
    seed: int,
    features: frozenset[str] = FEATURES,
    *,
    size: int = 3,
    times: str = "quiet",
    most: int = 20_000,
    seconds: float = 8.0,
    model: bool = False,
    ways: bool = False,
    on: str = "coroutines",
) -> Compared:
    """Compares the searches of one random network. With `ways` the searches of WAYS are compared
    too."""
    if "pool" in on:
        features = features - {"mobile"}  # a native channel carries no ends (16.4)
        native_driver.component()  # a check refuses the compiler, which is another OS process
    net = networks.generate(seed, size, features)
    result = Compared(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        every = searched(
            net, features, "all", on=on, time=times, early=1, schedules=most, seconds=seconds
        )
        whole = every.complete or "not the same" in every.kinds
        if whole:
            result.all = every
            result.reduced = searched(
                net,
                features,
                "reduced",
                on=on,
                time=times,
                early=1,
                schedules=2 * most,
                seconds=2.5 * seconds,
            )
        if ways:
            for way, options in WAYS:
                # The search "auto" lets times pass early in some of its schedules, unless no time
                # may pass early.
                early = 1 if times == "any" else 0
                options = {"seed": seed + 1, "early": early, "time": times} | options
                found = searched(net, features, way, replays=3, on=on, **options)
                result.ways.append((way, found))
    if model and (whole or ways):
        try:
            result.model = modelled(net, 300_000 if whole else 30_000)
        except RuntimeError:
            result.model = None
    return result


def _seeds(text: str) -> Iterator[int]:
    first, _, last = text.partition("-")
    return iter(range(int(first), int(last or int(first) + 1)))


def compare_all(
    seeds: str,
    ends: float | None,
    group: Callable[[int], Group],
    one: Callable[[int, Group], Compared],
    ways: bool,
) -> int:
    """Compares the searches of one network after the other, and prints the results. Returns the
    exit status.

    Args:
        seeds: the first and the last but one, as in 0-2000.
        ends: the number of seconds after which no further network is begun; None for no limit.
        group: returns the times and features of a seed's network.
        one: compares the searches of that network.
        ways: whether a network with too many schedules counts as passed, since other searches than
            the reduced one are compared too.
    """
    compared = left_out = wrong = every = reduced = others = modelled_too = 0
    begun = time.monotonic()
    for seed in _seeds(seeds):
        if ends is not None and time.monotonic() - begun > ends:
            print(f"stopped before seed {seed}")
            break
        times, features = group(seed)
        c = one(seed, (times, features))
        others += sum(found.runs for _, found in c.ways)
        modelled_too += c.model is not None
        if c.all is None or c.reduced is None:
            left_out += 1
        else:
            compared, every, reduced = compared + 1, every + c.all.runs, reduced + c.reduced.runs
        if c.wrong:
            wrong += 1
            print(f"seed {seed} ({times}; {', '.join(sorted(features))}): {c.wrong}", flush=True)
    print(
        f"{compared} networks compared, {left_out} with too many schedules for that, "
        f"{modelled_too} with the model, {wrong} wrong; "
        f"{every} schedules, reduced {reduced}, other searches {others}; "
        f"{time.monotonic() - begun:.0f} s"
    )
    print(f"{compared + (left_out if ways else 0) - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


def main() -> int:
    p = argparse.ArgumentParser(
        description="The reduced search against all schedules and the model."
    )
    p.add_argument("seeds", help="such as 0-2000")
    p.add_argument("--features", help="features of the networks (default: the groups in turn)")
    p.add_argument("--size", type=int, default=3)
    p.add_argument("--time", choices=("quiet", "any"), default="quiet")
    p.add_argument("--most", type=int, default=20_000)
    p.add_argument("--seconds", type=float, default=8.0)
    p.add_argument("--model", action="store_true")
    p.add_argument(
        "--ways", action="store_true", help="compare the other searches too, and replays"
    )
    p.add_argument("--on", default="coroutines", help="coroutines, or pool+coroutines")
    p.add_argument("--for", type=float, dest="ends", help="end after this many seconds")
    a = p.parse_args()
    return compare_all(
        a.seeds,
        a.ends,
        lambda seed: (
            (a.time, frozenset(a.features.split(","))) if a.features else GROUPS[seed % len(GROUPS)]
        ),
        lambda seed, group: compare(
            seed,
            group[1],
            size=a.size,
            times=group[0],
            most=a.most,
            seconds=a.seconds,
            model=a.model and group[0] == "quiet",
            ways=a.ways,
            on=a.on,
        ),
        a.ways,
    )


if __name__ == "__main__":
    sys.exit(main())
