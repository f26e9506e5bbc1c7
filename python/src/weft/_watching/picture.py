"""Draws a trace as a picture (SVG): a line for each process, an arrow for each value that one
process hands to another.

    ───  runs or may run     ╌╌╌  waits     ●  begins or ends     │▼  a value     ✕  its channel has ended

Invariants
- The horizontal axis counts the events of the trace, not time. So the same program gives the same
  picture, and nothing is too close together to be seen. Times are in the titles that a browser
  shows when you point at a line.
- The n-th write that committed on a channel belongs to the n-th read: channels serve in order
  (rules 1.2, 1.3). If the write had ended before the read began, there is a buffer between the two,
  and the arrow is slanted. Otherwise writer and reader met, at the earlier of the two events, since
  the party that had waited was woken later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape

from weft._watching.trace import label

MAX_EVENTS = 400  # only this many events are shown, from the beginning
MAX_PROCESSES = 40

_STEP, _LANE, _TOP, _RIGHT = 18, 34, 30, 24
_LETTER = 7.2  # the width of a letter, at the font size below
STYLE = """
  text { font: 12px ui-monospace, monospace; fill: #24292f }
  .small { font-size: 10px; fill: #57606a }
  .runs { stroke: #0969da; stroke-width: 3; stroke-linecap: round }
  .waits { stroke: #8c959f; stroke-width: 1.5; stroke-dasharray: 2 4 }
  .value { stroke: #1a7f37; stroke-width: 1.5; fill: none; marker-end: url(#head) }
  .end { fill: #0969da }
  .gone { stroke: #cf222e; stroke-width: 2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .small { fill: #9198a1 } .runs { stroke: #4493f8 } .waits { stroke: #656c76 }
    .value { stroke: #3fb950 } .end { fill: #4493f8 } .gone { stroke: #f85149 }
  }"""


HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0,0 L8,4 L0,8 z" fill="#1a7f37"/></marker></defs>'
)


@dataclass
class _Operation:
    """One operation: where in the trace it began and ended, and how it ended."""

    lane: int
    begin: int
    end: int
    what: str
    outcome: str
    waited: float  # how long the operation waited, in seconds
    channel: str | None = None
    writes: bool = False


@dataclass
class _Lane:
    name: str
    first: int
    last: int | None = None  # where the process ended
    operations: list[_Operation] = field(default_factory=list)


def svg(events: Iterable[dict[str, Any]]) -> str:
    """Returns the trace as an SVG document. Of a long trace the document shows only the beginning,
    and says so.

    Args:
        events: the events that `read()` returns.
    """
    shown: list[dict[str, Any]] = []
    left_out = 0
    for event in _with_a_lane(list(events)):
        if len(shown) < MAX_EVENTS:
            shown.append(event)
        else:
            left_out += 1
    lanes, open_at = _lanes(shown)
    met = list(_meetings(lanes))  # computed from all lanes, including those that are not shown
    hidden = max(len(lanes) - MAX_PROCESSES, 0)
    lanes = lanes[:MAX_PROCESSES]
    margin = 16 + int(_LETTER * max((len(lane.name) for lane in lanes), default=0))
    width = margin + (len(shown) + 1) * _STEP + _RIGHT
    height = _TOP + len(lanes) * _LANE + 18
    body = [*_drawn(lanes, met, open_at, margin, len(shown)), *_arrows(lanes, met, margin)]
    notes = [
        f"{left_out} more events" if left_out else "",
        f"{hidden} more processes" if hidden else "",
    ]
    note = ", ".join(filter(None, notes))
    if note:
        body.append(f'<text class="small" x="8" y="{height - 6}">… and {note}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
        f"<title>{len(lanes)} processes, {len(shown)} events</title>\n<style>{STYLE}\n</style>\n{HEAD}\n"
        + "\n".join(body)
        + "\n</svg>\n"
    )


def _with_a_lane(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Leaves out the processes that only wait in this OS process for a process that runs in another
    one. That other process has its own lane.
    """
    away = {
        event["id"] for event in events if event["e"] == "away" and isinstance(event["in"], int)
    }
    away -= {event["id"] for event in events if "op" in event}
    return (e for e in events if e["e"] not in ("away", "lost") and e["id"] not in away)


def _lanes(events: list[dict[str, Any]]) -> tuple[list[_Lane], dict[int, tuple[int, str]]]:
    """Returns the processes in the order in which they began, and for each lane the operation that
    had not ended.
    """
    lanes: list[_Lane] = []
    of: dict[int, int] = {}
    begun: dict[int, tuple[int, str]] = {}
    for at, event in enumerate(events, 1):
        key = event["id"]
        if key not in of:
            of[key] = len(lanes)
            lanes.append(_Lane(label(event), at))
        lane = of[key]
        match event["e"]:
            case "start":
                pass
            case "end":
                lanes[lane].last = at
                begun.pop(lane, None)
            case "begin":
                place = event.get("c")
                begun[lane] = (at, f"{event['op']} {place}" if place else event["op"])
            case outcome if "op" in event:
                since, what = begun.pop(lane, (at, event["op"]))
                place = event.get("c")
                writes = event["op"] == "write" or event.get("kind") == "output"
                passes = place is not None and outcome == "commit"
                lanes[lane].operations.append(
                    _Operation(
                        lane,
                        since,
                        at,
                        f"{event['op']} {place}" if place else what,
                        event.get("why", outcome),
                        event.get("waited", 0) * 1e-9,
                        place if passes else None,
                        writes,
                    )
                )
    return lanes, begun


_Meeting = tuple[_Operation, _Operation, int, int]


def _meetings(lanes: list[_Lane]) -> Iterator[_Meeting]:
    """Yields for each value its write, its read, and where the arrow begins and ends."""
    by: dict[str, tuple[list[_Operation], list[_Operation]]] = defaultdict(lambda: ([], []))
    for operation in sorted((o for lane in lanes for o in lane.operations), key=lambda o: o.end):
        if operation.channel is not None:
            by[operation.channel][operation.writes].append(operation)
    for reads, writes in by.values():
        for write, read in zip(writes, reads, strict=False):
            if write.end < read.begin:
                yield write, read, write.end, read.end
            else:
                met = min(write.end, read.end)
                yield write, read, met, met


def _x(margin: int, at: int) -> int:
    return margin + at * _STEP


def _y(lane: int) -> int:
    return _TOP + lane * _LANE


def _line(kind: str, lane: int, margin: int, since: int, until: int, title: str) -> str:
    y = _y(lane)
    return (
        f'<line class="{kind}" x1="{_x(margin, since)}" y1="{y}" x2="{_x(margin, until)}" y2="{y}">'
        f"<title>{escape(title)}</title></line>"
    )


def _drawn(
    lanes: list[_Lane],
    met: list[_Meeting],
    open_at: dict[int, tuple[int, str]],
    margin: int,
    events: int,
) -> Iterator[str]:
    """Draws the names, and the line of each process from its beginning to its end."""
    woken = {}  # where an operation committed; its process was woken later
    for write, read, since, until in met:
        woken[id(write)], woken[id(read)] = since, until
    for number, lane in enumerate(lanes):
        y = _y(number)
        yield f'<text x="8" y="{y + 4}">{escape(lane.name)}</text>'
        at = lane.first
        for o in lane.operations:
            yield _line("runs", number, margin, at, o.begin, lane.name)
            at = min(woken.get(id(o), o.end), o.end) if o.waited > 0 else o.begin
            if at > o.begin:
                yield _line(
                    "waits", number, margin, o.begin, at, f"{o.what}: waited {o.waited:.6f} s"
                )
            if o.outcome not in ("commit", "withdraw"):
                yield _crossed(number, margin, o)
        last = lane.last if lane.last is not None else events
        if number in open_at:
            since, what = open_at[number]
            yield _line("runs", number, margin, at, since, lane.name)
            yield _line("waits", number, margin, since, events, f"{what}: has not ended")
        else:
            yield _line("runs", number, margin, at, last, lane.name)
        if lane.last is not None:
            yield f'<circle class="end" cx="{_x(margin, last)}" cy="{y}" r="4"><title>ends</title></circle>'


def _crossed(lane: int, margin: int, o: _Operation) -> str:
    x, y = _x(margin, o.end), _y(lane)
    return f'<path class="gone" d="M{x - 4},{y - 4} l8,8 m0,-8 l-8,8"><title>{escape(o.what)}: {escape(o.outcome)}</title></path>'


def _arrows(lanes: list[_Lane], met: list[_Meeting], margin: int) -> Iterator[str]:
    named: set[str] = set()
    for write, read, since, until in met:
        if max(write.lane, read.lane) >= len(lanes):
            continue
        down = 1 if read.lane > write.lane else -1
        y1, y2 = _y(write.lane) + 4 * down, _y(read.lane) - 5 * down
        x1, x2 = _x(margin, since), _x(margin, until)
        title = escape(f"{write.channel}: {lanes[write.lane].name} to {lanes[read.lane].name}")
        yield f'<line class="value" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"><title>{title}</title></line>'
        if write.channel is not None and write.channel not in named:  # each channel is named once
            named.add(write.channel)
            yield f'<text class="small" x="{x1 + 4}" y="{(y1 + y2) // 2 + 3}">{escape(write.channel)}</text>'
