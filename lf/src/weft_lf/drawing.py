"""Describes a program as a drawing, and makes the page that shows the drawing in a browser.

    model ──drawing()──► reactors, their parts and edges ──page()──► one HTML file
                                                              ▲
                                      page/draw.mjs, page.css ─┘

Invariants
- The same program gives the same page. The page is one file and loads nothing.
- A bank is drawn once, as its first member. An identifier is the path of the part, without the
  indices of banks: `Main.a` is a reactor, `Main.a.out` a port, `Main.a#0` the first reaction.
- A program whose only error is a causality loop is drawn too; `loop` then has the loop's reactions
  and the edges between them.
- An edge belongs to the reactor in whose source it was written. It joins ports and parts of this
  reactor and ports of the reactors in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from weft_lf import tree
from weft_lf.errors import Span
from weft_lf.model import Channel, Instance, Model, ModeOf, PortOf, ReactionOf
from weft_lf.order import Loop, dependencies
from weft_lf.ticks import shown

PAGE = Path(__file__).with_name("page")
Json = dict[str, Any]


def path_of(made: Instance) -> str:
    """Returns the path of a reactor without the indices of banks."""
    return f"{path_of(made.parent)}.{made.name}" if made.parent else made.name


def reaction_id(one: ReactionOf) -> str:
    return f"{path_of(one.instance)}#{one.number}"


def port_id(port: PortOf) -> str:
    return f"{path_of(port.instance)}.{port.decl.name}"


def _identifier(path: str, name: str, mode: ModeOf | None) -> str:
    return f"{path}.{mode.decl.name}/{name}" if mode else f"{path}.{name}"


class _Drawing:
    def __init__(self, model: Model, loop: Loop | None) -> None:
        self.model, self.loop = model, loop
        self.files: dict[str, int] = {}
        self.members: dict[str, list[ReactionOf]] = {}
        for one in model.reactions:
            if one.forward is None:
                self.members.setdefault(reaction_id(one), []).append(one)

    def at(self, span: Span) -> list[int]:
        """Returns a place, as the number of its file and the line."""
        return [self.files.setdefault(span.file, len(self.files)), span.line]

    def reactor(self, made: Instance) -> Json:
        path = path_of(made)
        reactions = [r for r in made.reactions if r.forward is None]
        edges: list[Json] = []
        events: dict[str, Json] = {}
        for one in reactions:
            edges += self.edges(one, path, events)
        for placed in made.cls.of(tree.Connection):
            assert isinstance(placed.decl, tree.Connection)
            edges += self.connection(placed.decl, path, placed.mode)
        return {
            "id": path,
            "kind": "reactor",
            "name": made.name,
            "of": made.cls.name if made.parent else "",
            "width": made.width,
            "at": self.at(made.decl.span if made.decl else made.cls.decl.span),
            "class": self.at(made.cls.decl.span),
            "modes": [m.decl.name for m in made.modes.values()],
            "mode": made.mode.decl.name if made.mode else "",
            "ports": [self.port(p) for p in made.ports.values()],
            "parts": [
                *events.values(),
                *self.sources(made, path),
                *(self.reaction(one) for one in reactions),
            ],
            "children": [self.reactor(c[0]) for c in made.children.values() if c],
            "edges": edges,
        }

    def port(self, port: PortOf) -> Json:
        decl = port.decl
        return {
            "id": port_id(port),
            "name": decl.name,
            "input": decl.is_input,
            "width": len(port.channels) if port.multi else None,
            "at": self.at(decl.span),
        }

    def sources(self, made: Instance, path: str) -> Iterable[Json]:
        """Yields a reactor's timers, actions and watchdogs."""
        for timer in made.timers.values():
            text = f"{shown(timer.offset)}, {shown(timer.period)}" if timer.period else ""
            text = text or shown(timer.offset)
            yield self.part("timer", path, timer.decl, timer.mode, text)
        for action in made.actions.values():
            text = "physical" if action.decl.physical else "logical"
            text += f", {shown(action.delay)}" if action.delay else ""
            yield self.part("action", path, action.decl, action.mode, text)
        for dog in made.watchdogs.values():
            yield self.part("watchdog", path, dog.decl, dog.mode, shown(dog.timeout))

    def part(
        self,
        kind: str,
        path: str,
        decl: tree.Timer | tree.Action | tree.Watchdog,
        mode: ModeOf | None,
        text: str,
    ) -> Json:
        found = {"id": _identifier(path, decl.name, mode), "kind": kind, "name": decl.name}
        return {
            **found,
            "text": text,
            "mode": mode.decl.name if mode else "",
            "at": self.at(decl.span),
        }

    def reaction(self, one: ReactionOf) -> Json:
        here = reaction_id(one)
        levels = sorted({r.level for r in self.members.get(here, [one])})
        return {
            "id": here,
            "kind": "reaction",
            "name": one.decl.name or str(one.number + 1),
            "text": f"deadline {shown(one.deadline)}" if one.deadline is not None else "",
            "mode": one.mode.decl.name if one.mode else "",
            "levels": [] if self.loop else [levels[0], levels[-1]],
            "at": self.at(one.decl.span),
        }

    def edges(self, one: ReactionOf, path: str, events: dict[str, Json]) -> Iterable[Json]:
        """Yields the edges to and from a reaction; adds startup, shutdown and reset to `events`."""
        here, at = reaction_id(one), self.at(one.decl.span)
        for kind, refs in (("trigger", one.decl.triggers), ("source", one.decl.sources)):
            for ref in refs:
                source = self.end(one.instance, path, ref, one.mode)
                if ref.kind == "builtin":
                    source = f"{path}!{ref.variable}"
                    event = {"id": source, "kind": "event", "name": ref.variable, "mode": ""}
                    events.setdefault(source, {**event, "text": "", "at": at})
                yield {"from": source, "to": here, "kind": kind, "text": "", "at": at}
        for ref in one.decl.effects:
            if ref.kind == "plain" and ref.variable not in one.instance.modes:
                to = self.end(one.instance, path, ref, one.mode)
                yield {"from": here, "to": to, "kind": "effect", "text": "", "at": at}

    def connection(self, decl: tree.Connection, path: str, mode: str) -> Iterable[Json]:
        kind = "physical" if decl.physical else "connection" if decl.delay is None else "delayed"
        text = mode
        if isinstance(decl.delay, tree.Time):
            text = decl.delay.text
        elif isinstance(decl.delay, tree.Name):
            text = decl.delay.name
        elif decl.delay is not None:
            text = "0"
        pairs = [(left, right) for left in decl.left for right in decl.right]
        if len(decl.left) == len(decl.right):
            pairs = list(zip(decl.left, decl.right, strict=True))
        for left, right in pairs:
            ends = {"from": self.plain(path, left), "to": self.plain(path, right)}
            yield {**ends, "kind": kind, "text": text, "at": self.at(decl.span)}

    def plain(self, path: str, ref: tree.Ref) -> str:
        return ".".join(filter(None, (path, ref.container, ref.variable)))

    def end(self, made: Instance, path: str, ref: tree.Ref, mode: ModeOf | None) -> str:
        """Returns the identifier of the thing that a reaction names, which can be a part of the
        reaction's mode."""
        key = f"{mode.decl.name}/{ref.variable}" if mode else ""
        if not ref.container and key in {**made.timers, **made.actions, **made.watchdogs}:
            return _identifier(path, ref.variable, mode)
        return self.plain(path, ref)

    def causes(self) -> dict[str, list[str]]:
        """Returns, for each reaction, the reactions that wait for it directly."""
        found: dict[str, dict[str, None]] = {}
        for one, following in dependencies(self.model.instances).items():
            if one.forward is None:
                known = found.setdefault(reaction_id(one), {})
                known.update(dict.fromkeys(reaction_id(f) for f in _without_forwards(following)))
        return {one: list(following) for one, following in found.items() if following}

    def loop_of(self, loop: Loop) -> Json:
        """Returns a causality loop: its reactions, and the ends of the edges that form it."""
        edges: list[list[str]] = []
        steps = list(zip(loop.path, loop.ways, [*loop.path[1:], loop.path[0]], strict=True))
        for one, way, following in steps:
            ends = [reaction_id(one), *_ports(way), reaction_id(following)]
            edges += [[a, b] for a, b in pairwise(ends) if a != b or way is None]
        problem = loop.problems[0]
        return {
            "text": problem.message,
            "hint": problem.hint,
            "reactions": list(dict.fromkeys(reaction_id(one) for one in loop.path)),
            "edges": edges,
        }


