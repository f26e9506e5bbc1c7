"""Sorts the programs of a test run by what became of them, with a reason for each program that
failed.

Invariants
- Each program has one class. The class of a failure is the first of WHY that fits; if none fits,
  the class says in which step the program failed.
- A class of WHY names what the program needs and does not find here. It does not say whose fault
  this is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weft_lf.errors import Problem

RUNTIME = r"(?:include/)?(?:core/|api/)?(?:environment|reactor|reactor_common|reactor_threaded)\.h"
# class → the pattern of a problem's message; the first group that matches is the reason to show
WHY = (
    ("is federated", r"federated programs"),
    ("asks for a container", r"'docker' is not supported"),
    ("is for another platform", r"platform ('[^']*') is not supported"),
    ("is for another target", r"(target \w+) is not supported"),
    ("includes headers of upstream's runtime", rf"({RUNTIME}): No such file"),
    (
        "needs a tool or library that is not installed",
        r"([\w./+-]+\.h(?:pp)?): No such file|file provided by\s+\"([^\"]+)\"|cannot find -l(\S+?):"
        r"|Could NOT find (\w+)|Could not find (\w+) using the following|(\S+), which is not (?:installed|found)|^(\S+) is not installed",
    ),
    (
        "needs a file that is not there",
        r"there is no file ('[^']*')|^(.*): there is no such file|(the package '[^']*') is not"
        r"|(the utility '[^']*') is not|Cannot find source file:\s+(\S+)"
        r"|No rule to make target '([^']*)'",
    ),
)
CHECK, COMPILE = "has an error that weft lf finds", "has an error that the C compiler finds"
STATUS, OUTPUT, LATE = "ended with a status", "gave another output or trace", "did not end"
ENDED, RAN_ON = "ended well", "still ran at the limit, as it may"
BUILT, DEVICE = "built, and not run", "built, for a device"
WRITTEN = "is C now, and asks for no compilation"
GOOD = (ENDED, RAN_ON, BUILT, DEVICE, WRITTEN)
ORDER = (*GOOD, *(name for name, _ in WHY), CHECK, COMPILE, STATUS, OUTPUT, LATE)


@dataclass(frozen=True)
class Fate:
    """What became of a program: its class, and a reason, which is empty if the class says all."""

    kind: str
    reason: str = ""


def refused(problems: Sequence[Problem], compiled: bool) -> Fate:
    """Returns the fate of a program that was not built.

    Args:
        problems: the errors.
        compiled: whether the errors are the C compiler's or CMake's.
    """
    errors = [p.message for p in problems if p.severity == "error"]
    for kind, pattern in WHY:
        for message in errors:
            if match := re.search(pattern, message, re.M):
                return Fate(kind, next((g for g in match.groups() if g), ""))
    shown = [line.strip() for line in errors[0].split("\n") if line.strip()]
    serious = [
        line for line in shown[1:] if re.search(r"\berror\b|undefined reference", line, re.I)
    ]
    return Fate(COMPILE if compiled else CHECK, (serious or shown)[0])


def by_class(programs: Iterable[tuple[str, Fate]]) -> list[str]:
    """Returns the lines of a table: how many programs each class has, and below a class of failures
    each program with its reason."""
    found: dict[str, list[str]] = {}
    for name, fate in programs:
        line = f"    {name}: {fate.reason}" if fate.reason else f"    {name}"
        found.setdefault(fate.kind, []).append(line)
    lines = [f"{'what became of them':52} programs"]
    for kind in ORDER:
        if kind in found:
            lines.append(f"{kind:52} {len(found[kind]):8}")
            lines += [] if kind in GOOD else sorted(found[kind])
    return lines


__all__ = ["Fate", "by_class", "refused"]
