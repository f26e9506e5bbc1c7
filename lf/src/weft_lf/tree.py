"""The syntax tree of a `.lf` file, as plain objects. Names are not resolved, and no expression is
evaluated.

Every object but File has a `span`, for error messages and `#line`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from weft_lf.errors import NOWHERE, Span


@dataclass
class Code:
    """Code of the target language, `{= … =}`. `text` is without the brackets, and `span` is where
    the text begins."""

    text: str
    span: Span = NOWHERE


@dataclass
class Literal:
    """A literal. `kind` is string, char, float, int or bool; `text` is the literal as it is written
    in the file."""

    kind: str
    text: str
    span: Span = NOWHERE


@dataclass
class Time:
    """An interval in nanoseconds; `forever` and `never` are the ends of the 64-bit range."""

    ns: int
    text: str
    span: Span = NOWHERE


@dataclass
class Name:
    """A reference to a parameter."""

    name: str
    span: Span = NOWHERE


@dataclass
class Listing:
    """A list of expressions in (), {} or []; `opening` is the bracket."""

    opening: str
    items: list[Expr]
    span: Span = NOWHERE


Expr: TypeAlias = Code | Literal | Time | Name | Listing


@dataclass
class Type:
    """A type. `name` is a dotted name, `time`, or code; `array` is the length in brackets, "" for
    `[]`, or None without brackets."""

    name: str
    arguments: list[Type] = field(default_factory=list)
    stars: int = 0
    array: str | None = None
    is_code: bool = False
    span: Span = NOWHERE


@dataclass
class Attribute:
    name: str
    arguments: list[tuple[str, str]]
    span: Span = NOWHERE


@dataclass
class Ref:
    """A reference in a reaction: `variable`, `container.variable`, a builtin trigger, or a
    transition to a mode (`kind` distinguishes them)."""

    variable: str
    container: str = ""
    interleaved: bool = False
    alias: str = ""
    kind: str = "plain"  # plain, builtin, reset, history
    span: Span = NOWHERE

    def __str__(self) -> str:
        name = f"{self.container}.{self.variable}" if self.container else self.variable
        return f"{self.kind}({name})" if self.kind in ("reset", "history") else name


@dataclass
class WidthTerm:
    """One summand of a width: a number, a parameter, code, or the width of a port."""

    value: int | Name | Code | Ref
    span: Span = NOWHERE


@dataclass
class Param:
    name: str
    type: Type | None
    init: Expr | None
    span: Span = NOWHERE


@dataclass
class State:
    name: str
    type: Type | None
    init: Expr | None
    reset: bool = False
    span: Span = NOWHERE


@dataclass
class Method:
    name: str
    const: bool
    arguments: list[tuple[str, Type | None]]
    returns: Type | None
    code: Code
    span: Span = NOWHERE


@dataclass
class Port:
    name: str
    is_input: bool
    mutable: bool
    width: list[WidthTerm] | None
    type: Type | None
    span: Span = NOWHERE


@dataclass
class Timer:
    name: str
    offset: Expr | None
    period: Expr | None
    span: Span = NOWHERE


@dataclass
class Action:
    name: str
    physical: bool
    delay: Expr | None
    spacing: Expr | None
    policy: str
    type: Type | None
    span: Span = NOWHERE


@dataclass
class Watchdog:
    name: str
    timeout: Expr
    effects: list[Ref]
    code: Code
    span: Span = NOWHERE


@dataclass
class Instance:
    name: str
    width: list[WidthTerm] | None
    cls: str
    arguments: list[Type]
    assignments: list[tuple[str, Expr, Span]]
    attributes: list[Attribute]
    span: Span = NOWHERE


@dataclass
class Connection:
    left: list[Ref]
    right: list[Ref]
    physical: bool
    iterated: bool
    delay: Expr | None
    attributes: list[Attribute]
    span: Span = NOWHERE


@dataclass
class Reaction:
    name: str
    triggers: list[Ref]
    sources: list[Ref]
    effects: list[Ref]
    code: Code | None
    deadline: Expr | None
    deadline_code: Code | None
    attributes: list[Attribute]
    span: Span = NOWHERE


@dataclass
class Preamble:
    code: Code
    span: Span = NOWHERE


@dataclass
class Mode:
    name: str
    initial: bool
    members: list[Member]
    span: Span = NOWHERE


Member: TypeAlias = (
    Preamble
    | State
    | Method
    | Port
    | Timer
    | Action
    | Watchdog
    | Instance
    | Connection
    | Reaction
    | Mode
)


@dataclass
class TypeParam:
    """A formal type parameter: a name, or code whose last word is the name."""

    name: str
    span: Span = NOWHERE


@dataclass
class Reactor:
    name: str
    main: bool
    federated: bool
    type_params: list[TypeParam]
    params: list[Param]
    supers: list[tuple[str, Span]]
    members: list[Member]
    attributes: list[Attribute]
    span: Span = NOWHERE


@dataclass
class Import:
    names: list[tuple[str, str, Span]]  # (name in the other file, name in this file, its place)
    uri: str
    package: bool
    span: Span = NOWHERE


@dataclass
class Pair:
    """One property of the target block; `value` is a Literal, a Time, a list (Values), or more
    properties (Pairs)."""

    name: str
    value: Value
    span: Span = NOWHERE


@dataclass
class Pairs:
    pairs: list[Pair]
    span: Span = NOWHERE


@dataclass
class Values:
    items: list[Value]
    span: Span = NOWHERE


Value: TypeAlias = Literal | Time | Pairs | Values


@dataclass
class Target:
    name: str
    config: Pairs
    span: Span = NOWHERE


@dataclass
class File:
    path: str
    target: Target | None
    imports: list[Import]
    preambles: list[Preamble]
    reactors: list[Reactor]
