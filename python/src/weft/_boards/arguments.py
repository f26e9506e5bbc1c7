"""Takes the ends out of the arguments of a call that goes to a board, and checks that a link can
carry the other arguments (WIRE.md 12.8).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from weft._extension import native as _native
from weft.errors import BadUse

__all__ = ["Taken", "ends_in", "take"]

_DEEPEST = 12  # levels of nested lists and dicts; an order adds 4 levels, and a link carries 16


class Taken(NamedTuple):
    """The arguments of a call, and the ends that were among them."""

    args: list[Any]  #: the arguments given by place, with None in the place of each end
    keywords: dict[str, Any]  #: the arguments given by name, with None in the place of each end
    #: each end, with its places; a place is the indices and keys that lead to it from
    #: [args, keywords]
    ends: list[tuple[Any, list[list[Any]]]]


def take(what: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Taken:
    """Takes the ends out of the arguments of a call. `what` is the call's name for messages.

    Raises:
        BadUse: an argument cannot go to a board. The message names the argument.
    """
    ends: list[tuple[Any, list[list[Any]]]] = []

    def copied(value: Any, path: list[Any], name: str) -> Any:
        if isinstance(value, (_native.Reader, _native.Writer)):
            for end, paths in ends:
                if end is value:
                    paths.append(path)
                    return None
            ends.append((value, [path]))
            return None
        if value is None or type(value) in (bool, int, float, str, bytes, bytearray):
            return value
        if len(path) > _DEEPEST:
            raise BadUse(
                f"{what}: {name} nests deeper than {_DEEPEST} lists or dicts, and a board takes no "
                "more: give parts of it as arguments of their own"
            )
        if type(value) in (list, tuple):
            return [copied(v, [*path, i], name) for i, v in enumerate(value)]
        if type(value) is dict:
            wrong = next((k for k in value if type(k) not in (bool, int, float, str, bytes)), None)
            if wrong is not None:
                raise BadUse(f"{what}: {name} has the key {wrong!r}, which cannot go to a board")
            return {k: copied(v, [*path, k], name) for k, v in value.items()}
        raise BadUse(
            f"{what}: {name} is {_kind(value)}, which cannot go to a board: {_hint(value)}"
        )

    first = [copied(v, [0, i], f"argument {i + 1}") for i, v in enumerate(args)]
    second = {k: copied(v, [1, k], f"argument {k!r}") for k, v in keywords.items()}
    return Taken(first, second, ends)


def ends_in(values: Any) -> list[Any]:
    """Returns the ends among `values` and within their lists, tuples and dicts, each end once."""
    found: list[Any] = []
    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, (_native.Reader, _native.Writer)):
            if not any(value is other for other in found):
                found.append(value)
        elif type(value) in (list, tuple, dict):
            found.extend(e for e in ends_in(value) if not any(e is other for other in found))
    return found


def _kind(value: Any) -> str:
    kind = type(value)
    if kind.__module__ == "builtins":
        return f"a {kind.__name__}"
    return f"a {kind.__module__}.{kind.__qualname__}"


def _hint(value: Any) -> str:
    if hasattr(value, "tolist"):
        return "give x.tolist()"
    if isinstance(value, _native.Channel):
        return "give an end of it, c.reader() or c.writer()"
    if isinstance(value, _native.Barrier):
        return "a barrier stays in its program"
    if hasattr(value, "send") and hasattr(value, "throw"):
        return "write its values to a channel"
    if callable(value):
        return "name it in the process: a function that the process names goes along"
    return "give None, bool, int, float, str, bytes, or lists and dicts of these"