def _without_forwards(reactions: Iterable[ReactionOf]) -> Iterable[ReactionOf]:
    return (one for one in reactions if one.forward is None)


def _ports(channel: Channel | None) -> list[str]:
    """Returns the ports through which a value reaches `channel`, the driver's first."""
    found: list[str] = []
    while channel is not None:
        found.append(port_id(channel.port))
        channel = channel.source
    return found[::-1]


def drawing(model: Model, loop: Loop | None = None) -> Json:
    """Returns the drawing of a program; `loop` is the causality loop that makes the program an
    error, if it has one."""
    made = _Drawing(model, loop)
    root = made.reactor(model.top)
    texts = [_lines(model, file) for file in made.files]
    return {
        "title": model.program.path.name,
        "root": root,
        "causes": {} if loop else made.causes(),
        "loop": made.loop_of(loop) if loop else None,
        "files": [
            {"name": Path(f).name, "lines": t} for f, t in zip(made.files, texts, strict=True)
        ],
    }


def _lines(model: Model, file: str) -> list[str]:
    return next((f.text.split("\n") for f in model.program.files if f.tree.path == file), [])


def page(model: Model, loop: Loop | None = None) -> str:
    """Returns the page that shows the program."""
    data = json.dumps(drawing(model, loop), ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&":  # Nothing in the data may end the element that contains it.
        data = data.replace(sign, f"\\u{ord(sign):04x}")
    text = (PAGE / "page.html").read_text(encoding="utf-8")
    for mark, name in (("/*CSS*/", "page.css"), ("/*DRAW*/", "draw.mjs")):
        text = text.replace(mark, (PAGE / name).read_text(encoding="utf-8"))
    return text.replace("/*DATA*/", data)


def draw_page(made: Model | Loop, output: Path) -> Path:
    """Writes the page of a program, or of the program of a causality loop, and returns its path."""
    if isinstance(made, Loop):
        assert made.model is not None  # Only elaborate() raises a Loop, always with a model.
        text = page(made.model, made)
    else:
        text = page(made)
    output.write_text(text, encoding="utf-8")
    return output


__all__ = ["draw_page", "drawing", "page"]
