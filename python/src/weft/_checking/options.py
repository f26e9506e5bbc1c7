"""The options of a check, examined in one place: those of `weft check`, of `weft.check` and of the
pytest plugin.

Invariant: options() returns only valid Options. For a wrong option it raises BadUse, which says
what to write instead.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.errors import BadUse

SEARCHES = ("auto", "all", "walk", "pct", "few")
TIMES = ("quiet", "any")
GRAINS = ("operation", "park")
FAULTS = ("kill", "delay", "partition", "slow")


def near(word: str, known: Iterable[str]) -> str:
    """Returns `; did you mean 'x'?` with the nearest of `known`; if none is near, the list of all
    of `known`.
    """
    import difflib

    known = tuple(known)
    close = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f" (there are {', '.join(known)})"


@dataclass(frozen=True)
class Faults:
    """Which faults can happen to processes on hosts (rule 17.10)."""

    kill: int = 0  #: the largest number of processes that die in one schedule
    delay: bool = False
    partition: bool = False
    slow: bool = False

    def __bool__(self) -> bool:
        return bool(self.kill or self.delay or self.partition or self.slow)

    def __str__(self) -> str:
        parts = [f"kill:{self.kill}"] if self.kill else []
        return ",".join(parts + [name for name in FAULTS[1:] if getattr(self, name)])


def parse_faults(text: str) -> Faults:
    """Returns the Faults that a text such as `kill:1,delay` names.

    Raises:
        BadUse: there is no such fault, or its number is wrong.
    """
    given: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, colon, number = part.partition(":")
        if name not in FAULTS:
            raise BadUse(f"there is no fault {name!r}{near(name, FAULTS)}")
        if name != "kill":
            if colon:
                raise BadUse(f"the fault {name} has no number: write {name}")
            given[name] = True
            continue
        if colon and not (number.isdecimal() and 0 < int(number) < 1000):
            raise BadUse(
                f"{part!r}: write kill:N, with N of 1 to 999, the most deaths in a schedule"
            )
        given["kill"] = int(number) if colon else 1
    return Faults(**given)


@dataclass(frozen=True)
class Options:
    """The options of a check. The function options() makes and examines them."""

    seconds: float = 10.0  #: how long to search
    schedules: int | None = None  #: the largest number of schedules to run
    search: str = "auto"
    time: str = "quiet"
    faults: Faults = field(default_factory=Faults)
    same: bool = False
    strict: bool = False
    grain: str = "operation"
    seed: int = 1
    keep_going: bool = False
    jobs: int = 1
    stub: tuple[str, ...] = ()
    all: bool = False  #: whether a search that was cut counts as a failure


def options(**given: Any) -> Options:
    """Returns the options that a user has given by name.

    Raises:
        BadUse: there is no such option, or the option cannot have this value; the text says which
            values are possible.
    """
    known = [f.name for f in dataclasses.fields(Options)]
    for name in given:
        if name not in known:
            raise BadUse(f"weft.check has no option {name!r}{near(name, known)}")
    for name, words in (("search", SEARCHES), ("time", TIMES), ("grain", GRAINS)):
        value = given.get(name, words[0])
        if value not in words:
            raise BadUse(f"{name}={value!r}: there is no such {name}{near(str(value), words)}")
    for name in ("same", "strict", "keep_going", "all"):
        if not isinstance(given.get(name, False), bool):
            raise BadUse(f"{name}={given[name]!r}: write True or False")
    _number(given, "seconds", "a number of seconds above 0, such as 2 or 0.5", float, low=0.0)
    if given.get("schedules") is not None:
        _number(given, "schedules", "how many schedules to run at most, 1 or more", int, low=0)
    _number(given, "jobs", "in how many OS processes to search, 1 or more", int, low=0)
    _number(given, "seed", "a whole number of 0 or more", int, low=-1)
    faults = given.get("faults", Faults())
    if not isinstance(faults, Faults):
        if not isinstance(faults, str):
            raise BadUse(f"faults={faults!r}: write a text, such as 'kill:1,delay'")
        given["faults"] = parse_faults(faults)
    if given.get("faults", Faults()).delay and given.get("grain") == "park":
        raise BadUse(
            "the fault 'delay' lets other processes go before an operation, and grain='park' has no such orders: "
            "use grain='operation'"
        )
    stubs = given.get("stub", ())
    given["stub"] = (stubs,) if isinstance(stubs, str) else tuple(stubs)
    for name in given["stub"]:
        stubbed(name)
    return Options(**given)


def _number(given: dict[str, Any], name: str, what: str, kind: type, low: float) -> None:
    if name not in given:
        return
    value = given[name]
    right = isinstance(value, (int, float) if kind is float else int) and not isinstance(
        value, bool
    )
    if not right or not value > low or (kind is float and not math.isfinite(value)):
        raise BadUse(f"{name}={value!r}: give {what}")


def stubbed(name: str) -> tuple[Any, str]:
    """Returns the module or class that holds the function `module.function` (or
    `module.Class.method`), and the name of the function there.

    Raises:
        BadUse: there is no such function.
    """
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:cut])
        if module not in sys.modules:
            try:
                importlib.import_module(module)
            except ImportError:
                continue
        holder: Any = sys.modules[module]
        for part in parts[cut:-1]:
            holder = getattr(holder, part, None)
        if callable(getattr(holder, parts[-1], None)):
            return holder, parts[-1]
        raise BadUse(f"stub={name!r}: {module} has no function {'.'.join(parts[cut:])}")
    raise BadUse(
        f"stub={name!r}: write module.function; "
        + (
            "no module of that name can be imported"
            if len(parts) > 1
            else "a module must stand before it"
        )
    )


def listed(names: Sequence[str]) -> str:
    """Returns the names as `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
