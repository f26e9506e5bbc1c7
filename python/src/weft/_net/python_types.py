"""Values of Python's own types that CBOR does not know, such as tuples, sets and dates: how each is
sent, and made again as it was (WIRE-NETWORKS.md 17.15).

    value ──content(value, shaped)──► [name, parts …], sent as tag 27 ──made(content)──► value

Invariants
- The name of each type consists of letters. So it cannot be mistaken for the name of a class, which
  has a point in it, nor for an array of numpy.
- What made() returns has the same type and the same content as what content() was given, and shares
  nothing with it that can be changed.
- made() runs no code but Python's own, and that of accepted classes whose objects are keys or
  members of a set (`__hash__`, `__eq__`). It opens no file, except that the name of a time zone is
  looked up in this machine's own database.
"""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import enum
import fractions
import functools
import operator
import pathlib
import re
import sys
import uuid
import zoneinfo
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = [
    "CALLED",
    "INSTEAD",
    "KINDS",
    "NAMES",
    "Refused",
    "content",
    "enum_made",
    "enum_names",
    "made",
    "of_dict",
]

Shaped = Callable[[Any], Any]
Content = list[Any]


class Refused(Exception):
    """The reason why a value cannot be sent, or cannot be made."""


CALLED = (
    "bytearray, tuple, set, frozenset, range, complex, deque, OrderedDict, Counter, defaultdict, Decimal, "
    "Fraction, UUID, array.array, the types of datetime, paths"
)
# What a program can write in place of a value that cannot be sent.
INSTEAD = {
    "memoryview": "write bytes(view), or an array",
    "slice": "write a tuple of its three numbers",
    "generator": "write a list of its values",
    "mappingproxy": "write dict(value)",
    "dict_keys": "write list(value)",
    "dict_values": "write list(value)",
    "dict_items": "write list(value)",
}

# --- how a value is sent --------------------------------------------------------------------------

# The time for which a reader's program must reduce a fraction grows with the square of its length.
LONGEST = 32_768  # bits
ORDER = "<" if sys.byteorder == "little" else ">"
TYPECODES = frozenset("bBhHiIlLqQfd")
# A defaultdict is sent with one of these. Another function cannot be sent.
_FACTORIES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (bool, bytearray, bytes, complex, dict, float, int, list, set, str, tuple)
}


def _pairs(items: Iterable[tuple[Any, Any]], shaped: Shaped) -> Iterator[Any]:
    for key, value in items:
        yield shaped(key)
        yield shaped(value)


def _defaultdict(value: Any, shaped: Shaped) -> Content:
    factory = value.default_factory
    if factory is not None and _FACTORIES.get(getattr(factory, "__name__", "")) is not factory:
        raise Refused(f"a defaultdict whose values are made by {factory!r:.100}")
    name = None if factory is None else factory.__name__
    return ["defaultdict", name, *_pairs(value.items(), shaped)]


def _fraction(value: Any, _: Shaped) -> Content:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > LONGEST:
        raise Refused(f"a Fraction of more than {LONGEST} bits")
    return ["Fraction", value.numerator, value.denominator]


def _array(value: Any, _: Shaped) -> Content:
    if value.typecode not in TYPECODES:
        raise Refused(f"an array of typecode {value.typecode!r}")
    return ["array", value.typecode, f"{ORDER}{value.itemsize}", value.tobytes()]


def _timezone(value: Any, _: Shaped) -> Content:
    offset, *name = value.__getinitargs__()
    return ["timezone", offset // datetime.timedelta(microseconds=1), *name]


def _zone(value: Any, _: Shaped) -> Content:
    if not value.key or not _ZONE.fullmatch(value.key):
        raise Refused(f"a ZoneInfo that has no name ({value!r:.100})")
    return ["ZoneInfo", value.key]


def _moment(value: Any, shaped: Shaped) -> Content:
    own = ["datetime", value.year, value.month, value.day] if type(value) is _DATETIME else ["time"]
    zone = None if value.tzinfo is None else shaped(value.tzinfo)
    return [*own, value.hour, value.minute, value.second, value.microsecond, value.fold, zone]


_DATETIME = datetime.datetime
_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,60}(/[A-Za-z0-9_+-]{1,60}){0,3}")
_PATHS = (
    pathlib.PosixPath,
    pathlib.WindowsPath,
    pathlib.PurePosixPath,
    pathlib.PureWindowsPath,
)

