"""Determines the place of each part of a program in the generated C: self structs, pools of ports,
lists of triggers, timers.

Invariants
- The instances of one class are an array, in the order of instantiation; the pool of each type of
  port is an array too.
- `address(c)` is the C expression of the port whose value channel c shows at the end of its chain
  of connections. If nothing sets the channel, the port is `lf_no_T`.
- The reactions of an enclave keep their order, and the enclave's delays come after them: `number`
  counts within the enclave, `row` in the whole table.
- Timers of one enclave and mode with the same offset and period are one timer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from weft_lf import tree
from weft_lf.enclaves import Enclaves
from weft_lf.model import (
    ActionOf,
    Channel,
    Class,
    Delay,
    Instance,
    Model,
    ModeOf,
    ReactionOf,
    TimerOf,
    WatchdogOf,
    driver,
)
from weft_lf.values import c_base, c_type


@dataclass
class PortType:
    """A C type of values. The generated C has a type of ports and a type of delays for it."""

    text: str
    name: str
    token: bool
    element: str  # the type that a token type points to; otherwise empty
    pool: int = 0  # the number of ports in the type's pool
    pointers: int = 0
    delays: int = 0
    used_none: bool = False

    @property
    def port(self) -> str:
        return f"lf_port_{self.name}"


@dataclass
class Uses:
    """The ports, contained reactors and names that the code of a class uses: its self struct must
    have members for them."""

    ports: dict[str, tree.Port] = field(default_factory=dict)  # own ports named in reactions
    written: set[str] = field(default_factory=set)
    # A contained reactor → the ports of it that reactions name.
    children: dict[str, dict[str, tree.Port]] = field(default_factory=dict)
    banks: set[str] = field(default_factory=set)
    child_class: dict[str, Class] = field(default_factory=dict)
    text: str = ""  # all code of the class, in which `mentions` looks for names


class Layout:
    def __init__(self, model: Model, enclaves: Enclaves | None = None, holds: bool = False) -> None:
        """Makes the layout. With `holds`, a reaction of its own delivers the values of each delayed
        connection, before all other reactions. A static schedule needs this reaction."""
        self.model = model
        self.enclaves = enclaves or Enclaves()
        self.arrival: dict[Delay, int] = {}  # delay → the reaction that delivers its values
        if holds:
            self.arrival = {delay: at for at, delay in enumerate(model.delays)}
        self.types: dict[str, PortType] = {}
        self.slot: dict[Instance, int] = {}
        self.of: dict[Class, list[Instance]] = {}
        self.uses: dict[Class, Uses] = {}
        self.inline: set[Channel] = set()
        self.pooled: dict[Channel, int] = {}
        # A sink → its delay, and the delay's index among the delays of its type.
        self.delayed: dict[Channel, tuple[Delay, int]] = {}
        self.delay_slot: dict[Delay, int] = {}
        # The timers, as an ordered set of (offset, period, mode, enclave).
        self.timers: dict[tuple[int, int, ModeOf | None, int], None] = {}
        self.readers: dict[object, list[int]] = {}
        # A channel or delay that holds a value → how often the value is read: by reactions, once
        # for each channel, and by delays.
        self.reads_of: dict[Channel | Delay, int] = {}
        self.modes: list[ModeOf] = []
        self.mode_slot: dict[ModeOf, int] = {}
        self.modal: list[Instance] = []
        for made in model.instances:
            rows = self.of.setdefault(made.cls, [])
            self.slot[made] = len(rows)
            rows.append(made)
            if made.modes:
                self.modal.append(made)
                for mode in made.modes.values():
                    self.mode_slot[mode] = len(self.modes)
                    self.modes.append(mode)
        for cls in self.of:
            self.uses[cls] = self.uses_of(cls)
            for port in cls.ports.values():
                self.type_of(port.type, cls)
        self.place_ports()
        self.row: dict[ReactionOf | Delay, int] = {}
        self.number: dict[ReactionOf | Delay, int] = {}
        self.counts: list[int] = []
        self.place_reactions()
        self.place_triggers()

    # --- types ------------------------------------------------------------------------------------

    def type_of(self, kind: tree.Type | None, cls: Class) -> PortType:
        text = c_type(kind, cls.types)
        if text not in self.types:
            base = re.sub(r"\W+", "_", text.replace("*", "p")).strip("_") or "t"
            name, count = base, 1
            while any(t.name == name for t in self.types.values()):
                count += 1
                name = f"{base}_{count}"
            token = text.rstrip().endswith("*")
            element = text.rstrip()[:-1].strip() if token else ""
            if element == "void":
                element = "char"
            self.types[text] = PortType(text, name, token, element)
        return self.types[text]

    def port_type(self, channel: Channel) -> PortType:
        return self.type_of(channel.port.decl.type, channel.port.instance.cls)

    # --- classes ----------------------------------------------------------------------------------

    def uses_of(self, cls: Class) -> Uses:
        uses = Uses()
        example = self.of[cls][0]
        texts = []
        children = {
            p.decl.name: p.decl for p in cls.of(tree.Instance) if isinstance(p.decl, tree.Instance)
        }
        for placed in cls.members:
            decl = placed.decl
            if isinstance(decl, tree.Reaction):
                for ref in [*decl.triggers, *decl.sources, *decl.effects]:
                    if ref.kind != "plain":
                        continue
                    if ref.container in example.children:
                        if children[ref.container].width is not None:
                            uses.banks.add(ref.container)
                        for made in self.of[cls]:
                            if made.children[ref.container]:
                                child = made.children[ref.container][0]
                                uses.child_class[ref.container] = child.cls
                                port = child.ports[ref.variable].decl
                                uses.children.setdefault(ref.container, {})[ref.variable] = port
                                break
                    elif ref.variable in cls.ports and not ref.container:
                        uses.ports[ref.variable] = cls.ports[ref.variable]
                if not decl.triggers and not decl.sources:
                    uses.ports.update({n: p for n, p in cls.ports.items() if p.is_input})
                for ref in decl.effects:
                    if not ref.container and ref.variable in cls.ports:
                        uses.written.add(ref.variable)
                texts += [c.text for c in (decl.code, decl.deadline_code) if c is not None]
                if decl.code is None:
                    texts += [*cls.params, "bank_index"]
                if isinstance(decl.deadline, tree.Name):
                    texts.append(decl.deadline.name)
            elif isinstance(decl, (tree.Method, tree.Preamble, tree.Watchdog)):
                texts.append(decl.code.text)
            elif isinstance(decl, tree.Instance):
                texts += [code.text for _, expr, _ in decl.assignments for code in codes_in(expr)]
            elif isinstance(decl, tree.State) and decl.init is not None:
                texts += [code.text for code in codes_in(decl.init)]
        for param in cls.params.values():
            texts += [code.text for code in codes_in(param.init)]
        files = {id(p.file): p.file for p in cls.members}
        texts += [p.code.text for f in [cls.file, *files.values()] for p in f.tree.preambles]
        uses.text = "\n".join(texts)
        return uses

    def mentions(self, cls: Class, name: str) -> bool:
        return re.search(rf"\b{re.escape(name)}\b", self.uses[cls].text) is not None

    # --- ports ------------------------------------------------------------------------------------

    def place_ports(self) -> None:
        model = self.model
        for delay in model.delays:
            kind = self.port_type(delay.sinks[0])
            self.delay_slot[delay] = kind.delays
            for sink in delay.sinks:
                self.delayed[sink] = (delay, kind.delays)
            kind.delays += 1
        for made in model.instances:
            uses = self.uses[made.cls]
            for one in made.reactions:
                for channel in one.writes:
                    if channel in self.inline or channel in self.pooled:
                        continue
                    port = channel.port
                    own = port.instance is made and not port.decl.is_input
                    if own and not port.multi and port.decl.name in uses.written:
                        self.inline.add(channel)
                    else:
                        kind = self.port_type(channel)
                        self.pooled[channel] = kind.pool
                        kind.pool += 1

    def address(self, channel: Channel) -> tuple[str, tuple[int, ...]]:
        """Returns the C address of a channel's port: a template, and the numbers that fill its {}.
        The port is of the channel's own type, which a connection can change.
        """
        at = driver(channel)
        kind, wanted = self.port_type(at), self.port_type(channel)
        if at in self.delayed:
            kind = self.port_type(self.delayed[at][0].sinks[0])
        text, numbers = self.place(at, kind)
        return (text if kind is wanted else f"({wanted.port} *)(void *){text}"), numbers

    def place(self, at: Channel, kind: PortType) -> tuple[str, tuple[int, ...]]:
        if at in self.inline:
            made = at.port.instance
            return f"&lf_s_{made.cls.key}[{{}}]._lf_{at.port.decl.name}", (self.slot[made],)
        if at in self.pooled:
            return f"&lf_pool_{kind.name}[{{}}]", (self.pooled[at],)
        if at in self.delayed:
            return f"&lf_delay_{kind.name}[{{}}].port", (self.delayed[at][1],)
        kind.used_none = True
        return f"&lf_no_{kind.name}", ()

    # --- triggers ---------------------------------------------------------------------------------

    def around(self, what: ReactionOf | TimerOf | ActionOf | WatchdogOf | Delay) -> ModeOf | None:
        return what.mode if what.mode is not None else what.instance.within()

    def place_reactions(self) -> None:
        enclaves = self.enclaves
        for number in range(enclaves.count):
            own: list[ReactionOf | Delay] = [
                r for r in self.model.reactions if enclaves.of.get(r.instance, 0) == number
            ]
            own += [d for d in self.model.delays if enclaves.sends.get(d, 0) == number]
            arrivals = len(self.arrival)
            for at, one in enumerate(own, arrivals):
                self.number[one] = at
                self.row[one] = sum(self.counts) + at
            self.counts.append(arrivals + len(own))

    def place_triggers(self) -> None:
        for one in self.model.reactions:
            for trigger in dict.fromkeys(one.triggers):
                key: object
                if isinstance(trigger, Channel):
                    key = self.holder(trigger)
                elif isinstance(trigger, TimerOf):
                    key = self.timer_key(trigger)
                    self.timers[key] = None
                elif isinstance(trigger, str):
                    key = (trigger, self.around(one), self.enclave(one.instance))
                else:
                    key = trigger
                numbers = self.readers.setdefault(key, [])
                if not numbers or numbers[-1] != self.number[one]:
                    numbers.append(self.number[one])
            for channel in dict.fromkeys(one.reads):
                self.read(self.holder(channel))
        for delay in self.model.delays:
            source = self.holder(delay.source)
            self.readers.setdefault(source, []).append(self.number[delay])
            self.read(source)
        if not any(period > 0 and mode is None for _, period, mode, _ in self.timers):
            self.place_idle_timers()

    def timer_key(self, timer: TimerOf) -> tuple[int, int, ModeOf | None, int]:
        home = self.enclave(timer.instance)
        return (timer.offset, timer.period, self.around(timer), home)

    def place_idle_timers(self) -> None:
        """Places the timers that trigger nothing: the program waits for them too, if nothing else
        keeps it running (R12)."""
        for made in self.model.instances:
            for timer in made.timers.values():
                key = self.timer_key(timer)
                self.timers[key] = None
                self.readers.setdefault(key, [])

    def holder(self, channel: Channel) -> Channel | Delay:
        """Returns the channel or delay that holds the value that `channel` shows. A channel holds
        the value if reactions write the channel; a delay can have several sinks.
        """
        at = driver(channel)
        return self.delayed[at][0] if at in self.delayed else at

    def read(self, holder: Channel | Delay) -> None:
        self.reads_of[holder] = self.reads_of.get(holder, 0) + 1

    def read_once(self, channel: Channel) -> bool:
        """Returns whether only one reaction reads the value that `channel` shows, by one port."""
        return self.reads_of.get(self.holder(channel), 0) <= 1

    def enclave(self, made: Instance) -> int:
        return self.enclaves.of.get(made, 0)

    @property
    def count(self) -> int:
        return sum(self.counts)

    @property
    def most(self) -> int:
        """The number of reactions of the largest enclave, its delays included."""
        return max(self.counts)


def codes_in(expr: tree.Expr | None) -> list[tree.Code]:
    if isinstance(expr, tree.Code):
        return [expr]
    if isinstance(expr, tree.Listing):
        return [code for item in expr.items for code in codes_in(item)]
    return []


def base_of(kind: tree.Type, cls: Class) -> str:
    return c_base(kind, cls.types)
