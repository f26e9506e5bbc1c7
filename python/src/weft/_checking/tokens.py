"""Tokens: a schedule as a short text, which names its deviations from the usual order (rule 17.8).

    w1:hop.3@3=locker.1,merge@2+1,clerk@4=,worker@3:1

    PATH@N=PATH   after step N of the first process the second goes
    PATH@N=       after step N of the process a time comes
    PATH@N+K      at step N of the process its select takes the K-th of the ready guards (from 0)
    PATH@N:K      at step N of the process the K-th fault befalls it
    PATH@N.M+K    the same for the M-th select (from 1) of that step
    PATH@N.M:K    the same for the M-th decision on a fault (from 1) in that step
    w1-31.2-40.1  by numbers: at decision 31 the choice 2, at decision 40 the choice 1 (from 0)
    w1            no deviation: the usual order

PATH is the path of a process without its first part `main/`, and with `a.3` for `a[3]`. A character
that has a meaning for the shell is percent-encoded, so a token needs no quotes.

Invariants
- text(parse(t)) is t, for each t that text() makes.
- Only parse() reads tokens. If it refuses a text, BadUse says why.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote, unquote

from weft.errors import BadUse

VERSION = "w1"
_ROOT = "main/"
_MAIN = re.compile(r"main(\[\d+\])?(/|$)")
_WHERE = re.compile(r"([^@=+~:,]*)@(\d+)(?:=([^@=+~:,]*)|(?:\.([1-9]\d*))?([+:])(\d+))")
_NUMBERS = re.compile(r"\d+\.\d+(-\d+\.\d+)*|0")
_MARKS = {"+": "guard", ":": "fault"}


class Deviation(NamedTuple):
    """One decision that deviates from the usual order, identified by a process and a step of that
    process."""

    process: str  #: the path of the process
    step: int
    kind: str  #: "go", "time", "guard" or "fault"
    choice: str | int  #: the path of the process that goes on, or the number of a guard or a fault
    nth: int = 0  #: of a guard or a fault: which decision of its kind in that step this is, from 0


class ByNumber(NamedTuple):
    """A deviation, by the number of the decision in the schedule."""

    decision: int
    choice: int


Deviations = Sequence[Deviation] | Sequence[ByNumber]


def text(deviations: Sequence[Deviation]) -> str:
    """Returns the token of these deviations."""
    return f"{VERSION}:{','.join(map(_part, deviations))}" if deviations else VERSION


def _part(d: Deviation) -> str:
    where = f"{_name(d.process)}@{d.step}"
    if d.kind == "go":
        return f"{where}={_name(str(d.choice))}"
    if d.kind == "time":
        return f"{where}="
    nth = f".{d.nth + 1}" if d.nth else ""
    return f"{where}{nth}{'+' if d.kind == 'guard' else ':'}{d.choice}"


def _name(path: str) -> str:
    short = path.removeprefix(_ROOT)
    if short == path or _MAIN.match(short):
        short = path if _MAIN.match(path) else f"/{path}"
    path = short
    plain = re.sub(r"\.(?=\d+(/|$))", "%2E", quote(path, safe="/[].").replace("~", "%7E"))
    return re.sub(r"\[(\d+)\](?=/|$)", r".\1", plain).replace("[", "%5B").replace("]", "%5D")


def _path(name: str) -> str:
    path = unquote(re.sub(r"\.(\d+)(?=/|$)", r"[\1]", name))
    if path.startswith("/"):
        return path[1:]
    return path if _MAIN.match(path) else _ROOT + path


def parse(token: str) -> list[Deviation] | list[ByNumber]:
    """Returns the deviations that a token names.

    Raises:
        BadUse: the text is not a token, or a token of another version; the message says which, and
            what to do.
    """
    token = token.strip()
    if not re.match(r"w\d+(?![^-:])", token):
        raise BadUse(
            f"{token!r} is not a token: take the word that a report has after --replay, such as w1:clerk@3=van"
        )
    version = re.split("[-:]", token, maxsplit=1)[0]
    if version != VERSION:
        raise BadUse(
            f"{token!r} is a token of another version of Weft ({version}; this one has {VERSION}): "
            "check the program again, which finds the order anew"
        )
    rest = token[len(VERSION) :]
    if not rest:
        return []
    if rest[0] == "-":
        if not _NUMBERS.fullmatch(rest[1:]):
            raise _incomplete_token(token, rest[1:].split("-"), re.compile(r"\d+\.\d+"))
        if rest[1:] == "0":
            return []
        pairs = [ByNumber(*map(int, part.split("."))) for part in rest[1:].split("-")]
        if any(a.decision >= b.decision for a, b in itertools.pairwise(pairs)):
            raise BadUse(
                f"{token!r}: the numbers of its decisions must increase; copy the whole token from the report"
            )
        return pairs
    found: list[Deviation] = []
    for part in rest[1:].split(","):
        match = _WHERE.fullmatch(part)
        if not match or not match[1]:
            raise _incomplete_token(token, rest[1:].split(","), _WHERE)
        process, step, who, nth, mark, number = match.groups()
        if mark:
            found.append(
                Deviation(_path(process), int(step), _MARKS[mark], int(number), int(nth or 1) - 1)
            )
        elif who:
            found.append(Deviation(_path(process), int(step), "go", _path(who)))
        else:
            found.append(Deviation(_path(process), int(step), "time", ""))
    return found


def _incomplete_token(token: str, parts: list[str], whole: re.Pattern[str]) -> BadUse:
    broken = next((part for part in parts if not whole.fullmatch(part)), parts[-1])
    return BadUse(
        f"{token!r} is not a whole token: {broken!r} cannot be read; copy all of it from the report"
    )


def sentence(d: Deviation) -> str:
    """Returns a deviation in words."""
    where = f"after step {d.step} of {d.process},"
    if d.kind == "go":
        return f"{where} {d.choice} goes first"
    if d.kind == "time":
        return f"{where} a time comes, although a process could go on"
    if d.kind == "guard":
        select = f"select number {d.nth + 1}" if d.nth else "select"
        return f"at step {d.step} of {d.process} its {select} takes guard {d.choice} of those that are ready"
    return f"at step {d.step} of {d.process} a fault befalls it"
