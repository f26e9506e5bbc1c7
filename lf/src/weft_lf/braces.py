"""Finds unmatched brackets in the bodies of a program.

The C compiler reports an unmatched bracket far from the body: at the end of the generated file, or
in the runtime's headers. Therefore `unmatched` is called when the compiler has refused a program,
and not earlier, because a macro may contain a bracket, which only the compiler understands.

Invariant: a body that has a preprocessor conditional, or that does not split into C's tokens, gives
no problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from weft_lf import tree
from weft_lf.errors import Problem, Span
from weft_lf.model import Model

TOKEN = re.compile(
    r"""(?P<skip>//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')"""
    r"""|(?P<bracket>[(){}\[\]])|(?P<bad>/\*|["'])""",
    re.S,
)
CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*(if|el|endif|define)", re.M)
PARTNER = {")": "(", "]": "[", "}": "{"}


def _codes(model: Model) -> Iterator[tree.Code]:
    for loaded in model.program.files:
        yield from (one.code for one in loaded.tree.preambles)
    for cls in model.classes:
        for placed in cls.members:
            decl = placed.decl
            if isinstance(decl, tree.Reaction):
                yield from (c for c in (decl.code, decl.deadline_code) if c is not None)
            elif isinstance(decl, (tree.Method, tree.Preamble)):
                yield decl.code


def _place(code: tree.Code, at: int) -> Span:
    before = code.text[:at].split("\n")
    column = len(before[-1]) + (code.span.column if len(before) == 1 else 1)
    return Span(code.span.file, code.span.line + len(before) - 1, column)


def _unmatched_in(code: tree.Code) -> Problem | None:
    if CONDITIONAL.search(code.text):
        return None
    still_open: list[tuple[str, int]] = []
    for found in TOKEN.finditer(code.text):
        if found["bad"]:
            return None
        one = found["bracket"]
        if not one:
            continue
        if one not in PARTNER:
            still_open.append((one, found.start()))
        elif still_open and still_open[-1][0] == PARTNER[one]:
            still_open.pop()
        elif still_open:
            text = f"'{still_open[-1][0]}' is not closed before this '{one}'"
            return Problem(_place(code, still_open[-1][1]), text, "close it")
        else:
            text = f"this '{one}' closes nothing"
            return Problem(
                _place(code, found.start()), text, f"take it out, or open a '{PARTNER[one]}'"
            )
    if still_open:
        one, at = still_open[-1]
        return Problem(_place(code, at), f"this '{one}' is not closed", "close it before the =}")
    return None


def unmatched(model: Model) -> list[Problem]:
    """Returns a problem for each body that has an unmatched bracket, at most one for each body."""
    problems = dict.fromkeys(_unmatched_in(code) for code in _codes(model))
    return [p for p in problems if p is not None]
