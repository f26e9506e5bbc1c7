"""The engine of `weft check`: runs a function in an order that this module decides, and searches
through the orders. The other modules of weft._checking use the extension module only through this
one.

    for outcome in Search(function, Options("reduced")):   # one schedule after the other
        if outcome.failed:
            shrunk = shrink(function, outcome, options)     # fewer deviations, the same failure
            again = replay(function, shrunk.outcome.deviations, options)
    search.complete                                         # the search ended, and nothing cut it

A schedule is described by its deviations from the usual order (first come, first served; a process
goes on as long as it can). A deviation is a tuple (process, step, kind, choice, nth):

    ("main/hop[3]", 3, "go", "main/locker[1]", 0)   after step 3 of hop[3] locker[1] goes
    ("main/hop[3]", 3, "time", "", 0)               after that step a time comes first
    ("main/merge", 2, "guard", 1, 0)                at step 2 of merge its select takes the second
                                                    of the ready guards
    ("main/worker", 3, "fault", 1, 2)               the third choose() in step 3 of worker returns 1

or a pair of numbers (decision, choice). `weft._checking.tokens` writes these tuples as texts.

Invariants
- In an OS process there is one search or run at a time, on the thread that asks for it. A check
  within a check is BadUse.
- This module decides only orders. The caller replaces clocks, random numbers and locks
  (weft._checking.patches). The collector is off during a run.
- An Outcome keeps the error and the value of its function, but no process and no channel of the
  run.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from weft._checking import _engine
from weft.errors import Deadlock

Deviation = tuple[str, int, str, Any, int]
ByNumber = tuple[int, int]
Function = Callable[[], Any]


@dataclass(frozen=True)
class Options:
    """How schedules are made."""

    #: "plain" (the usual order, once), "reduced" (one schedule stands for all schedules that
    #: cannot differ from it), "all", "few" (all with at most `bound` deviations), "walk" (at
    #: random), "pct" (at random, by priorities that change `depth` - 1 times), "auto" ("reduced",
    #: which begins with the usual order, for 40 % of `seconds`, then walk, pct and few in turn)
    search: str = "auto"
    #: when times come: "quiet", when no process can run; "any", at most `early` times earlier
    time: str = "quiet"
    #: where the search can let another process go first: at operations, or only where a process
    #: parks ("park")
    grain: str = "operation"
    seed: int = 1
    bound: int = 2
    depth: int = 3
    #: a run that takes more steps than this, plus 100 for each process, counts as a run without an
    #: end
    limit: int = 20_000
    early: int = 2
    seconds: float = math.inf  #: how long to search
    schedules: int | None = None  #: the largest number of schedules to run


class Decision(NamedTuple):
    """One decision of a run, at which there was more than one choice."""

    process: str  #: path of the process that had run last
    step: int  #: the number of that process's last step, from 1
    kind: str  #: "go", "time", "guard", "fault"
    #: The path of the process that goes on, "" for a time, otherwise the number of the choice that
    #: was taken.
    choice: Any
    options: int  #: how many choices there were
    index: int  # type: ignore[assignment]  #: which was taken; 0: the usual one
    #: whether the usual choice lets the process that had run last go on, so that another choice
    #: preempts that process
    goes_on: bool
    #: For a guard or a fault: how many decisions of its kind the step made before this one.
    nth: int


@dataclass
class Outcome:
    """The outcome of one run."""

    #: "ok"; "deadlock"; "exception"; "no end"; "blocked" (not a schedule: the reduced search
    #: stopped the run, since another schedule that was run stands for it); "not the same" (a
    #: decision that was to be repeated was not there: `difference` names it)
    kind: str
    value: Any = None  #: what the function returned
    error: BaseException | None = None
    steps: int = 0
    decisions: tuple[Decision, ...] = ()
    lost: int = 0  #: values that were left in blocking buffers without poison
    #: Pairs of a channel's name and the number of values lost in it.
    lost_in: tuple[tuple[str, int], ...] = ()
    #: sentences about processes and guards that were passed over (rule 17.6)
    starved: tuple[str, ...] = ()
    early: int = 0  #: times that came although a process could run
    cut: str = ""  #: a bound that this run met: "early", "limit", "polls", "size"
    difference: str = ""  #: of a replay: the first deviation that does not fit; not a failure
    #: the product of the numbers of choices; its mean over random walks estimates how many
    #: schedules there are
    chances: float = 1.0
    timed: bool = False  #: whether a process has set a time
    search: str = ""  #: the way of searching that made this run
    time: str = "quiet"  #: when times came: Options.time, as that way of searching has set it

    @property
    def failed(self) -> bool:
        return self.kind in ("deadlock", "exception", "no end")

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        return tuple(
            (d.process, d.step, d.kind, d.choice, d.nth) for d in self.decisions if d.index
        )

    @property
    def numbers(self) -> tuple[ByNumber, ...]:
        return tuple((i, d.index) for i, d in enumerate(self.decisions) if d.index)


_KINDS = {1: "not the same", 2: "blocked", 3: "no end", 4: "deadlock"}


def run_once(function: Function) -> Outcome:
    """Runs the function once, as _engine was configured."""
    kind, value = "ok", None
    error: BaseException | None = None
    collects = gc.isenabled()
    gc.disable()
    _engine.begin()
    try:
        value = function()
    except Deadlock as e:
        kind, error = "deadlock", e
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as e:
        kind, error = "exception", e
    finally:
        stopped, steps, lost, early, cut, chances, timed = _engine.end()
        if collects:
            gc.enable()
    kind = _KINDS.get(stopped, kind)
    lost_in, starved = _engine.noted()
    return Outcome(
        kind,
        value,
        error,
        steps,
        lost=lost,
        lost_in=tuple(lost_in),
        starved=tuple(starved),
        early=early,
        cut=cut,
        difference=_engine.difference() if stopped == 1 else "",
        chances=chances,
        timed=timed,
    )


def decided(outcome: Outcome) -> Outcome:
    """Adds the decisions of the last run to its outcome. A search calls this only if the run
    failed."""
    outcome.decisions = tuple(Decision(*d) for d in _engine.decisions())
    return outcome


def _configure(options: Options, search: str) -> None:
    _engine.configure(
        search,
        options.time == "any",
        options.grain == "park",
        options.seed,
        options.bound,
        options.depth,
        options.limit,
        options.early,
    )


def replay(
    function: Function,
    deviations: Iterable[Deviation] | Iterable[ByNumber],
    options: Options | None = None,
) -> Outcome:
    """Runs the function in the order of these deviations. Only time, grain and limit of `options`
    count.
    """
    _configure(options or Options(), "replay")
    _engine.follow([tuple(d) for d in deviations])
    outcome = decided(run_once(function))
    outcome.time = (options or Options()).time
    outcome.difference = _engine.difference()
    return outcome


class Search:
    """Iterating over a Search runs one schedule after the other and gives the Outcome of each. A
    Search ends when the schedules that were run stand for all schedules, when a bound of `options`
    is reached, or at an outcome "not the same".
    """

    def __init__(self, function: Function, options: Options | None = None) -> None:
        self.function = function
        self.options = options or Options()
        self.runs = 0  #: schedules that were run
        self.blocked = 0  #: runs that were broken off, since another schedule stands for them
        #: whether the schedules that were run stand for all schedules (for "few": for all with at
        #: most `bound` deviations)
        self.complete = False
        #: The bounds that cut the search: "early", "limit", "polls", "size", "seconds",
        #: "schedules".
        self.cut: set[str] = set()
        self.ways: dict[str, int] = {}  #: schedules, by the way of searching
        #: Whether the end of the reduced search proves nothing, because processes share an object.
        #: If so, an auto search goes on with "walk", "pct" and "few" to its bounds.
        self.unproven = False
        self.races = (0, 0)  #: how many races were run in both orders, and how many races there are
        self.timed = False  #: whether a process has set a time in any schedule
        self._chances = 0.0
        self._walks = 0
        self._longest = 100

    @property
    def estimate(self) -> float:
        """How many schedules there are without reduction, estimated from the random walks; 0.0 if
        there was no walk.
        """
        return self._chances / self._walks if self._walks else 0.0

    def __iter__(self) -> Iterator[Outcome]:
        begun = time.monotonic()
        options, end = self.options, begun + self.options.seconds
        if options.search != "auto":
            yield from self._way(options, options.search, end, math.inf)
        else:
            half = begun + 0.4 * options.seconds
            yield from self._way(options, "reduced", min(half, end), math.inf)
            turn = 0
            while (self.unproven or not self.complete) and not self._over(end):
                options = replace(
                    self.options,
                    seed=self.options.seed + 1000 * turn,
                    depth=2 + turn % 3,
                    time="any" if turn % 2 else self.options.time,
                )
                way = ("walk", "pct", "few")[turn % 3]
                yield from self._way(options, way, end, 200)
                turn += 1
        if "not the same" in self.cut:
            self.complete = False

    def _over(self, end: float) -> bool:
        if self.options.schedules is not None and self.runs >= self.options.schedules:
            self.cut.add("schedules")
            return True
        if time.monotonic() >= end:
            self.cut.add("seconds")
            return True
        return "not the same" in self.cut

    def _way(self, options: Options, way: str, end: float, most: float) -> Iterator[Outcome]:
        """Runs at most `most` schedules by one way of searching."""
        _configure(options, way)
        cut: set[str] = set()
        runs, more = 0, True
        while more and runs < most:
            if self._over(end):
                return
            if way in ("walk", "pct"):
                _engine.seed(options.seed + runs, self._longest)
            outcome = run_once(self.function)
            outcome.search, outcome.time = way, options.time
            # The engine begins the search anew, because it needs to record more about each step.
            if _engine.restarts():
                continue
            self.timed = self.timed or outcome.timed
            if outcome.cut:
                cut.add(outcome.cut)
            runs += 1
            self._longest = max(self._longest, outcome.steps)
            if way == "walk":
                self._chances += outcome.chances
                self._walks += 1
            if outcome.kind == "not the same":
                self.cut.add("not the same")
            if way in ("reduced", "all", "few"):
                more = _engine.advance()
                self.races = _engine.races()
            elif way == "plain":
                more = False
            if outcome.kind == "blocked":
                self.blocked += 1
                continue
            self.runs += 1
            self.ways[way] = self.ways.get(way, 0) + 1
            if self.runs % 1000 == 0:
                gc.collect()
            yield decided(outcome) if outcome.failed or outcome.kind == "not the same" else outcome
            if outcome.kind == "not the same":
                return
        if not more and way != "plain" and (way != "few" or self.options.search == "few"):
            self.complete = not cut
            self.cut |= cut


class Shrunk(NamedTuple):
    """A failure with few deviations."""

    outcome: Outcome
    runs: int
    least: bool  #: whether all schedules with fewer deviations were run, and none failed so


def _alike(a: Outcome, b: Outcome) -> bool:
    return a.kind == b.kind and (a.kind != "exception" or type(a.error) is type(b.error))


def shrink(
    function: Function,
    failed: Outcome,
    options: Options | None = None,
    *,
    alike: Callable[[Outcome], bool] | None = None,
    runs: int = 20_000,
    seconds: float = 2.0,
) -> Shrunk:
    """Returns the same failure with as few deviations as possible: first some deviations are left
    out, then all schedules with fewer deviations are searched.

    Args:
        alike: returns whether an outcome is the same failure. By default it is if it is of the same
            kind, with an exception of the same type.
        runs: how many runs the search for fewer deviations may take.
        seconds: how long that search may take.
    """
    options = options or Options()
    alike = alike or (lambda outcome: _alike(outcome, failed))
    count = 0

    def fails(deviations: Sequence[Any]) -> Outcome | None:
        nonlocal count
        count += 1
        outcome = replay(function, deviations, options)
        return outcome if alike(outcome) else None

    best = fails(failed.numbers)
    if best is None:
        return Shrunk(failed, count, False)
    end = time.monotonic() + seconds
    size = max(1, len(best.deviations) // 2)
    while size and best.deviations and time.monotonic() < end:
        i, smaller = 0, False
        while i < len(best.deviations):
            kept = best.deviations
            outcome = fails(kept[:i] + kept[i + size :])
            if outcome is not None and len(outcome.deviations) < len(kept):
                best, smaller = outcome, True
            else:
                i += size
        if not smaller:
            size //= 2
    for bound in range(len(best.deviations)):
        search = Search(
            function,
            replace(
                options,
                search="few",
                bound=bound,
                schedules=runs - count,
                seconds=end - time.monotonic(),
            ),
        )
        for outcome in search:
            count += 1
            if outcome.failed or alike(outcome):
                if not outcome.decisions:
                    decided(outcome)
                if alike(outcome):
                    return Shrunk(outcome, count, True)
        if not search.complete and not search.cut <= {"early", "limit"}:
            return Shrunk(best, count, False)
    return Shrunk(best, count, True)


def choose(options: int, kind: str = "fault") -> int:
    """Called in the checked function: returns the number of one of `options` choices (0 is the
    usual one). The choice is searched, replayed and made short in the same way as the order of
    processes. Outside a check it is 0. The choice is made where the program calls choose(),
    whichever process goes next.
    """
    return _engine.choose(options, kind)


def is_checking() -> bool:
    """Returns whether a run of a check is under way."""
    return _engine.is_checking()


def events() -> list[str]:
    """Returns, for each step of the last run, the steps that it followed and the places that it
    touched. This helps to find a fault in the engine.
    """
    return _engine.events()


def steps() -> int:
    """Returns how many steps the run under way has taken."""
    return _engine.steps()


def mark(callback: Callable[[], None] | None) -> None:
    """Called by a process, in a run of a check. From now on `callback` is called in that process
    before each of its operations begins, and before other processes may go first; None removes the
    callback. The callback may call choose(), and in a process with a stack of its own it may have
    operations. An exception of the callback does not reach the process.
    """
    _engine.mark(callback)
