"""Which of CPython's and of Weft's names MicroPython has, as portable_facts.json says, and how
Weft's names differ between the two.

Invariants
- MicroPython's unix port has answered each fact (micropython/tests/portable_facts.py). No fact was
  written from memory.
- A difference has a key: `NAME` or `CLASS.MEMBER` if one side lacks the name; `NAME(keyword=)` if
  the callable NAME takes no such keyword there; `NAME(…)` if NAME takes fewer arguments by place
  there. The keys have CPython's names of classes.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Classes whose stubs have another name on MicroPython, where no program names them.
RENAMED = {"End": "ProcessEnd", "Limit": "Timeout", "Stats": "ChannelStats"}
# The special methods that are compared: those that an expression calls. The others are called by
# statements that both sides have.
COMPARED = ("__mul__", "__rmul__", "__call__")
CPYTHON, MICROPYTHON = "CPython", "MicroPython"


@functools.cache
def facts() -> dict[str, Any]:
    path = Path(__file__).with_name("portable_facts.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


@functools.cache
def names_on(side: str) -> dict[str, Any]:
    """Returns the entries of one side by `NAME` and by `CLASS.MEMBER`. A class has the members that
    it inherits, too."""
    found: dict[str, Any] = facts()["weft"][side]
    renamed = {}
    for key, entry in found.items():
        owner, dot, member = key.partition(".")
        if side == MICROPYTHON:
            owner = RENAMED.get(owner, owner)
        renamed[owner + dot + member] = entry
    inherited = dict(renamed)
    for owner, entry in renamed.items():
        for base in entry.get("bases", ()):
            for key, member in renamed.items():
                if key.startswith(f"{base}."):
                    inherited.setdefault(f"{owner}.{key.partition('.')[2]}", member)
    return inherited


def _compared(key: str) -> bool:
    member = key.partition(".")[2]
    return not member.startswith("_") or member in COMPARED


def _is_error(key: str, names: dict[str, Any]) -> bool:
    """Returns whether a name is a class of errors. Only Weft makes objects of such a class."""
    bases = names.get(key, {}).get("bases", ())
    return any(b.endswith(("Exception", "Error", "Warning", "ChannelEnd")) for b in bases)


def differences() -> dict[str, str]:
    """Returns the differences between the public names and parameters of weft.coroutines on CPython
    and on MicroPython: for each its key, and the side that lacks it.
    """
    here, there = names_on(CPYTHON), names_on(MICROPYTHON)
    importable = facts()["weft"]["importable"]["coroutines"]
    return dict(
        [
            *_missing(here, there, MICROPYTHON, importable),
            *_missing(there, here, CPYTHON, importable),
        ]
    )


def _missing(
    has: dict[str, Any], other: dict[str, Any], lacks: str, importable: list[str]
) -> Iterator[tuple[str, str]]:
    for key, entry in has.items():
        member_of_error = "." in key and _is_error(key.partition(".")[0], has)
        if not _compared(key) or member_of_error:
            continue
        in_other = key in other
        if "." not in key and lacks == MICROPYTHON:
            in_other = key in importable
        elif "." not in key and key not in importable:
            continue  # a class that only the stub has
        if not in_other:
            # A member counts only if its owner is a class on the other side too.
            if "." not in key or "bases" in other.get(key.partition(".")[0], {}):
                yield key, lacks
            continue
        mine, theirs = entry.get("call"), other[key].get("call")
        if mine and theirs and not _is_error(key, has):
            for name in sorted({*mine["named"]} - {*theirs["named"]}):
                yield f"{key}({name}=)", lacks
            most = theirs["places"]
            if most != -1 and (mine["places"] == -1 or mine["places"] > most):
                yield f"{key}(…)", lacks


@functools.cache
def places_of(key: str) -> int:
    """Returns how many arguments a callable of Weft takes by place on both sides (-1: any)."""
    most = [
        names[key]["call"]["places"]
        for names in (names_on(CPYTHON), names_on(MICROPYTHON))
        if names.get(key, {}).get("call")
    ]
    bounded = [n for n in most if n != -1]
    return min(bounded) if bounded else -1
