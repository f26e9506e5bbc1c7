"""The model of an elaborated program: every reactor instance, the channels of its ports, and their
connections.

Invariants
- A `Channel` has at most one source: a channel that it copies (`source`), a `Delay` (`delay`), or
  reactions that write it.
- `driver(c)` is the channel at the start of c's chain of undelayed connections. Reactions write
  this channel, or a Delay sets it.
- Parameters are resolved: a `Value` has no `tree.Name` at its top level.
- Lists of instances, and of parts of instances, are in the order of instantiation: depth first,
  with banks by index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from weft_lf import tree
from weft_lf.load import Loaded, Program


@dataclass
class Placed:
    """A member of a class, with the file in which it was written and the mode that contains it (""
    for none)."""

    decl: tree.Member
    file: Loaded
    mode: str = ""


@dataclass(eq=False)
class Class:
    """A reactor definition with its type arguments and its members, inherited ones included."""

    name: str  # the name in the source
    key: str  # the name in C: unique in the program, in lower case
    decl: tree.Reactor
    file: Loaded
    types: dict[str, tree.Type]  # type parameter → type argument
    params: dict[str, tree.Param] = field(default_factory=dict)
    members: list[Placed] = field(default_factory=list)
    ports: dict[str, tree.Port] = field(default_factory=dict)
    modes: list[tree.Mode] = field(default_factory=list)

    def of(self, kind: type) -> Iterator[Placed]:
        return (m for m in self.members if isinstance(m.decl, kind))


@dataclass
class Value:
    """An expression whose names are parameters of the instance `scope`; None means that it has no
    names. In code that is an argument of a bank, bank_index is the member's `index`."""

    expr: tree.Expr
    scope: Instance | None = None
    index: int | None = None


@dataclass(eq=False, slots=True)
class Channel:
    """One channel of a port."""

    port: PortOf
    index: int
    source: Channel | None = None
    delay: Delay | None = None
    linked_in: str = ""  # the mode of the connection `via`; "" for none
    via: tree.Connection | None = None

    def __str__(self) -> str:
        name = f"{self.port.instance.path}.{self.port.decl.name}"
        return f"{name}[{self.index}]" if self.port.multi else name


@dataclass(eq=False)
class PortOf:
    """A port of an instance. A plain port has one channel; a multiport has one for each unit of its
    width."""

    instance: Instance
    decl: tree.Port
    multi: bool
    channels: list[Channel] = field(default_factory=list)


@dataclass(eq=False)
class Delay:
    """One channel of a physical connection, or of a connection with `after`: a value that enters
    the channel leaves it `ns` nanoseconds later."""

    source: Channel
    ns: int | None  # None: a physical connection without `after`
    physical: bool
    via: tree.Connection
    instance: Instance  # the reactor that contains the connection
    mode: ModeOf | None
    sinks: list[Channel] = field(default_factory=list)

    @property
    def interval(self) -> int:
        return self.ns or 0


@dataclass(eq=False)
class TimerOf:
    """A timer of an instance; times are in nanoseconds."""

    instance: Instance
    decl: tree.Timer
    offset: int
    period: int
    mode: ModeOf | None


@dataclass(eq=False)
class ActionOf:
    """An action of an instance; times are in nanoseconds."""

    instance: Instance
    decl: tree.Action
    delay: int
    spacing: int | None
    policy: str
    mode: ModeOf | None


@dataclass(eq=False)
class ModeOf:
    instance: Instance
    decl: tree.Mode
    index: int


@dataclass(eq=False)
class WatchdogOf:
    """A watchdog of an instance; `timeout` is in nanoseconds."""

    instance: Instance
    decl: tree.Watchdog
    timeout: int
    mode: ModeOf | None
    schedules: list[ActionOf] = field(default_factory=list)  # what its handler may schedule


Trigger = (
    Channel | TimerOf | ActionOf | WatchdogOf | str
)  # a str is "startup", "shutdown" or "reset"


@dataclass(eq=False)
class Forward:
    """A connection inside a mode, to a channel that has another source too. A reaction that copies
    `source` to `sink` does the connection's work."""

    source: Channel
    sink: Channel


@dataclass(eq=False)
class ReactionOf:
    instance: Instance
    decl: tree.Reaction
    number: int  # the number within its reactor, in the order of declaration
    mode: ModeOf | None
    triggers: list[Trigger] = field(default_factory=list)
    reads: list[Channel] = field(default_factory=list)  # triggers that are channels, and sources
    sources: list[Trigger] = field(default_factory=list)  # what is read without being a trigger
    writes: list[Channel] = field(default_factory=list)
    schedules: list[ActionOf] = field(default_factory=list)
    moves: list[tuple[ModeOf, str]] = field(default_factory=list)  # mode, "reset" or "history"
    deadline: int | None = None
    forward: Forward | None = None
    level: int = 0
    order: int = 0  # the place in the order of the whole program

    def __str__(self) -> str:
        name = self.decl.name or f"reaction {self.number + 1}"
        return f"{self.instance.path}: {name}"


@dataclass(eq=False)
class Instance:
    cls: Class
    name: str
    parent: Instance | None
    index: int | None  # the place in the bank; None outside a bank
    width: int | None  # the number of members of the bank
    decl: tree.Instance | None
    mode: ModeOf | None = None  # the parent's mode that contains the instance
    values: dict[str, Value] = field(default_factory=dict)
    ports: dict[str, PortOf] = field(default_factory=dict)
    children: dict[str, list[Instance]] = field(default_factory=dict)
    timers: dict[str, TimerOf] = field(default_factory=dict)
    actions: dict[str, ActionOf] = field(default_factory=dict)
    watchdogs: dict[str, WatchdogOf] = field(default_factory=dict)
    modes: dict[str, ModeOf] = field(default_factory=dict)
    reactions: list[ReactionOf] = field(default_factory=list)
    number: int = 0  # the place in the order of instantiation

    @property
    def local_name(self) -> str:
        return self.name if self.index is None else f"{self.name}[{self.index}]"

    @property
    def path(self) -> str:
        return f"{self.parent.path}.{self.local_name}" if self.parent else self.local_name

    def within(self) -> ModeOf | None:
        """Returns the innermost mode that contains this instance or an ancestor of it; None if
        there is none.
        """
        at: Instance | None = self
        while at is not None:
            if at.mode is not None:
                return at.mode
            at = at.parent
        return None


@dataclass
class Model:
    """A complete program, ready to be emitted or interpreted."""

    program: Program
    top: Instance
    classes: list[Class]  # a class comes after the classes that it contains
    instances: list[Instance]
    reactions: list[ReactionOf]  # in the order in which they run within a tag
    delays: list[Delay]
    levels: int


def driver(channel: Channel) -> Channel:
    """Returns the channel whose value `channel` shows: the start of its chain of undelayed
    connections.
    """
    while channel.source is not None:
        channel = channel.source
    return channel
