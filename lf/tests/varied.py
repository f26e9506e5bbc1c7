"""Generates random programs that use more of Lingua Franca than those of randoms.py, and that are
spelled in the ways that upstream's grammar allows. Both the compiler and the interpreter understand
the bodies.

What is here and not in randoms.py: reactors that extend another one, containers (also within each
other) with ports that pass values on, reactions of a container at the ports of what it contains,
parameters for times and widths, connections of several ports, modes that contain reactors and
connections, arrays as states, mutable inputs, named reactions, loops in bodies, a request to stop.

Invariants
- Those of randoms.py: programs are legal, they end, and each line of output begins with the number
  of an instance.
- A line of `Text` is a member, the beginning of a block, or its end. Only `spelled` adds comments,
  line breaks and semicolons.
- The same seed gives the same text.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

from randoms import POLICIES, Pick, by_seed

TIMES = ("1 msec", "2 msec", "1500 usec", "3 msec")
GAPS = ("\n", "\n    ", "\t", "  ", " /* gap */ ", " // gap\n", " # gap\n", " ''' gap ''' ")
# A body, a text, a number with its unit, a word, an arrow, or another character.
TOKEN = re.compile(r'\{=.*?=\}|"[^"]*"|\d+ [a-z]+\b|\w+|->|\S', re.S)
UNITS = {
    "msec": (1_000_000, ("msec", "ms", "msecs")),
    "usec": (1_000, ("usec", "us", "usecs")),
}


@dataclass
class Kind:
    """A reactor of the program, as seen by the reactors that contain it."""

    name: str
    inputs: dict[str, str] = field(default_factory=dict)  # port → its width, such as "[2]", or ""
    outputs: dict[str, str] = field(default_factory=dict)
    numbers: int = 1  # how many numbers of instances the reactor takes


class Text:
    """The lines of a program. `number` is the number of the next instance."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick
        self.lines: list[str] = []
        self.number = 0

    # --- bodies -----------------------------------------------------------------------------------

    def value(self, name: str, width: str) -> str:
        """Returns an expression whose value depends on an input, action or contained output."""
        if width:
            last = int(width[1:-1]) - 1
            plain = f"({name}[0]->is_present ? {name}[0]->value : 2)"
            return f"({plain} + 3 * {name}[{last}]->is_present)"
        if name.startswith("a"):  # An action that is scheduled without a value has none.
            return f"({name}->is_present && {name}->has_value ? {name}->value + 1 : 7)"
        return f"({name}->is_present ? {name}->value + 1 : 7)"

    def body(
        self, seen: dict[str, str], writes: dict[str, str], actions: list[str], tag: int, more: str
    ) -> str:
        """Returns a body that reads `seen` and writes to the ports `writes`. `more` is C that comes
        last."""
        pick = self.pick
        terms = ["self->s * 3", *(self.value(n, w) for n, w in seen.items()), str(tag)]
        lines = [f"int x = ({' + '.join(terms)}) % 1000;"]
        shape = pick(5)
        if shape == 0:
            lines.append(
                "for (int i = 0; i < 3; i++) { x += i * self->v[i]; self->v[i] = x % 17; }"
            )
        elif shape == 1:
            lines.append("while (x % 7 > 2) x--;")
        elif shape == 2:
            lines.append("if (x > 500) { x -= 500; } else if (x % 2 == 0) x++; else { x += 2; }")
        elif shape == 3:
            lines.append("self->v[x & 1] += x > 3 && !(x & 4) ? 1 : -1;")
        lines.append("self->s = x;")
        for name, width in writes.items():
            guard = ("1", "x % 2 == 0", "x % 3 != 1")[pick(3)]
            if width:
                count = f"{name}_width"
                lines.append(
                    f"for (int i = 0; i < {count}; i++) if (({guard}) || i) lf_set({name}[i], x + i);"
                )
            else:
                lines.append(f"if ({guard}) lf_set({name}, x);")
        for name in actions:
            extra = ("0", "0", "MSEC(1)", "USEC(500)", "self->period")[pick(5)]
            call = (
                f"lf_schedule_int({name}, {extra}, x)"
                if pick(4)
                else f"lf_schedule({name}, {extra})"
            )
            lines.append(f"if (self->k < 8) {{ self->k++; {call}; }}")
        values = f"self->id, self->bank_index, {tag}, self->s"
        lines.append(f'printf("%d.%d r%d %d\\n", {values});')
        return " ".join([*lines, more]).strip()

    def reaction(
        self,
        triggers: list[str],
        sources: dict[str, str],
        seen: dict[str, str],
        writes: dict[str, str],
        actions: list[str],
        tag: int,
        moves: str = "",
    ) -> str:
        pick = self.pick
        effects = [*writes, *actions]
        more = ""
        if moves:
            effects.append(f"{('reset', 'history')[pick(2)]}({moves})")
            more = f"if (self->s % 3 == {pick(3)}) lf_set_mode({moves});"
        text = "reaction" + (f" named{tag}" if not pick(4) else "")
        text += f"({', '.join(triggers)})"
        if sources:
            text += " " + ", ".join(sources)
        if effects:
            text += " -> " + ", ".join(effects)
        text += f" {{= {self.body({**seen, **sources}, writes, actions, tag, more)} =}}"
        if not pick(10):
            limit = ("0", "1 hour")[pick(2)]
            late = 'printf("%d.%d late %d\\n", self->id, self->bank_index, self->s);'
            text += f" deadline({limit}) {{= self->s = (self->s + 11) % 1000; {late} =}}"
        return text

    # --- reactors ---------------------------------------------------------------------------------

    def some(self, of: list[str], least: int = 0) -> list[str]:
        chosen = [x for x in of if self.pick(2)]
        return chosen or of[:least]

    def ports(self, most: int) -> dict[str, str]:
        return {
            str(n): f"[{1 + self.pick(3)}]" if not self.pick(4) else ""
            for n in range(self.pick(most + 1))
        }

    def states(self) -> list[str]:
        first = ", ".join(str(self.pick(9)) for _ in range(3))
        return [
            "state s: int = 1",
            "state k: int = 0",
            f"state v: int[3] = {{{first}}}",
        ]

    def head(self, name: str) -> str:
        params = "id: int = 0, bank_index: int = 0, period: time = 2 msec"
        return f"reactor {name}({params}) {{"

    def leaf(self, name: str, modes: bool) -> Kind:
        """Writes a reactor that contains no others, in two parts if it extends another one."""
        pick = self.pick
        kind = Kind(name)
        kind.inputs = {f"i{n}": w for n, w in self.ports(2).items()}
        kind.outputs = {f"o{n}": w for n, w in self.ports(2).items()}
        timers = [f"t{n}" for n in range(pick(3))]
        actions = [f"a{n}" for n in range(pick(2))]
        parts = self.states()
        for port, width in kind.inputs.items():
            parts.append(f"{'mutable ' if not pick(5) else ''}input{width} {port}: int")
        for port, width in kind.outputs.items():
            parts.append(f"output{width} {port}: int")
        for timer in timers:
            offset = ("0", "1 msec", "period")[pick(3)]
            parts.append(f"timer {timer}({offset}, {('period', *TIMES)[pick(4)]})")
        for action in actions:
            spacing = f', {TIMES[pick(3)]}, "{POLICIES[pick(4)]}"' if not pick(3) else ""
            parts.append(f"logical action {action}({('0', '1 msec')[pick(2)]}{spacing}): int")
        readable = {**kind.inputs, **dict.fromkeys(actions, "")}

        def reaction(tag: int, triggers: list[str], moves: str = "") -> str:
            chosen = self.some(triggers, 1) or ["startup"]
            chosen += ["shutdown"] * (not pick(6) and "shutdown" not in chosen)
            seen = {n: readable[n] for n in chosen if n in readable}
            rest = {n: w for n, w in kind.inputs.items() if n not in seen and not pick(3)}
            writes = {n: kind.outputs[n] for n in self.some([*kind.outputs])}
            return self.reaction(chosen, rest, seen, writes, self.some(actions), tag, moves)

        first = [reaction(n, [*kind.inputs, *timers, *actions]) for n in range(1 + pick(2))]
        second = [reaction(5 + n, [*kind.inputs, *timers, *actions]) for n in range(pick(2))]
        if not pick(3):
            self.lines += [self.head(f"{name}Base"), *parts, *first, "}"]
            self.lines += [f"reactor {name} extends {name}Base {{", *second]
        else:
            self.lines += [self.head(name), *parts, *first, *second]
        if modes:
            for at, mode in enumerate("AB"):
                self.lines.append(f"{'initial ' * (at == 0)}mode {mode} {{")
                self.lines.append(f"timer m{mode}({('0', '1 msec')[pick(2)]}, {TIMES[pick(4)]})")
                self.lines.append(reaction(10 + at, [f"m{mode}"], "BA"[at]))
                self.lines.append("}")
        self.lines.append("}")
        return kind

    def place(self, name: str, kind: Kind, identity: str, bank: str = "") -> str:
        values = [f"id = {identity}"]
        if not bank:  # The members of a bank of containers print different numbers.
            values.append("bank_index = bank_index")
        if not self.pick(2):
            values.append(f"period = {TIMES[self.pick(4)]}")
        return f"{name} = new{bank} {kind.name}({', '.join(values)})"

    def box(self, name: str, inner: Kind) -> Kind:
        """Writes a container of `inner` with the same ports, and reactions at both ends."""
        pick = self.pick
        kind = Kind(name, dict(inner.inputs), dict(inner.outputs), inner.numbers + 1)
        self.lines.append(self.head(name))
        self.lines += self.states()
        for port, width in kind.inputs.items():
            self.lines.append(f"input{width} {port}: int")
        for port, width in kind.outputs.items():
            self.lines.append(f"output{width} {port}: int")
        self.lines.append("timer t(1 msec, period)")
        self.lines.append(self.place("in", inner, "{= self->id + 1 =}"))
        written = {}
        for port, width in kind.inputs.items():
            if not width and not pick(4):
                written[f"in.{port}"] = ""
            else:
                self.lines.append(f"{port} -> in.{port}{self.after()}")
        if written:
            self.lines.append(self.reaction(["t"], {}, {}, written, [], 20))
        for port in kind.outputs:
            self.lines.append(f"in.{port} -> {port}{self.after()}")
        plain = {f"in.{p}": "" for p, w in kind.outputs.items() if not w}
        if plain and pick(3):
            chosen = self.some([*plain], 1)
            self.lines.append(self.reaction(chosen, {}, dict.fromkeys(chosen, ""), {}, [], 21))
        self.lines.append("}")
        return kind

    def after(self) -> str:
        return "" if self.pick(3) else f" after {('0', 'period', '1 msec')[self.pick(3)]}"

    def component(self, name: str, modes: bool) -> int:
        """Writes several reactors, and then a reactor that contains and connects them. Returns the
        number of the latter."""
        pick = self.pick
        kinds = [self.leaf(f"{name}L{n}", modes and not pick(2)) for n in range(1 + pick(2))]
        for n in range(pick(3)):
            kinds.append(self.box(f"{name}B{n}", kinds[pick(len(kinds))]))
        own, self.number = self.number, self.number + 1
        inside = modes and not pick(3)
        self.lines += [self.head(name), *self.states(), "timer t(0, period)"]
        placed: list[tuple[str, Kind, int]] = []
        makes: list[str] = []
        for n in range(1 + pick(4)):
            kind = kinds[pick(len(kinds))]
            count = 1 + pick(3) if not pick(4) else 0
            makes.append(self.place(f"x{n}", kind, str(self.number), f"[{count}]" if count else ""))
            self.number += kind.numbers
            placed.append((f"x{n}", kind, count))
        joins, free = self.joins(placed)
        if inside:
            self.lines.append("initial mode A {")
            self.lines += [*makes, *joins]
            self.lines.append(self.reaction(["t"], {}, {}, {}, [], 30, "B"))
            self.lines += ["}", "mode B {", "timer back(2 msec)"]
            self.lines.append(self.reaction(["back"], {}, {}, {}, [], 31, "A"))
            self.lines += ["}"]
        else:
            self.lines += makes
            written = dict.fromkeys(self.some(free), "")
            if written:
                self.lines.append(self.reaction(["t"], {}, {}, written, [], 32))
            self.lines += joins
            read = [
                f"{x}.{p}" for x, k, c in placed if not c for p, w in k.outputs.items() if not w
            ]
            chosen = self.some(read)
            if chosen:
                self.lines.append(self.reaction(chosen, {}, dict.fromkeys(chosen, ""), {}, [], 33))
        self.lines.append("}")
        return own

    def joins(self, placed: list[tuple[str, Kind, int]]) -> tuple[list[str], list[str]]:
        """Returns connections of the instances, and the plain inputs that have none."""
        pick = self.pick
        lines: list[str] = []
        free: list[str] = []
        single: dict[str, tuple[list[str], list[str]]] = {}  # delay → sources and sinks
        for at, (here, kind, count) in enumerate(placed):
            for port, width in kind.inputs.items():
                sources = [
                    (j, f"{there}.{out}", bool(w or c))
                    for j, (there, other, c) in enumerate(placed)
                    for out, w in other.outputs.items()
                ]
                if not sources or not pick(4):
                    if not count and not width:
                        free.append(f"{here}.{port}")
                    continue
                j, source, several = sources[pick(len(sources))]
                after = self.after()
                if j >= at:
                    after = f" after {('1 msec', 'period', '2500 usec')[pick(3)]}"
                if not several and not width and not count:
                    froms, tos = single.setdefault(after, ([], []))
                    froms.append(source)
                    tos.append(f"{here}.{port}")
                else:
                    left = f"interleaved({source})" if not pick(5) else source
                    left = f"({left})+" if pick(2) or not several else left
                    lines.append(f"{left} -> {here}.{port}{after}")
        for after, (froms, tos) in single.items():
            lines.append(f"{', '.join(froms)} -> {', '.join(tos)}{after}")
        return lines, free


