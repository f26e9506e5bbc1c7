"""Checks a function: makes its world virtual, runs one schedule after the other, shortens a failing
schedule and reports it (rules 17.1 to 17.11).

    first run, observed ──cannot be checked, or runs no network──► refused
      └► tokens, each replayed ──fails──► told
           └► search ──a schedule fails──► made short ──► replayed, and told line by line
                └──every schedule was run, or the time is over──► nothing found

Invariants
- The program's output and warnings do not leave the check, and the clocks that the check replaces
  are put back.
- There is a Report whatever ends the check: a failure, Ctrl-C, a program that differs from run to
  run.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft._checking import engine as _engine
from weft._checking import faults as _faults
from weft._checking import functions as _functions
from weft._checking import patches as _patches
from weft._checking import tokens as _tokens
from weft._checking import words as _words
from weft._checking.options import Options
from weft._checking.properties import Watch
from weft._checking.report import Report, Search, about, counted
from weft._checking.telling import Teller
from weft._extension import native as _native
from weft.errors import BadUse

OBSERVED = 50  # every 50th run is observed, to find failures that the engine does not see
_SHRINKING = 2.0  # seconds for the search for fewer deviations
_GRAIN = 0.5  # seconds for the search for the same failure at the other grain

Progress = Callable[[str], None]


def world_for(options: Options) -> _patches.World:
    """Returns the world of a check: `with world_for(options) as world:`. Enter the world before the
    program is imported, where that is possible.
    """
    return _patches.World(_now, options.seed, options.stub, _sleep)


def _now() -> float:
    return float(_native.now()) if _native.current_process() is not None else 0.0


def _sleep(seconds: float) -> bool:
    """Sleeps in the time of the run. Returns False if the caller is not a process with its own
    stack.
    """
    process = _native.current_process()
    if process is None or _native.where() not in _BLOCKS:
        return False
    _native.sleep(seconds)
    return True


_LOST = "if nobody needs these values: poison the channel, or let its reader read to the end"
_BLOCKS = (2, 3)  # values of native.where(): a thread process, a greenlet


@dataclass
class _Failure:
    kind: str
    what: str
    outcome: _engine.Outcome
    found_at: int
    seconds: float


class _End(Exception):
    """Ends the check with the report that it carries."""

    def __init__(self, report: Report) -> None:
        self.report = report


def check_function(
    function: Callable[[], Any],
    options: Options,
    tokens: tuple[str, ...] = (),
    *,
    search: bool = True,
    name: str | None = None,
    command: str | None = None,
    progress: Progress | None = None,
    world: _patches.World | None = None,
) -> Report:
    """Checks a function.

    Args:
        tokens: schedules that are run before the search.
        search: False if only the tokens are run.
        name: the name of the function in the report.
        command: the command that replays a schedule, without the token.
        progress: called with a line that says how far the search is.
        world: the world, if the caller has entered it already.
    Raises:
        BadUse: a token cannot be read, or a check is under way already.
    """
    with _alone():
        process = _native.current_process()
        if process is not None:
            raise BadUse(
                f"weft.check is called by {process.path}, which is a process: a check runs networks of its own, one after "
                "the other, so call it in ordinary code, outside of run(…)"
            )
        check = _Check(function, options, name, command, progress or (lambda text: None), world)
        return check.go(tokens, search)


_going_on = threading.Lock()  # held during a check, since there is one engine for the whole program
_thread = 0  # the thread of that check


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Marks a check as under way. Raises BadUse if another check is under way."""
    global _thread
    here = threading.get_ident()
    if not _going_on.acquire(blocking=False):
        if _thread == here:
            raise BadUse("weft.check within a checked function: check one function at a time")
        raise BadUse(
            "weft.check is called while another thread of this program checks: one check at a time; wait for that one, or "
            "start the second in an OS process of its own"
        )
    try:
        _thread = here
        yield
    finally:
        _going_on.release()


