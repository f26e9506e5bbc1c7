"""Tests the table of the steps that commute in `weft check`, entry by entry, on the model.

The module performs two steps of two processes in both orders in every small state of the model. If
the two orders differ, some entry of the table (cpp/include/weft/check/access.hpp) must report that
the steps conflict. An entry is needed if for some pair no other entry reports the conflict: a
search without this entry would miss an outcome.

    python -m conformance.commuting [--depth 2] [--sample N]

This file contains its own copy of the rules that determine what a step touches. The originals are
in python/native/checking/choices.cpp and cpp/src/check/record.cpp.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .model import World
from .objects import READ, WRITE, BadUse, Barrier, Chan, End, Guard, Op, side_of

ACCESSES = (
    "read",
    "write",
    "choice",
    "quiet_choice",
    "choose_read",
    "choose_write",
    "close",
    "close_other",
    "make",
    "all",
    "join",
    "look",
)
# A place, which is ("c", channel), ("s", select) or ("b", barrier), and an access.
Touch = tuple[Any, str]
# Two accesses, in the table's order, and whether they are at a buffer.
Entry = tuple[str, str, bool]


class Action(NamedTuple):
    """One step of a process."""

    name: str
    what: str  # read, write, select, close, die, poison, make, sync, enrol, resign
    guards: tuple[Guard, ...] = ()
    on: int = 0  # the channel, or the end that a close is for
    side: int = READ  # the side at which `make` makes an end


@dataclass
class State:
    """A state of the model, and a note of the selects that have waited, and where."""

    world: World
    waited: frozenset[tuple[int, int, int, bool]] = frozenset()  # pid, channel, side, ended="raise"
    # Pid → the places that the step of this process accesses.
    touches: dict[int, list[Touch]] = field(default_factory=dict)
    parked: frozenset[int] = frozenset()  # waiting selects, whose touches can become weaker

    def clone(self) -> State:
        new = World.__new__(World)
        self.world._clone_into(new)
        return State(new, self.waited, {p: t[:] for p, t in self.touches.items()}, self.parked)


def worlds() -> Iterator[tuple[World, list[Action]]]:
    """Yields initial states, each with the steps that are possible in it. A state has two channels
    of the given capacity, and the given number of ends at each side.
    """
    for capacity, ends, overflow in (
        (0, 1, "block"),
        (0, 2, "block"),
        (1, 1, "block"),
        (1, 2, "block"),
        (1, 1, "drop_oldest"),
    ):
        w = World()
        w.chans = [Chan(capacity, overflow), Chan(0)]
        w.barriers = [Barrier(2)]
        for c in range(2):
            for side in (READ, WRITE):
                for _ in range(ends if c == 0 else 1):
                    w.make_end(c, side)
        yield w, actions(w, ends)
    for capacity in (0, 1):
        yield three_channels(capacity)


def three_channels(capacity: int) -> tuple[World, list[Action]]:
    """Returns a state with two selects that share one channel, and that each have another
    channel.
    """
    w = World()
    w.chans = [Chan(capacity, "block"), Chan(0), Chan(0)]
    w.barriers = [Barrier(2)]
    r = [Guard("in", c, w.make_end(c, READ)[0]) for c in range(3)]
    o = [Guard("out", c, w.make_end(c, WRITE)[0], value=7 + c) for c in range(3)]
    found = [Action(f"read {c}", "read", (r[c],)) for c in range(3)]
    found += [Action(f"write {c}", "write", (o[c],)) for c in range(3)]
    found += [Action(f"select r0 r{c}", "select", (r[0], r[c])) for c in (1, 2)]
    found += [Action(f"select w0 r{c}", "select", (o[0], r[c])) for c in (1, 2)]
    return w, found


def actions(w: World, ends: int) -> list[Action]:
    def end(chan: int, side: int) -> int:
        return next(i for i, e in enumerate(w.ends) if e.chan == chan and e.side == side)

    def guard(chan: int, kind: str, **more: Any) -> Guard:
        return Guard(kind, chan, end(chan, READ if kind == "in" else WRITE), **more)

    r0, r1, w0, w1 = (
        guard(0, "in"),
        guard(1, "in"),
        guard(0, "out", value=7),
        guard(1, "out", value=8),
    )
    loud = guard(0, "in", ends=True)
    skip, barrier = Guard("skip"), Guard("barrier", 0)
    found = [
        Action("read 0", "read", (r0,)),
        Action("write 0", "write", (w0,)),
        Action("read 1", "read", (r1,)),
        Action("write 1", "write", (w1,)),
        Action("select r0 r1", "select", (r0, r1)),
        Action("select r0 w1", "select", (r0, w1)),
        Action("select w0 w1", "select", (w0, w1)),
        Action("select w0 r1", "select", (w0, r1)),
        Action("select r0 r0", "select", (r0, r0)),
        Action("select r0 skip", "select", (r0, skip)),
        Action("select w0 skip", "select", (w0, skip)),
        Action("select r0! r1", "select", (loud, r1)),
        Action("poison 0", "poison", on=0),
        Action("make r0", "make", on=0),
        Action("make w0", "make", on=0, side=WRITE),
        Action("sync", "sync", (barrier,)),
        Action("enrol", "enrol"),
        Action("resign", "resign"),
    ]
    for i, e in enumerate(w.ends):
        if e.chan == 0:
            found.append(Action(f"close {'rw'[e.side]}0.{i}", "close", on=i))
    found.append(Action("die r0", "die", on=end(0, READ)))
    return found


def steps(state: State, pid: int, action: Action) -> list[State]:
    """Returns the states to which this step of a new process leads, one for each choice. The list
    is empty if the step is bad use in this state. A process writes its number, so that values
    differ.
    """
    action = action._replace(guards=tuple(g._replace(value=pid) for g in action.guards))
    try:
        return list(_steps(state, pid, action))
    except BadUse:
        return []


def _steps(state: State, pid: int, action: Action) -> Iterator[State]:
    if action.what not in ("read", "write", "select", "sync"):
        s = state.clone()
        w = s.world
        waiting = _waiting(w)
        touched: list[Touch] = []
        if action.what in ("close", "die"):
            e: End = w.ends[action.on]
            if e.how:
                raise BadUse("closed")
            last = w.chans[e.chan].live[e.side] == 1
            how = "all" if action.what == "die" else "close" if last else "close_other"
            touched.append((("c", e.chan), how))
            if how != "close_other":
                touched += _looks(s, pid, e.chan, None, loud=how == "close")
            w.close(action.on, "closed", died=action.what == "die")
        elif action.what == "poison":
            touched.append((("c", action.on), "all"))
            touched += _looks(s, pid, action.on, None)
            w.poison(action.on)
        elif action.what == "make":
            touched.append((("c", action.on), "make"))
            w.make_end(action.on, action.side)
        elif action.what == "enrol":
            touched.append((("b", 0), "all"))
            w.enrol_party(0)
        else:
            touched.append((("b", 0), "all"))
            w.resign(0)
        yield _over(s, pid, touched, waiting)
        return
    probe = state.clone()
    op = Op(pid, action.what, action.guards)
    probe.world.begin(op)
    hot = list(probe.world.choices(op))
    ready = [i for i in hot if op.guards[i].kind != "skip"]
    for i in hot or [None]:  # type: ignore[list-item]
        s = state.clone()
        w = s.world
        waiting = _waiting(w)
        mine = Op(pid, action.what, action.guards)
        w.begin(mine)
        if i is None:
            for k in range(len(mine.guards)):
                w.enrol(pid, k)
        else:
            w.commit(pid, i)
        yield _over(s, pid, _arrival(s, pid, action, i, len(ready)), waiting)


def _waiting(w: World) -> set[int]:
    """Returns the processes whose selects wait."""
    return {p for p, op in w.ops.items() if op.state == "waiting" and len(op.guards) > 1}


def _arrival(s: State, pid: int, action: Action, chosen: int | None, ready: int) -> list[Touch]:
    guards = action.guards
    if action.what == "sync":
        return [(("b", 0), "join")]
    touched: list[Touch] = []
    if len(guards) == 1:
        drops = s.world.chans[guards[0].on].overflow != "block"
        touched.append((("c", guards[0].on), "all" if drops else action.what))
        return touched + _looks(s, pid, guards[0].on, None if drops else side_of(guards[0]))
    can = not any(g.kind == "skip" for g in guards) and len({g.on for g in guards}) == len(guards)
    parked = chosen is None and s.world.ops[pid].state == "waiting"
    for i, g in enumerate(guards):
        if g.kind == "skip":
            continue
        here = not parked and can and ready == 1 and i == chosen
        side = side_of(g)
        how = (
            ("choose_read" if side == READ else "choose_write")
            if here
            else "quiet_choice"
            if can and not parked and not _ends(g)
            else "choice"
        )
        if s.world.chans[g.on].overflow != "block":
            how, here = "all", False
        touched.append((("c", g.on), how))
        touched += _looks(s, pid, g.on, side if here else None)
        if parked:
            s.waited |= {(pid, g.on, side, _ends(g))}
    if parked and can:
        s.parked |= {pid}
    return touched


def _ends(g: Guard) -> bool:
    """Returns whether a silent end of the guard's channel affects the select (5.6)."""
    return g.ends or g.kind == "out"


