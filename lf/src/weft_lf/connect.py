"""Turns connections between ports into connections between single channels.

Invariants
- Each side of a connection is a list of channels. The channels of a bank are ordered by member and
  then by channel; with `interleaved`, by channel and then by member.
- `(…)+` repeats the left side until every channel of the right side is connected. Without it, the
  channels that are left over stay unconnected, and there is a warning.
- A channel has one source. If connections in different modes feed one channel, or both a connection
  in a mode and a reaction do, then those connections become reactions of their modes (`Forward`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from weft_lf import tree
from weft_lf.classes import nearest
from weft_lf.errors import Problem, Span, fail
from weft_lf.load import Program
from weft_lf.model import Channel, Delay, Forward, Instance, ModeOf, ReactionOf, driver
from weft_lf.values import c_type


class Names(Protocol):
    """Finds the things to which the words of a connection refer (elaborate.py)."""

    problems: list[Problem]
    program: Program

    def time(self, expr: tree.Expr | None, scope: Instance, what: str) -> int | None: ...

    def members(self, ref: tree.Ref, made: Instance) -> list[Instance]: ...

    def port_named(self, ref: tree.Ref, inside: Instance) -> tree.Port: ...


# C's types of numbers → the kind and the number of bytes that the type has on all targets.
NUMBERS = {
    **dict.fromkeys(("int", "signed", "signed int", "int32_t", "unsigned", "uint32_t"), ("i4",)),
    **dict.fromkeys(("unsigned int", "uint", "microstep_t"), ("i4",)),
    **dict.fromkeys(("char", "signed char", "unsigned char", "int8_t", "uint8_t"), ("i1",)),
    **dict.fromkeys(("short", "unsigned short", "int16_t", "uint16_t"), ("i2",)),
    **dict.fromkeys(("long", "unsigned long", "size_t", "intptr_t", "uintptr_t"), ("i4", "i8")),
    **dict.fromkeys(("long long", "unsigned long long", "int64_t", "uint64_t"), ("i8",)),
    **dict.fromkeys(("interval_t", "instant_t", "time"), ("i8",)),
    "bool": ("b1",),
    "float": ("f4",),
    "double": ("f8",),
    "string": ("string",),
}


def _may_be_one(left: str, right: str) -> bool:
    """Returns whether a value of one type may be read as the other. It may if the types are two
    pointers, two numbers of one kind and size, or types that are not in NUMBERS.
    """
    sides = [" ".join(t.replace("const ", "").split()) for t in (left, right)]
    if any(s.endswith("]") for s in sides):
        return False
    ends = [("pointer",) if s.endswith("*") else NUMBERS.get(s) for s in sides]
    if ends[0] is None or ends[1] is None:
        return ("pointer",) not in ends
    return bool(set(ends[0]) & set(ends[1]))


@dataclass
class _Made:
    made: Forward
    span: Span


class Wiring:
    """Makes the connections of a program's instances, and checks them. `delays` and `forwards`
    collect the delayed connections, and those that become reactions."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.problems = names.problems
        self.warnings = names.program.warnings
        self.delays: list[Delay] = []
        self.forwards: dict[Instance, list[tuple[_Made, ModeOf]]] = {}
        self.told: set[tuple[str, int, int]] = (
            set()
        )  # the places that have a problem: each is reported once, not once for each bank member

    def say(self, span: Span, message: str, hint: str = "", severity: str = "error") -> None:
        key = (span.file, span.line, span.column)
        if key in self.told:
            return
        self.told.add(key)
        into = self.problems if severity == "error" else self.warnings
        into.append(Problem(span, message, hint, severity))

    def connect(self, made: Instance) -> None:
        for placed in made.cls.of(tree.Connection):
            decl = placed.decl
            assert isinstance(decl, tree.Connection)
            left = [c for ref in decl.left for c in self.side(ref, made, True)]
            right = [c for ref in decl.right for c in self.side(ref, made, False)]
            count = len(left)
            if decl.iterated and left:
                while len(left) < len(right):
                    left += left[:count]
            elif len(left) != len(right):
                text = f"{len(left)} channels on the left, {len(right)} on the right"
                hint = "the rest is not connected; (…)+ repeats the left, a width may need a change"
                self.say(decl.span, text, hint, "warning")
            delay = None
            if decl.delay is not None:
                delay = self.names.time(decl.delay, made, "delay of the connection")
            mode = made.modes.get(placed.mode)
            for source, sink in zip(left, right, strict=False):
                self.link(source, sink, decl, delay, made, mode)

    def side(self, ref: tree.Ref, made: Instance, left: bool) -> list[Channel]:
        if ref.container:
            members = self.names.members(ref, made)
            if not members:
                return []
            port = self.names.port_named(ref, members[0])
            if port.is_input == left:
                role = "an input" if port.is_input else "an output"
                hint = "a connection goes from outputs of contained reactors (or own inputs) to inputs of contained ones (or own outputs)"
                raise fail(
                    ref.span,
                    f"'{ref}' is {role} and cannot stand on the {'left' if left else 'right'}",
                    hint,
                )
            rows = [m.ports[ref.variable].channels for m in members]
        else:
            if ref.variable not in made.ports:
                raise fail(
                    ref.span,
                    f"'{made.cls.name}' has no port '{ref.variable}'",
                    nearest(ref.variable, list(made.ports)),
                )
            port_of = made.ports[ref.variable]
            if port_of.decl.is_input != left:
                role, side = ("an output", "left") if left else ("an input", "right")
                hint = (
                    "left: inputs of this reactor, or outputs of those in it; "
                    "right: outputs of this reactor, or inputs of those in it"
                )
                message = f"'{ref}' is {role} of this reactor, so it cannot stand on the {side}"
                raise fail(ref.span, message, hint)
            rows = [port_of.channels]
        if ref.interleaved:
            widest = max((len(r) for r in rows), default=0)
            return [row[i] for i in range(widest) for row in rows if i < len(row)]
        return [c for row in rows for c in row]

    def link(
        self,
        source: Channel,
        sink: Channel,
        decl: tree.Connection,
        delay: int | None,
        made: Instance,
        mode: ModeOf | None,
    ) -> None:
        self.same_type(source, sink, decl)
        name = mode.decl.name if mode else ""
        if sink.source is not None or sink.delay is not None:
            if self.again(source, sink, decl, delay, made, mode):
                return
            if (
                mode is None
                or not sink.linked_in
                or sink.linked_in == name
                or sink.source is None
                or delay is not None
                or decl.physical
            ):
                self.say(
                    decl.span,
                    f"'{sink}' has two sources",
                    "an input takes one; connect one of them elsewhere",
                )
                return
            # Several modes feed the channel: both connections become reactions of their modes.
            earlier = made.modes[sink.linked_in]
            assert sink.via is not None
            self.forward(made, sink.source, sink, earlier, sink.via)
            sink.source = None
            self.forward(made, source, sink, mode, decl)
            return
        if mode is not None and any(f.made.sink is sink for f, _ in self.forwards.get(made, [])):
            self.forward(made, source, sink, mode, decl)
            return
        sink.linked_in = name
        sink.via = decl
        if decl.physical or delay is not None:
            element = next(
                (
                    d
                    for d in reversed(self.delays[-64:])
                    if d.via is decl and d.instance is made and d.source is source
                ),
                None,
            )
            if element is None:
                element = Delay(source, delay, decl.physical, decl, made, mode)
                self.delays.append(element)
            element.sinks.append(sink)
            sink.delay = element
        else:
            sink.source = source

    def again(
        self,
        source: Channel,
        sink: Channel,
        decl: tree.Connection,
        delay: int | None,
        made: Instance,
        mode: ModeOf | None,
    ) -> bool:
        """Returns whether a reactor repeats a connection that it inherits. The two then are one
        connection.
        """
        first = sink.via
        inherited = first is not None and all(m is not first for m in made.cls.decl.members)
        if not inherited or sink.linked_in != (mode.decl.name if mode else ""):
            return False
        if sink.delay is None:
            return sink.source is source and delay is None and not decl.physical
        same = (sink.delay.source, sink.delay.ns, sink.delay.physical)
        return same == (source, delay, decl.physical)

    def forward(
        self, made: Instance, source: Channel, sink: Channel, mode: ModeOf, decl: tree.Connection
    ) -> None:
        self.forwards.setdefault(made, []).append((_Made(Forward(source, sink), decl.span), mode))

    def same_type(self, source: Channel, sink: Channel, decl: tree.Connection) -> None:
        left = c_type(source.port.decl.type, source.port.instance.cls.types)
        right = c_type(sink.port.decl.type, sink.port.instance.cls.types)
        if left.replace(" ", "") != right.replace(" ", ""):
            text = f"'{source}' is of type {left}, '{sink}' of type {right}"
            severity = "warning" if _may_be_one(left, right) else "error"
            self.say(decl.span, text, "make the two types the same", severity)

    def check_circles(self, instances: list[Instance]) -> None:
        """Checks that no undelayed connections form a circle. order.py does not find such a circle,
        because it might contain no reaction."""
        ended: set[Channel] = set()
        for made in instances:
            for first in (c for port in made.ports.values() for c in port.channels):
                chain: dict[Channel, None] = {}
                at: Channel | None = first
                while at is not None and at not in ended and at not in chain:
                    chain[at] = None
                    at = at.source
                if at is not None and at in chain:
                    circle = [*chain][[*chain].index(at) :]
                    shown = [str(c) for c in [at, *reversed(circle)]]
                    if len(shown) > 8:
                        shown[4:-3] = ["…"]
                    assert at.via is not None
                    text = "these connections go round in a circle: " + " → ".join(shown)
                    hint = "take one of them out; no reaction sets what they carry"
                    self.say(at.via.left[0].span, text, hint)
                ended.update(chain)

    def check_writers(self, instances: list[Instance]) -> None:
        """Checks that a channel that a reaction writes has no other source. A connection in a mode
        that feeds the channel too becomes a reaction of that mode."""
        for made in instances:
            for one in [r for r in made.reactions if r.forward is None]:
                for channel in one.writes:
                    if channel.source is None and channel.delay is None:
                        continue
                    mode = channel.linked_in
                    if channel.source is not None and mode:
                        owner = next(
                            (
                                i
                                for i in (made, channel.port.instance, channel.port.instance.parent)
                                if i and mode in i.modes
                            ),
                            made,
                        )
                        assert channel.via is not None
                        source, channel.source = channel.source, None
                        place = owner.modes[mode]
                        forward = _Made(Forward(source, channel), channel.via.span)
                        made_up = tree.Reaction("", [], [], [], None, None, None, [], forward.span)
                        new = ReactionOf(owner, made_up, len(owner.reactions), place)
                        new.triggers, new.reads, new.writes = [source], [source], [channel]
                        new.forward = forward.made
                        owner.reactions.append(new)
                        continue
                    text = f"'{channel}' is written here, and a connection feeds it too"
                    self.say(one.decl.span, text, "an input takes one source: use a second port")

    def warn_unconnected(self, instances: list[Instance]) -> None:
        written = {c for made in instances for r in made.reactions for c in r.writes}
        for made in instances:
            if made.parent is None:
                continue
            for port in made.ports.values():
                if not port.decl.is_input or not port.channels:
                    continue
                ends = [driver(c) for c in port.channels]
                if (
                    all(e.delay is None and e not in written and e.port is port for e in ends)
                    and made.decl is not None
                ):
                    used = any(c in r.triggers for r in made.reactions for c in port.channels[:1])
                    if used:
                        text = (
                            f"nothing is connected to the input '{port.decl.name}' of '{made.name}'"
                        )
                        self.say(
                            made.decl.span,
                            text,
                            "its reactions will not be triggered by it",
                            "warning",
                        )