_CONTENTS: dict[type, Callable[[Any, Shaped], Content]] = {
    bytearray: lambda value, _: ["bytearray", bytes(value)],
    tuple: lambda value, shaped: ["tuple", *map(shaped, value)],
    set: lambda value, shaped: ["set", *map(shaped, value)],
    frozenset: lambda value, shaped: ["frozenset", *map(shaped, value)],
    collections.deque: lambda value, shaped: ["deque", value.maxlen, *map(shaped, value)],
    collections.OrderedDict: lambda value, shaped: [
        "OrderedDict",
        *_pairs(value.items(), shaped),
    ],
    collections.Counter: lambda value, shaped: ["Counter", *_pairs(value.items(), shaped)],
    collections.defaultdict: _defaultdict,
    range: lambda value, _: ["range", value.start, value.stop, value.step],
    complex: lambda value, _: ["complex", value.real, value.imag],
    decimal.Decimal: lambda value, _: ["Decimal", str(value)],
    fractions.Fraction: _fraction,
    uuid.UUID: lambda value, _: ["UUID", value.bytes, value.is_safe.value],
    array.array: _array,
    datetime.date: lambda value, _: ["date", value.year, value.month, value.day],
    datetime.time: _moment,
    datetime.datetime: _moment,
    datetime.timedelta: lambda value, _: [
        "timedelta",
        value.days,
        value.seconds,
        value.microseconds,
    ],
    datetime.timezone: _timezone,
    zoneinfo.ZoneInfo: _zone,
    **dict.fromkeys(_PATHS, lambda value, _: [type(value).__name__, str(value)]),
}
KINDS = frozenset(_CONTENTS)
content = _CONTENTS.get  # type → how its values are sent


def of_dict(value: dict[Any, Any], shaped: Shaped) -> Content:
    """Returns the content for a dict that has a key which is no plain value."""
    return ["dict", *_pairs(value.items(), shaped)]


# --- how a value is made --------------------------------------------------------------------------


def _paired(parts: Content) -> Iterator[tuple[Any, Any]]:
    if len(parts) % 2:
        raise ValueError("a key has no value")
    return zip(parts[::2], parts[1::2], strict=True)