def _looks(s: State, pid: int, chan: int, side: int | None, loud: bool = False) -> list[Touch]:
    """Returns the touches of the selects that wait, or have waited, at the side opposite to `side`;
    at both sides if `side` is None. With `loud`, returns only the touches of selects that the end
    of the channel decides.
    """
    return [
        (("s", p), "look")
        for p, c, at, ends in s.waited
        if c == chan and p != pid and at != side and (ends or not loud)
    ]


def _over(s: State, pid: int, touched: list[Touch], waiting: set[int]) -> State:
    """Called when the step is done and the selects that it has decided are known: weakens the
    touches of these selects.
    """
    for p in sorted(waiting):
        op = s.world.ops[p]
        if op.state == "waiting":
            continue
        touched.append((("s", p), "all"))
        chosen = op.out[1] if op.out and op.out[0] == "ok" else None
        if p in s.parked and p in s.touches and isinstance(chosen, int):
            weak = {
                g.on: ("choose_read" if side_of(g) == READ else "choose_write")
                if i == chosen
                else "choice"
                if _ends(g)
                else "quiet_choice"
                for i, g in enumerate(op.guards)
            }
            s.touches[p] = [
                (place, weak[place[1]]) if place[0] == "c" and how == "choice" else (place, how)
                for place, how in s.touches[p]
            ]
        s.parked -= {p}
    s.touches[pid] = touched
    return s


