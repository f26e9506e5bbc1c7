"""Finds the errors in the syntax of a text: one problem for each faulty statement.

lark stops at the first token that does not fit. After each problem the faulty statement is replaced
by spaces, and the text is parsed again, until nothing is wrong or MAX_PROBLEMS problems are known.

Invariants
- The first problem is that of the given text. Each further one is the first problem of a text that
  differs from the given one only in the statements with the earlier problems.
- Places are those of the given text. A changed text has the same lines, and the same columns except
  behind a bracket that was inserted because it was missing (`_Work.inserted`).
- The search for statements (`_parts`) uses no grammar. It uses brackets and words that begin a
  statement, and may be wrong about a text; then fewer or more problems are reported.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from weft_lf.errors import Problem, Span

MAX_PROBLEMS = 10
UNITS = {
    **dict.fromkeys(("ns", "nsec", "nsecs"), 1),
    **dict.fromkeys(("us", "usec", "usecs"), 10**3),
    **dict.fromkeys(("ms", "msec", "msecs"), 10**6),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 10**9),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60 * 10**9),
    **dict.fromkeys(("h", "hour", "hours"), 3600 * 10**9),
    **dict.fromkeys(("d", "day", "days"), 86400 * 10**9),
    **dict.fromkeys(("week", "weeks"), 7 * 86400 * 10**9),
}
NAMES = {  # terminal of the grammar → its name in error messages
    "ID": "a name",
    "KEBAB": "a property's name",
    "PATH": "a path",
    "INT": "a number",
    "NEGINT": "a number",
    "FLOAT": "a number",
    "TIME": "a time",
    "STRING": '"text"',
    "CHAR": "a character",
    "CODE": "{= code =}",
    "PACKAGE": "<package>",
    "ARROW": "'->'",
    "SQUIGGLY": "'~>'",
    "PLUS": "'+'",
    "STAR": "'*'",
    "COLONS": "'::'",
    "TIMETYPE": "a type",
    "TRUE_UPPER": "'true'",
    "FALSE_UPPER": "'false'",
    "LPAR": "'('",
    "RPAR": "')'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "LSQB": "'['",
    "RSQB": "']'",
    "COMMA": "','",
    "COLON": "':'",
    "SEMICOLON": "';'",
    "DOT": "'.'",
    "EQUAL": "'='",
    "LESSTHAN": "'<'",
    "MORETHAN": "'>'",
    "AT": "'@'",
    "$END": "the end of the file",
}
TOP = (
    "target",
    "import",
    "preamble",
    "private",
    "public",
    "reactor",
    "main",
    "federated",
    "realtime",
)
MEMBERS = (
    *("preamble", "private", "public", "state", "reset", "method", "const", "input", "output"),
    *("mutable", "timer", "action", "logical", "physical", "watchdog", "reaction", "mutation"),
    *("mode", "initial"),
)
INSIDE = ("new", "after", "serializer", "extends", "deadline", "interleaved", "from")
WORDS = sorted({*TOP, *MEMBERS, *INSIDE})
NEAR = 0.75  # how alike a word and the word that was meant must be, from 0 to 1

HIDDEN = "\x01"  # stands for each character of a body or text
HEAD = re.compile(
    r"((main|federated|realtime)\s+)*reactor\b(?!\s*[=.])|(initial\s+)?mode\b(?!\s*[:=.])"
)
BEGIN = re.compile(
    rf"@|({'|'.join({*TOP, *MEMBERS})})\b(?!\s*[=.:])|\w+\s*=\s*new\b"
    r"|(interleaved\s*)?\(?[\w., ]+\)?[+ ]*(->|~>)"
)


@dataclass
class _Part:
    """A statement, or the head of a reactor or mode up to its brace."""

    begin: int
    end: int
    depth: int  # how many bodies of reactors and modes are open around the part
    head: bool = False


@dataclass
class _Parts:
    found: list[_Part] = field(default_factory=list)
    open: list[int] = field(default_factory=list)  # the braces that are open at the end
    stray: set[int] = field(default_factory=set)  # the braces that close nothing
    unclosed: list[tuple[int, int]] = field(default_factory=list)
    # (the place of a reactor's head in the body of another reactor, the brace of that body)


@functools.cache
def _pieces() -> re.Pattern[str]:
    """Returns the pattern of bodies, comments and texts, from the grammar."""
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")

    def terminal(name: str) -> str:
        found = re.search(rf"^{name}(\.\d)?: /(.*)/$", grammar, re.M)
        assert found is not None
        return found[2]

    seen = "|".join(f"(?:{terminal(name)})" for name in ("CODE", "STRING", "CHAR"))
    return re.compile(f"(?P<comment>{terminal('COMMENT')})|{seen}")


def _hide_bodies(text: str) -> str:
    """Returns the text with its comments as spaces, and its bodies and texts hidden."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " " if found["comment"] else HIDDEN, found[0])

    return _pieces().sub(blank, text)


