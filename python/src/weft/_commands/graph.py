"""The network of a run as a drawing: SVG, DOT (Graphviz) or Mermaid.

    lines of a trace ──network()───┐
    a recorder's file ──recorded()─┼─► Drawn: processes, and which process writes to which
    a look ──────────────looked()──┘     └──svg(), dot(), mermaid()──► text

Invariants
- The same network gives the same text, whatever the order in which its processes ran.
- Processes of one name that are linked alike (`worker[0]`, `worker[1]`, …) are one node,
  `worker[0..63]`.
- A channel with one writer and one reader is an edge. Another channel is a node of its own, so n
  writers and m readers are n + m edges.
- The events of a recorder's file are never all in memory.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from weft._watching import picture as _picture
from weft._watching import trace as _trace
from weft._watching.verdict import folded

if TYPE_CHECKING:
    from weft._watching import flight_read as _flight_read
    from weft._watching import visit as _visit

FORMATS = ("svg", "dot", "mermaid")
#: the largest number of nodes that are drawn; the drawing says how many are left out
MAX_NODES = 400


@dataclass
class Drawn:
    """A network: names of nodes, and edges (from, to, channel, values or None if not known)."""

    nodes: list[str] = field(default_factory=list)
    channels: list[str] = field(default_factory=list)  #: the channels that are nodes
    edges: list[tuple[str, str, str, int | None]] = field(default_factory=list)
    left_out: int = 0
    unit: str = "values"


def network(events: Iterable[dict[str, Any]]) -> Drawn:
    """Returns the network of a trace: which process writes to which channel, and which process
    reads from it.
    """
    writes: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    reads: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    seen: dict[str, None] = {}
    away = set()
    all_of_them = list(events)
    for event in all_of_them:
        if event["e"] == "away" and isinstance(event["in"], int):
            away.add(event["id"])
    away -= {event["id"] for event in all_of_them if "op" in event}
    for event in all_of_them:
        if event["e"] == "lost" or event["id"] < 0 or event["id"] in away:
            continue
        path = event["p"]
        seen.setdefault(path)
        way = _way(event)
        if way is not None and "c" in event:
            (writes if way else reads)[event["c"]][path] += event["e"] == "commit"
    return _drawn(seen, writes, reads, {})


def recorded(files: _flight_read.Recorded) -> Drawn:
    """Returns the network of a file of the flight recorder."""
    from weft._watching import flight_read as _flight_read

    counts: dict[tuple[int, int, int], int] = defaultdict(int)
    seen: set[int] = set()
    of_ops = {0: False, 1: True, 2: False, 3: False, 4: True}  # Event.op → whether it writes
    for event in files.events():
        seen.add(event.process)
        if event.place >= 0 and event.op in of_ops and event.tag >= _flight_read.WAITS:
            counted = event.tag == _flight_read.OVER and event.outcome == 0
            counts[event.process, event.place, event.op] += counted
    writes: Ends = defaultdict(lambda: defaultdict(int))
    reads: Ends = defaultdict(lambda: defaultdict(int))
    for (process, place, op), n in counts.items():
        channel = files.places[place][0]
        (writes if of_ops[op] else reads)[channel][files.label(process)] += n
    return _drawn([files.label(p) for p in seen if files.processes[p][1] >= 0], writes, reads, {})


def looked(look: _visit.Network) -> Drawn:
    """Returns the network that a look has shown: which process holds which ends, and how many
    values pass per second.
    """
    writes: Ends = defaultdict(lambda: defaultdict(int))
    reads: Ends = defaultdict(lambda: defaultdict(int))
    rates: dict[str, float] = defaultdict(float)
    for pipe in look.pipes:
        rates[pipe.name] += pipe.rate or 0.0
        for of, paths in ((writes, pipe.writers), (reads, pipe.readers)):
            of[pipe.name].update(dict.fromkeys(paths, 0))
    drawn = _drawn([row.path for row in look.rows], writes, reads, rates)
    drawn.unit = "values/s"
    drawn.left_out += look.left_out
    return drawn


Ends = dict[str, dict[str, int]]  #: channel → process → how many values


def _drawn(seen: Iterable[str], writes: Ends, reads: Ends, rates: dict[str, float]) -> Drawn:
    """Returns the network of these ends. `rates` contains, for some channels, the values per second
    of the whole channel; for these channels it is not known how many values each process passed.
    """
    used = {p for of in (*writes.values(), *reads.values()) for p in of}
    names = _folds(sorted(used or seen), writes, reads)
    drawn = Drawn(sorted(set(names.values())))
    for channel in sorted(writes.keys() | reads.keys()):
        ends = writes.get(channel, {}), reads.get(channel, {})
        _draw_channel(drawn, channel, names, *ends, rates.get(channel))
    drawn.left_out = max(len(drawn.nodes) - MAX_NODES, 0)
    if drawn.left_out:
        drawn.nodes = drawn.nodes[:MAX_NODES]
        kept = {*drawn.nodes, *drawn.channels}
        drawn.edges = [e for e in drawn.edges if e[0] in kept and e[1] in kept]
    return drawn


def _way(event: dict[str, Any]) -> bool | None:
    """Returns true if the process writes in this event, false if it reads, None if the event is not
    a communication.
    """
    if event.get("op") == "write" or event.get("kind") == "output":
        return True
    if event.get("op") in ("read", "extended read") or event.get("kind") == "input":
        return False
    return None


def _folds(paths: list[str], writes: Ends, reads: Ends) -> dict[str, str]:
    """Returns the node that stands for each process. Processes of one name share a node if they
    hold the same ends; channel names that differ only in their numbers count as the same.
    """
    ends: dict[str, set[tuple[str, bool]]] = defaultdict(set)
    for way, of in ((True, writes), (False, reads)):
        for channel, who in of.items():
            for path in who:
                ends[path].add((folded(channel), way))
    by: dict[tuple[str, frozenset[tuple[str, bool]]], list[str]] = defaultdict(list)
    for path in paths:
        by[folded(path), frozenset(ends[path])].append(path)
    names = {}
    for members in by.values():
        name = members[0]
        if len(members) > 1:
            numbers = [int(n) for p in members for n in re.findall(r"\[(\d+)\]", p)[-1:]]
            span = f"[{min(numbers)}..{max(numbers)}]" if numbers else ""
            name = re.sub(r"\[\d+\](?!.*\[\d+\])", span, members[0])
        names.update(dict.fromkeys(members, name))
    return names


def _draw_channel(
    drawn: Drawn,
    channel: str,
    names: dict[str, str],
    writers: dict[str, int],
    readers: dict[str, int],
    rate: float | None,
) -> None:
    sources: dict[str, int] = defaultdict(int)
    targets: dict[str, int] = defaultdict(int)
    for path, n in writers.items():
        sources[names[path]] += n
    for path, n in readers.items():
        targets[names[path]] += n
    if len(sources) == len(targets) == 1:
        (source, n), (target, m) = *sources.items(), *targets.items()
        drawn.edges.append((source, target, channel, max(n, m) if rate is None else round(rate)))
        return
    drawn.channels.append(channel)
    for nodes, reading in ((sources, False), (targets, True)):
        for node, n in sorted(nodes.items()):
            known = n if rate is None else round(rate) if len(nodes) == 1 else None
            ends = (channel, node) if reading else (node, channel)
            drawn.edges.append((*ends, "", known))


# --- texts ----------------------------------------------------------------------------------------


def _note(drawn: Drawn) -> str:
    return f"… and {drawn.left_out} more processes" if drawn.left_out else ""


def _label(drawn: Drawn, name: str, n: int | None) -> str:
    """Returns the label of an edge: the channel's name, and how many values have passed."""
    number = "" if n is None else f"({n})" if drawn.unit == "values" else f"({n}/s)"
    return f"{name} {number}".strip()


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def dot(drawn: Drawn) -> str:
    lines = [
        "digraph weft {",
        "  rankdir=LR;",
        '  node [shape=box, style=rounded, fontname="monospace"];',
    ]
    lines += [f"  {_quoted(name)};" for name in drawn.nodes]
    lines += [
        f"  {_quoted('channel ' + name)} [shape=ellipse, label={_quoted(name)}];"
        for name in drawn.channels
    ]
    channels = set(drawn.channels) - set(drawn.nodes)
    for source, target, label, n in drawn.edges:
        ends = [_quoted("channel " + e if e in channels else e) for e in (source, target)]
        text = _label(drawn, label, n)
        lines.append(f"  {ends[0]} -> {ends[1]}{f' [label={_quoted(text)}]' if text else ''};")
    if drawn.left_out:
        lines.append(f"  // {_note(drawn)}")
    return "\n".join([*lines, "}"]) + "\n"


