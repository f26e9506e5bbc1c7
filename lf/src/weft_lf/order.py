"""Puts the reactions of a program in order, by levels. Finds the causality loops that make an order
impossible.

Invariants
- Reaction r comes before reaction s if r writes a channel that s reads, or if both belong to one
  reactor and r is declared first; but not if no tag can run both, because they, or reactors that
  contain them, are in two modes of one reactor.
- `level` is the length of the longest chain before a reaction; reactions of one level do not depend
  on each other.
- The order of the whole program is by level, then by instance, then by declaration. If there are
  deadlines, reactions with a tighter deadline come first, as far as dependencies allow; a reaction
  that feeds another reaction also has the deadline of that reaction.
- Delayed and physical connections are not dependencies.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from weft_lf.errors import LfError, Problem
from weft_lf.load import Program
from weft_lf.model import Channel, Instance, Model, ModeOf, ReactionOf, driver
from weft_lf.parser import FOREVER


class Loop(LfError):
    """Raised if a program has a causality loop: reactions that wait for each other.

    Attributes:
        path: the reactions of the loop, in the order of the loop.
        ways: for each reaction, the channel through which the next one waits for it; None if the
            next reaction only follows it in their reactor.
        model: the program, complete but for the order of its reactions; None if elaborate() has not
            set it yet.
    """

    def __init__(self, path: list[ReactionOf], ways: list[Channel | None]) -> None:
        super().__init__(_loop_problem(path, ways))
        self.path, self.ways = path, ways
        self.model: Model | None = None


def dependencies(
    instances: list[Instance],
) -> dict[ReactionOf, dict[ReactionOf, Channel | None]]:
    """Returns, for each reaction, the reactions that come after it, each with the channel that is
    the reason; None if the reason is their order in their reactor.

    Raises:
        Loop: a reaction triggers itself.
    """
    reactions = [r for made in instances for r in made.reactions]
    writers: dict[Channel, list[ReactionOf]] = {}
    for one in reactions:
        for channel in dict.fromkeys(one.writes):
            writers.setdefault(channel, []).append(one)
    after: dict[ReactionOf, dict[ReactionOf, Channel | None]] = {r: {} for r in reactions}

    def edge(first: ReactionOf, second: ReactionOf, channel: Channel | None) -> None:
        if second not in after[first] and not _exclusive(first, second):
            after[first][second] = channel

    for made in instances:
        _in_order_of_declaration(made, edge)
    for one in reactions:
        for channel in dict.fromkeys(one.reads):
            for writer in writers.get(driver(channel), []):
                if writer is not one:
                    edge(writer, one, channel)
                elif one.forward is None and channel.delay is None:
                    raise Loop([one], [channel])
    return after


def put_in_order(instances: list[Instance], program: Program) -> tuple[list[ReactionOf], int]:
    """Returns the reactions in the order in which they run within a tag, and the number of levels.

    Raises:
        Loop: there is a causality loop; the message shows its path.
    """
    after = dependencies(instances)
    reactions = list(after)
    before = dict.fromkeys(reactions, 0)
    for one in reactions:
        for following in after[one]:
            before[following] += 1
    ready = [r for r in reactions if before[r] == 0]
    done = 0
    while ready:
        free = []
        for one in ready:
            done += 1
            for next_one in after[one]:
                next_one.level = max(next_one.level, one.level + 1)
                before[next_one] -= 1
                if before[next_one] == 0:
                    free.append(next_one)
        ready = free
    if done != len(reactions):
        raise _find_loop([r for r in reactions if before[r] > 0], after)
    place = {r: i for i, r in enumerate(reactions)}
    ordered = sorted(reactions, key=lambda r: (r.level, place[r]))
    if any(r.deadline is not None for r in reactions):
        ordered = _by_deadline(ordered, after)
        if program.config.threads > 1:  # Threads share a level, so its reactions stay together.
            ordered.sort(key=lambda r: r.level)
    for number, one in enumerate(ordered):
        one.order = number
    return ordered, 1 + max((r.level for r in reactions), default=-1)


def _in_order_of_declaration(
    made: Instance, edge: Callable[[ReactionOf, ReactionOf, Channel | None], None]
) -> None:
    """Adds the edges between the reactions of one reactor, from each to the next. The reactions of
    one mode are a chain, from the last reaction outside modes to the next."""
    outside: ReactionOf | None = None
    within: dict[ModeOf, ReactionOf] = {}
    for one in made.reactions:
        if one.mode is not None:
            before = within.get(one.mode, outside)
            earlier = [] if before is None else [before]
            within[one.mode] = one
        else:
            earlier = [*within.values()] or ([] if outside is None else [outside])
            outside, within = one, {}
        for before in earlier:
            edge(before, one, None)


def _modes(one: ReactionOf) -> dict[Instance, ModeOf]:
    """Returns the modes that must be active for the reaction to run, by their reactors."""
    found = {} if one.mode is None else {one.mode.instance: one.mode}
    at: Instance | None = one.instance
    while at is not None:
        if at.mode is not None:
            found[at.mode.instance] = at.mode
        at = at.parent
    return found


def _exclusive(first: ReactionOf, second: ReactionOf) -> bool:
    """Returns whether the two reactions can never run in one tag: a mode changes between tags."""
    if first.mode is None and first.instance.within() is None:
        return False
    others = _modes(second)
    return any(others.get(made, mode) is not mode for made, mode in _modes(first).items())


def _by_deadline(
    ordered: list[ReactionOf], after: dict[ReactionOf, dict[ReactionOf, Channel | None]]
) -> list[ReactionOf]:
    """Returns a topological order in which tighter deadlines come first. A writer inherits the
    deadlines of its readers.
    """
    urgent: dict[ReactionOf, int] = {}
    for one in reversed(ordered):
        own = FOREVER if one.deadline is None else one.deadline
        urgent[one] = min([own, *(urgent[r] for r in after[one])])
    place = {r: i for i, r in enumerate(ordered)}
    before = dict.fromkeys(ordered, 0)
    for one in ordered:
        for following in after[one]:
            before[following] += 1
    ready = [(urgent[r], place[r], r) for r in ordered if before[r] == 0]
    heapq.heapify(ready)
    found = []
    while ready:
        one = heapq.heappop(ready)[2]
        found.append(one)
        for following in after[one]:
            before[following] -= 1
            if before[following] == 0:
                heapq.heappush(ready, (urgent[following], place[following], following))
    return found


def _find_loop(
    left: list[ReactionOf], after: dict[ReactionOf, dict[ReactionOf, Channel | None]]
) -> Loop:
    """Returns the error for reactions that could not be ordered. The error shows the shortest loop
    that a search from the first 200 of these reactions finds.
    """
    remaining = set(left)
    best: list[ReactionOf] = []
    for start in left[:200]:
        came: dict[ReactionOf, ReactionOf] = {}
        queue = [start]
        found = False
        for at in queue:
            for following in after[at]:
                if following is start:
                    found = True
                elif following in remaining and following not in came:
                    came[following] = at
                    queue.append(following)
                    continue
                if found:
                    path = [at]
                    while path[-1] is not start:
                        path.append(came[path[-1]])
                    path.reverse()
                    if not best or len(path) < len(best):
                        best = path
                    break
            if found:
                break
        if best and len(best) <= 2:
            break
    if not best:  # These reactions are in no loop; they only depend on a loop.
        best = left[:1]
    ways = [after[a].get(b) for a, b in zip(best, [*best[1:], best[0]], strict=False)]
    return Loop(best, ways)


def _loop_problem(path: list[ReactionOf], ways: list[Channel | None]) -> Problem:
    steps = []
    for one, way, following in zip(path, ways, [*path[1:], path[0]], strict=False):
        how = (
            f"writes what '{way}' shows"
            if way is not None
            else f"stands before {following.decl.name or f'reaction {following.number + 1}'}"
        )
        steps.append(f"  {one} (line {one.decl.span.line}) {how}")
    text = "a causality loop: these reactions wait for each other\n" + "\n".join(
        f"  {s}" for s in [*steps, f"  {path[0]} again"]
    )
    hint = "break it with 'after 0' on a connection, or declare the reactions of a reactor in another order"
    return Problem(path[0].decl.span, text, hint)
