"""Decides which processes are started again when a supervised process dies (rule 7.16).

Supervisors form a tree, whose leaves are processes (Member). decide() is called for each death:

    the process's supervisor has restarts left ──► Plan: the processes that its strategy names
        └──none──► as if the supervisor had died: the one above decides ──none above──► given up

    a member of a Plan that runs: its OS process is killed ──► it waits until all members have died
        ──the pause──► the next life

Invariants (under the tree's lock, which is a field of the root)
- `Plan.alive` contains the members whose attempts have to end before any member of the plan starts
  again.
- A member obeys its newest plan.
- A process that waits for a plan waits for OS processes that were killed, so it waits briefly.
- A supervisor is among the children of the supervisor above it as long as it, or a supervisor below
  it, has a process.
"""

from __future__ import annotations

import abc
import sys
import threading
from collections import deque
from collections.abc import Iterator

from weft._hosts.attempt import Attempt
from weft.errors import ProcessDied

__all__ = ["STRATEGIES", "Count", "Member", "Node", "Plan"]

LONGEST = 10.0  #: the longest time between two attempts, in seconds
STRATEGIES = ("one for one", "one for all", "rest for one")


class Plan:
    """Processes that start again together, or are given up together."""

    def __init__(self, members: list[Member], gives_up: bool, count: str) -> None:
        self.members, self.gives_up = members, gives_up
        self.count = count  #: the number of this restart, in words for the log
        self.pause = 0.0
        self.alive: set[Member] = set()
        self.death: ProcessDied | None = None  #: the death for which the plan was made


class Count:
    """The restarts of one process or supervisor."""

    def __init__(self, restarts: int | None) -> None:
        self.total = 0
        # Only the times of the last restarts are kept: one more than the number of allowed
        # restarts.
        self._times: deque[float] = deque(
            maxlen=None if restarts is None else min(restarts + 1, sys.maxsize)
        )
        self._restarts = restarts

    def another(self, now: float, within: float | None) -> bool:
        """Counts one more restart, at the time `now`. Returns whether that restart is allowed."""
        self.total += 1
        if self._restarts is None:
            return True
        self._times.append(now)
        while within is not None and now - self._times[0] >= within:
            self._times.popleft()
        return len(self._times) <= self._restarts

    def text(self, within: float | None) -> str:
        if self._restarts is None:
            return str(self.total)
        if within is None:
            return f"{self.total} of {self._restarts}"
        return f"{len(self._times)} of {self._restarts} within {within:g} s"


class _Child(abc.ABC):
    """What a supervisor starts again: a process, or a supervisor below it."""

    def __init__(self, position: int, above: Node | None) -> None:
        self.position = position
        self.above = above
        self.began = 0.0  # when the child was last started
        self.in_a_row = 0  # the number of deaths in a row, none of them after a healthy life
        self.deaths = Count(None if above is None else above.restarts)

    @abc.abstractmethod
    def members(self) -> Iterator[Member]:
        """Iterates over the processes of this child: the child itself, or all processes below a
        supervisor.
        """

    def forget(self) -> None:
        """Starts the count of deaths anew, because the supervisor above has started this child
        again.
        """
        self.in_a_row = 0
        self.deaths = Count(None if self.above is None else self.above.restarts)


class Member(_Child):
    """A supervised process."""

    def __init__(self, path: str, position: int, above: Node) -> None:
        super().__init__(position, above)
        self.path = path
        self.state = "starts"
        self.life = 0
        self.restarts = 0
        self.attempt: Attempt | None = None
        self.ended: Attempt | None = None  # the member's last life; `death` is what ended it
        self.death: ProcessDied | None = None
        self.plan: Plan | None = None
        self.awaited_by: list[Plan] = []  # the plans that have this member in `alive`

    def members(self) -> Iterator[Member]:
        yield self


class Node(_Child):
    """A supervisor."""

    def __init__(
        self,
        restarts: int | None,
        within: float | None,
        backoff: float,
        healthy: float,
        strategy: str,
        above: Node | None,
    ) -> None:
        self.restarts, self.within = restarts, within
        self.backoff, self.healthy, self.strategy = backoff, healthy, strategy
        self.lock: threading.Condition = (
            threading.Condition(threading.RLock()) if above is None else above.lock
        )
        self.children: list[_Child] = []
        self._of_all = Count(restarts)
        self._places = 0
        super().__init__(0 if above is None else above.place(), above)

    def place(self) -> int:
        """Returns the next position among the children, which the strategy `rest for one` uses."""
        with self.lock:
            self._places += 1
            return self._places

    def members(self) -> Iterator[Member]:
        for child in self.children:
            yield from child.members()

    def forget(self) -> None:
        super().forget()
        self._of_all = Count(self.restarts)
        for child in self.children:
            child.forget()

    def enter(self, member: Member) -> None:
        with self.lock:
            child: _Child = member
            node: Node | None = self
            while node is not None:
                node.children.append(child)
                if len(node.children) > 1:
                    break
                child, node = node, node.above

    def leave(self, member: Member) -> None:
        with self.lock:
            child: _Child = member
            node: Node | None = self
            while node is not None:
                node.children.remove(child)
                if node.children:
                    break
                node.forget()
                child, node = node, node.above
            self.over(member)

    def over(self, member: Member) -> None:
        """Records that the member no longer has an attempt."""
        with self.lock:
            member.attempt = None
            for plan in member.awaited_by:
                plan.alive.discard(member)
            member.awaited_by.clear()
            self.lock.notify_all()

    def counts(self, child: _Child) -> Count:
        return child.deaths if self.strategy == STRATEGIES[0] else self._of_all

    def with_child(self, child: _Child) -> list[Member]:
        """Returns the processes that start again with this child."""
        if self.strategy == STRATEGIES[0]:
            return list(child.members())
        later = [
            c
            for c in self.children
            if c is child or self.strategy == STRATEGIES[1] or c.position > child.position
        ]
        return [m for c in later for m in c.members()]

    def decide(self, member: Member, now: float, death: ProcessDied) -> Plan:
        """Returns the plan for a death of the member that was not caused by a plan."""
        with self.lock:
            child: _Child = member
            node: Node = self
            while True:
                child.in_a_row = 1 if now - child.began >= node.healthy else child.in_a_row + 1
                count = node.counts(child)
                allowed = count.another(now, node.within)
                if allowed or node.above is None:
                    break
                child, node = node, node.above
            members = node.with_child(child)
            plan = Plan(members, not allowed, count.text(node.within))
            plan.death = death
            if allowed:
                plan.pause = min(LONGEST, node.backoff * 2 ** min(child.in_a_row - 1, 20))
                if isinstance(child, Node):
                    row = child.in_a_row
                    deaths = child.deaths
                    child.forget()
                    child.in_a_row, child.deaths, child.began = row, deaths, now + plan.pause
            for each in members:
                each.plan = plan
                if each is not member and each.attempt is not None:
                    plan.alive.add(each)
                    each.awaited_by.append(plan)
                    each.attempt.stop()
            return plan

    def await_plan(self, member: Member) -> Plan | None:
        """Waits until all members of the member's plan have died. Returns the plan, or None if the
        member has none.
        """
        with self.lock:
            while (plan := member.plan) is not None:
                self.lock.wait_for(lambda: not plan.alive or member.plan is not plan)
                if member.plan is plan:
                    member.plan = None
                    return plan
            return None
