"""Divides a program into enclaves: parts that advance through their tags independently
(SEMANTICS.md, R20). The program asks for enclaves by `@enclave`; otherwise the compiler finds them.

Two reactors must be in one enclave if a value passes between them within one tag: all reactors that
write or read one channel, and the reactors at the two ends of a connection with `after 0`. The
other connections, delayed or physical, may join two enclaves. `@enclave` on an instance asks that
this reactor and all that it contains be one enclave; on a bank it asks the same for the whole bank,
or with `each = true` for each member. All reactors without `@enclave` are then one enclave.
Reactors that must be in one enclave stay in one, whatever `@enclave` asks for.

Without `@enclave` the compiler divides a program only if its reactors share nothing but their
ports: see `shared`.

Invariants
- `Enclaves.of` contains every instance; `sends` and `arrives` contain every delay. Enclaves are
  numbered from 0, in the order of the first reaction in each.
- A Delay arrives in one enclave: a Delay whose readers are in several enclaves is split.
- A program has one enclave if it has modes or watchdogs, or asks for one worker. It also has one
  enclave if it has no `@enclave` and either its reactors share something, or it has one thread and
  is not for a device.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, field

from weft_lf import tree
from weft_lf.errors import Problem
from weft_lf.model import Delay, Instance, Model, driver

DEVICE = 2  # the limit on enclaves on a device: one for each core
MAX_ENCLAVES = 64  # the limit on enclaves of `@enclave` on a host
KNOWN_HEADERS = (
    r"<[^>]*>|\"(board|stdio|stdlib|string|math|stdint|stdbool|hardware/\w+|pico/\w+)\.h\""
)
# Names of things that the whole program shares: a body that mentions one of them must not run at
# the same time as another body.
EVERYBODYS = r"\b(static|extern|lf_request_stop|lf_thread_create|lf_critical_section\w*|s?rand|strtok|setenv|weft_rx_\w+)\b"


@dataclass
class Enclaves:
    """The enclaves of a program: how many there are, the enclave `of` each instance, and the
    enclaves in which each delay `sends` and `arrives`."""

    count: int = 1
    of: dict[Instance, int] = field(default_factory=dict)
    sends: dict[Delay, int] = field(default_factory=dict)
    arrives: dict[Delay, int] = field(default_factory=dict)

    def links(self) -> list[tuple[int, int, int]]:
        """Returns a link (from, to, ns) for each two enclaves that delayed connections join; ns is
        the least of these delays."""
        least: dict[tuple[int, int], int] = {}
        for delay, source in self.sends.items():
            to = self.arrives[delay]
            if source != to and not delay.physical:
                known = least.get((source, to), delay.interval)
                least[source, to] = min(known, delay.interval)
        return [(a, b, ns) for (a, b), ns in sorted(least.items())]


class _Groups:
    """Disjoint sets, by union and find."""

    def __init__(self) -> None:
        self.above: dict[Hashable, Hashable] = {}

    def find(self, one: Hashable) -> Hashable:
        above = self.above.setdefault(one, one)
        while above != one:
            self.above[one] = self.above.setdefault(above, above)
            one, above = above, self.above[above]
        return one

    def join(self, one: Hashable, other: Hashable) -> None:
        self.above[self.find(one)] = self.find(other)


def asked(made: Instance) -> Instance | str | None:
    """Returns the enclave that `@enclave` asks for around an instance: the instance that has the
    attribute, the path of the bank that has it, or None if nothing around `made` has the attribute.
    """
    at: Instance | None = made
    while at is not None:
        for one in at.decl.attributes if at.decl else []:
            if one.name == "enclave":
                each = any(name == "each" and text == "true" for name, text in one.arguments)
                bank = at.index is not None and not each
                return f"{at.parent.path if at.parent else ''}.{at.name}" if bank else at
        at = at.parent
    return None


def shared(model: Model) -> str:
    """Describes one thing that the reactors can share besides their ports. The text is empty if
    they share nothing else."""
    config = model.program.config
    if config.files or config.cmake_include:
        return "C files of the program's own"
    codes: list[str] = []
    for loaded in model.program.files:
        for one in loaded.tree.preambles:
            if has_objects(one.code.text):
                return "objects of a preamble"
    for cls in model.classes:
        for placed in cls.members:
            decl = placed.decl
            if isinstance(decl, tree.Preamble) and has_objects(decl.code.text):
                return "objects of a preamble"
            if isinstance(decl, tree.Reaction):
                if decl.code is None:
                    return "C functions of the program's own"
                codes += [c.text for c in (decl.code, decl.deadline_code) if c is not None]
            elif isinstance(decl, tree.Method):
                codes.append(decl.code.text)
            elif isinstance(decl, tree.Action) and decl.physical:
                return "a physical action"
        if any(
            p.type is not None and (p.type.stars or p.type.is_code) for p in cls.params.values()
        ):
            return "a pointer among the parameters"
    found = re.search(EVERYBODYS, "\n".join(codes))
    return f"'{found.group()}' in a reaction" if found else ""


def has_objects(text: str) -> bool:
    """Returns whether C text at file level might define objects: whether the text contains more
    than types, macros, known headers, and functions without static objects.
    """
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    for line in re.findall(r"^[ \t]*#[ \t]*include[ \t]*(.*)$", text, re.M):
        if not re.fullmatch(KNOWN_HEADERS, line.strip()):
            return True
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(r"^[ \t]*#[^\n]*", "", text, flags=re.M)
    text = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'', "0", text)
    if re.search(r"\{[^{}]*\bstatic\b", text):
        return True
    while (bare := re.sub(r"\{[^{}]*\}", "@", text)) != text:
        text = bare
    for part in re.split(r";|(?<=\))\s*@", text):
        part = part.strip()
        if not part or (re.match(r"(typedef|enum|struct|union)\b", part) and "=" not in part):
            if re.match(r"(enum|struct|union)\b.*@\s*\w", part, re.S):
                return True  # an object: struct { … } name;
            continue
        if (
            "=" in part
            or not re.search(r"\w\s*\([^;]*\)$", part, re.S)
            or re.search(r"\(\s*\*", part)
        ):
            return True
    return False


def _joined(model: Model) -> _Groups:
    groups = _Groups()
    for one in model.reactions:
        for channel in [*one.writes, *one.reads]:
            groups.join(one.instance, driver(channel))
    for delay in model.delays:
        if not delay.physical and not delay.interval:
            for sink in delay.sinks:
                groups.join(driver(delay.source), sink)
    return groups


def _packed(weights: dict[Hashable, int], most: int) -> dict[Hashable, int]:
    """Distributes groups over at most `most` parts of similar weight. The heaviest group comes
    first; each group goes into the part that is lightest at that moment."""
    loads = [0] * most
    place = {}
    for group in sorted(weights, key=lambda g: -weights[g]):
        at = loads.index(min(loads))
        place[group] = at
        loads[at] += weights[group]
    return place


def _carried(model: Model, part: dict[Hashable, int], groups: _Groups) -> None:
    """Puts each channel that no reaction reads or writes into the enclave of the delay that it
    comes from: the channel may lead to another delay, which sends in that enclave."""
    found = True
    while found:
        found = False
        for delay in model.delays:
            source = groups.find(driver(delay.source))
            for sink in map(groups.find, delay.sinks):
                if source in part and sink not in part:
                    part[sink] = part[source]
                    found = True


def _split(model: Model, part: dict[Hashable, int], groups: _Groups) -> None:
    """Splits each Delay that has sinks in several enclaves into one Delay for each enclave."""
    found: list[Delay] = []
    for delay in model.delays:
        by: dict[int, Delay] = {}
        for sink in delay.sinks:
            number = part.get(groups.find(sink), part.get(groups.find(driver(delay.source)), 0))
            if number not in by:
                by[number] = Delay(
                    delay.source, delay.ns, delay.physical, delay.via, delay.instance, delay.mode
                )
            by[number].sinks.append(sink)
        if len(by) <= 1:
            found.append(delay)
            continue
        for new in by.values():
            for sink in new.sinks:
                sink.delay = new
            found.append(new)
    model.delays[:] = found


def enclaves(model: Model, device: bool) -> Enclaves:
    """Returns the enclaves of a program.

    The function splits delays of the model that have readers in several enclaves, and adds a
    warning to the program if the program's `@enclave` has no effect.
    """
    config = model.program.config
    wanted = any(asked(made) is not None for made in model.instances)
    one = Enclaves(1, dict.fromkeys(model.instances, 0))
    one.sends = one.arrives = dict.fromkeys(model.delays, 0)
    if config.workers == 1 or config.single_threaded:
        return one
    if any(made.modes for made in model.instances):
        if wanted:
            _warn(model, "a program with modes has one enclave: '@enclave' has no effect")
        return one
    if any(made.watchdogs for made in model.instances):
        if wanted:
            _warn(model, "a program with watchdogs has one enclave: '@enclave' has no effect")
        return one
    if not wanted and ((not device and config.threads < 2) or shared(model)):
        return one
    groups = _joined(model)
    if wanted:
        for made in model.instances:
            groups.join(
                made,
                f"asked {asked(made)!s} {id(asked(made)) if isinstance(asked(made), Instance) else ''}",
            )
    weights: dict[Hashable, int] = {}
    for reaction in model.reactions:
        group = groups.find(reaction.instance)
        weights[group] = weights.get(group, 0) + 1
    most = DEVICE if device else MAX_ENCLAVES if wanted else config.threads
    if len(weights) < 2:
        if wanted:
            text = (
                "'@enclave' has no effect: connections without a delay join all of it to the rest"
            )
            _warn(model, text)
        return one
    part = _packed(weights, min(most, len(weights)))
    order: dict[int, int] = {}
    for reaction in model.reactions:
        order.setdefault(part[groups.find(reaction.instance)], len(order))
    part = {group: order[number] for group, number in part.items()}
    _carried(model, part, groups)
    _split(model, part, groups)
    found = Enclaves(len(order))
    for made in model.instances:
        found.of[made] = part.get(groups.find(made), 0)
    for delay in model.delays:
        found.sends[delay] = part.get(groups.find(driver(delay.source)), 0)
        found.arrives[delay] = part.get(groups.find(delay.sinks[0]), found.sends[delay])
    return found


def _warn(model: Model, text: str) -> None:
    for made in model.instances:
        for one in made.decl.attributes if made.decl else []:
            if one.name == "enclave":
                model.program.warnings.append(Problem(one.span, text, severity="warning"))
                return


__all__ = ["Enclaves", "enclaves", "has_objects", "shared"]
