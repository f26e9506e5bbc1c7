"""Draws the reactors of a program, with graphviz.

A reactor is a box with its ports. A reaction is a chevron with its number, a timer a circle, an
action a triangle. A delayed connection is dashed and labelled with its delay; a physical one is
dotted. A bank is drawn once, with its width.
"""

from __future__ import annotations

import html
import subprocess
from pathlib import Path

from weft_lf import tree
from weft_lf.errors import NOWHERE, LfError, Problem
from weft_lf.model import Instance, Model, ReactionOf


def _text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _time(ns: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns % size == 0 and ns:
            return f"{ns // size} {unit}"
    return f"{ns} ns" if ns else "0"


class _Drawing:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.edges: list[str] = []

    def reactor(self, made: Instance, path: str, depth: int) -> None:
        """Draws a reactor, and everything that it contains."""
        pad = "  " * depth
        width = f" [{made.width}]" if made.width is not None else ""
        kind = f" : {made.cls.name}" if made.parent else ""
        self.lines.append(f"{pad}subgraph {_text('cluster_' + path)} {{")
        self.lines.append(
            f"{pad}  label={_text(made.name + width + kind)}; style=rounded; color=gray50; fontname=Helvetica;"
        )
        self.members(made, path, pad)
        for one in made.reactions:
            if one.forward is None:
                self.reaction(one, path, pad)
        for name, members in made.children.items():
            if members:
                self.reactor(members[0], f"{path}.{name}", depth + 1)
        for placed in made.cls.of(tree.Connection):
            assert isinstance(placed.decl, tree.Connection)
            self.connection(placed.decl, path)
        self.lines.append(f"{pad}}}")

    def members(self, made: Instance, path: str, pad: str) -> None:
        """Draws a reactor's ports, timers and actions."""
        for port in made.ports.values():
            label = port.decl.name + (f" [{len(port.channels)}]" if port.multi else "")
            fill = "white" if port.decl.is_input else "gray90"
            self.node(pad, f"{path}.{port.decl.name}", label, "rarrow", fill)
        for timer in made.timers.values():
            label = f"{timer.decl.name}\n({_time(timer.offset)}, {_time(timer.period)})"
            self.node(pad, f"{path}.{timer.decl.name}", label, "circle", "lightyellow")
        for action in made.actions.values():
            label = f"{action.decl.name} ({'P' if action.decl.physical else 'L'})"
            self.node(pad, f"{path}.{action.decl.name}", label, "triangle", "mistyrose")

        for dog in made.watchdogs.values():
            label = f"{dog.decl.name}\n({_time(dog.timeout)})"
            self.node(pad, f"{path}.{dog.decl.name}", label, "octagon", "mistyrose")

    def reaction(self, one: ReactionOf, path: str, pad: str) -> None:
        """Draws a reaction, and the edges to and from it."""
        here = f"{path}#{one.number}"
        mode = f"\n{one.mode.decl.name}" if one.mode else ""
        late = f"\ndeadline {_time(one.deadline)}" if one.deadline is not None else ""
        label = (one.decl.name or str(one.number + 1)) + mode + late
        self.node(pad, here, label, "cds", "lightblue")
        for ref in one.decl.triggers:
            if ref.kind == "builtin":
                event = f"{path}!{ref.variable}"
                self.node(pad, event, ref.variable, "circle", "white")
                self.edges.append(f"{_text(event)} -> {_text(here)} [style=dashed];")
            else:
                self.edges.append(f"{_text(self.at(path, ref))} -> {_text(here)};")
        for ref in one.decl.sources:
            self.edges.append(f"{_text(self.at(path, ref))} -> {_text(here)} [style=dashed];")
        for ref in one.decl.effects:
            if ref.kind == "plain" and ref.variable not in one.instance.modes:
                self.edges.append(f"{_text(here)} -> {_text(self.at(path, ref))};")

    def connection(self, decl: tree.Connection, path: str) -> None:
        """Draws the edges of a connection: port by port, or from each left port to each right port
        if their numbers differ."""
        style = "dotted" if decl.physical else "dashed" if decl.delay is not None else "solid"
        label = ""
        if isinstance(decl.delay, tree.Time):
            label = decl.delay.text
        elif isinstance(decl.delay, tree.Name):
            label = decl.delay.name
        elif decl.delay is not None:
            label = "0"
        for left, right in (
            zip(decl.left, decl.right, strict=False)
            if len(decl.left) == len(decl.right)
            else ((a, b) for a in decl.left for b in decl.right)
        ):
            ends = f"{_text(self.at(path, left))} -> {_text(self.at(path, right))}"
            self.edges.append(f"{ends} [style={style}, penwidth=1.5, label={_text(label)}];")

    def at(self, path: str, ref: tree.Ref) -> str:
        return (
            f"{path}.{ref.container}.{ref.variable}" if ref.container else f"{path}.{ref.variable}"
        )

    def node(self, pad: str, name: str, label: str, shape: str, fill: str) -> None:
        line = f"{pad}  {_text(name)} [label={_text(label).replace(chr(10), chr(92) + 'n')}, shape={shape}, fillcolor={fill}];"
        if line not in self.lines:
            self.lines.append(line)


def dot(model: Model) -> str:
    """Returns the drawing in graphviz's language."""
    drawing = _Drawing()
    drawing.reactor(model.top, model.top.name, 1)
    head = ['digraph "reactors" {', "  rankdir=LR; compound=true; fontname=Helvetica;"]
    head.append(
        "  node [style=filled, fontname=Helvetica, fontsize=10, margin=0.05]; edge [fontname=Helvetica, fontsize=9];"
    )
    return "\n".join([*head, *drawing.lines, *("  " + e for e in drawing.edges), "}"]) + "\n"


def draw(model: Model, output: Path) -> Path:
    """Writes the drawing to the file `output`, and returns its path. A `.dot` file contains the
    drawing in graphviz's language; graphviz makes any other file, in the format that the suffix
    names.

    Raises:
        LfError: graphviz is not installed, or fails.
    """
    text = dot(model)
    if output.suffix == ".dot":
        output.write_text(text, encoding="utf-8")
        return output
    try:
        ran = subprocess.run(
            ["dot", f"-T{output.suffix[1:] or 'svg'}"], input=text.encode(), capture_output=True
        )
    except FileNotFoundError:
        raise LfError(
            Problem(
                NOWHERE,
                "graphviz is not installed",
                "install it (in a checkout ./run setup lf does so); -o FILE.dot needs none",
            )
        ) from None
    if ran.returncode:
        raise LfError(Problem(NOWHERE, f"graphviz failed: {html.unescape(ran.stderr.decode())}"))
    output.write_bytes(ran.stdout)
    return output