class _Check:
    def __init__(
        self,
        function: Callable[[], Any],
        options: Options,
        name: str | None,
        command: str | None,
        progress: Progress,
        world: _patches.World | None,
    ) -> None:
        self.options = options
        self.name = name or _functions.name_of(function)
        self.command = command
        self.progress = progress
        self.world = world_for(options) if world is None else world
        self._own_world = world is None
        self._call = _functions.called(function)
        self._function = function
        self._observe: Any = None  # the observer of the next run
        self._printed = io.StringIO()
        self._runs = 0
        self.looks = 0  # how often this process has checked for messages of its children
        self.report = Report(self.name, time=options.time)
        # Path → how the process ended when it was first observed, and the sentence about that.
        self.endings: dict[str, tuple[str, str]] = {}
        self.left: dict[str, str] = {}
        self.first_value: Any = None
        self.shared = False
        # the number of schedules run by searches that have ended (parallel.py)
        self.ways_before: dict[str, int] = {}
        self._watch: Watch | None = None
        self.began = _patches.real.clock()

    # --- one run ---

    def run(self) -> Any:
        """Returns the function, as the engine runs it."""
        self._printed.seek(0)
        self._printed.truncate()
        observer, self._observe = self._observe, None
        with self.world.run(), contextlib.ExitStack() as stack:
            stack.enter_context(_faults.simulated(self.options.faults))
            if observer is not None:
                stack.enter_context(observer.observing())
            return self._call()

    @contextlib.contextmanager
    def _within(self) -> Iterator[None]:
        """Prepares the program for all runs of the function, and restores it when the block is
        left.
        """
        saved = sys.stdout, sys.stderr
        with contextlib.ExitStack() as stack:
            if self._own_world:
                stack.enter_context(self.world)
            stack.enter_context(_faults.hosts_here())
            stack.enter_context(_patches.alarm(_patches.NOTHING_FOR, self._steps))
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            sys.stdout = sys.stderr = self._printed
            try:
                yield
            finally:
                sys.stdout, sys.stderr = saved

    def _steps(self) -> Any:
        return self._runs, self.looks, _engine.steps()

    def seconds(self) -> float:
        return _patches.real.clock() - self.began

    # --- the whole ---

    def go(self, tokens: tuple[str, ...], search: bool) -> Report:
        read = [(token, _tokens.parse(token)) for token in tokens]
        report = self.report
        try:
            with self._within():
                self._first_run()
                for token, deviations in read:
                    self._replay(token, deviations, alone=not search)
                if search:
                    self._search()
        except _End as end:
            report = end.report
        except KeyboardInterrupt:
            if not report.kind:
                report.kind = "interrupted"
        report.seconds = report.seconds or self.seconds()
        report.told += [note for note in self.world.notes if note not in report.told]
        return report

    def _engine_options(self, time: str | None = None, grain: str | None = None) -> _engine.Options:
        o = self.options
        return _engine.Options(
            search=o.search,
            time=time or o.time,
            grain=grain or o.grain,
            seed=o.seed,
            seconds=o.seconds,
            schedules=o.schedules,
        )

    def _first_run(self) -> None:
        """Runs the function twice in the usual order, and observes both runs. If the function
        cannot be checked, these two runs show that.
        """
        outside = _functions.channels_outside(self._function)
        if outside:
            raise self._refused(outside)
        before = {id(it) for it in gc.get_objects() if isinstance(it, _CHANNELS)}
        watch = _First(before)
        teller = Teller()
        self._observe = _Both(watch, teller)
        _faults.calls = 0
        outcome = _engine.replay(self.run, (), self._engine_options())
        self._runs += 1
        self._look(outcome)
        if watch.outside:
            raise self._refused(
                f"channel {watch.outside!r} was made outside of the function, so its state would go from one schedule into "
                "the next: make it in the function"
            )
        if not watch.processes and outcome.kind == "ok":
            raise self._refused(
                "the function runs no network, so there is nothing to decide: give one that calls run(…), or Parallel"
            )
        if self.options.faults and not _faults.calls and outcome.kind == "ok":
            raise self._refused(
                f"faults={str(self.options.faults)!r}, and no process runs on a host: put those that may fail on hosts "
                "(weft.processes, worker.on(host)(…)), or leave the faults out"
            )
        self._observed(watch)
        self.first_value = outcome.value
        again = Teller()
        self._observe = again
        outcome = self._replayed(())
        self._look(outcome)
        difference = teller.differs(again)
        if difference:
            self.report.kind, self.report.what = "not the same", difference
            raise _End(self.report)

    def _look(self, outcome: _engine.Outcome) -> None:
        """Ends the check if this run shows that the function cannot be checked."""
        if self.world.refused:
            raise self._refused(str(self.world.refused[0]))
        error = _words.innermost(outcome.error, (_patches.NeverBack, _patches.Refused))
        if error is not None:
            raise self._refused(str(error))
        for sentence in outcome.starved:
            self.world.tell(f"starvation: {sentence}")

    def _refused(self, what: str) -> _End:
        self.report.kind, self.report.what = "refused", what
        return _End(self.report)

    def _observed(self, watch: Watch) -> None:
        """Compares how the processes ended with how they ended in earlier runs."""
        for sentence in watch.shared:
            self.shared = True
            self.world.tell(sentence)
        for path, how in watch.endings.items():
            reason = watch.left.get(path, "")
            first = self.endings.setdefault(path, (how, reason))
            pair = {first[0], how}
            if "returned" in pair and pair & {"Retired", "Poisoned"} and path not in self.left:
                self.left[path] = (
                    f"{path} returns in one schedule and in another{reason or first[1]}"
                )

    # --- tokens ---

    def _replay(self, token: str, deviations: Any, alone: bool) -> None:
        outcome = self._replayed(deviations)
        self._look(outcome)
        lacking = _lacking(deviations, outcome)
        if outcome.kind == "not the same" or lacking:
            message = f"the token {token} does not fit this program any more: {lacking or outcome.difference}"
            if alone:
                self.report.replayed = message
                raise _End(self.report)
            self.world.tell(message)
            return
        kind, what = self._judged(outcome)
        if kind:
            failure = _Failure(kind, what, outcome, 0, self.seconds())
            self._tell(self.report, failure, outcome, least=False)
            self.report.token = token
            self._name_command(self.report)
            raise _End(self.report)
        if alone:
            self.report.replayed = "this schedule does not fail"
            self._lines(self.report, outcome)
            self.report.token = token
            raise _End(self.report)

    def _replayed(self, deviations: Any, time: str | None = None) -> _engine.Outcome:
        self._runs += 1
        return _engine.replay(self.run, deviations, self._engine_options(time))

    # --- searching ---

    def _judged(self, outcome: _engine.Outcome, watch: Watch | None = None) -> tuple[str, str]:
        """Returns the failure in a run: its kind, and a few words about it; ("", "") if the run
        does not fail.
        """
        if outcome.kind == "exception" and outcome.error is not None:
            return "exception", _words.one_line(outcome.error)
        if outcome.kind == "no end":
            return "no end", f"not over after {outcome.steps - 1:,} steps"
        if outcome.kind == "deadlock":
            return "deadlock", ""
        if outcome.kind != "ok":
            return "", ""
        if outcome.lost:
            channels = ", ".join(
                f"{name}: {values}" if len(outcome.lost_in) > 1 else name
                for name, values in outcome.lost_in
            )
            return (
                "lost values",
                f"{counted(outcome.lost, 'value')} that nobody took, in {channels}",
            )
        if self.options.same and not _words.equal(outcome.value, self.first_value):
            return (
                "depends on the order",
                f"the result is {_words.short(outcome.value)}, and {_words.short(self.first_value)} in the usual order",
            )
        if watch is not None and self.options.same:
            for path, how in watch.endings.items():
                first = self.endings.get(path)
                if first is not None and first[0] != how:
                    return (
                        "depends on the order",
                        f"{path} ended by {how}, and by {first[0]} in the usual order",
                    )
        if watch is not None and self.options.strict:
            for path, how in watch.endings.items():
                first = self.endings.get(path)
                if (
                    first
                    and "returned" in (how, first[0])
                    and {how, first[0]} & {"Retired", "Poisoned"}
                ):
                    return (
                        "left behind",
                        f"{path} ends by {how}, and by {first[0]} in the usual order",
                    )
        return "", ""

    def _search(self) -> None:
        o = self.options
        if o.jobs > 1:
            from weft._checking import parallel as _parallel

            return _parallel.search(self)
        found = self.find(_engine.Search(self._watched, self._engine_options()))
        self.conclude(found)
        return None

    def _watched(self) -> Any:
        """Runs the function. Every 50th run is observed; with the option `same` or `strict`, every
        run."""
        self._runs += 1
        each = self.options.same or self.options.strict
        self._watch = Watch(objects=not each) if each or self._runs % OBSERVED == 0 else None
        self._observe = self._watch
        return self.run()

    def find(self, search: _engine.Search) -> list[_Failure]:
        """Runs a search until a schedule fails, or with keep_going to its end. Records the
        figures."""
        found: dict[tuple[str, str], _Failure] = {}
        shown = 0.0
        self._search_under_way = search
        search.unproven = self.shared
        try:
            for outcome in search:
                self._look(outcome)
                if outcome.kind == "not the same":
                    self.report.kind, self.report.what = "not the same", outcome.difference
                    raise _End(self.report)
                watch = self._watch
                kind, what = self._judged(outcome, watch)
                if kind:
                    if not outcome.decisions:
                        _engine.decided(outcome)
                    failure = _Failure(kind, what, outcome, search.runs, self.seconds())
                    found.setdefault((kind, what), failure)
                    if not self.options.keep_going:
                        break
                if watch is not None:
                    self._observed(watch)
                    search.unproven = self.shared
                now = self.seconds()
                if now - shown > 0.2:
                    shown = now
                    self.progress(_progress(search, now, self.options))
        finally:
            self._figures(search)
        return list(found.values())

    def raise_end(self) -> None:
        raise _End(self.report)

    def conclude_elsewhere(self, found: list[dict[str, Any]]) -> None:
        """Does what conclude() does, for failures found by other OS processes."""
        failures = []
        for one in found:
            outcome = self._replayed(one["numbers"], one["time"])
            self._look(outcome)
            if outcome.kind == "not the same":
                self.report.kind, self.report.what = "not the same", outcome.difference
                raise _End(self.report)
            failures.append(_Failure(one["kind"], one["what"], outcome, one["at"], self.seconds()))
        self.conclude(failures)

    def _figures(self, search: _engine.Search) -> None:
        r = self.report
        r.schedules = search.runs
        r.searches = [Search(name, runs) for name, runs in search.ways.items()]
        r.races = search.races
        r.estimate = search.estimate
        r.timed = search.timed
        r.complete = search.complete and not self.shared
        r.seconds = self.seconds()

    def conclude(self, found: list[_Failure]) -> None:
        """Makes the report of the failures that were found."""
        r = self.report
        for number, failure in enumerate(found):
            into = r if number == 0 else Report(self.name, time=self.options.time)
            if number:
                r.more.append(into)
            self._shrunk(into, failure)
        if found:
            return
        for path, sentence in self.left.items():
            if self.options.strict and not r.kind:
                r.kind, r.what = "left behind", sentence
            else:
                r.told.append(f"left behind: {sentence}" if not self.options.strict else path)
        if not r.kind and self.options.strict and self.world.notes:
            r.kind, r.what = "told", next(iter(self.world.notes))
        if not r.kind and self.options.all and not r.complete:
            r.kind = "cut"

    def _shrunk(self, into: Report, failure: _Failure) -> None:
        into.kind, into.what = failure.kind, failure.what
        into.found_at, into.seconds = failure.found_at, failure.seconds
        self.progress("a schedule fails; it is made short")

        def alike(outcome: _engine.Outcome) -> bool:
            kind, what = self._judged(outcome, self._watch if self._each() else None)
            return kind == failure.kind and _words.alike(what, failure.what)

        outcome, least, time = failure.outcome, False, failure.outcome.time
        try:
            shrunk = _engine.shrink(
                self._watched,
                failure.outcome,
                self._engine_options(time),
                alike=alike,
                seconds=_SHRINKING,
            )
            outcome, least = shrunk.outcome, shrunk.least
        except KeyboardInterrupt:
            into.told.append("stopped by Ctrl-C before the schedule was made as short as can be")
        self._tell(into, failure, outcome, least, time)

    def _each(self) -> bool:
        return self.options.same or self.options.strict

    def _tell(
        self, into: Report, failure: _Failure, outcome: _engine.Outcome, least: bool, time: str = ""
    ) -> None:
        """Replays a failure, and describes its schedule in a report, line by line."""
        into.kind, into.what = failure.kind, failure.what
        into.found_at, into.seconds = failure.found_at, failure.seconds
        into.time = time or self.options.time
        into.deviations, into.least = len(outcome.deviations), least
        deviations = [_tokens.Deviation(*d) for d in outcome.deviations]
        into.token = _tokens.text(deviations)
        into.deviation_texts = [_tokens.sentence(d) for d in deviations]
        self._lines(into, outcome, time)
        self._name_command(into)
        into.grain = self._other_grain(failure, outcome, time) if outcome.deviations else ""

    def _name_command(self, into: Report) -> None:
        early = f" --time {into.time}" if into.time != self.options.time else ""
        if self.command is not None:
            into.command = f"{self.command}{early} --replay {into.token}"
        else:
            into.command = f"weft.check(…, replay={into.token!r})"

    def _lines(self, into: Report, outcome: _engine.Outcome, time: str = "") -> None:
        teller = Teller()
        self._observe = teller
        again = self._replayed(outcome.deviations, time or None)
        deadlock = again.kind == "deadlock"
        into.lines = teller.text(deadlock)
        into.printed = self._printed.getvalue()
        if again.kind == "no end":
            cycle = teller.cycle()
            into.lines = "\n".join(teller.text().splitlines()[-20:])
            into.error = f"these steps come again and again:\n{cycle}" if cycle else ""
        elif deadlock and again.error is not None:
            into.error = str(getattr(again.error, "report", None) or again.error)
        elif again.error is not None:
            into.error = _words.traceback_of(again.error)
        elif into.kind == "lost values":
            into.error = _LOST
        deviations = outcome.deviations
        into.picture = functools.partial(self._picture, deviations, time)
        into.trace = functools.partial(self._trace, deviations, time)

    def _other_grain(self, failure: _Failure, outcome: _engine.Outcome, time: str) -> str:
        """Returns a sentence if this failure is impossible among coroutines of one scheduler. The
        sentence is empty if the failure is possible there, or if the search for it was cut.
        """
        if self.options.grain == "park" or failure.kind not in (
            "deadlock",
            "exception",
            "lost values",
        ):
            return ""
        options = replace(
            self._engine_options(time or None, "park"),
            search="reduced",
            seconds=_GRAIN,
            schedules=None,
        )
        search = _engine.Search(self._watched, options)
        for other in search:
            kind, what = self._judged(other)
            if kind == failure.kind and _words.alike(what, failure.what):
                return ""
        if not search.complete:
            return ""
        return (
            "a process is stopped between two operations here: this cannot happen while all of these are coroutines of "
            "one scheduler"
        )

    def _trace(self, deviations: Any, time: str, path: str) -> None:
        """Writes the trace of the schedule with these deviations."""
        from weft._watching.trace import tracing

        with self._within():
            self._observe = _Observing(lambda: tracing(path))
            self._replayed(deviations, time or None)

    def _picture(self, deviations: Any, time: str) -> str:
        import tempfile

        from weft._watching import picture as _drawing
        from weft._watching.trace import read

        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "trace.jsonl")
            self._trace(deviations, time, path)
            events, _ = read(path)
        return _drawing.svg(events)