def _parts(plain: str) -> _Parts:
    """Returns the statements of a text. A brace that is not closed before the next reactor counts
    as closed there."""
    parts = _Parts()
    bodies: list[int] = []  # the open braces of bodies
    lists = 0  # how many other braces are open
    begin, head, fresh = -1, False, True

    def end(at: int, is_head: bool = False) -> None:
        nonlocal begin
        if begin >= 0:
            parts.found.append(_Part(begin, at, len(bodies), is_head))
        begin = -1

    for token in re.finditer(rf"{HIDDEN}+|\w+|[^\s\w]|\n", plain):
        at, text = token.start(), token[0]
        if text == "\n":
            fresh = True
        elif text == "{" and head:
            end(at, True)
            bodies.append(at)
            parts.open.append(at)
            head, fresh = False, True
        elif text == "{":
            lists += 1
            parts.open.append(at)
        elif text == "}" and lists:
            lists -= 1
            parts.open.pop()
            fresh = not lists
        elif text == "}":
            end(at)
            if bodies:
                bodies.pop()
                parts.open.pop()
            else:
                parts.stray.add(at)
            fresh = True
        elif text == ";":
            end(at)
            fresh = True
        else:
            is_head = fresh and HEAD.match(plain, at)
            reactor = is_head and "reactor" in is_head[0]
            if reactor and parts.open:
                end(at)
                parts.unclosed.append((at, parts.open[-1]))
                bodies, lists, parts.open = [], 0, []
            begins = fresh and BEGIN.match(plain, at)
            if begins and lists:  # A list ends where a statement begins.
                del parts.open[-lists:]
                lists = 0
            if begin < 0 or begins:
                end(at)
                begin, head = at, bool(is_head)
            fresh = text[0] == HIDDEN and not lists
    end(len(plain))
    return parts


@dataclass
class _Work:
    """A text whose faulty statements are replaced one by one."""

    text: str
    inserted: list[int] = field(default_factory=list)  # the places of brackets that were missing

    def blanked(self, begin: int, end: int, word: str = "") -> _Work:
        """Returns the text with spaces in place of a part, which then begins with `word`."""
        gone = re.sub(r"[^\n]", " ", self.text[begin:end])
        text = self.text[:begin] + word + gone[len(word) :] + self.text[end:]
        return self if text == self.text else _Work(text, self.inserted)

    def inserted_at(self, at: int, bracket: str) -> _Work:
        return _Work(self.text[:at] + bracket + self.text[at:], [*self.inserted, at])

    def placed(self, span: Span, at: int) -> Span:
        """Returns the span as it is in the text without the inserted brackets."""
        begin = self.text.rfind("\n", 0, at) + 1
        more = sum(begin <= place < at for place in self.inserted)
        return Span(span.file, span.line, max(1, span.column - more), span.length)


def problems(
    error: UnexpectedInput, text: str, file: str, error_in: Callable[[str], UnexpectedInput | None]
) -> list[Problem]:
    """Returns the problems of a text, at most MAX_PROBLEMS.

    Args:
        error: the text's first syntax error.
        error_in: returns the first syntax error of another text; None if there is none.
    """
    work, found = _Work(text), list[Problem]()
    following: UnexpectedInput | None = error
    while following is not None and len(found) < MAX_PROBLEMS:
        at = _place(following, work.text)
        plain = _hide_bodies(work.text)
        parts = _parts(plain)
        missing = [u for u in parts.unclosed if u[0] <= at or at == len(work.text)]
        if missing:
            at, brace = missing[0]
            problem = _unclosed(text, work.text, file, at, brace)
            left = work.inserted_at(at, "}")
            following = error_in(left.text)
        else:
            last = following
            left, following, culprit = _without_statement(work, parts, plain, at, error_in)
            problem = _problem(last, work.text, file, parts, culprit)
        problem = dataclasses.replace(problem, span=work.placed(problem.span, at))
        if any(p.span == problem.span for p in found):
            break
        found.append(problem)
        if left is work or problem.message.endswith("does not end"):
            break
        work = left
    return found