# Mermaid's own names for characters
_MERMAID = str.maketrans(
    {'"': "#quot;", "#": "#35;", "|": "#124;", "<": "#lt;", ">": "#gt;", "&": "#amp;"}
)


def mermaid(drawn: Drawn) -> str:
    ids = {name: f"p{i}" for i, name in enumerate(drawn.nodes)}
    ids |= {name: f"c{i}" for i, name in enumerate(drawn.channels) if name not in ids}

    def quoted(text: str) -> str:
        return '"' + text.translate(_MERMAID) + '"'

    lines = ["flowchart LR"]
    lines += [f"  {ids[name]}[{quoted(name)}]" for name in drawn.nodes]
    lines += [f"  {ids[name]}([{quoted(name)}])" for name in drawn.channels if ids[name][0] == "c"]
    for source, target, label, n in drawn.edges:
        text = _label(drawn, label, n)
        lines.append(f"  {ids[source]} -->{f'|{quoted(text)}|' if text else ''} {ids[target]}")
    if drawn.left_out:
        lines.append(f"  %% {_note(drawn)}")
    return "\n".join(lines) + "\n"


def _layers(drawn: Drawn) -> dict[str, int]:
    """Returns the column of each node. Where the network has no cycle, a node is in a later column
    than all nodes from which it reads.
    """
    names = [*drawn.nodes, *(c for c in drawn.channels if c not in drawn.nodes)]
    after: dict[str, list[str]] = defaultdict(list)
    for source, target, _, _ in drawn.edges:
        if source != target:
            after[source].append(target)
    forward = _without_cycles(names, after)
    column = dict.fromkeys(names, 0)
    missing = dict.fromkeys(names, 0)
    for targets in forward.values():
        for target in targets:
            missing[target] += 1
    ready = [name for name in names if not missing[name]]
    for name in ready:
        for target in forward[name]:
            column[target] = max(column[target], column[name] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return column


def _without_cycles(names: list[str], after: dict[str, list[str]]) -> dict[str, list[str]]:
    """Returns the edges that do not lead back to an earlier node. The search avoids recursion,
    since a network can be a long chain.
    """
    state: dict[str, int] = {}  # 1 while the node is being visited, 2 afterwards
    forward: dict[str, list[str]] = {name: [] for name in names}
    incoming = {target for targets in after.values() for target in targets}
    for root in sorted(names, key=lambda n: (n in incoming, n)):
        if state.get(root):
            continue
        state[root] = 1
        stack = [(root, iter(after[root]))]
        while stack:
            name, targets = stack[-1]
            target = next(targets, None)
            if target is None:
                state[name] = 2
                stack.pop()
            elif state.get(target) != 1:
                forward[name].append(target)
                if not state.get(target):
                    state[target] = 1
                    stack.append((target, iter(after[target])))
    return forward


_ROW, _GAP, _BOX, _LETTER = 44, 90, 26, 7.2
_MORE_STYLE = """
  .box { fill: none; stroke: #0969da; stroke-width: 1.5 }
  .pipe { fill: none; stroke: #1a7f37; stroke-width: 1.5 }"""


def svg(drawn: Drawn) -> str:
    column = _layers(drawn)
    rows: dict[int, list[str]] = defaultdict(list)
    for name, at in column.items():
        rows[at].append(name)
    widths = {
        at: max(int(_LETTER * len(name)) + 20 for name in names) for at, names in rows.items()
    }
    labels: dict[int, int] = defaultdict(int)  # room behind a column, for the labels of its edges
    for source, _, label, _ in drawn.edges:
        labels[column[source]] = max(labels[column[source]], int(6 * len(label)) + 24)
    left, x = 16, {}
    for at in sorted(rows):
        x[at] = left
        left += widths[at] + max(_GAP, labels[at])
    place = {
        name: (x[at], 20 + i * _ROW) for at, names in rows.items() for i, name in enumerate(names)
    }
    height = 40 + _ROW * max((len(names) for names in rows.values()), default=0)
    channels = set(drawn.channels) - set(drawn.nodes)
    body = []
    for source, target, label, n in drawn.edges:
        values = "" if n is None else f": {n} {drawn.unit}"
        title = f"{label or source + ' to ' + target}{values}"
        body.append(_edge(place, column, widths, source, target, label, title))
    for name, (at, y) in place.items():
        kind, radius = ("pipe", _BOX // 2) if name in channels else ("box", 5)
        w = widths[column[name]]
        body.append(
            f'<rect class="{kind}" x="{at}" y="{y}" width="{w}" height="{_BOX}" rx="{radius}"/>'
            f'<text x="{at + 10}" y="{y + 17}">{escape(name)}</text>'
        )
    if drawn.left_out:
        body.append(f'<text class="small" x="8" y="{height - 6}">{_note(drawn)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left} {height}" width="{left}" height="{height}" role="img">\n'
        f"<title>{len(drawn.nodes)} nodes, {len(drawn.edges)} edges</title>\n"
        f"<style>{_picture.STYLE}{_MORE_STYLE}\n</style>\n{_picture.HEAD}\n"
        + "\n".join(body)
        + "\n</svg>\n"
    )


def _edge(
    place: dict[str, tuple[int, int]],
    column: dict[str, int],
    widths: dict[int, int],
    source: str,
    target: str,
    label: str,
    title: str,
) -> str:
    x1, y1 = place[source][0] + widths[column[source]], place[source][1] + _BOX // 2
    x2, y2 = place[target][0], place[target][1] + _BOX // 2
    if x2 > x1:
        bend = (x2 - x1) // 2
        way = f"M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2 - 2},{y2}"
    else:  # the edge leads back
        low = max(y1, y2) + _BOX
        way = f"M{x1},{y1} C{x1 + 40},{low} {x2 - 40},{low} {x2 - 2},{y2}"
    text = f'<text class="small" x="{x1 + 8}" y="{y1 - 5}">{escape(label)}</text>' if label else ""
    return f'<path class="value" d="{way}"><title>{escape(title)}</title></path>{text}'


def as_text(kind: str, drawn: Drawn) -> str:
    return {"svg": svg, "dot": dot, "mermaid": mermaid}[kind](drawn)


def drawn_as(kind: str, events: Iterable[dict[str, Any]]) -> str:
    return as_text(kind, network(events))


def of_trace(path: str, kind: str) -> tuple[str, str]:
    """Returns the drawing of a trace, or of a file of the flight recorder, and a sentence if the
    file is not whole ("" if it is).

    Raises:
        weft.BadUse: the file cannot be read, or is not a trace.
    """
    from weft._watching import flight_read as _flight_read

    if _flight_read.is_binary(path):
        files = _flight_read.Recorded([path])
        return as_text(kind, recorded(files)), files.fault
    events, cut_off = _trace.read(path)
    fault = f"the last line of {path} is cut off: what is before that is drawn" if cut_off else ""
    return drawn_as(kind, events), fault