def entries(state: State, a: int, b: int) -> set[Entry]:
    """Returns the pairs of accesses of two steps at one place. If more processes arrive at the
    barrier than it has parties, their arrivals count as `all`.
    """
    joined = sum(
        place == ("b", 0) for t in state.touches.values() for place, how in t if how == "join"
    )
    crowded = joined > state.world.barriers[0].enrolled
    found = set()
    for place, how in state.touches[a]:
        for other, as_well in state.touches[b]:
            if place == other:
                both = ["all" if crowded and it == "join" else it for it in (how, as_well)]
                x, y = sorted(both, key=ACCESSES.index)
                found.add((x, y, place[0] == "c" and state.world.chans[place[1]].capacity > 0))
    return found


def _key(w: World) -> Any:
    """Returns the part of a state that is compared. It contains the outcome of an operation that
    has ended, but not how the outcome was reached. It contains which processes wait at a barrier,
    but not their order, because all continue together (rule 8.1).
    """
    chans, ends, barriers, _, *rest = w.world_key()
    barriers = tuple((enrolled, tuple(sorted(line))) for enrolled, line in barriers)
    ops = [
        (p, op.state, op.out if op.state == "done" else op.key()) for p, op in sorted(w.ops.items())
    ]
    return chans, ends, barriers, tuple(ops), *rest


def reachable(world: World, doable: list[Action], depth: int) -> list[State]:
    """Returns the states after at most `depth` steps, each of a process of its own."""
    found, seen, last = [State(world)], set(), [State(world)]
    for n in range(depth):
        new = []
        for state, action in itertools.product(last, doable):
            for after in steps(state, 10 + n, action):
                key = (_key(after.world), after.waited)
                if key not in seen:
                    seen.add(key)
                    new.append(after)
        found += new
        last = new
    return found


@dataclass
class Looked:
    """The result of look()."""

    pairs: int = 0
    #: The pairs whose two orders differ: (the entries that report them in the table, an example).
    differing: list[tuple[frozenset[Entry], str]] = field(default_factory=list)


