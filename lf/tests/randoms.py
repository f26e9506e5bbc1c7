"""Generates random Lingua Franca programs whose bodies both the compiler and the interpreter
understand.

A program is a main reactor with a number of *components* that are not connected with each other.
Thus many random programs share one C build, and the tags of one run. Choices come from a `Pick`,
which is random.Random with a seed, or hypothesis, which shrinks a failing program.

Invariants
- Every program is legal: a connection without a delay leads from an earlier to a later instance;
  all other connections are delayed; an input has one source.
- Every program ends: it has a timeout, and a reaction that schedules without a delay does so a
  limited number of times.
- A line of output begins with the instance's number, followed by the values that the reaction saw.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

Pick = Callable[[int], int]  # pick(n) returns one of 0 … n - 1
TIMES = ("0", "1 msec", "2 msec", "3 msec", "1500 usec", "5 msec")
DELAYS = ("0", "1 msec", "2500 usec", "4 msec")
POLICIES = ("defer", "drop", "replace", "update")


def by_seed(seed: int) -> Pick:
    return random.Random(seed).randrange


@dataclass
class _Leaf:
    name: str
    inputs: dict[str, int] = field(default_factory=dict)  # name → width; 0 for a plain port
    outputs: dict[str, int] = field(default_factory=dict)
    actions: list[str] = field(default_factory=list)
    timers: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def _random_items(pick: Pick, of: list[str], least: int = 0) -> list[str]:
    """Returns a random choice of at least `least` items of `of`, in their order."""
    chosen = [x for x in of if pick(2)]
    while len(chosen) < least and of:
        x = of[pick(len(of))]
        if x not in chosen:
            chosen.append(x)
    return [x for x in of if x in chosen]


def _input_expression(leaf: _Leaf, name: str) -> str:
    """Returns a C expression whose value depends on the presence and the value of an input or
    action.
    """
    width = leaf.inputs.get(name, 0)
    if name in leaf.inputs and width:
        last = width - 1
        return f"({name}[0]->is_present * {name}[0]->value + 3 * {name}[{last}]->is_present + {name}_width)"
    if name in leaf.actions:
        return f"({name}->is_present ? ({name}->has_value ? {name}->value + 1 : 5) : 7)"
    if name in leaf.inputs:
        return f"({name}->is_present ? {name}->value + 1 : 7)"
    return "1"


def _body(
    pick: Pick, leaf: _Leaf, readable: list[str], writes: list[str], number: int, moves: list[str]
) -> str:
    terms = [_input_expression(leaf, n) for n in readable if n in leaf.inputs or n in leaf.actions]
    total = " + ".join(["self->s * 3", *terms, str(number)])
    lines = [f"self->s = ({total}) % 1000;"]
    for name in writes:
        guard = ("1", "self->s % 2 == 0", "self->s % 3 != 1")[pick(3)]
        if name in leaf.actions:
            extra = ("0", "0", "MSEC(1)", "USEC(500)", "MSEC(3)", "-5")[pick(6)]
            call = (
                f"lf_schedule_int({name}, {extra}, self->s + {number})"
                if pick(4)
                else f"lf_schedule({name}, {extra})"
            )
            lines.append(f"if ({guard} && self->k < 12) {{ self->k++; {call}; }}")
            if not pick(4):
                lines.append(f"if (self->k < 12) {{ self->k++; {call}; }}")
        elif leaf.outputs[name]:
            lines.append(
                f"for (int i = 0; i < {name}_width; i++) if ((self->s + i) % {pick(3) + 1} == 0) lf_set({name}[i], self->s + i);"
            )
        else:
            lines.append(f"if ({guard}) lf_set({name}, self->s);")
    for mode in moves:
        lines.append(f"if (self->s % 3 == {pick(3)}) lf_set_mode({mode});")
    values = ", ".join(["self->id", "self->bank_index", str(number), "self->s"])
    lines.append(f'printf("%d.%d r%d %d\\n", {values});')
    return " ".join(lines)


def _reaction(
    pick: Pick, leaf: _Leaf, number: int, indent: str, more: list[str], moves: list[str]
) -> str:
    triggers = [*leaf.inputs, *leaf.timers, *leaf.actions, *more]
    chosen = _random_items(pick, triggers, 1) or ["startup"]
    if not pick(5) and "startup" not in chosen:
        chosen = ["startup", *chosen]
    if not pick(8):
        chosen = [*chosen, "shutdown"]
    sources = _random_items(pick, [n for n in leaf.inputs if n not in chosen])
    writes = _random_items(pick, [*leaf.outputs, *leaf.actions])
    effects = [*writes, *(("reset", "history")[pick(2)] + f"({m})" for m in moves)]
    text = f"{indent}reaction({', '.join(chosen)})"
    if sources:
        text += " " + ", ".join(sources)
    if effects:
        text += " -> " + ", ".join(effects)
    body = _body(pick, leaf, [*chosen, *sources], writes, number, moves)
    text += f" {{= {body} =}}"
    if not pick(8):
        limit = ("0", "1 hour")[pick(2)]
        late = 'printf("%d.%d late %d\\n", self->id, self->bank_index, self->s);'
        text += f" deadline({limit}) {{= self->s = (self->s + 11) % 1000; {late} =}}"
    return text


def _leaf(pick: Pick, name: str, modes: bool) -> _Leaf:
    leaf = _Leaf(name)
    for n in range(pick(3)):
        leaf.inputs[f"i{n}"] = pick(4) if not pick(3) else 0
    for n in range(pick(3)):
        leaf.outputs[f"o{n}"] = pick(4) if not pick(3) else 0
    leaf.timers = [f"t{n}" for n in range(pick(3))]
    leaf.actions = [f"a{n}" for n in range(pick(3))]
    lines = [
        f"reactor {name}(id: int = 0, bank_index: int = 0) {{",
        "  state s: int = 1",
        "  state k: int = 0",
    ]
    for port, width in leaf.inputs.items():
        lines.append(f"  input{f'[{width}]' if width else ''} {port}: int")
    for port, width in leaf.outputs.items():
        lines.append(f"  output{f'[{width}]' if width else ''} {port}: int")
    for timer in leaf.timers:
        period = TIMES[1 + pick(5)]
        lines.append(
            f"  timer {timer}({TIMES[pick(6)]}, {period})"
            if pick(4)
            else f"  timer {timer}({TIMES[pick(6)]})"
        )
    for action in leaf.actions:
        spacing = f', {TIMES[1 + pick(3)]}, "{POLICIES[pick(4)]}"' if not pick(3) else ""
        lines.append(f"  logical action {action}({('0', '1 msec')[pick(2)]}{spacing}): int")
    count = 1 + pick(3)
    for number in range(count):
        lines.append(_reaction(pick, leaf, number, "  ", [], []))
    if modes and leaf.timers:
        names = ["A", "B", "C"][: 2 + pick(2)]
        for at, mode in enumerate(names):
            lines.append(f"  {'initial ' * (at == 0)}mode {mode} {{")
            lines.append(f"    timer m{mode}({TIMES[pick(6)]}, {TIMES[1 + pick(5)]})")
            lines.append(f"    reset state r{mode}: int = {pick(9)}")
            to = names[(at + 1 + pick(len(names) - 1)) % len(names)]
            lines.append(_reaction(pick, leaf, 10 + at, "    ", [f"m{mode}"], [to]))
            if pick(2):
                lines.append(
                    f'    reaction(reset) {{= printf("%d.%d reset {mode}\\n", self->id, self->bank_index); =}}'
                )
            lines.append("  }")
    leaf.lines = [*lines, "}"]
    return leaf


def component(pick: Pick, name: str, first: int, modes: bool = False) -> tuple[list[str], int]:
    """Returns the lines of a reactor called `name` and of the reactors in it, and the next free
    number. The instances in the reactor are numbered from `first`.
    """
    leaves = [_leaf(pick, f"{name}L{n}", modes) for n in range(1 + pick(3))]
    lines = [line for leaf in leaves for line in leaf.lines]
    lines.append(f"reactor {name} {{")
    placed: list[tuple[str, _Leaf]] = []
    for n in range(1 + pick(4)):
        leaf = leaves[pick(len(leaves))]
        bank = f"[{1 + pick(3)}]" if not pick(4) else ""
        lines.append(f"  x{n} = new{bank} {leaf.name}(id = {first})")
        first += 1
        placed.append((f"x{n}", leaf))
    for at, (here, leaf) in enumerate(placed):
        for port in leaf.inputs:
            sources = [
                (j, there, out) for j, (there, other) in enumerate(placed) for out in other.outputs
            ]
            if not sources or not pick(5):
                continue
            j, there, out = sources[pick(len(sources))]
            after = "" if pick(3) else f" after {DELAYS[pick(4)]}"
            if j >= at:  # The connection closes a loop, so it needs a delay.
                after = f" after {DELAYS[1 + pick(3)]}"
            left = f"{there}.{out}"
            left = f"interleaved({left})" if not pick(5) else left
            left = f"({left})+" if not pick(2) else left
            lines.append(f"  {left} -> {here}.{port}{after}")
    lines.append("}")
    return lines, first


def program(
    picks: list[Pick], modes: bool = False, timeout: str = "12 msec", workers: int = 1
) -> str:
    """Returns the text of a program with one component for each pick."""
    lines = [f"target C {{ timeout: {timeout}, fast: true, workers: {workers} }}"]
    number = 0
    for at, pick in enumerate(picks):
        more, number = component(pick, f"C{at}", number, modes)
        lines += more
    lines.append("main reactor {")
    lines += [f"  c{at} = new C{at}()" for at in range(len(picks))]
    lines.append("}")
    return "\n".join(lines) + "\n"
