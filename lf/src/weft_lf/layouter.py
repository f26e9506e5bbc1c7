"""`weft lf format`: changes the indentation and the spaces of a `.lf` file.

Invariants
- Only the white space between tokens, white space at the ends of lines, and the indentation of
  comments and bodies change. Line breaks stay, but of several empty lines only one stays. So the
  text of comments and bodies is kept.
- The new text means the same program as the old text (`_meaning`); otherwise the call fails.
  Formatting the new text once more changes nothing.
- A line is indented by two spaces more than the line that opened the innermost bracket around it. A
  line that continues a connection or a list of effects is indented by two further spaces.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from dataclasses import dataclass
from typing import Any

from lark import Token

from weft_lf.errors import Span, fail
from weft_lf.parser import parse, tokens

STEP = "  "
OPEN = {"LPAR", "LBRACE", "LSQB"}
CLOSE = {"RPAR", "RBRACE", "RSQB"}
NO_GAP_BEFORE = {"COMMA", "SEMICOLON", "RPAR", "RSQB", "COLON", "COLONS", "DOT"}
NO_GAP_AFTER = {"LPAR", "LSQB", "DOT", "COLONS", "AT"}
GAP_AFTER = {"COMMA", "COLON", "SEMICOLON"}
GAP_AROUND = {"EQUAL", "ARROW", "SQUIGGLY"}
GOES_ON = {"ARROW", "SQUIGGLY", "EQUAL", "COLON"}
PIECE = re.compile(r"(?://|#)[^\n]*|/\*[\s\S]*?\*/|'''[\s\S]*?'''|\n|[^\S\n]+")


@dataclass
class _Bracket:
    level: int  # the level of the line that opened the bracket
    body: bool  # whether the bracket contains the members of a reactor or mode


class _Layouter:
    def __init__(self) -> None:
        self.out: list[str] = []
        self.brackets: list[_Bracket] = []
        self.level = 0  # the level of the line that is being written
        self.head: int | None = None  # how many brackets were open at `reactor` or `mode`
        self.last: Token | None = None

    def token(self, gap: str, token: Token) -> None:
        closed = self.brackets.pop() if token.type in CLOSE and self.brackets else None
        inside = self.brackets[-1].level + 1 if self.brackets else 0
        level = closed.level if closed else inside + self.goes_on(token)
        self.gap(gap, token, level, inside + (closed is not None))
        if token.type in ("REACTOR", "MODE"):
            self.head = len(self.brackets)
        if token.type in OPEN:
            body = token.type == "LBRACE" and self.head == len(self.brackets)
            self.head = None if body else self.head
            self.brackets.append(_Bracket(self.level, body))
        self.out.append(_code(str(token), self.level) if token.type == "CODE" else str(token))
        self.last = token

    def goes_on(self, token: Token) -> bool:
        """Returns whether a line that begins with `token` continues the line before it."""
        if self.last is None or token.type in ("ARROW", "SQUIGGLY"):
            return self.last is not None
        in_body = bool(self.brackets) and self.brackets[-1].body
        return self.last.type in GOES_ON or (self.last.type == "COMMA" and in_body)

    def gap(self, gap: str, token: Token | None, level: int, inside: int) -> None:
        """Writes the comments, line breaks and spaces before a token."""
        if not gap.strip() and "\n" not in gap:
            if token is not None and self.last is not None:
                self.out.append(_between(self.last, gap, token))
            return
        lines, fresh, pending = 0, self.last is None, ""
        for piece in PIECE.findall(gap):
            if piece == "\n":
                lines, pending = lines + 1, ""
            elif not piece.strip():
                pending = piece
            else:
                self.fresh_line(lines, inside, fresh, pending or STEP[:1])
                self.out.append(_comment(piece, STEP * self.level))
                lines, fresh, pending = 0, False, ""
        if token is None:
            self.out.append("\n")
        else:
            self.fresh_line(lines, level, fresh, " ")

    def fresh_line(self, lines: int, level: int, first: bool, spaces: str) -> None:
        if first or lines:
            self.level = level
            self.out.append("\n" * (0 if first else min(lines, 2)) + STEP * level)
        else:
            self.out.append(spaces)


def _between(first: Token, gap: str, second: Token) -> str:
    """Returns the space between two tokens of one line."""
    one, two = first.type, second.type
    if two in GAP_AROUND or one in GAP_AROUND:
        return " "
    if two in NO_GAP_BEFORE or one in NO_GAP_AFTER:
        return ""
    if one in GAP_AFTER or (two == "CODE" and one in ("RPAR", "ID")):
        return " "
    if two == "LPAR" and one in ("REACTION", "ID", "TIMER"):
        return ""
    if two == "LBRACE" and one in ("ID", "RPAR", "RSQB", "MORETHAN", "MODE"):
        return " "
    return " " if gap else ""


def _comment(text: str, indent: str) -> str:
    """Returns a comment without white space at the ends of its lines. If all further lines of a
    block comment begin with a star, these stars are put below the first star.
    """
    head, *rest = (line.rstrip() for line in text.split("\n"))
    stars = text.startswith("/*") and all(r.lstrip().startswith("*") for r in rest)
    return "\n".join([head, *(f"{indent} {r.lstrip()}" if stars else r for r in rest)])


def _code(text: str, level: int) -> str:
    """Returns a code block whose end is at `level`, and whose contents are one step deeper.

    A block with a line that ends in a backslash is returned as it is.
    """
    if "\n" not in text or "\\\n" in text:
        return text
    head, *rest = (line.rstrip() for line in text.split("\n"))
    last = rest.pop()
    alone = last.strip() == "=}"
    own = [r for r in [*rest, *([] if alone else [last])] if r and not r.startswith("#")]
    spaces = [r[: len(r) - len(r.lstrip())] for r in own]
    # All lines begin with what the first and the last of them in sorted order have in common.
    ends = zip(min(spaces, default=""), max(spaces, default=""), strict=False)
    common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], ends))
    indent = STEP * (level + 1)

    def moved(line: str) -> str:
        return line if not line or line.startswith("#") else indent + line[common:]

    end = STEP * level + "=}" if alone else moved(last)
    return "\n".join([head, *map(moved, rest), end])


def _meaning(found: Any) -> Any:
    """Returns the meaning of a tree: without places in the file, and without the white space that
    can change."""
    if isinstance(found, list | tuple):
        return [_meaning(one) for one in found if not isinstance(one, Span)]
    if not dataclasses.is_dataclass(found) or isinstance(found, type):
        return found
    kept = {f.name: getattr(found, f.name) for f in dataclasses.fields(found)}
    kind = type(found).__name__
    if kind == "Code":
        lines = [line.strip() for line in kept["text"].split("\n")]
        return [kind, lines]
    if kind == "Type" and kept["is_code"]:
        kept["name"] = [line.strip() for line in kept["name"].split("\n")]
    if kind == "Time":
        return [kind, kept["ns"]]
    parts = {n: _meaning(v) for n, v in kept.items() if not isinstance(v, Span)}
    return [kind, parts]


def meaning(text: str, file: str) -> Any:
    """Returns the syntax tree of `text` as lists, without places. The trees of two texts are equal
    if the texts are the same program."""
    return _meaning(parse(text, file))


def laid_out(text: str, file: str) -> str:
    """Returns the text with Weft's indentation and spaces.

    Args:
        text: the contents of a `.lf` file, whose lines end in newlines.
        file: the name of the file, for errors.

    Raises:
        LfError: the text is not Lingua Franca.
    """
    before = meaning(text, file)
    layouter, at = _Layouter(), 0
    for token in tokens(text):
        start = token.start_pos or 0
        layouter.token(text[at:start], token)
        at = start + len(token)
    layouter.gap(text[at:].rstrip() + "\n", None, 0, 0)
    found = "".join(layouter.out)
    found = found if found.strip() else ""
    if meaning(found, file) != before:
        raise fail(Span(file, 1, 1), "the layout of this file would change the program", "")
    return found


__all__ = ["laid_out", "meaning"]