def look(
    conflicts: Any, depth: int = 1, sample: int = 0, seed: int = 0, thirds: bool = True
) -> Looked:
    """Performs all pairs of steps in both orders, in all states after at most `depth` steps. Where
    a third step decides a select of the pair, that step is done too.

    Args:
        conflicts: (access, access, at a buffer?) → whether the table says that they conflict.
        sample: how many states of each beginning are drawn at random; 0: all are used.
    """
    looked = Looked()
    for world, doable in worlds():
        states = reachable(world, doable, depth)
        if 0 < sample < len(states):
            states = states[:1] + random.Random(seed).sample(states[1:], sample - 1)
        for state, a, b in itertools.product(states, doable, doable):
            for third in (None, *doable) if thirds else (None,):
                _look(looked, conflicts, state, a, b, third)
    return looked


def _look(
    looked: Looked, conflicts: Any, state: State, a: Action, b: Action, third: Action | None
) -> None:
    def run(order: tuple[tuple[int, Action], ...]) -> list[State]:
        states = [state]
        for pid, action in order:
            states = [after for s in states for after in steps(s, pid, action)]
        return states

    if (a.what, b.what) == ("make", "make"):
        # Each of the two steps makes an end. The numbers of these ends depend on the order, but the
        # numbers mean nothing.
        return
    last = () if third is None else ((3, third),)
    if third is not None and "select" not in (a.what, b.what):
        return
    one = run(((1, a), (2, b), *last))
    if third is not None:  # The third step is done only if it has decided a select of the pair.
        one = [
            s for s in one if (("s", 1), "all") in s.touches[3] or (("s", 2), "all") in s.touches[3]
        ]
    if not one:
        return
    other = run(((2, b), (1, a), *last))
    looked.pairs += 1
    # If there is no state, the second step is bad use in this order, since the first step has
    # closed its end.
    if not other:
        return
    results = {_key(s.world) for s in other}
    for s in one:
        if _key(s.world) in results:
            continue
        saying = {e for e in entries(s, 1, 2) if conflicts(*e)}
        looked.differing.append(
            (
                frozenset(saying),
                f"{a.name}; {b.name}{f'; {third.name}' if third else ''} [{s.touches}]",
            )
        )


class Witness(NamedTuple):
    """A pair of steps whose order makes a difference, and the steps that lead to their state."""

    world: int  # the index of the initial state in worlds()
    before: tuple[str, ...]  # steps of other processes
    state: int  # the number of the state after these steps, if their choices lead to several states
    first: str
    second: str
    third: str | None = None  # a step that decides a select of the pair


def witnessed(conflicts: Any, witness: Witness) -> Looked:
    """Performs this pair of steps in both orders."""
    world, doable = list(worlds())[witness.world]
    by_name = {action.name: action for action in doable}
    states = [State(world)]
    for n, name in enumerate(witness.before):
        states = [after for s in states for after in steps(s, 10 + n, by_name[name])]
    looked = Looked()
    third = None if witness.third is None else by_name[witness.third]
    pair = by_name[witness.first], by_name[witness.second]
    _look(looked, conflicts, states[witness.state], *pair, third)
    return looked


def needed(looked: Looked) -> set[Entry]:
    """Returns each entry that is, for some pair of steps, the only entry that makes them
    conflict."""
    return {next(iter(saying)) for saying, _ in looked.differing if len(saying) == 1}


def entries_of(conflicts: Any) -> set[Entry]:
    """Returns all pairs of accesses that conflict according to the table."""
    return {
        (a, b, buffered)
        for a, b in itertools.combinations_with_replacement(ACCESSES, 2)
        for buffered in (False, True)
        if conflicts(a, b, buffered)
    }


def table(a: str, b: str, buffered: bool) -> bool:
    """Returns whether the two accesses conflict according to the engine's table."""
    from weft._checking import _engine

    return _engine.conflicts(ACCESSES.index(a), ACCESSES.index(b), buffered)


def main() -> int:
    p = argparse.ArgumentParser(description="The table of what commutes, on the model.")
    p.add_argument("--depth", type=int, default=1)
    p.add_argument("--sample", type=int, default=0, help="number of states of each beginning")
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    looked = look(table, a.depth, a.sample, a.seed)
    wrong = [example for saying, example in looked.differing if not saying]
    for example in wrong[:20]:
        print("no entry says so:", example)
    for entry in sorted(needed(looked)):
        print("needed:", *entry)
    print(
        f"{looked.pairs} pairs of steps, {len(looked.differing)} differ, {len(wrong)} of them are missing in the table"
    )
    print(f"{looked.pairs - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
