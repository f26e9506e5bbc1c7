"""The findings of a check: a Report, its text, its picture and its exit status (rules 17.5 to
17.11).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from weft.errors import WeftError

STATUS = {"": 0, "deadlock": 3, "not the same": 4, "refused": 2, "interrupted": 130}


class CheckFailed(WeftError, AssertionError):
    """Raised if a checked function fails in some order. The text is that of the report, which is
    the attribute `report`.
    """

    def __init__(self, report: Report) -> None:
        super().__init__(f"\n{report.text}")
        self.report = report


@dataclass
class Search:
    """The schedules that one way of searching has run."""

    name: str
    runs: int = 0
    seconds: float = 0.0
    complete: bool = False


@dataclass
class Report:
    """The findings of `weft.check(f)`."""

    name: str  #: the name of the function
    #: "deadlock", "exception", "no end", "lost values", "left behind", "depends on the order",
    #: "told" (with strict), "cut" (every schedule was asked for, and the search was cut), "not the
    #: same" (rule 17.9), "refused", "interrupted"; "" if nothing was found
    kind: str = ""
    what: str = ""  #: details of the failure, in a few words
    complete: bool = False  #: whether the schedules that were run stand for all schedules
    schedules: int = 0  #: how many schedules were run for the search (not to make a failure short)
    found_at: int = 0  #: the number of the schedule that failed
    seconds: float = 0.0
    #: The number of deviations of the failing schedule from the usual order, after it was
    #: shortened.
    deviations: int = 0
    deviation_texts: list[str] = field(default_factory=list)  #: the deviations in words
    least: bool = False  #: whether all schedules with fewer deviations were run, and none failed
    token: str = ""
    lines: str = ""  #: the failing schedule, line by line
    error: str = ""  #: the report of the deadlock, or the traceback
    grain: str = ""  #: a sentence about the grain that the failure needs
    told: list[str] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)
    #: how many races were run in both orders, and how many races there are
    races: tuple[int, int] = (0, 0)
    estimate: float = 0.0  #: how many schedules there may be, without reduction; 0: unknown
    command: str = ""  #: the command that replays the failing schedule
    time: str = "quiet"
    timed: bool = False  #: whether a process has set a time
    replayed: str = ""  #: the outcome of replaying a token whose schedule does not fail
    printed: str = ""  #: what the function printed in the failing schedule
    more: list[Report] = field(default_factory=list)  #: failures of other kinds (keep_going)
    picture: Callable[[], str] | None = field(default=None, repr=False, compare=False)
    trace: Callable[[str], None] | None = field(default=None, repr=False, compare=False)

    @property
    def failed(self) -> bool:
        """Whether something was found. This is also true if the function cannot be checked, or the
        check was interrupted.
        """
        return self.kind != ""

    @property
    def status(self) -> int:
        """The exit status of the command."""
        return STATUS.get(self.kind, 1)

    @property
    def svg(self) -> str:
        """The failing schedule as a picture (SVG); empty if there is none."""
        return self.picture() if self.picture is not None else ""

    @property
    def text(self) -> str:
        """The text that the command prints."""
        return "\n".join(_text(self))

    def as_dict(self) -> dict[str, Any]:
        """Returns the report as --json prints it."""
        left_out = ("picture", "trace", "more")
        fields = {
            f.name: getattr(self, f.name)
            for f in dataclasses.fields(self)
            if f.name not in left_out
        }
        fields["searches"] = [dataclasses.asdict(search) for search in self.searches]
        fields["more"] = [report.as_dict() for report in self.more]
        return {"weft_check": 1, "failed": self.failed, "status": self.status, **fields}


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _text(r: Report) -> list[str]:
    if r.replayed:
        lines = [
            f"{r.name}: {r.replayed}",
            *([""] if r.lines else []),
            *([r.lines] if r.lines else []),
        ]
    elif r.kind == "":
        lines = [_nothing_found(r)]
    elif r.kind == "interrupted":
        lines = [f"{r.name}: stopped by Ctrl-C; nothing was found so far. {_how_far(r)}"]
    elif r.kind == "refused":
        lines = [f"{r.name} cannot be checked: {r.what}"]
    elif r.kind == "not the same":
        lines = [
            f"{r.name}: the program is not the same twice, so nothing can be said of it",
            r.what,
            "what differs from run to run is often a clock, a random number, the state of a module, or the order of a set",
        ]
    elif r.kind == "cut":
        lines = [f"{r.name}: nothing found, but every schedule was asked for (all). {_how_far(r)}"]
    else:
        lines = [_found(r)]
        lines += ["", r.lines] if r.lines else []
        lines += ["", r.error] if r.error else []
        lines += ["", "it printed:", r.printed.rstrip()] if r.printed.strip() else []
        lines += [f"deviation: {sentence}" for sentence in r.deviation_texts]
        lines += [r.grain] if r.grain else []
        lines += [f"replay: {r.command}"] if r.command else []
    lines += [f"told: {sentence}" for sentence in r.told]
    for other in r.more:
        lines += ["", *_text(other)]
    return lines


def _found(r: Report) -> str:
    what = f"{r.kind}: {r.what}" if r.what else r.kind
    if not r.found_at:
        return f"{r.name}: {what}"
    short = (
        "in the usual order"
        if not r.deviations
        else f"made short: {counted(r.deviations, 'deviation')}"
    )
    least = "; no schedule with fewer fails" if r.least and r.deviations else ""
    return f"{r.name}: {what}, in schedule {r.found_at:,}; {short}{least}"


def _nothing_found(r: Report) -> str:
    if not r.complete:
        return f"{r.name}: nothing found, but not every schedule was run. {_how_far(r)}"
    ways = {search.name: search.runs for search in r.searches}
    runs = ways.get("reduced") or ways.get("all") or r.schedules
    stand = "1 run stands" if runs == 1 else f"{runs:,} runs stand"
    times = (
        "At most 2 early times in a schedule."
        if r.time == "any"
        else "Times come when nobody can run; with --time any they may also come earlier."
        if r.timed
        else "Times come when nobody can run."
    )
    return f"{r.name}: nothing found. Every schedule: {stand} for all of them. {times}"


def _how_far(r: Report) -> str:
    ways = ", ".join(f"{s.name} {s.runs:,}" for s in r.searches if s.runs)
    text = f"{counted(r.schedules, 'schedule')} in {took(r.seconds)}" + (
        f" ({ways})" if ways else ""
    )
    if r.races[1]:
        text += f"; {r.races[0]:,} of {r.races[1]:,} races seen in both orders"
    if r.estimate > r.schedules:
        text += f"; some {about(r.estimate)} orders in all"
    return text


def about(number: float) -> str:
    """Returns a number in words; a big number is rounded."""
    if number < 10_000:
        return f"{round(number):,}"
    return f"10^{math.log10(number):.0f}"


def took(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