# --- the ways to write it -------------------------------------------------------------------------


def _line(line: str, pick: Pick) -> str:
    """Returns a line with other spaces, comments, units and initialisers."""
    tokens = TOKEN.findall(line)
    out: list[str] = []
    for at, token in enumerate(tokens):
        number, _, unit = token.partition(" ")
        if unit in UNITS and number.isdigit():
            size, names = UNITS[unit]
            if size > 1000 and not pick(3):
                number, names = str(int(number) * (size // 1000)), UNITS["usec"][1]
            token = number + ("", " ", "  ")[pick(3)] + names[pick(len(names))]
        out.append(token)
        if at + 1 < len(tokens):
            joined = token[-1:].isalnum() and tokens[at + 1][:1].isalnum()
            gap = " " if joined or "_" in (token[-1], tokens[at + 1][0]) or pick(2) else ""
            out.append(GAPS[pick(len(GAPS))] if not pick(12) else gap)
    return "".join(out)


def spelled(lines: list[str], pick: Pick) -> str:
    """Returns the text of a program, spelled in one of the ways of upstream's grammar."""
    made: list[str] = []
    for line in lines:
        first = re.match(r"(state \w+: int(?:\[3\])?) = (.*)", line)
        if first and not pick(3):
            value = first[2].strip("{}")
            line = f"{first[1]}{('(', '{')[at := pick(2)]}{value}{(')', '}')[at]}"
        if line.startswith(("reaction", "state", "timer")) and not pick(8):
            line = f'@label("a {pick(9)}") {line}'
        text = _line(line, pick)
        block = line.endswith("{") or line == "}"
        made.append(text + (";" if not block and not pick(3) else ""))
    return "\n".join(made) + "\n"


def program(seed: int, size: int, modes: bool = False, workers: int = 1) -> str:
    """Returns the text of a program with `size` components that are not connected with each
    other. In some programs a reaction asks for a stop."""
    pick = by_seed(seed)
    text = Text(pick)
    text.lines.append(f"target C {{ timeout: 12 msec, fast: true, workers: {workers} }}")
    numbers = [text.component(f"C{n}", modes) for n in range(size)]
    text.lines.append("main reactor {")
    text.lines += [f"c{n} = new C{n}(id = {own})" for n, own in enumerate(numbers)]
    if not pick(4):
        text.lines.append(f"timer t({9 + pick(3)} msec)")
        text.lines.append("reaction(t) {= lf_request_stop(); =}")
    text.lines.append("}")
    return spelled(text.lines, random.Random(seed + 1).randrange)
