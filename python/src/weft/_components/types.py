"""Types of native values in Python: turns annotations into the texts of component_abi.h, and makes
classes for aggregates.

    int float bool str bytes None list[T] tuple[T, U] dict[K, V] T | None Any
    a dataclass or NamedTuple                 the aggregate of C++ with the same name and fields
    Annotated[memoryview, "float64"]          an array of one dimension
    Annotated[memoryview, "float64", 2]       an array of two dimensions
    Annotated[memoryview, "const float64"]    an array that is read-only

Invariant: each aggregate has one class, whose objects Python code receives: a class of the program,
if the program has named one, otherwise a class that this module makes.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import threading
import types
import typing
from typing import Any

from weft._extension import native as _native
from weft.errors import BadUse

__all__ = ["claim", "class_of", "type_text"]

_PLAIN = {int: "i", float: "d", bool: "b", str: "s", bytes: "y", None: "n", type(None): "n"}
_ITEMS = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "float32": "f", "float64": "d"}
_ITEMS |= {f"u{name}": code.upper() for name, code in _ITEMS.items() if name.startswith("int")}
# The limit is less than kDeepest of native_types.cpp, where nesting is counted in another way.
_DEEPEST = 30

_classes: dict[str, type] = {}
_made: set[type] = set()  # the classes among _classes that this module made
_lock = threading.RLock()  # protects _classes and _made; no code of the program runs under it


def field_names(cls: type) -> tuple[str, ...] | None:
    """Returns the names of the fields of a dataclass or a NamedTuple, or None if `cls` is
    neither.
    """
    if dataclasses.is_dataclass(cls):
        return tuple(f.name for f in dataclasses.fields(cls))
    if issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple):
        return typing.cast("tuple[str, ...]", cls._fields)  # type: ignore[attr-defined]
    return None


def _fits(cls: type, names: tuple[str, ...]) -> bool:
    own = field_names(cls)
    return own is not None and sorted(own) == sorted(names)


def _array(tp: Any, kind: tuple[Any, ...]) -> str:
    found = re.fullmatch(r"(const )?(\w+)", kind[0]) if isinstance(kind[0], str) else None
    dimensions = kind[1] if len(kind) > 1 else 1
    if (
        not found
        or found[2] not in _ITEMS
        or len(kind) > 2
        or not isinstance(dimensions, int)
        or not 1 <= dimensions <= 6
    ):
        raise BadUse(
            f"{tp!r} is not the type of an array: use Annotated[memoryview, 'float64'], "
            f"or 'const float64', or with its dimensions, 1 to 6: 'float64', 2; of {', '.join(_ITEMS)}"
        )
    return f"a{'r' if found[1] else ''}{dimensions if dimensions > 1 else ''}{_ITEMS[found[2]]}"


def _aggregate(cls: type, names: tuple[str, ...], within: tuple[Any, ...]) -> str:
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except Exception as error:
        raise BadUse(
            f"the types of the fields of {cls.__qualname__} are not known: {error}"
        ) from error
    parts = []
    for name in names:
        if name not in hints:
            raise BadUse(f"{cls.__qualname__}.{name} has no type: a native channel needs one")
        parts.append(f" {name} {_text(hints[name], (*within, cls))}")
    text = f"<{cls.__name__}{''.join(parts)}>"
    claim(text, cls)
    return text


def _text(tp: Any, within: tuple[Any, ...]) -> str:
    if len(within) > _DEEPEST:
        raise BadUse(f"{within[0]!r} holds types within types more than {_DEEPEST} deep")
    try:
        plain = _PLAIN.get(tp)
    except TypeError:
        # `tp` is not hashable, as Annotated[int, {}] is not; such types are handled below
        plain = None
    if plain:
        return plain
    if tp is Any or tp is object:
        return "v"
    origin, args = typing.get_origin(tp), typing.get_args(tp)
    inner = functools.partial(_text, within=(*within, tp))
    if origin is list and len(args) == 1:
        return f"[{inner(args[0])}]"
    if origin is dict and len(args) == 2:
        return f"{{{inner(args[0])}{inner(args[1])}}}"
    if origin is tuple and tp is not typing.Tuple and Ellipsis not in args:  # noqa: UP006
        return f"({''.join(map(inner, args))})"
    if origin is typing.Annotated and args[0] is memoryview:
        return _array(tp, args[1:])
    if origin is typing.Annotated:
        return inner(args[0])
    if origin in (typing.Union, types.UnionType):
        others = [a for a in args if a is not type(None)]
        if len(others) == 1 and len(args) == 2:
            return f"?{inner(others[0])}"
    if isinstance(tp, type):
        text = tp.__dict__.get("__weft_type__")
        if isinstance(text, str):
            return text
        names = field_names(tp)
        if names is not None:
            if tp in within:
                raise BadUse(
                    f"{tp.__qualname__} contains itself, so it cannot be the type of a native channel"
                )
            return _aggregate(tp, names, within)
    raise BadUse(
        f"{tp!r} cannot be the type of a native channel: use int, float, bool, str, bytes, None, list[T], tuple[T, U], dict[K, V], T | None, "
        "Any, a dataclass or NamedTuple, or Annotated[memoryview, 'float64'] for an array"
    )


def type_text(tp: Any) -> str:
    """Returns the text of a type, in the form of component_abi.h.

    Raises:
        BadUse: no native channel carries this type.
    """
    return _text(tp, ())


def claim(text: str, cls: type) -> None:
    """Makes `cls` the class of the objects that Python code receives for the aggregate `text`.

    A class that is defined again, in a cell of a notebook or by importlib.reload, replaces its
    predecessor.

    Raises:
        BadUse: the program uses another class for the same aggregate.
    """
    with _lock:
        known = _classes.get(text)
        if known is cls:
            return
        if known is None or known in _made or _again_defined(known, cls):
            _classes[text] = cls
            _native._native_set_class(text, cls)
            return
    raise BadUse(
        f"{known.__module__}.{known.__qualname__} and {cls.__module__}.{cls.__qualname__} are both {_native._native_describe(text)}, "
        "and Python gets such values as objects of one class only: use one of them, or give the other another name"
    )


def _again_defined(known: type, cls: type) -> bool:
    return (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)


def class_of(text: str) -> type:
    """Returns the class of an aggregate. The class is made if the program has named none."""
    with _lock:
        for inner, name, names, kinds in _native._native_aggregates(text):
            if inner not in _classes:
                claim(inner, _made_for(inner, name, names, kinds))
        return _classes[text]


def _made_for(text: str, name: str, names: tuple[str, ...], kinds: tuple[str, ...]) -> type:
    fields = [(n, _native._native_describe(k, False)) for n, k in zip(names, kinds, strict=True)]

    def reduce(self: Any) -> Any:
        return _again, (text, tuple(getattr(self, n) for n in names))

    try:
        made = dataclasses.make_dataclass(
            name, fields, slots=True, namespace={"__weft_type__": text, "__reduce__": reduce}
        )
    except (TypeError, ValueError) as error:
        raise BadUse(
            f"the aggregate {name} of a component cannot be a class of Python: {error}"
        ) from error
    made.__module__ = "weft.native"
    made.__doc__ = f"{_native._native_describe(text)}, an aggregate of native components."
    _made.add(made)
    return made


def _again(text: str, values: tuple[Any, ...]) -> Any:
    """Unpickles an object of a class that this module made."""
    return class_of(text)(*values)


_native._set_native_types(_fits, type_text)
