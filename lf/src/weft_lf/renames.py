"""Finds all places of a name in `.lf` files, for an editor that renames the thing of that name.

    place ──target_at()──► Target: what the name means ──places_of()──► the places, file by file

Invariants
- A place is found because the name means the same thing there, not because the word is the same: a
  state and a port may have one name, and a struct of a body may have a member of that name.
- In a body a name means what it means in the generated C: a port only if the reaction names the
  port, a state or parameter behind `self->`, a port of a contained reactor behind that reactor's
  name.
- `x_width` in a body is a place of x.
- Reactions and type parameters have no Target.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft_lf import tree
from weft_lf.errors import Span
from weft_lf.layout import codes_in
from weft_lf.load import Loaded
from weft_lf.places import inherited

NAME = re.compile(r"[A-Za-z_]\w*")
APART = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
VALUES = (tree.State, tree.Param)  # what a body reaches as self->x
THINGS = (tree.Port, tree.Timer, tree.Action, tree.Watchdog, tree.Instance, tree.Mode, tree.Method)


@dataclass(frozen=True)
class Target:
    """What a name means: the thing that is declared at this place."""

    file: str
    line: int
    column: int
    name: str


@dataclass(frozen=True)
class Found:
    """A place of a name, and what the name means there."""

    target: Target
    line: int
    column: int


def _target_of(file: str, span: Span, name: str) -> Target:
    return Target(span.file or file, span.line, span.column, name)


class _Reactor:
    """The names that one reactor declares or inherits."""

    def __init__(self, loaded: Loaded, decl: tree.Reactor) -> None:
        self.loaded, self.decl = loaded, decl
        self.values: dict[str, Target] = {}
        self.things: dict[str, Target] = {}
        self.instances: dict[str, tree.Instance] = {}
        for member in inherited(loaded, decl):
            if isinstance(member, VALUES):
                self.values.setdefault(member.name, self.target(member))
            elif isinstance(member, THINGS):
                self.things.setdefault(member.name, self.target(member))
                if isinstance(member, tree.Instance):
                    self.instances.setdefault(member.name, member)

    def target(self, member: tree.Member | tree.Param) -> Target:
        assert not isinstance(member, (tree.Connection, tree.Preamble))
        return _target_of(self.loaded.tree.path, member.span, member.name)

    def inside(self, instance: str) -> _Reactor | None:
        """Returns the reactor of which a contained reactor is an instance."""
        made = self.instances.get(instance)
        found = self.loaded.scope.get(made.cls) if made else None
        return _Reactor(*found) if found else None


class _File:
    """Finds the places of one word in one file."""

    def __init__(self, loaded: Loaded, word: str) -> None:
        self.loaded, self.word = loaded, word
        self.lines = loaded.text.split("\n")

    def places(self) -> Iterator[Found]:
        for one in self.loaded.tree.imports:
            for there, here, span in one.names:
                if here in self.loaded.scope:
                    file, own = self.loaded.scope[here]
                    if there == own.name:
                        target = _target_of(file.tree.path, own.span, own.name)
                        yield from self.word_at(target, span, there)
                    if here != there:
                        alias = _target_of(self.loaded.tree.path, span, here)
                        yield from self.word_behind(alias, span, r"as\s+")
        for decl in self.loaded.tree.reactors:
            if decl.name and self.line_at(decl.span).startswith(decl.name):
                yield from self.word_at(self.reactor_of(decl.name), decl.span, decl.name)
            yield from self.reactor(_Reactor(self.loaded, decl))

    def reactor_of(self, name: str) -> Target | None:
        """Returns what the name of a reactor means in this file: the reactor, or an alias of it."""
        for one in self.loaded.tree.imports:
            for there, here, span in one.names:
                if here == name and here != there:
                    return _target_of(self.loaded.tree.path, span, here)
        found = self.loaded.scope.get(name)
        return _target_of(found[0].tree.path, found[1].span, found[1].name) if found else None

    def line_at(self, span: Span) -> str:
        return self.lines[span.line - 1][span.column - 1 :] if span.line else ""

    def word_at(self, target: Target | None, span: Span, name: str) -> Iterator[Found]:
        """Yields the place of the span if `name`, the name there, is the word of this file."""
        if name == self.word and target is not None:
            yield Found(target, span.line, span.column)

    def word_behind(self, target: Target | None, span: Span, before: str) -> Iterator[Found]:
        """Yields the first place of the word after the pattern `before`, from the span on."""
        rest = self.line_at(span)
        found = re.search(rf"{before}({re.escape(self.word)})\b", rest)
        if found and target is not None and target.name == self.word:
            yield Found(target, span.line, span.column + found.start(1))

    # --- a reactor --------------------------------------------------------------------------------

    def reactor(self, own: _Reactor) -> Iterator[Found]:
        decl = own.decl
        for name, span in decl.supers:
            yield from self.word_at(self.reactor_of(name), span, name)
        for param in decl.params:
            yield from self.word_at(own.values.get(param.name), param.span, param.name)
            yield from self.value(own, param.init)
        for member in decl.members:
            yield from self.member(own, member)
            if isinstance(member, tree.Mode):
                for inner in member.members:
                    yield from self.member(own, inner)

    def member(self, own: _Reactor, member: tree.Member) -> Iterator[Found]:
        match member:
            case tree.State():
                yield from self.word_at(own.values.get(member.name), member.span, member.name)
                yield from self.value(own, member.init)
            case tree.Reaction():
                refs = [*member.triggers, *member.sources, *member.effects]
                yield from self.refs(own, refs)
                yield from self.value(own, member.deadline)
                seen = {ref.container or ref.variable for ref in refs}
                if not member.triggers and not member.sources:
                    seen |= set(own.things)
                for code in (member.code, member.deadline_code):
                    yield from self.body(own, code, seen)
            case tree.Connection():
                yield from self.refs(own, [*member.left, *member.right])
                yield from self.value(own, member.delay)
            case tree.Preamble():
                pass
            case _:
                yield from self.word_at(own.things.get(member.name), member.span, member.name)
                yield from self.parts(own, member)

    def parts(self, own: _Reactor, member: tree.Member) -> Iterator[Found]:
        """Yields the places in a member that has a name."""
        match member:
            case tree.Port():
                yield from self.width(own, member.width)
            case tree.Timer():
                yield from self.value(own, member.offset)
                yield from self.value(own, member.period)
            case tree.Action():
                yield from self.value(own, member.delay)
                yield from self.value(own, member.spacing)
            case tree.Watchdog():
                yield from self.value(own, member.timeout)
                yield from self.refs(own, member.effects)
                seen = {member.name, *(ref.variable for ref in member.effects)}
                yield from self.body(own, member.code, seen)
            case tree.Method():
                yield from self.body(own, member.code, set())
            case tree.Instance():
                yield from self.width(own, member.width)
                reactor = self.reactor_of(member.cls)
                yield from self.word_behind(reactor, member.span, r"new\s*(?:\[[^\]]*\])?\s*")
                inside = own.inside(member.name)
                for name, expr, span in member.assignments:
                    target = inside.values.get(name) if inside else None
                    yield from self.word_at(target, span, name)
                    yield from self.value(own, expr)

    def width(self, own: _Reactor, terms: list[tree.WidthTerm] | None) -> Iterator[Found]:
        for term in terms or []:
            if isinstance(term.value, tree.Ref):
                yield from self.refs(own, [term.value])
            elif not isinstance(term.value, int):
                yield from self.value(own, term.value)

    def value(self, own: _Reactor, expr: tree.Expr | None) -> Iterator[Found]:
        """Yields the places in an expression, in which names and code mean parameters."""
        if isinstance(expr, tree.Name):
            yield from self.word_at(own.values.get(expr.name), expr.span, expr.name)
        elif isinstance(expr, tree.Listing):
            for item in expr.items:
                yield from self.value(own, item)
        for code in codes_in(expr) if isinstance(expr, tree.Code) else []:
            for at, before in self.words(code):
                target = own.values.get(self.word)
                if target and (before.endswith("self->") or not before.endswith(("->", "."))):
                    yield Found(target, *at)

    def refs(self, own: _Reactor, refs: Iterable[tree.Ref]) -> Iterator[Found]:
        for ref in refs:
            if ref.kind == "builtin":
                continue
            inside = own.inside(ref.container) if ref.container else own
            variable = inside.things.get(ref.variable) if inside else None
            if ref.container:
                yield from self.word_behind(
                    own.things.get(ref.container), ref.span, r"^(?:\w+\s*\(\s*)?"
                )
                yield from self.word_behind(variable, ref.span, r"^[\w\s(]*\.\s*")
            else:
                yield from self.word_behind(variable, ref.span, r"^(?:\w+\s*\(\s*)?")

    # --- bodies -----------------------------------------------------------------------------------

    def words(self, code: tree.Code) -> Iterator[tuple[tuple[int, int], str]]:
        """Yields the places of the word in C, as (line, column) with the text before."""
        plain = APART.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), code.text)
        for found in re.finditer(rf"\b{re.escape(self.word)}(_width)?\b", plain):
            before = plain[: found.start()]
            rows = before.count("\n")
            column = found.start() - before.rfind("\n") - 1
            line = code.span.line + rows
            yield (line, column + (1 if rows else code.span.column)), before.rstrip()

    def body(self, own: _Reactor, code: tree.Code | None, seen: set[str]) -> Iterator[Found]:
        """Yields the places in a body that might use the ports, actions, reactors and modes
        `seen`."""
        for at, before in self.words(code) if code is not None else []:
            target: Target | None = None
            container = re.search(r"(\w+)\s*(?:\[[^\]]*\])?\s*(\.|->)$", before)
            if re.search(r"\bself\s*->$", before):
                target = own.values.get(self.word)
            elif container:
                inside = own.inside(container[1]) if container[1] in seen else None
                target = inside.things.get(self.word) if inside else None
            elif self.word in seen or self.is_method(own):
                target = own.things.get(self.word)
            if target is not None:
                yield Found(target, *at)

    def is_method(self, own: _Reactor) -> bool:
        members = inherited(own.loaded, own.decl)
        return any(isinstance(m, tree.Method) and m.name == self.word for m in members)


def target_at(loaded: Loaded, line: int, column: int, word: str) -> Target | None:
    """Returns what the word at a place means; None if the word has no Target."""
    for found in _File(loaded, word).places():
        if found.line == line and found.column <= column <= found.column + len(word):
            return found.target
    return None


def places_of(loaded: Loaded, target: Target) -> list[Span]:
    """Returns the places in a file at which the name of `target` means `target`, each once."""
    found = (f for f in _File(loaded, target.name).places() if f.target == target)
    path, size = loaded.tree.path, len(target.name)
    return list(dict.fromkeys(Span(path, f.line, f.column, size) for f in found))


def renamed(text: str, places: Iterable[Span], new: str) -> str:
    """Returns the text with a new name at these places."""
    lines = text.split("\n")
    for span in sorted(places, key=lambda s: (s.line, s.column), reverse=True):
        row, at = lines[span.line - 1], span.column - 1
        lines[span.line - 1] = row[:at] + new + row[at + span.length :]
    return "\n".join(lines)


__all__ = ["NAME", "Target", "places_of", "renamed", "target_at"]