class _Both:
    """Several observers of one run."""

    def __init__(self, *observers: Any) -> None:
        self._observers = observers

    @contextlib.contextmanager
    def observing(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for observer in self._observers:
                stack.enter_context(observer.observing())
            yield


@dataclass
class _Observing:
    """An observer made from a function that returns a context manager."""

    observing: Callable[[], Any]


_CHANNELS = (_native.Channel,)


class _First(Watch):
    """Observes the first run, and records any channel that existed before the run."""

    def __init__(self, before: set[int]) -> None:
        super().__init__()
        self.outside = ""
        self._before = before

    def event(
        self, what: str, process: Any, operation: str | None, target: Any, detail: Any
    ) -> None:
        super().event(what, process, operation, target, detail)
        channel = getattr(target, "channel", None) if what == "begin" else None
        if channel is not None and id(channel) in self._before:
            self.outside = channel.name or "without a name"


def _lacking(asked: Any, outcome: _engine.Outcome) -> str:
    """Returns a sentence about the first deviation that a replay did not take; "" if the replay
    took all of them.
    """
    numbers = set(outcome.numbers)
    named = {_indexed(d) for d in outcome.deviations}
    for d in asked:
        if isinstance(d, _tokens.ByNumber):
            if tuple(d) not in numbers:
                return f"at decision {d.decision} there is no choice {d.choice}"
        elif _indexed(d) not in named:
            return f"it is not so that {_tokens.sentence(d)}"
    return ""


def _indexed(d: Any) -> tuple[Any, ...]:
    """Returns a deviation with paths that do not depend on the number of processes with the same
    name (rule 7.8).
    """
    process, step, kind, choice, nth = d
    return (
        process.replace("[0]", ""),
        step,
        kind,
        choice.replace("[0]", "") if kind == "go" else choice,
        nth,
    )


def _progress(search: Any, seconds: float, options: Options) -> str:
    text = f"{counted(search.runs, 'schedule')}, {seconds:.0f} of {options.seconds:g} s"
    if search.estimate > search.runs:
        text += f"; some {about(search.estimate)} orders in all"
    return text
