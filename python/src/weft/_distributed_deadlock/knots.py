"""The report of a deadlock over several OS processes: which process waits where, and the knot (rule
10.2). See _distributed_deadlock/rounds.py.

A channel has one key in all spaces: its home, and its place there. A process that waits for a call
in a host has no line of its own: instead the processes of that call are listed, under the path of
the process.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, NamedTuple

from weft._distributed_deadlock import rounds as _rounds
from weft._distributed_deadlock.partial import Spaces
from weft._extension import native as _native
from weft._watching.deadlocks import Place, Waiter, line
from weft._watching.left_open import OUTSIDE

__all__ = ["Row", "report", "tell"]

LINES = 40  #: the largest number of processes that a report lists

_SIDES = (False, "reader"), (True, "writer")

_Node = tuple[int, int]  # the incarnation of a space, and a process of the space
_Key = tuple[int, int]  # the home of a channel, and the channel's place there


class Row(NamedTuple):
    """A process that waits."""

    node: _Node
    path: str
    operation: str
    at: str
    pid: int
    hidden: bool  #: whether the process waits for others as their parent, or for a call
    #: for each place: name, channel, whether the process writes
    places: tuple[tuple[str, _Key, bool], ...]
    names: tuple[str, ...]  #: the names of these places, and of channels that have ended

    def line(self) -> str:
        where = "" if self.pid == os.getpid() else f" in OS process {self.pid}"
        return line(self.path, self.operation, self.names, self.at) + where

    def blocked(self) -> tuple[str, str, tuple[str, ...], str]:
        return self.path, self.operation, tuple(name for name, _, _ in self.places), self.at


class _Network(Spaces):
    """The combined states of all spaces."""

    def __init__(self, spaces: list[Any]) -> None:
        super().__init__(spaces)
        self.rows: dict[_Node, Row] = {}
        self.edges: dict[_Node, set[_Node]] = {}
        for caller, callee in self.callees.items():
            if callee is not None:
                self.edges.setdefault(caller, set()).add(callee)
        self.unknown: list[str] = []  # channels of which a foreign thread might hold an end
        self.left: list[str] = []  # channels with an end that has no known holder
        for one in self.facts:
            self._add(*one)
        self.missing: dict[_Key, str] = {}  # channel without any end on one side → that side
        for s in spaces:
            self._look_for_missing(s)
        waited = {
            key: name for r in self.rows.values() if not r.hidden for name, key, _ in r.places
        }
        for s in spaces:
            (self.unknown if s.foreign_threads else self.left).extend(self._free(s, waited))

    def _add(self, s: Any, w: Waiter, places: dict[int, Place]) -> None:
        node = (s.incarnation, w.id)
        self.rows[node] = Row(
            node,
            self.path(node),
            w.operation,
            w.at,
            s.pid,
            w.state != "places" or node in self.callees,
            tuple((places[k].name, self.key(s, k), writes) for k, writes in w.places),
            w.names(places),
        )
        if (s.incarnation, w.parent) in self.waiters:
            self.edges.setdefault((s.incarnation, w.parent), set()).add(node)

    def _look_for_missing(self, s: Any) -> None:
        """Finds channels of this space all of whose open ends are on one side. The other side has
        never had an end: otherwise the channel would have ended.
        """
        given = Counter((place, writes) for _, _, place, writes, _ in s.lent)
        given += Counter((place, w) for place, w, _ in {(p, w, end) for _, p, w, end in s.held})
        lent = {place: count for _, _, place, _, count in s.lent}
        far = {place for place, _, _, _ in s.far}
        for place, count in lent.items():
            for writes, side in _SIDES:
                if count and count == given[place, not writes]:
                    self.missing[s.incarnation, place] = side
        for _, raw_places in s.facts:
            for key, raw in raw_places.items():
                place = Place(*raw)
                if key in lent or key in far or not place.is_channel:
                    continue
                if not place.readers and not place.unknown_readers:
                    self.missing[s.incarnation, key] = "reader"
                if not place.writers and not place.unknown_writers:
                    self.missing[s.incarnation, key] = "writer"

    def lacks(self, row: Row) -> dict[str, str]:
        """Returns the names of the channels at which the process waits for a side that never had an
        end, each with that side.
        """
        sides = dict(_SIDES)
        return {
            name: sides[not writes]
            for name, key, writes in row.places
            if self.missing.get(key) == sides[not writes]
        }

    def twins(self) -> list[str]:
        """Returns the names of channels of which one side never had an end, and which exist under
        that name in several OS processes. Such channels are made by a module that each of these OS
        processes imports.
        """
        homes: dict[str, set[int]] = {}
        lacking: set[str] = set()
        for row in self.rows.values():
            lacking.update(self.lacks(row))
            for name, (home, _), _ in row.places:
                homes.setdefault(name, set()).add(home)
        return sorted(name for name in lacking if len(homes[name]) > 1)

    def _free(self, s: Any, waited: dict[_Key, str]) -> list[str]:
        """Returns the channels at which a process waits, and of which ends are open in this space
        that no known process holds.
        """
        # channel → the number of its open ends that no known process holds
        free: dict[_Key, int] = {}
        for _, raw_places in s.facts:
            for key, raw in raw_places.items():
                place = Place(*raw)
                unknown = place.unknown_readers + place.unknown_writers if place.is_channel else 1
                free[s.incarnation, key] = unknown
        held = Counter(place for place, _ in {(place, end) for _, place, _, end in s.held})
        away = Counter(place for _, _, place, _, _ in s.lent)
        # a count of 0 means that this is a barrier, of which a thread can be a party
        for _, _, place, _, count in s.lent:
            here = count - held[place] - away[place] if count else 1
            free[s.incarnation, place] = here
        for place, home, name, count in s.far:
            free.pop((s.incarnation, place), None)
            key = self.far_key(s, home, name)
            free[key] = free.get(key, 0) + count - held[place]
        return [waited[key] for key, n in free.items() if n > 0 and key in waited]

    def waits_for(self, row: Row) -> set[_Node]:
        if row.hidden:
            return {n for n in self.edges.get(row.node, ()) if n in self.rows}
        found: set[_Node] = set()
        for _, key, writes in row.places:
            found |= self.holders.get((key, not writes), set()) & self.rows.keys()
        return found


def smallest_knot(to: dict[_Node, set[_Node]]) -> list[_Node]:
    """Returns the smallest set of nodes that no edge leaves, sorted
    (cpp/include/weft/runtime/knot.hpp).
    """
    nodes = sorted(to)
    number = {node: i for i, node in enumerate(nodes)}
    return [nodes[i] for i in _native._smallest_knot([[number[n] for n in to[v]] for v in nodes])]


def report(spaces: list[Any]) -> tuple[str, list[str], list[Row], list[str]]:
    """Returns the text of the report, the paths of the knot, the processes that wait, and the
    channels of which a foreign thread might hold an end.
    """
    network = _Network(spaces)
    to = {row.node: network.waits_for(row) for row in network.rows.values()}
    shown = sorted(
        (r for r in network.rows.values() if not r.hidden), key=lambda r: (r.path, r.node)
    )
    n = len(shown)
    over = len({r.pid for r in network.rows.values()})
    lines = [
        f"deadlock: {n} process{' is' if n == 1 else 'es are'} blocked and nothing outside can wake any; "
        f"they are in {over} OS process{'' if over == 1 else 'es'}"
    ]
    lines += [f"  {row.line()}" for row in shown[:LINES]]
    if n > LINES:
        lines.append(f"  … and {n - LINES} more")
    knot = [network.rows[node] for node in smallest_knot(to)]
    lines.append("knot:")
    for row in sorted(knot, key=lambda r: r.path)[:LINES]:
        others = sorted({network.rows[node].path for node in to[row.node]})
        between = " and " if row.hidden else " or "
        whom = between.join(others[:8]) + (
            f"{between}{len(others) - 8} more" if len(others) > 8 else ""
        )
        if not others:
            names = ", ".join(name for name, _, _ in row.places)
            known = " and ".join(
                f"{name} never had a {side} end" for name, side in network.lacks(row).items()
            )
            whom = (
                f"whoever is on the other side of {names} ({known or 'nobody that is known'})"
                if names
                else "nobody"
            )
        lines.append(f"  {row.path} waits for {whom}")
    if twins := network.twins():
        lines.append(
            f"each OS process that imports a module has its own channels of that module: {', '.join(twins)} "
            "here. Give their ends to the processes, as arguments"
        )
    if network.left:
        names = ", ".join(sorted(set(network.left)))
        lines += [f"ends of {names} are still open outside any process: retire them", OUTSIDE]
    return "\n".join(lines), sorted(r.path for r in knot), shown, network.unknown


_reported: set[str] = set()


def tell(spaces: list[Any]) -> None:
    """Reports, at the root, that nothing in the network can go on: as a deadlock, or as a
    standstill if a foreign thread might hold an end, or if something else can act (rule 10.6).
    """
    text, knot, shown, unknown = report(spaces)
    if not shown:
        return
    may = [f"{one} in OS process {s.pid}" for s in spaces for one in s.outside]
    if not unknown and not may:
        _rounds.declare(text, knot, [row.blocked() for row in shown])
    elif text not in _reported:
        _reported.add(text)
        import logging

        if unknown:
            names = ", ".join(sorted(set(unknown)))
            may.insert(0, f"a thread that is no process, if it has an end of {names}")
        logging.getLogger("weft").warning(
            "standstill: nothing runs in any of these OS processes, and no timer or socket is due\n%s\n"
            "what may still wake them: %s",
            "\n".join(text.splitlines()[1:]),
            ", or ".join(may),
        )
