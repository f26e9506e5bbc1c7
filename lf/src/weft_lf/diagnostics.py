"""Reads the messages of a C compiler about a generated program: its errors and warnings about
bodies, as problems at lines of the `.lf` files.

Invariants
- A problem is reported once, however often its body was compiled (the body of a generic reactor is
  compiled for each list of type arguments). It is reported without the macros in between: its place
  is where the body names the outermost macro. If a name is not known, all other messages about that
  line are left out.
- Warnings about generated code and about other C files are left out. Errors there are left out too,
  if there is an error in a `.lf` file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from weft_lf import tree
from weft_lf.errors import Problem, Span, lines_of
from weft_lf.model import Class, Model

TOLD = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<kind>fatal error|error|warning|note): (?P<text>.*)$"
)
CARET = re.compile(r"^\s*\|?[ ~]*\^(~*)")
IMPLICIT = re.compile(
    r"^(?:implicit|call to undeclared) .*function [‘'](\w+)[’'](; did you mean .*\?)?"
)
LINKED = re.compile(
    r"^(?:.*: )?(?P<file>[^:\n]+\.lf):(?P<line>\d+): undefined reference to `(?P<name>\w+)'", re.M
)
UNKNOWN_TYPE = re.compile(r"^unknown type name\b")
UNKNOWN = re.compile(r"[‘'](\w+)[’'] undeclared|undeclared identifier '(\w+)'")


@dataclass
class _Record:
    """One message of the compiler, with its place as far as the lines read so far show it."""

    span: Span
    text: str
    severity: str
    placed: bool  # whether the place of the message is in a .lf file
    drawn: bool = False  # whether the line with the caret has been read


def _records(output: str) -> list[_Record]:
    records: list[_Record] = []
    for line in output.split("\n"):
        found = TOLD.match(line)
        last = records[-1] if records else None
        if found is None:
            caret = CARET.match(line)
            if caret and last is not None and not last.drawn:
                last.drawn = True
                last.span = replace(last.span, length=1 + len(caret[1]))
            continue
        span = Span(found["file"], int(found["line"]), int(found["column"] or 1))
        placed = found["file"].endswith(".lf")
        if found["kind"] != "note":
            severity = "warning" if found["kind"] == "warning" else "error"
            records.append(_Record(span, found["text"], severity, placed))
        elif last is not None and placed and not last.placed and "macro" in found["text"]:
            last.span, last.placed, last.drawn = span, True, False
        elif last is not None:
            last.drawn = True  # The lines that follow are drawn for the note.
    return records


def _missing(records: list[_Record], output: str) -> list[_Record]:
    """Returns the records with an error for each function that the linker has not found, in place
    of the compiler's warnings about it. The error is at the place of the first such warning, or
    else at the place that the linker names.
    """
    kept: list[_Record] = []
    missing: dict[str, _Record] = {}
    for found in LINKED.finditer(output):
        name, line = found["name"], int(found["line"])
        shown = lines_of(found["file"])[line - 1 : line]
        column = shown[0].find(name) + 1 if shown else 1
        span = Span(found["file"], line, max(column, 1), len(name))
        missing.setdefault(name, _Record(span, f"'{name}' is not linked", "error", True))
    for record in records:
        implicit = IMPLICIT.search(record.text)
        if implicit is None or implicit[1] not in missing:
            kept.append(record)
        elif not missing[implicit[1]].drawn:
            text = f"there is no function '{implicit[1]}'{implicit[2] or ''}"
            missing[implicit[1]] = _Record(record.span, text, "error", True, drawn=True)
    return [*kept, *missing.values()]


def problems(model: Model, output: str) -> list[Problem]:
    """Returns the problems of bodies that the compiler's `output` reports."""
    records = _missing([r for r in _records(output) if r.placed], output)
    unknown = {(r.span.file, r.span.line) for r in records if UNKNOWN.search(r.text)}
    found = [
        Problem(r.span, r.text, _hint(model, r.span, r.text), r.severity)
        for r in records
        if (r.span.file, r.span.line) not in unknown or UNKNOWN.search(r.text)
    ]
    return list(dict.fromkeys(found))


def _hint(model: Model, span: Span, text: str) -> str:
    """Returns a hint for a name that only the reactor knows, or for a type; "" if there is none."""
    found = UNKNOWN.search(text)
    if found is None:
        if text.startswith("there is no function") or text.endswith("is not linked"):
            return "define it in a preamble, or name the C file or the library that has it"
        return "define it in a preamble, or include its header" if UNKNOWN_TYPE.match(text) else ""
    name = found[1] or found[2]
    for cls in model.classes:
        for placed in cls.of(tree.Reaction):
            decl = placed.decl
            assert isinstance(decl, tree.Reaction)
            for code in (decl.code, decl.deadline_code):
                if code is None or code.span.file != span.file:
                    continue
                if code.span.line <= span.line <= code.span.line + code.text.count("\n"):
                    return _how_to_name(cls, name)
    return ""


def _how_to_name(cls: Class, name: str) -> str:
    """Describes the thing of `cls` that a reaction calls `name`; the text is empty if the reactor
    has nothing of that name.
    """
    if name in cls.ports and not cls.ports[name].is_input:
        return f"it is an output: name it as an effect, reaction(…) -> {name} {{= … =}}"
    if name in cls.ports:
        return f"it is an input: name it as a trigger or source, reaction({name}) {{= … =}}"
    if any(m.name == name for m in cls.modes):
        return f"it is a mode: name it as an effect, reaction(…) -> reset({name}) {{= … =}}"
    for placed in cls.members:
        decl = placed.decl
        if isinstance(decl, tree.State) and decl.name == name:
            return f"it is a state: write self->{name}"
        if isinstance(decl, tree.Action) and decl.name == name:
            return "it is an action: name it as a trigger to read it, and behind -> to schedule it"
        if isinstance(decl, tree.Watchdog) and decl.name == name:
            return f"it is a watchdog: name it as an effect, reaction(…) -> {name} {{= … =}}"
        if isinstance(decl, tree.Instance) and decl.name == name:
            return f"it is a reactor: name its ports, reaction({name}.out) or -> {name}.in"
    if name in cls.params:
        return f"it is a parameter: write self->{name}"
    return ""


__all__ = ["problems"]