def _place(error: UnexpectedInput, text: str) -> int:
    token = getattr(error, "token", None)
    if token is not None and token.type != "$END" and token.start_pos is not None:
        return int(token.start_pos)
    if isinstance(error, UnexpectedCharacters):
        return int(error.pos_in_stream or 0)
    return len(text)


def _without_statement(
    work: _Work,
    parts: _Parts,
    plain: str,
    at: int,
    error_in: Callable[[str], UnexpectedInput | None],
) -> tuple[_Work, UnexpectedInput | None, _Part | None]:
    """Replaces the statement with the error at `at`, or the statement before it if that moves the
    first error of the text further down. Returns the new text, its first error, and the statement.
    Returns `work` itself if nothing can be replaced."""
    own = [p for p in parts.found if p.begin <= at]
    if at in parts.stray or (not own and at < len(plain)):
        left = work.blanked(at, at + 1)
        return left, error_in(left.text), None
    if not own or at >= len(plain):
        return work, None, None
    part = _culprit(parts, plain, at)
    before = parts.found[: parts.found.index(part)][-1:]
    best: tuple[int, tuple[_Work, UnexpectedInput | None, _Part | None]] = (-1, (work, None, None))
    for one in [part, *(p for p in before if not p.head and p.depth == part.depth)]:
        left = _blanked(work, one, parts, plain)
        if left is not work:
            following = error_in(left.text)
            reached = len(plain) + 1 if following is None else _place(following, left.text)
            best = max(best, (reached, (left, following, one)), key=lambda b: b[0])
    return best[1]


def _blanked(work: _Work, part: _Part, parts: _Parts, plain: str) -> _Work:
    """Returns the text with spaces in place of a statement. Of the head of a reactor or mode the
    word `reactor` or `mode` stays."""
    word = re.match(r"\w*", plain[part.begin :])
    if part.head:
        kind = "mode" if part.depth else "reactor"
        short_of = part.end - part.begin < len(kind)
        return work if short_of else work.blanked(part.begin, part.end, kind)
    if not part.depth and word and word[0] not in TOP:
        # All errors up to the next reactor have one cause: a brace too many, or an error in a head.
        later = [p.begin for p in parts.found if p.begin > part.begin and not p.depth and p.head]
        return work.blanked(part.begin, min(later, default=len(plain)))
    return work.blanked(part.begin, part.end)


def _culprit(parts: _Parts, plain: str, at: int) -> _Part:
    """Returns the statement with the error at `at`. If a statement begins there with a word that
    may begin one, the statement before it is incomplete."""
    own = [p for p in parts.found if p.begin <= at]
    part = own[-1]
    if part.begin == at and BEGIN.match(plain, at) and len(own) > 1:
        last = own[-2]
        if not last.head and last.depth == part.depth and not plain[last.end : at].strip():
            return last
    return part