def _only(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{type(value).__name__} where {kind.__name__} belongs")
    return value


def _made_bytearray(data: bytes) -> bytearray:
    return bytearray(_only(bytes, data))


def _made_deque(most: int | None, *parts: Any) -> Any:
    if most is not None and not 0 <= most >= len(parts):
        raise ValueError("it has more values than it may have")
    return collections.deque(parts, most)


def _made_defaultdict(factory: str | None, *parts: Any) -> Any:
    return collections.defaultdict(
        None if factory is None else _FACTORIES[factory], _paired(list(parts))
    )


def _made_counter(*parts: Any) -> Any:
    made: Any = collections.Counter()
    made.update(dict(_paired(list(parts))))
    return made


def _made_fraction(numerator: int, denominator: int) -> Any:
    if max(_only(int, numerator).bit_length(), _only(int, denominator).bit_length()) > LONGEST:
        raise ValueError(f"its numerator or denominator has more than {LONGEST} bits")
    return fractions.Fraction(numerator, denominator)


def _made_array(typecode: str, size: str, data: bytes) -> Any:
    if typecode not in TYPECODES:
        raise ValueError("its typecode is unknown")
    made = array.array(typecode)
    if size[1:] != str(made.itemsize):
        raise Refused(
            f"an array of typecode {typecode!r} has come whose numbers have {size[1:3]} bytes, and here they "
            f"have {made.itemsize}: use a typecode whose numbers have the same size on both machines, such as 'q'"
        )
    made.frombytes(_only(bytes, data))
    if size[0] != ORDER:
        made.byteswap()
    return made


def _made_timezone(offset: int, *name: str) -> Any:
    return datetime.timezone(datetime.timedelta(microseconds=_only(int, offset)), *name)


def _made_zone(key: str) -> Any:
    if not _ZONE.fullmatch(key):
        raise ValueError("its name is not that of a time zone")
    try:
        return zoneinfo.ZoneInfo(key)
    except (zoneinfo.ZoneInfoNotFoundError, OSError, ValueError):
        raise Refused(
            f"a time in the zone {key} has come, which this machine does not know: install tzdata here"
        ) from None


def _made_datetime(*parts: Any) -> Any:
    *numbers, fold, zone = parts
    if len(numbers) != 7:
        raise ValueError("parts are missing")
    make: Any = datetime.datetime
    return make(*numbers, zone, fold=fold)


def _made_time(*parts: Any) -> Any:
    *numbers, fold, zone = parts
    if len(numbers) != 4:
        raise ValueError("parts are missing")
    make: Any = datetime.time
    return make(*numbers, zone, fold=fold)


def _made_path(kind: Any) -> Callable[[str], Any]:
    def make(text: str) -> Any:
        try:
            return kind(_only(str, text))
        except NotImplementedError:
            raise Refused(
                f"a {kind.__name__} has come, which this system does not have: write a pure path, or str(path)"
            ) from None

    return make


_MAKERS: dict[str, Callable[..., Any]] = {
    "bytearray": _made_bytearray,
    "tuple": lambda *parts: parts,
    "set": lambda *parts: set(parts),
    "frozenset": lambda *parts: frozenset(parts),
    "dict": lambda *parts: dict(_paired(list(parts))),
    "deque": _made_deque,
    "OrderedDict": lambda *parts: collections.OrderedDict(_paired(list(parts))),
    "Counter": _made_counter,
    "defaultdict": _made_defaultdict,
    "range": lambda start, stop, step: range(start, stop, step),
    "complex": lambda real, imag: complex(_only(float, real), _only(float, imag)),
    "Decimal": lambda text: decimal.Decimal(_only(str, text)),
    "Fraction": _made_fraction,
    "UUID": lambda data, safe: uuid.UUID(bytes=_only(bytes, data), is_safe=uuid.SafeUUID(safe)),
    "array": _made_array,
    "date": lambda year, month, day: datetime.date(year, month, day),
    "time": _made_time,
    "datetime": _made_datetime,
    "timedelta": lambda days, seconds, microseconds: datetime.timedelta(
        _only(int, days), _only(int, seconds), _only(int, microseconds)
    ),
    "timezone": _made_timezone,
    "ZoneInfo": _made_zone,
    **{kind.__name__: _made_path(kind) for kind in _PATHS},
}
NAMES = frozenset(_MAKERS)


def made(parts: Content) -> Any:
    """Returns the value that was sent as these parts. The first part is one of NAMES.

    Raises:
        Refused: the parts are not those of such a value, or this machine cannot make it.
    """
    name = parts[0]
    try:
        return _MAKERS[name](*parts[1:])
    except Refused:
        raise
    except Exception as error:  # raised by the type, or by an accepted class's __hash__
        raise Refused(f"a malformed {name} has come: {error}") from None


# --- members of Enums -----------------------------------------------------------------------------


def enum_names(value: Any) -> list[str]:
    """Returns the names by which a member of an Enum is sent: one name, except for a Flag that
    combines several members, or none.

    Raises:
        Refused: the value has bits that no member of its Flag has.
    """
    kind: Any = type(value)
    if getattr(value, "_name_", None) in kind.__members__:
        return [value._name_]
    names = [
        name
        for name, member in kind.__members__.items()
        if member._value_ and value._value_ & member._value_ == member._value_
    ]
    if not names and value._value_ == 0:
        return names
    if not names or _combined(kind, names) != value:
        raise Refused(f"a {kind.__name__} that has a bit without a name")
    return names


def enum_made(kind: Any, names: Any, called: str) -> Any:
    """Returns the member of an Enum.

    Raises:
        Refused: the names are not those of members.
    """
    flag = issubclass(kind, enum.Flag)
    if not isinstance(names, list) or (len(names) != 1 and not flag):
        raise Refused(f"a malformed member of {called} has come")
    for name in names:
        if not isinstance(name, str) or name not in kind.__members__:
            raise Refused(
                f"a member {str(name)[:100]!r} of {called} has come, which the class does not have here: "
                "bring the same source to both machines"
            )
    return _combined(kind, names)


def _combined(kind: Any, names: list[str]) -> Any:
    members = [kind.__members__[name] for name in names]
    return functools.reduce(operator.or_, members) if members else kind(0)
