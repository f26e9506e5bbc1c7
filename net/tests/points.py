"""Classes that two programs know."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from weft import net


class Point:
    """A class whose objects cannot be sent."""

    def __init__(self, x: int, y: int) -> None:
        self.x, self.y = x, y


@net.accepts
@dataclass
class Place:
    name: str
    at: tuple[int, int] = (0, 0)
    more: Any = None


@net.accepts
@dataclass(frozen=True)
class Tree:
    value: int
    left: Tree | None = None
    right: Tree | None = None


@net.accepts
class Pair(NamedTuple):
    first: int
    second: Place


@net.accepts
class Signal(msgspec.Struct, rename="camel", tag="signal"):
    a_level: float
    is_on: bool = False


@net.accepts
class Row(msgspec.Struct, array_like=True):
    number: int
    text: str


@dataclass
class Unknown:
    """A class that no program accepts."""

    x: int


@dataclass
class Late:
    """A class that the caller accepts and the host does not accept."""

    x: int


@net.accepts
class Color(enum.Enum):
    RED = 1
    GREEN = 2
    ROUGE = RED  # another name of RED


@net.accepts
class May(enum.IntFlag):
    READ = 1
    WRITE = 2
    RUN = 4


@net.accepts
@dataclass
class Painted:
    color: Color
    others: dict[str, list[Color]] = field(default_factory=dict)
    may: May = May.READ
    more: Any = None