def _line_of(text: str, at: int) -> tuple[int, int]:
    """Returns the line and column of a place, from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _unclosed(given: str, text: str, file: str, head: int, brace: int) -> Problem:
    """Returns the problem of a brace that is open where a reactor begins. `given` is the given
    text, `text` the text with replacements."""
    line, column = _line_of(text, head)
    opened = _line_of(text, brace)[0]
    what = given.split("\n")[opened - 1].partition("{")[0].strip()
    named = f", of '{short(what)}'," if what else ""
    word = re.match(r"\w+", text[head:])
    assert word is not None
    span = Span(file, line, column, len(word[0]))
    text = f"a '}}' is missing before this: the '{{' of line {opened}{named} is still open"
    return Problem(span, text, "expected '}'")


def _misspelt_keyword(text: str, at: int, file: str) -> Problem | None:
    """Returns the problem if the word at `at` or the word before it is almost a keyword."""
    for found in (re.search(r"(\w+)\s*$", text[:at]), re.compile(r"(\w+)").match(text, at)):
        if found is None or found[1] in WORDS or len(found[1]) < 4:
            continue
        near = difflib.get_close_matches(found[1], WORDS, n=1, cutoff=NEAR)
        if near:
            line, column = _line_of(text, found.start(1))
            span = Span(file, line, column, len(found[1]))
            return Problem(span, f"'{found[1]}' cannot stand here", f"did you mean '{near[0]}'?")
    return None


def _problem(
    error: UnexpectedInput, text: str, file: str, parts: _Parts, culprit: _Part | None
) -> Problem:
    """Returns the problem of an error; `culprit` is the statement that is wrong, if it is known."""
    if odd := _odd_time(error, text, file):
        return odd
    at = _place(error, text)
    if isinstance(error, UnexpectedCharacters):
        span = Span(file, error.line, error.column)
        found = text[at : at + 20]
        if found.startswith("{="):
            return Problem(span, "this code block does not end", "close it with =}")
        if found.startswith(('"', "'")):
            return Problem(span, "this text does not end", "close it on the same line")
        if found.startswith("/*"):
            return Problem(span, "this comment does not end", "close it with */")
        expected: Any = error.allowed or set()
        meant = _misspelt_keyword(text, at, file)
        return meant or Problem(span, f"{found[:1]!r} cannot stand here", _expected(expected))
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        token = error.token
        word = str(token).split("\n")[0]
        span = Span(file, token.line or 1, token.column or 1, max(1, len(word)))
        if token.type != "CODE" and text.startswith("{=", at):
            return Problem(span, "this code block does not end", "close it with =}")
        if word == "->" and text[:at].rstrip().endswith("=}"):
            hint = "the order is: reaction(triggers) sources -> effects {= code =} deadline"
            return Problem(span, "the effects of this reaction stand in the wrong place", hint)
        hint = _expected(error.accepts or error.expected)
        if culprit is not None and culprit.end <= at:
            hint = f"what begins in line {_line_of(text, culprit.begin)[0]} is incomplete: {hint}"
        meant = _misspelt_keyword(text, at, file)
        return meant or Problem(span, f"'{short(word)}' cannot stand here", hint)
    lines = text.split("\n")
    last = len(lines)
    while last > 1 and not lines[last - 1].strip():
        last -= 1
    span = Span(file, last, max(1, len(lines[last - 1])))
    wanted: Any = error.expected if isinstance(error, (UnexpectedToken, UnexpectedEOF)) else set()
    hint = _expected(wanted)
    if parts.open and "RBRACE" in wanted:
        hint = f"expected '}}' for the '{{' of line {_line_of(text, parts.open[-1])[0]}"
    return Problem(span, "the file ends in the middle of something", hint)


ODD_TIME = re.compile(
    rf"(-[ \t]*\d+(?:\.\d+)?|\d*\.\d+)[ \t]*({'|'.join(UNITS)})\b(?![ \t]*=)", re.A
)


def _odd_time(error: UnexpectedInput, text: str, file: str) -> Problem | None:
    """Returns the problem if the error comes from a time that is negative or has a fraction;
    otherwise returns None. The parser reads such a time as a number and a name.
    """
    at = _place(error, text)
    begin = text.rfind("\n", 0, len(text[:at].rstrip())) + 1
    for found in ODD_TIME.finditer(text, begin):
        if found.start() > at:
            break
        if text[found.end() : at].strip():
            continue
        line = text.count("\n", 0, found.start()) + 1
        span = Span(file, line, found.start() - begin + 1, found.end() - found.start())
        if found[1].startswith("-"):
            return Problem(span, f"{found[0]} is negative", "a time is 0 or more")
        hint = "take a smaller unit: 1500 msec for 1.5 sec"
        return Problem(span, f"{found[0]} is not a whole number", hint)
    return None


def short(text: str) -> str:
    return text if len(text) <= 30 else text[:27] + "..."


def _expected(terminals: Any) -> str:
    words = sorted({NAMES.get(t, f"'{t.lower()}'") for t in terminals if not t.startswith("__")})
    if not words:
        return "see the grammar in lf/README.md"
    if len(words) > 12:
        words = [*words[:12], "…"]
    return ("expected " if len(words) == 1 else "expected one of ") + ", ".join(words)
