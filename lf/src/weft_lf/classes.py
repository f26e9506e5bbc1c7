"""Makes reactor classes: a class is a reactor's definition with its type arguments and the members
that it inherits.

Invariants
- There is one `Class` for each definition and list of type arguments; its `key` is its name in C.
- The members of super-classes come first, in the order in which `extends` names the super-classes;
  a class that is inherited twice counts once.
- In an inherited member, names mean what they mean in the file in which the member was written.
"""

from __future__ import annotations

import difflib
import re

from weft_lf import tree
from weft_lf.errors import LfError, Problem, Span, fail
from weft_lf.load import Loaded, Program
from weft_lf.model import Class, Placed
from weft_lf.values import c_type

RESERVED = {
    "self",
    "NULL",
    "int",
    "char",
    "double",
    "float",
    "void",
    "long",
    "short",
    "if",
    "else",
    "for",
    "while",
}


def nearest(word: str, known: list[str]) -> str:
    """Returns a hint for an unknown `word`: the known word that is most like it, or else all known
    words.
    """
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"there are: {', '.join(known[:8])}" if known else "there are none"


class Classes:
    """Makes the classes of a program, each once. `problems` collects the errors in them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.made: dict[tuple[int, tuple[str, ...]], Class] = {}
        self.keys: set[str] = set()
        self.problems: list[Problem] = []

    def find(self, file: Loaded, name: str, span: Span) -> tuple[Loaded, tree.Reactor]:
        if name not in file.scope:
            raise fail(span, f"there is no reactor '{name}'", nearest(name, list(file.scope)))
        return file.scope[name]

    def get(
        self, file: Loaded, decl: tree.Reactor, arguments: list[tree.Type], span: Span
    ) -> Class:
        if arguments and not decl.type_params:
            text = f"'{decl.name}' has no type parameters; what stands in <…> is ignored"
            warning = Problem(span, text, "leave <…> away", severity="warning")
            if warning not in self.program.warnings:
                self.program.warnings.append(warning)
            arguments = []
        if len(arguments) != len(decl.type_params):
            wants = len(decl.type_params)
            text = f"'{decl.name}' has {wants} type parameter{'s' * (wants != 1)}, and {len(arguments)} are given"
            raise fail(
                span,
                text,
                f"write new {decl.name}<{', '.join(p.name for p in decl.type_params)}>(…)",
            )
        texts = tuple(c_type(a, {}) for a in arguments)
        found = self.made.get((id(decl), texts))
        if found is not None:
            return found
        types = {p.name: a for p, a in zip(decl.type_params, arguments, strict=False)}
        cls = Class(decl.name, self.key(decl.name, texts), decl, file, types)
        self.made[(id(decl), texts)] = cls
        self.fill(cls, file, decl, [], set())
        self.check(cls)
        return cls

    def key(self, name: str, texts: tuple[str, ...]) -> str:
        plain = "_".join([name, *texts]).lower()
        base = key = re.sub(r"\W+", "_", plain).strip("_") or "reactor"
        if key[0].isdigit():  # A main reactor has its file's name, which can begin with a digit.
            base = key = f"reactor_{key}"
        count = 1
        while key in self.keys:
            count += 1
            key = f"{base}_{count}"
        self.keys.add(key)
        return key

    def fill(
        self, cls: Class, file: Loaded, decl: tree.Reactor, path: list[tree.Reactor], seen: set[int]
    ) -> None:
        if decl in path:
            names = " → ".join(r.name for r in [*path[path.index(decl) :], decl])
            raise fail(
                decl.span, f"these reactors extend each other: {names}", "take one 'extends' away"
            )
        if id(decl) in seen:
            return
        seen.add(id(decl))
        for name, span in decl.supers:
            super_file, super_decl = self.find(file, name, span)
            if super_decl.type_params:
                raise fail(
                    span, f"'{name}' is generic, and cannot be extended without its type arguments"
                )
            self.fill(cls, super_file, super_decl, [*path, decl], seen)
        for param in decl.params:
            if any(
                param.name == p.name and param is not p
                for p in decl.params[: decl.params.index(param)]
            ):
                self.problems.append(
                    Problem(param.span, f"a second parameter called '{param.name}'", "rename one")
                )
            cls.params[param.name] = param
        for member in decl.members:
            if isinstance(member, tree.Mode):
                cls.modes.append(member)
                for inner in member.members:
                    cls.members.append(Placed(inner, file, member.name))
                    if isinstance(inner, (tree.Mode, tree.Port, tree.Method, tree.Preamble)):
                        what = type(inner).__name__.lower()
                        self.problems.append(
                            Problem(
                                inner.span,
                                f"a {what} cannot stand in a mode",
                                "move it out of the mode",
                            )
                        )
            else:
                cls.members.append(Placed(member, file))
            if isinstance(member, tree.Port):
                if member.name in cls.ports:
                    text = f"'{cls.name}' has a second port called '{member.name}'"
                    self.problems.append(Problem(member.span, text, "rename one"))
                cls.ports[member.name] = member

    def check(self, cls: Class) -> None:
        """Finds names that are used twice, missing types and bodies, and a class with modes that
        does not have exactly one initial mode."""
        names: dict[tuple[str, str], Span] = {}
        spaces = (tree.State, tree.Port, tree.Timer, tree.Action, tree.Instance, tree.Watchdog)
        for placed in cls.members:
            member = placed.decl
            if isinstance(member, tree.Port) and member.type is None:
                what = "input" if member.is_input else "output"
                hint = f"write {what} {member.name}: int"
                self.problems.append(Problem(member.span, f"this {what} needs a type", hint))
            if isinstance(member, tree.Reaction) and member.code is None and not member.name:
                hint = "write {= =}, or name the C function that it calls: reaction f(…)"
                self.problems.append(Problem(member.span, "this reaction has no body", hint))
            if not isinstance(member, spaces):
                continue
            if member.name in RESERVED:
                text = f"'{member.name}' is a word of C and cannot be a name"
                self.problems.append(Problem(member.span, text, "choose another"))
            # Bodies reach states as self->x and all other members as x, so these are two name
            # spaces.
            own = f"self->{member.name}" if isinstance(member, tree.State) else member.name
            key = (own, placed.mode if not isinstance(member, (tree.Port, tree.State)) else "")
            if (key in names or (own, "") in names) and not isinstance(member, tree.Port):
                text = f"'{cls.name}' has something else called '{member.name}'"
                self.problems.append(Problem(member.span, text, "rename one of the two"))
            elif member.name in cls.params:
                text = f"'{member.name}' is also a parameter of '{cls.name}'"
                self.problems.append(Problem(member.span, text, "rename one of the two"))
            names[key] = member.span
            if isinstance(member, tree.State) and member.type is None and member.init is None:
                self.problems.append(
                    Problem(
                        member.span,
                        "this state variable has neither type nor value",
                        f"write state {member.name}: int",
                    )
                )
        initial = [m for m in cls.modes if m.initial]
        if cls.modes and not initial:
            hint = f"write: initial mode {cls.modes[0].name}"
            self.problems.append(
                Problem(cls.modes[0].span, f"no mode of '{cls.name}' is initial", hint)
            )
        for second in initial[1:]:
            self.problems.append(
                Problem(second.span, "a second initial mode", "exactly one mode is initial")
            )
        for index, mode in enumerate(cls.modes):
            if not mode.name:
                self.problems.append(Problem(mode.span, "this mode needs a name"))
            if any(mode.name == m.name for m in cls.modes[:index]):
                self.problems.append(
                    Problem(mode.span, f"a second mode called '{mode.name}'", "rename one")
                )

    def raise_problems(self) -> None:
        if any(p.severity == "error" for p in self.problems):
            raise LfError(self.problems)
