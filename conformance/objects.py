"""The parts of the model's world: guards, operations, ends, channels, barriers. No class uses
another one.

All of them are plain values. The classes whose objects change have `clone` and `key`, for searches.
`model.World` performs the steps that involve several of them.

Invariants: a closed end keeps how it was closed (`End.how`). A channel counts all ends that it ever
had (2.5), and its open ends. The waiting queue of a barrier has only parties of the current phase.
"""

from __future__ import annotations

from typing import Any, NamedTuple

OVERFLOWS = ("block", "drop_oldest", "drop_newest", "unbounded")
READ, WRITE = 0, 1  # the two sides of a channel
Outcome = tuple  # ("ok", …) or (exception name, …)


class BadUse(Exception):
    """Bad use (11): the step changes nothing."""


class Guard(NamedTuple):
    """One guard of a select; a plain operation is a select of one guard.

    kind: "in", "out", "time", "skip", "barrier", "ended" (7.11).  on: number of the channel,
    barrier or process. end: number of the end. value: what is sent (int, str, or ("end", number));
    for "time" the absolute deadline. made: whether a function makes the value; raises: whether this
    function raises (5.8).  pre: the precondition (5.2). ends: the retirement of its channel makes
    it ready, ended="raise" (5.6).
    """

    kind: str
    on: int = -1
    end: int = -1
    value: Any = None
    raises: bool = False
    pre: bool = True
    made: bool = False
    ends: bool = False


class Op:
    """An operation in progress. Its outcome `out` is ("ok", …) or (exception name, guard, …). If
    any of several guards may be named (5.6), `guard` is a tuple of them.
    """

    __slots__ = (
        "ext",
        "guards",
        "holding",
        "kind",
        "mode",
        "out",
        "pid",
        "seen",
        "silent",
        "state",
    )

    def __init__(
        self, pid: int, kind: str, guards: tuple[Guard, ...], mode: str = "fair", ext: bool = False
    ):
        self.pid, self.kind, self.guards, self.mode, self.ext = pid, kind, guards, mode, ext
        self.state = "waiting"
        self.out: Outcome | None = None
        self.seen: tuple[
            int, ...
        ] = ()  # the guards examined or enrolled so far (on threads, one by one)
        # The guards that fell silent, for the rest of this operation (5.6).
        self.silent: tuple[int, ...] = ()
        # Guards that are off, and whose channels were open when the operation began (5.6).
        self.holding: tuple[int, ...] = ()

    def clone(self) -> Op:
        new = Op(self.pid, self.kind, self.guards, self.mode, self.ext)
        new.state, new.out, new.seen = self.state, self.out, self.seen
        new.silent, new.holding = self.silent, self.holding
        return new

    def key(self) -> tuple:
        return (
            self.pid,
            self.kind,
            self.guards,
            self.mode,
            self.ext,
            self.state,
            self.out,
            self.seen,
            self.silent,
            self.holding,
        )


class End(NamedTuple):
    """One reader or writer end (2.1). `how` is how it was closed; "" if it is open. `holders` are
    the processes that hold it (2.3). An end is replaced, never changed, because states share it.
    """

    chan: int
    side: int
    how: str = ""
    holders: tuple[int, ...] = ()


class Chan:
    """A channel: its waiting queues of readers and of writers, its buffer, the counts of its
    ends.
    """

    __slots__ = (
        "buf",
        "capacity",
        "died",
        "dropped",
        "immunity",
        "lines",
        "live",
        "made",
        "overflow",
        "poison",
        "reserved",
        "slots",
    )

    def __init__(self, capacity: int = 0, overflow: str = "block", immunity: int = 1):
        if not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 0:
            raise BadUse(
                f"capacity {capacity!r}: give 0 for a rendezvous or n >= 1 for a buffer of n values"
            )
        if overflow not in OVERFLOWS:
            raise BadUse(f"overflow {overflow!r}: give one of {', '.join(OVERFLOWS)}")
        if capacity == 0 and overflow != "block":
            raise BadUse(f"overflow {overflow!r} needs a buffer: give capacity >= 1")
        if immunity < 1:
            raise BadUse(f"immunity {immunity!r}: give a strength >= 1")
        self.capacity, self.overflow, self.immunity = capacity, overflow, immunity
        self.buf: list[Any] = []
        self.lines: list[list[tuple[int, int]]] = [
            [],
            [],
        ]  # parties (pid, guard index), first come first served
        self.made = [0, 0]  # how many ends each side has ever had (2.5)
        self.live = [0, 0]  # open ends of each side
        self.died = [False, False]
        self.poison = 0
        self.dropped = 0
        self.slots = 0  # slots of the buffer that extended reads keep occupied (1.6)
        self.reserved = 0  # slots of the buffer whose values are being made (5.8)

    def clone(self) -> Chan:
        new = Chan.__new__(Chan)
        new.capacity, new.overflow, new.immunity = self.capacity, self.overflow, self.immunity
        new.buf, new.lines = self.buf[:], [self.lines[0][:], self.lines[1][:]]
        new.made, new.live, new.died = self.made[:], self.live[:], self.died[:]
        new.poison, new.dropped = self.poison, self.dropped
        new.slots, new.reserved = self.slots, self.reserved
        return new

    def key(self) -> tuple:
        return (
            tuple(self.buf),
            tuple(self.lines[0]),
            tuple(self.lines[1]),
            *self.made,
            *self.live,
            *self.died,
            self.poison,
            self.dropped,
            self.slots,
            self.reserved,
        )

    def ended(self, side: int) -> str:
        """Returns the exception that an operation on `side` raises now, or "" (2.5, 3.1–3.3, 4.2,
        4.5).
        """
        if self.poison:
            return "Poisoned"
        other = 1 - side
        if (
            self.made[other] == 0 or self.live[other] or self.lines[other]
        ):  # 2.5; 3.2: a blocked party counts as an end
            return ""
        if side == READ and (self.buf or self.reserved):
            return ""  # 3.1: first drain the committed values
        return "PeerDied" if self.died[other] else "Retired"

    def room(self) -> bool:
        return self.capacity > 0 and len(self.buf) + self.slots + self.reserved < self.capacity


class Barrier:
    """A barrier (8.1): how many parties are enrolled, and those that wait in this phase."""

    __slots__ = ("enrolled", "line", "phase")

    def __init__(self, enrolled: int):
        if enrolled < 0:
            raise BadUse(f"a barrier of {enrolled} parties: give a number >= 0")
        self.enrolled = enrolled
        self.line: list[tuple[int, int]] = []
        self.phase = 0

    def clone(self) -> Barrier:
        new = Barrier(self.enrolled)
        new.line, new.phase = self.line[:], self.phase
        return new

    def key(self) -> tuple:
        return (self.enrolled, tuple(self.line))


def side_of(g: Guard) -> int:
    return READ if g.kind == "in" else WRITE


def any_of(guards: tuple[int, ...]) -> Any:
    """Returns the only guard, or the tuple of several guards if an outcome may name any of them."""
    found = tuple(dict.fromkeys(guards))
    return found[0] if len(found) == 1 else found
