"""Values that go to a program on another machine that is not trusted (WIRE-NETWORKS.md 17.15).

    value ──_shaped()──► plain values, and objects as tag 27 ──CBOR──► the other machine
        └─a value that cannot be sent: BadUse at the write
    the other machine ──_made(), for each tag──► value
        └─a class that is not accepted: BadUse at the read

Invariants
- A value arrives as it was, with its type, or is refused. The one exception is a field of an
  accepted class: it arrives as the field's annotation says.
- A name from another machine is looked up only in `_accepted` and among Python's own types
  (python_types.py): nothing is imported, and only code of classes that this program has accepted
  runs.
- An array is made from its bytes only if their number matches its type and shape, and each element
  is valid for the type.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from weft import _derived
from weft._extension import native as _native
from weft._net import python_types as _python_types
from weft.errors import BadUse, NoResult

try:
    import cbor2
    import msgspec
except ImportError as error:
    raise ImportError(
        f"weft.net needs '{error.name or error}': pip install 'weft-csp[net]'", name=error.name
    ) from error

__all__ = ["accepts", "module_of"]

T = TypeVar("T")

OBJECT = 27  # the tag that is registered for CBOR: [name, …]
# An array is [NUMPY, dtype, shape, bytes]. This name cannot be confused with that of a class, which
# contains its module.
NUMPY = "numpy"
LARGE = 1 << 14  # bytes; a larger array that is sent alone is copied less often
BYTES, TEXT, ARRAY, NULL = 2, 3, 4, 0xF6  # the major types of CBOR, and its null
# How to lengthen the heads of an array so that its bytes begin at a multiple of eight, where the
# reader can use them in place. The index is the number of missing bytes. An item contains the
# number of bytes to add to the head of the dtype, the number to add to the head of the shape, and
# the number of bytes of the size.
_MORE = ((0, 0, 8), (1, 0, 8), (2, 0, 8), (2, 1, 8), (4, 0, 8), (4, 1, 8), (4, 2, 8), (2, 1, 4))
_LARGE = bytes((0xC0 | 24, OBJECT, 0x80 | 4, 0x60 | len(NUMPY))) + NUMPY.encode()
DEEPEST = 64
VALUES = (
    f"its values are None, bool, int, float, str, bytes, list, dict, {_python_types.CALLED}, arrays of numpy, "
    f"and dataclasses, NamedTuples, msgspec.Structs and Enums, at most {DEEPEST} deep"
)

_SMALL = 1 << 63
_FLAT = frozenset((bool, float))
_PLAIN = frozenset((type(None), bool, int, float, str, bytes))
_SENT = frozenset((*_PLAIN, list, dict, *_python_types.KINDS))
# The dtypes whose bytes mean the same on every machine, which excludes `long double` and objects.
_DTYPE = re.compile(
    r"[|<>](b1|[iu][1248]|f[248]|c8|c16|[SU][1-9][0-9]{0,8}"
    r"|[mM]8(\[[0-9]{0,9}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?)"
)

_accepted: dict[str, Any] = {}
_Refused = _python_types.Refused


# --- classes --------------------------------------------------------------------------------------


def module_of(module: str) -> str:
    """Returns the name by which another machine imports the module. For the main module this is the
    name of its file.
    """
    main = sys.modules.get("__main__")
    if module != "__main__" or main is None:
        return module
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    return spec.name if spec is not None else Path(file).stem if file else module


def _name_of(kind: type) -> str:
    return f"{module_of(kind.__module__)}.{kind.__qualname__}"


class _Shape:
    """The fields of a class whose objects can be sent."""

    def __init__(
        self, fields: Mapping[str, str], get: Callable[[Any], Any], wrong: str | None = None
    ) -> None:
        self.fields = fields  # the name with which a field is sent → the attribute
        self.get = get  # object → its fields, as they are sent
        self.wrong = wrong


@functools.lru_cache(maxsize=1024)
def _shape_of(kind: Any) -> _Shape | None:
    """Returns the shape of a class, or None if its objects cannot be sent."""
    if issubclass(kind, msgspec.Struct):
        fields = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
        return _Shape(
            fields, _by_place(fields) if kind.__struct_config__.array_like else _by_name(fields)
        )
    if issubclass(kind, tuple):
        names = getattr(kind, "_fields", None)
        return _Shape({n: n for n in names}, list) if isinstance(names, tuple) else None
    if dataclasses.is_dataclass(kind):
        fields = {f.name: f.name for f in dataclasses.fields(kind)}
        unset = [f.name for f in dataclasses.fields(kind) if not f.init]
        wrong = (
            f"whose field {unset[0]} has init=False: give it to the constructor" if unset else None
        )
        return _Shape(fields, _by_name(fields), wrong)
    if issubclass(kind, enum.Enum) and kind.__members__:
        return _Shape({}, _python_types.enum_names)
    return None


def _by_name(fields: Mapping[str, str]) -> Callable[[Any], Any]:
    return lambda value: {name: _shaped(getattr(value, own)) for name, own in fields.items()}


def _by_place(fields: Mapping[str, str]) -> Callable[[Any], Any]:
    return lambda value: [_shaped(getattr(value, own)) for own in fields.values()]


def accepts(kind: type[T]) -> type[T]:
    """Lets other machines send this program objects of a class: a dataclass, a NamedTuple, a
    msgspec.Struct or an Enum. Returns the class, so that it can be used as a decorator.

    A program that is not trusted sends the name of the class, MODULE.CLASS, and its fields. msgspec
    checks the fields against the class's annotations, makes an object of them and calls
    `__post_init__`. So a field arrives as its annotation says: a list in a field that is annotated
    as a tuple is a tuple. A member of an Enum is sent by its name; an Enum in a field must be
    accepted too. A class that is not accepted is refused at the read. A program that only sends
    objects of the class need not accept it.

    Args:
        kind: the class. A second class of the same name replaces the first.

    Raises:
        BadUse: `kind` is not a class of these kinds, or has a field for which msgspec knows no
            check.
    """
    asked: Any = kind
    shape = _shape_of(asked) if isinstance(kind, type) else None
    if shape is None:
        raise BadUse(
            f"accepts: expected a dataclass, NamedTuple, msgspec.Struct or Enum, got {kind!r}"
        )
    if shape.wrong:
        raise BadUse(f"accepts: {kind.__qualname__} is a class {shape.wrong}")
    try:
        if not issubclass(asked, enum.Enum):
            msgspec.json.Decoder(kind)  # made only to check all annotations
    except NameError:
        # an annotation can name a class that is defined later; errors are then found with the first
        # object
        pass
    except TypeError as error:
        raise BadUse(f"accepts: fields of {kind.__qualname__} cannot be checked: {error}") from None
    _accepted[_name_of(kind)] = kind
    return kind


def _object(content: list[Any]) -> Any:
    name, fields = content
    kind = _accepted.get(name)
    shape = _shape_of(kind) if kind is not None else None
    if kind is None or shape is None:
        shown = name[:200] if name.isprintable() else "a class without a proper name"
        raise _Refused(
            f"an object of {shown} has come, a class that this program does not accept from other machines: "
            "put @weft.net.accepts above the class, in a module that this program imports before it reads"
        )
    if issubclass(kind, enum.Enum):
        return _python_types.enum_made(kind, fields, name)
    if isinstance(fields, dict):
        for field in fields:
            if field not in shape.fields:
                raise _Refused(
                    f"an object of {name} has come with a field {str(field)[:100]!r}, which the class does not "
                    "have here: bring the same source to both machines"
                )
    elif not isinstance(fields, list) or len(fields) > len(shape.fields):
        raise _Refused(f"an object of {name} has come with other fields than the class has here")
    try:
        return _converted(fields, kind)
    except Exception as error:  # raised by msgspec, or by the class's own __post_init__
        raise _Refused(f"a malformed object of {name} has come: {error}") from error


def _converted(fields: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError:
        # Where a field is annotated as an Enum, msgspec takes the member's value, not the member.
        members = list(_members(fields))
        if not members:
            raise
        made = msgspec.convert(_with_values(fields), kind)
        shape = _shape_of(kind)
        assert shape is not None
        remade = [m for own in shape.fields.values() for m in _members(getattr(made, own))]
        if sorted(map(id, remade)) != sorted(map(id, members)):
            raise
        return made


def _members(value: Any) -> Iterator[Any]:
    """Yields the members of Enums in the value, which are not in objects of classes."""
    if isinstance(value, enum.Enum):
        yield value
    elif isinstance(value, (list, tuple, set, frozenset)):
        for part in value:
            yield from _members(part)
    elif isinstance(value, dict):
        for part in (*value, *value.values()):
            yield from _members(part)


def _with_values(value: Any) -> Any:
    """Returns the value with the values of members in place of members."""
    if isinstance(value, enum.Enum):
        return value.value
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(map(_with_values, value))
    if type(value) is dict:
        return {_with_values(k): _with_values(v) for k, v in value.items()}
    return value


# --- arrays ---------------------------------------------------------------------------------------


def _array_shaped(value: Any, numpy: Any, data: bytes | None = None) -> cbor2.CBORTag:
    """Returns the array as a tag. `data` replaces the array's bytes if it is given."""
    kind = type(value)
    scalar = isinstance(value, numpy.generic)
    if not scalar and kind is not numpy.ndarray and kind is not numpy.memmap:
        raise _Refused(f"a {kind.__name__}")
    if not _DTYPE.fullmatch(value.dtype.str):
        raise _Refused(f"an array of dtype {value.dtype}")
    shape = None if scalar else list(value.shape)
    data = value.tobytes() if data is None else data
    return cbor2.CBORTag(OBJECT, [NUMPY, value.dtype.str, shape, data])


