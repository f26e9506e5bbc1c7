"""Answers the questions of an editor about a place in a `.lf` file: the names that may be written
there, the meaning of a name, and the reactors and members of the file.

Invariants
- Lines and columns count from 1, columns in characters, as in a Span.
- The text may be newer than the tree, which belongs to the last text without an error. Therefore a
  place is found by the words around it, and the tree only gives the meaning of these words.
- For a name without a meaning the answer is None or empty, never an error.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weft_lf import tree
from weft_lf.build import runtime
from weft_lf.errors import LfError, Span
from weft_lf.load import Loaded
from weft_lf.model import Model
from weft_lf.target import TAKEN
from weft_lf.values import c_type

WORDS = [
    "action",
    "after",
    "deadline",
    "extends",
    "import",
    "initial",
    "input",
    "interleaved",
    "logical",
    "main",
    "method",
    "mode",
    "mutable",
    "new",
    "output",
    "physical",
    "preamble",
    "reaction",
    "reactor",
    "reset",
    "shutdown",
    "startup",
    "state",
    "timer",
    "watchdog",
]


@dataclass
class Named:
    """A thing with a name: its kind, its declaration, and the place of the declaration."""

    name: str
    kind: str  # reactor, port, state, action, timer, parameter, instance, mode, method, function, watchdog
    text: str
    span: Span


@dataclass
class Place:
    """A place in the text of a file: the word at the place, the name of the thing that contains the
    word, and the text before it.
    """

    word: str
    container: str  # "a" for a.b, "self" for self->b, otherwise ""
    before: str  # the text up to the word, or up to the container
    span: Span

    @property
    def in_code(self) -> bool:
        return self.before.rfind("{=") > self.before.rfind("=}")


def place(text: str, file: str, line: int, column: int) -> Place:
    """Returns the place at a line and column. A name that ends at this column is the word of the
    place."""
    lines = text.split("\n")
    row = lines[line - 1] if 0 < line <= len(lines) else ""
    begin = end = min(column - 1, len(row))
    while begin and (row[begin - 1].isalnum() or row[begin - 1] == "_"):
        begin -= 1
    while end < len(row) and (row[end].isalnum() or row[end] == "_"):
        end += 1
    left = row[:begin]
    found = re.search(r"(\w+)\s*(?:\[[^\]]*\])?\s*(?:\.|->)$", left)
    container = found[1] if found else ""
    if found and found[0].endswith("->") and container != "self":
        container = ""  # an effect of a reaction, or a member of a pointer
    before = "\n".join([*lines[: line - 1], left])
    return Place(
        row[begin:end], container, before, Span(file, line, begin + 1, max(1, end - begin))
    )


def _type(kind: tree.Type | None, init: tree.Expr | None = None) -> str:
    return c_type(kind, {}, init)


def named(member: tree.Member | tree.Param) -> Named | None:
    """Returns the member as an editor shows it, or None if the member has no name."""
    match member:
        case tree.Param():
            return Named(
                member.name,
                "parameter",
                f"{member.name}: {_type(member.type, member.init)}",
                member.span,
            )
        case tree.State():
            text = f"state {member.name}: {_type(member.type, member.init)}"
            return Named(member.name, "state", text, member.span)
        case tree.Port():
            what = "input" if member.is_input else "output"
            wide = "[…] " if member.width is not None else " "
            text = f"{what}{wide}{member.name}: {_type(member.type)}"
            return Named(member.name, "port", text, member.span)
        case tree.Timer():
            return Named(member.name, "timer", f"timer {member.name}", member.span)
        case tree.Action():
            what = "physical" if member.physical else "logical"
            kind = f": {_type(member.type)}" if member.type else ""
            return Named(member.name, "action", f"{what} action {member.name}{kind}", member.span)
        case tree.Watchdog():
            text = f"watchdog {member.name}"
            return Named(member.name, "watchdog", text, member.span)
        case tree.Instance():
            wide = "[…] " if member.width is not None else " "
            text = f"{member.name} = new{wide}{member.cls}()"
            return Named(member.name, "instance", text, member.span)
        case tree.Mode():
            return Named(member.name, "mode", f"mode {member.name}", member.span)
        case tree.Method():
            return Named(member.name, "method", f"method {member.name}", member.span)
        case tree.Reaction() if member.name:
            return Named(member.name, "reaction", f"reaction {member.name}", member.span)
    return None


def members(reactor: tree.Reactor) -> Iterator[tree.Member | tree.Param]:
    """Yields the parameters and members of a reactor, with those in its modes."""
    yield from reactor.params
    for member in reactor.members:
        yield member
        if isinstance(member, tree.Mode):
            yield from member.members


def inherited(
    loaded: Loaded, reactor: tree.Reactor, seen: tuple[str, ...] = ()
) -> Iterator[tree.Member | tree.Param]:
    """Yields the members of a reactor and of the reactors that it extends."""
    yield from members(reactor)
    for name, _ in reactor.supers:
        if name in loaded.scope and name not in seen:
            file, above = loaded.scope[name]
            yield from inherited(file, above, (*seen, name))


def around(loaded: Loaded, line: int) -> tree.Reactor | None:
    """Returns the last reactor whose declaration begins at or before the line, or None."""
    own = [r for r in loaded.tree.reactors if r.span.line <= line]
    return max(own, key=lambda r: r.span.line) if own else None


def _names(loaded: Loaded, reactor: tree.Reactor) -> dict[str, Named]:
    found = (named(m) for m in inherited(loaded, reactor))
    return {n.name: n for n in found if n is not None}


def _inside(loaded: Loaded, reactor: tree.Reactor, instance: str) -> dict[str, Named]:
    """Returns the names in the reactor of which `instance` is an instance."""
    for member in inherited(loaded, reactor):
        if isinstance(member, tree.Instance) and member.name == instance:
            return _names(*loaded.scope[member.cls]) if member.cls in loaded.scope else {}
    return {}


@functools.cache
def interface() -> tuple[str, ...]:
    """Returns the functions and macros of the C interface."""
    try:
        text = (runtime() / "include" / "weft_mcu" / "lf.h").read_text(encoding="utf-8")
    except (LfError, OSError):
        return ()
    found = re.findall(
        r"\b(lf_\w*[a-z]|[A-Z]{2,}SEC|SEC|MINUTES?|LF_[A-Z_]+|PRINTF_TIME)(?=\()", text
    )
    return tuple(sorted(set(found)))


def completions(loaded: Loaded, at: Place) -> list[Named]:
    """Returns the names that may be written at a place."""
    reactor = around(loaded, at.span.line)
    names = _names(loaded, reactor) if reactor else {}
    if at.in_code and at.container == "self":
        return [n for n in names.values() if n.kind in ("state", "parameter")]
    if at.container and reactor:
        return [n for n in _inside(loaded, reactor, at.container).values() if n.kind == "port"]
    if at.in_code:
        shown = [
            n for n in names.values() if n.kind not in ("state", "parameter", "timer", "reaction")
        ]
        calls = [Named(n, "function", n, Span()) for n in interface()]
        return [*shown, *calls]
    if re.search(r"\b(new\s*(\[[^\]]*\])?|extends)\s*$", at.before):
        scope = loaded.scope.items()
        return [Named(n, "reactor", f"reactor {n}", r.span) for n, (_, r) in scope if not r.main]
    if re.search(r"\btarget\s+\w+\s*\{[^}]*$", at.before):
        return [Named(n, "property", n, Span()) for n in TAKEN]
    return [*names.values(), *(Named(w, "word", w, Span()) for w in WORDS)]


def meaning(loaded: Loaded, at: Place) -> Named | None:
    """Returns the meaning of the name at a place; None if the name means nothing there."""
    reactor = around(loaded, at.span.line)
    if reactor and at.container and at.container != "self":
        return _inside(loaded, reactor, at.container).get(at.word)
    names = _names(loaded, reactor) if reactor else {}
    if at.word in names:
        return names[at.word]
    if at.word in loaded.scope:
        own = loaded.scope[at.word][1]
        return Named(at.word, "reactor", f"reactor {own.name}", own.span)
    return None


def reaction_at(loaded: Loaded, model: Model, at: Place) -> str:
    """Returns the levels of the reaction at the place, as text; "" if there is none."""
    if at.word != "reaction":
        return ""
    here = [
        r
        for r in model.reactions
        if (r.decl.span.file, r.decl.span.line) == (at.span.file, at.span.line)
    ]
    levels = sorted({r.level for r in here})
    if not levels:
        return ""
    many = f", {len(here)} instances" if len(here) > 1 else ""
    return f"level {levels[0]}" + (f" to {levels[-1]}" if len(levels) > 1 else "") + many


def symbols(loaded: Loaded) -> list[tuple[Named, list[Named]]]:
    """Returns the reactors of a file, each with its members."""
    found = []
    for reactor in loaded.tree.reactors:
        text = "main reactor" if reactor.main else "reactor"
        own = [n for n in (named(m) for m in members(reactor)) if n is not None]
        found.append((Named(reactor.name, "reactor", text, reactor.span), own))
    return found


def imported(loaded: Loaded, at: Place) -> Span | None:
    """Returns the beginning of the imported file, if the place is the file's name in an import."""
    for one in loaded.tree.imports:
        if one.span.line == at.span.line and not one.package:
            path = Path(loaded.tree.path).parent / one.uri
            if path.exists() and not any(at.word in (a, b) for a, b, _ in one.names):
                return Span(str(path.resolve()), 1, 1)
    return None
