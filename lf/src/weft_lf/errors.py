"""Problems: the errors and warnings about a program, each with its place. A problem is shown with
its line and a caret, or as JSON.

Invariants
- A Problem that a user can cause has a place: file, line and column (from 1), and the length of the
  text in question.
- `message` describes the fault; `hint` describes the remedy.
- An `LfError` carries at least one Problem of severity "error".
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Span:
    """A place in a file: `length` characters, beginning at `column` of `line`. Lines and columns
    count from 1."""

    file: str = ""
    line: int = 0
    column: int = 0
    length: int = 1


NOWHERE = Span()
WIDEST = 160  # the limit on the characters of a line that are shown


@dataclass(frozen=True)
class Problem:
    """One error or warning about a program."""

    span: Span
    message: str
    hint: str = ""
    severity: str = "error"  # or "warning"

    def as_json(self) -> dict[str, object]:
        return {
            "file": self.span.file,
            "line": self.span.line,
            "column": self.span.column,
            "length": self.span.length,
            "severity": self.severity,
            "message": self.message,
            "hint": self.hint,
        }


class LfError(Exception):
    """Raised if the program cannot be used; `problems` contains the reasons."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = [problems] if isinstance(problems, Problem) else list(problems)
        super().__init__("\n".join(p.message for p in self.problems))


def fail(span: Span, message: str, hint: str = "") -> LfError:
    """Returns an exception with one error, for the caller to raise."""
    return LfError(Problem(span, message, hint))


@functools.lru_cache(maxsize=64)
def lines_of(file: str) -> list[str]:
    """Returns the lines of a file, none if it cannot be read."""
    try:
        return Path(file).read_text(encoding="utf-8-sig", errors="replace").split("\n")
    except OSError:
        return []


def rendered(problem: Problem) -> str:
    """Returns the problem as compilers show a problem: its place and message, the line of the
    program with a caret under the text in question, and the hint.
    """
    span = problem.span
    if not span.line:
        head = f"{span.file}: " if span.file else ""
        text = f"{head}{problem.severity}: {problem.message}"
        return f"{text}\n  {problem.hint}" if problem.hint else text
    parts = [f"{span.file}:{span.line}:{span.column}: {problem.severity}: {problem.message}"]
    lines = lines_of(span.file)
    if 0 < span.line <= len(lines):
        line, column = lines[span.line - 1], span.column
        if len(line) > WIDEST:  # Only the part around the column is shown.
            cut = max(0, min(column - 1 - WIDEST // 2, len(line) - WIDEST))
            line, column = line[cut : cut + WIDEST], column - cut
        line = "".join(c if c == "\t" or c.isprintable() else "\ufffd" for c in line)
        before = "".join("\t" if c == "\t" else " " for c in line[: column - 1])
        room = max(1, min(span.length, len(line) - column + 1))
        parts += [f"  {line}", f"  {before}^{'~' * (room - 1)}"]
    if problem.hint:
        parts.append(f"  {problem.hint}")
    return "\n".join(parts)


def as_json(problems: Iterable[Problem]) -> str:
    return json.dumps([p.as_json() for p in problems], indent=1, ensure_ascii=False)