def _large_packed(value: Any) -> bytes | None:
    """Packs a large array, whose bytes are copied once. Returns None for any other value."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray) or value.nbytes < LARGE:
        return None
    empty = cbor2.dumps(_array_shaped(value, numpy, b""))
    data = numpy.ascontiguousarray(value).reshape(-1).view(numpy.uint8)
    kind = len(_LARGE)
    shape = kind + 1 + (empty[kind] & 31)
    more = _MORE[-(len(empty) + 8) % 8]
    if empty[shape] & 31 > 23 or data.nbytes >> 32:
        more = 0, 0, 8
    heads = (
        empty[:kind],
        _long_head(empty[kind], more[0]),
        empty[kind + 1 : shape],
        _long_head(empty[shape], more[1]),
        empty[shape + 1 : -1],
        bytes((BYTES << 5 | 23 + more[2].bit_length(),)) + data.nbytes.to_bytes(more[2], "big"),
    )
    return b"".join((*heads, data))


def _long_head(head: int, more: int) -> bytes:
    """Returns a head with `more` bytes for its number after the first byte, since CBOR allows
    longer numbers than needed.
    """
    if not more:
        return bytes((head,))
    return bytes((head & 0xE0 | 23 + more.bit_length(),)) + (head & 31).to_bytes(more, "big")


def _large_found(packed: bytes | bytearray) -> Any:
    """Returns the array that _large_packed() has packed, or None if `packed` is another value."""
    if len(packed) < LARGE or not packed.startswith(_LARGE):
        return None
    try:
        (kind, shape), at = _items(packed, len(_LARGE), 2)
        major, size, at = _head(packed, at)
    except _Refused:
        return None
    if major != BYTES or at + size != len(packed):
        return None
    own = packed if isinstance(packed, bytearray) else None
    return _array([NUMPY, kind, shape, memoryview(packed)[at:]], own, at)


def _items(packed: bytes | bytearray, at: int, n: int) -> tuple[list[Any], int]:
    """Reads n items: texts, lengths, nulls, or arrays of these.

    Raises:
        _Refused: there are other items.
    """
    found: list[Any] = []
    for _ in range(n):
        major, size, after = _head(packed, at)
        if packed[at] == NULL:
            found.append(None)
        elif major == ARRAY:
            inner, after = _items(packed, after, size)
            found.append(inner)
        elif major == TEXT:
            found.append(packed[after : after + size].decode())
            after += size
        elif major == 0:
            found.append(size)
        else:
            raise _Refused("another item")
        at = after
    return found, at


def _head(packed: bytes | bytearray, at: int) -> tuple[int, int, int]:
    """Reads the head of a well-formed item. Returns its major type, its argument, and the index of
    the byte after the head.
    """
    major, low = packed[at] >> 5, packed[at] & 31
    after = at + 1 + (1 << low - 24 if low >= 24 else 0)
    return major, low if low < 24 else int.from_bytes(packed[at + 1 : after], "big"), after


def _array(content: list[Any], own: bytearray | None = None, at: int = 0) -> Any:
    """Makes an array. If `own` is given, it contains the array's bytes from index `at`, and the
    reader owns it.
    """
    _, kind, shape, data = content
    lengths = [] if shape is None else shape
    if not (
        isinstance(kind, str)
        and _DTYPE.fullmatch(kind)
        and isinstance(data, (bytes, memoryview))
        and isinstance(lengths, list)
        and all(type(n) is int and n >= 0 for n in lengths)
    ):
        raise _Refused("a malformed array has come")
    try:
        import numpy
    except ImportError:
        raise _Refused("an array of numpy has come, and there is no numpy here") from None
    try:
        dtype = numpy.dtype(kind)
        if math.prod(lengths) * dtype.itemsize != len(data):
            raise _Refused(f"an array of {kind} has come whose bytes are not those of its shape")
        if data and not _each_may_be(data, dtype, numpy):
            raise _Refused(
                f"an array of {kind} has come with bytes that are no values of that type"
            )
        # The array is made writable, since it belongs to the reader.
        if own is not None:
            made = numpy.ndarray(tuple(lengths), dtype, own, at)
        if own is None or not made.flags.aligned:
            made = (
                numpy.ndarray(tuple(lengths), dtype, bytearray(data))
                if data
                else numpy.empty(tuple(lengths), dtype)
            )
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise _Refused(f"a malformed array has come: {error}") from None
    return made[()] if shape is None else made


def _each_may_be(data: bytes | memoryview, dtype: Any, numpy: Any) -> bool:
    if dtype.kind == "b":
        return bool(numpy.frombuffer(data, numpy.uint8).max() <= 1)
    if dtype.kind == "U":
        points = numpy.frombuffer(data, numpy.dtype("u4").newbyteorder(dtype.byteorder))
        return bool(points.max() <= sys.maxunicode)
    return True


# --- whole values ---------------------------------------------------------------------------------


def _shaped(value: Any) -> Any:
    """Returns the value in the form in which it is sent.

    Raises:
        _Refused: part of the value cannot be sent.
    """
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if kind is list:
        return value if _PLAIN.issuperset(map(type, value)) else [_shaped(v) for v in value]
    if kind is tuple:
        plain = _PLAIN.issuperset(map(type, value))
        return cbor2.CBORTag(OBJECT, ["tuple", *(value if plain else map(_shaped, value))])
    if kind is dict:
        if not _PLAIN.issuperset(map(type, value)):
            return cbor2.CBORTag(OBJECT, _python_types.of_dict(value, _shaped))
        plain = _PLAIN.issuperset(map(type, value.values()))
        return value if plain else {k: _shaped(v) for k, v in value.items()}
    content = _python_types.content(kind)
    if content is not None:
        return cbor2.CBORTag(OBJECT, content(value, _shaped))
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.generic, numpy.ndarray)):
        return _array_shaped(value, numpy)
    shape = _shape_of(kind)
    if shape is not None:
        if shape.wrong:
            raise _Refused(f"a {kind.__name__}, {shape.wrong},")
        fields = shape.get(value)
        if shape.get is list:
            fields = [_shaped(v) for v in fields]
        return cbor2.CBORTag(OBJECT, [_name_of(kind), fields])
    shown = f" ({value!r})" if kind is NoResult else ""
    instead = _python_types.INSTEAD.get(kind.__name__) or _derived.instead(kind, _SENT)
    raise _Refused(_derived.called(kind, _SENT) + shown, instead)


def _dumps(value: Any, channel: Any) -> bytes:
    kind = type(value)
    instead: list[str] = []
    if (kind is int and -_SMALL <= value < _SMALL) or value is None or kind in _FLAT:
        return bytes(cbor2.dumps(value))  # a value of such a class can always be sent
    try:
        packed = _large_packed(value) or bytes(cbor2.dumps(_shaped(value)))
        fault = _native._cbor_fault(packed, True)
        if fault is None:
            return packed
        what = f"this value ({fault})"
    except _Refused as error:
        what, *instead = error.args
    except RecursionError:
        what = "a value that nests so deep, or stands in itself,"
    except Exception as error:
        # cbor2 can raise any exception for a value of a type that it does not know
        what = f"this value ({error})"
    raise BadUse(
        f"write on channel {channel.name!r}: {what} cannot go to a program on another machine that is not "
        f"trusted: {VALUES}{''.join(f'. Instead, {i}' for i in instead if i)}"
    )


def _made(content: Any, _: bool = False) -> Any:
    if isinstance(content, list) and content and isinstance(content[0], str):
        if content[0] == "tuple":
            return tuple(content[1:])
        if content[0] in _python_types.NAMES:
            return _python_types.made(content)
        if content[0] == NUMPY and len(content) == 4:
            return _array(content)
        if len(content) == 2:
            return _object(content)
    raise _Refused("an object has come that is neither of a class nor an array")


_DECODERS = {OBJECT: _made}


def _loads(packed: bytes | bytearray, channel: Any) -> Any:
    """Returns the value. If `packed` is a bytearray, the reader owns it.

    Raises:
        BadUse: a part of the value cannot be made here.
    """
    try:
        if packed and packed[0] < BYTES << 5:
            return cbor2.loads(packed)  # `packed` is a whole number
        large = _large_found(packed)
        return cbor2.loads(packed, semantic_decoders=_DECODERS) if large is None else large
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, _Refused):
            cause = cause.__cause__
        what = str(cause or error)
    where = f"channel {channel.name!r}" if channel is not None else "a channel"
    raise BadUse(f"read on {where}: {what}. The value is lost")


_native._set_cbor(_dumps, _loads, True)
