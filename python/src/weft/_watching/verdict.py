"""Says in one sentence where the time goes (rules 14.11, 14.12), for `weft top`, `weft trace` and
`measuring()`.

The *weight* of a process is the share of time in which it waits for no other process: it is busy,
or waits for time or for io. Processes without weight wait for those that have weight, directly or
through others. So the bottleneck is the process with the most weight, among those that are busy or
for which another process waits.

- Processes of one name (`worker[0]`, `worker[1]`, …) that do the same form a group.
- All processes whose weight is within a tenth of the largest are named.
- If many processes compute a little each, and together fill one processor, the verdict names the
  scheduler.
- If the heaviest process reads from no other, and does not compute, no process of the network is
  slow: the network waits for something outside.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

NEAR = 0.9  #: a process with at least this share of the largest weight is named too
LIGHT = 0.3  #: a process below this weight is not a bottleneck
_WAITS = 0.25  #: the sentence mentions a neighbour that waits for at least this share of the time
MANY = 4  #: the least number of like processes that count as one beside others of their name
_ALIKE = 0.2  #: the weights of the processes of a group differ by at most this
_FULL = 0.75  #: a processor counts as full from this share of its time on
_ONE = 1.1  #: a sum of busy shares up to this can be that of one scheduler


@dataclass
class Node:
    """A process, with its shares of the time (0 to 1)."""

    path: str
    busy: float = 0.0
    time: float = 0.0  #: the share in which the process waited for time
    #: The share in which the process waited for io, or for something else that is not a process.
    io: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    due: float = 0.0  #: the share in which the process could go on, but another process ran
    #: the share in which the process computed; None if that is not known
    cpu: float | None = None
    inputs: set[str] = field(default_factory=set)  #: channels from which the process reads
    outputs: set[str] = field(default_factory=set)
    at: object = None  #: equal for processes that share a scheduler, or the interpreter's lock

    @property
    def weight(self) -> float:
        return self.busy + self.time + self.io


class Verdict(NamedTuple):
    kind: str  #: "bottleneck", "equal", "outside", "scheduler", "idle" or "nothing"
    names: tuple[str, ...]  #: the processes that the sentence names
    text: str


def folded(path: str) -> str:
    """Returns a path without its indices: `main/worker[*]` for `main/worker[3]`."""
    return re.sub(r"\[\d+\]", "[*]", path)


def percent(share: float) -> str:
    return f"{min(max(share, 0), 1) * 100:.0f} %"


@dataclass
class _Group:
    name: str
    members: list[Node]
    before: float = 0.0  # the share of time in which a neighbour waited to write to the group
    behind: float = 0.0  # the share of time in which a neighbour waited to read from the group

    def mean(self, of: str) -> float:
        return float(sum(getattr(m, of) for m in self.members)) / len(self.members)

    @property
    def weight(self) -> float:
        return self.mean("weight")

    @property
    def inputs(self) -> set[str]:
        return set().union(*(m.inputs for m in self.members))

    @property
    def outputs(self) -> set[str]:
        return set().union(*(m.outputs for m in self.members))

    @property
    def many(self) -> bool:
        return len(self.members) > 1

    def does(self) -> str:
        """Describes the parts of the weight in words, such as "busy 96 %"."""
        parts = [
            f"{word} {percent(self.mean(of))}"
            for of, word in (("busy", "busy"), ("time", "waits for time"), ("io", "waits for io"))
            if self.mean(of) >= max(0.1, self.weight / 5)
        ]
        cpus = [m.cpu for m in self.members if m.cpu is not None]
        if cpus and len(cpus) == len(self.members) and self.mean("busy") >= LIGHT:
            cpu = sum(cpus) / len(cpus)
            if cpu < self.mean("busy") / 2:
                parts.append(f"computes {percent(cpu)}")
        return ", ".join(parts) or f"busy {percent(self.weight)}"

    @property
    def outside(self) -> bool:
        """Whether the group mainly waits for something that is not a process."""
        idle = self.mean("time") + self.mean("io")
        cpus = [m.cpu for m in self.members if m.cpu is not None]
        if len(cpus) == len(self.members):
            idle = self.weight - sum(cpus) / len(cpus)
        return idle > self.weight / 2


def _name(members: Sequence[Node]) -> str:
    if len(members) == 1:
        return members[0].path
    numbers = [re.findall(r"\[(\d+)\]", m.path) for m in members]
    varying = [i for i in range(len(numbers[0])) if len({n[i] for n in numbers}) > 1]
    if len(varying) != 1:
        return folded(members[0].path)
    of = sorted(int(n[varying[0]]) for n in numbers)
    at = iter(range(len(numbers[0])))
    return re.sub(
        r"\[\d+\]",
        lambda found: f"[{of[0]}..{of[-1]}]" if next(at) == varying[0] else found[0],
        members[0].path,
    )


def _groups(nodes: Iterable[Node]) -> list[_Group]:
    by: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        by[folded(node.path)].append(node)
    return [_Group(_name(some), some) for members in by.values() for some in _alike(members)]


def _alike(members: list[Node]) -> Iterator[list[Node]]:
    """Yields the processes of one name in groups that weigh about the same. If not all of them do,
    a group of fewer than MANY is split into its members.
    """
    heaviest = max(m.weight for m in members)
    part = [m for m in members if heaviest - m.weight <= _ALIKE]
    rest = [m for m in members if heaviest - m.weight > _ALIKE]
    if not rest:
        yield members
        return
    yield from [part] if len(part) >= MANY else ([m] for m in part)
    yield from _alike(rest) if len(rest) >= MANY else ([m] for m in rest)


def _set_pressure(groups: list[_Group]) -> None:
    """Sets `before` and `behind` of each group: how long its neighbours wait for it."""
    readers: dict[str, list[_Group]] = defaultdict(list)
    writers: dict[str, list[_Group]] = defaultdict(list)
    for group in groups:
        for channel in group.inputs:
            readers[channel].append(group)
        for channel in group.outputs:
            writers[channel].append(group)
    for group in groups:
        before = [w for c in group.inputs for w in writers[c] if w is not group]
        behind = [r for c in group.outputs for r in readers[c] if r is not group]
        group.before = max((w.mean("writes") for w in before), default=0.0)
        group.behind = max((r.mean("reads") for r in behind), default=0.0)


def verdict(nodes: Iterable[Node]) -> Verdict:
    """Returns the verdict on these processes."""
    nodes = list(nodes)
    if not nodes:
        return Verdict("nothing", (), "nothing runs here")
    groups = _groups(nodes)
    _set_pressure(groups)
    # A process that sleeps and for which no other process waits is not a bottleneck: it can be a
    # clock.
    heavy = [
        g for g in groups if max(g.before, g.behind) >= 0.1 or g.mean("busy") >= LIGHT
    ] or groups
    heavy.sort(key=lambda g: (-g.weight, g.name))
    most = heavy[0].weight
    top = [g for g in heavy if g.weight >= NEAR * most]
    crowded = _crowded(nodes, top, most)
    if crowded is not None:
        return crowded
    if most < LIGHT:
        return _nobody(groups)
    if len(top) == 1:
        return _one(top[0])
    names = [f"`{g.name}` ({g.does()})" for g in top[:4]]
    more = f", and {len(top) - 4} more" if len(top) > 4 else ""
    count = {2: "two", 3: "three", 4: "four"}.get(len(top), str(len(top)))
    of = "processes" if not any(g.many for g in top) else "kinds of processes"
    return Verdict(
        "equal",
        tuple(g.name for g in top),
        f"{count} {of} of equal weight: {', '.join(names[:-1])}{' and ' if not more else ', '}{names[-1]}{more}",
    )


def _crowded(nodes: list[Node], top: list[_Group], most: float) -> Verdict | None:
    """Returns the verdict if many processes, each with a little work, share one processor;
    otherwise None.
    """
    by: dict[object, list[Node]] = defaultdict(list)
    for node in nodes:
        by[node.at].append(node)
    for members in by.values():
        computing = [m.busy if m.cpu is None else m.cpu for m in members]
        largest, whole = max(computing), sum(computing)
        if whole < _FULL or (whole > _ONE and any(m.cpu is None for m in members)):
            continue  # the busy processes do not compute, or there are several schedulers
        near = sum(c >= NEAR * largest for c in computing)
        equal = near >= 3 and sum(len(g.members) for g in top) >= 3 and largest < 0.6
        if equal or most < LIGHT:
            n = sum(c >= 0.02 for c in computing)
            return Verdict(
                "scheduler",
                (),
                f"the scheduler: one CPU computes all ({n} processes, none more than {percent(largest)})",
            )
    return None


def _one(group: _Group) -> Verdict:
    if not group.inputs and group.outside:
        what = "io" if group.mean("time") < group.weight / 2 else "time"
        return Verdict(
            "outside", (group.name,), f"nobody: the pipeline waits for `{group.name}`'s {what}"
        )
    parts = [f"`{group.name}` {'are' if group.many else 'is'} the bottleneck: {group.does()}"]
    around = []
    if group.before >= _WAITS:
        around.append(f"what is before {'them' if group.many else 'it'} waits to write")
    if group.behind >= _WAITS:
        around.append(f"what is behind {'them' if group.many else 'it'} waits to read")
    if around:
        parts.append(", ".join(around))
    return Verdict("bottleneck", (group.name,), "; ".join(parts))


def _nobody(groups: list[_Group]) -> Verdict:
    waiting = [g for g in groups if g.mean("reads") + g.mean("writes") >= 0.5]
    if len(waiting) == len(groups):
        return Verdict("idle", (), "nobody: all wait for each other, or for what is not seen")
    top = max(groups, key=lambda g: g.weight)
    return Verdict(
        "idle", (), f"nobody: no process is busy for long (`{top.name}` most, {top.does()})"
    )
