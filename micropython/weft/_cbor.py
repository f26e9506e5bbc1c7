"""Encodes and decodes CBOR (RFC 8949), as far as a link needs it (WIRE-LINKS.md 12.8).

Invariants
- For any bytes `loads` returns one whole value or raises ValueError, and reads nothing beyond them.
- Values are nested at most DEEPEST levels deep, so that the stack of both functions is bounded.
"""

import struct

from .errors import BadUse

DEEPEST = 16
SIMPLE = {20: False, 21: True, 22: None}
FLOATS = {26: (4, ">f"), 27: (8, ">d")}


def dumps(v):
    """Returns the bytes of a value. Raises BadUse if a link cannot carry the value."""
    out = bytearray()
    try:
        _put(v, out, 0)
    except UnicodeError:
        raise BadUse("a text that is not Unicode cannot go over a link")
    return bytes(out)


def _head(major, n, out):
    major <<= 5
    if n < 24:
        out.append(major | n)
    elif n < 0x100:
        out.extend(bytes((major | 24, n)))
    elif n < 0x10000:
        out.extend(struct.pack(">BH", major | 25, n))
    elif n < 0x100000000:
        out.extend(struct.pack(">BI", major | 26, n))
    else:
        out.extend(struct.pack(">BQ", major | 27, n))


def _put(v, out, depth):
    if depth > DEEPEST:
        raise BadUse("a value that nests deeper than %d cannot go over a link" % DEEPEST)
    if v is None or v is True or v is False:
        out.append(0xF6 if v is None else 0xF5 if v else 0xF4)
    elif isinstance(v, int):
        n = v if v >= 0 else -1 - v
        if n >> 64:
            size, rest = 0, n
            while rest:
                rest >>= 8
                size += 1
            out.append(0xC2 if v >= 0 else 0xC3)
            _head(2, size, out)
            out.extend(n.to_bytes(size, "big"))
        else:
            _head(0 if v >= 0 else 1, n, out)
    elif isinstance(v, float):
        out.append(0xFB)
        out.extend(struct.pack(">d", v))
    elif isinstance(v, str):
        b = v.encode()
        _head(3, len(b), out)
        out.extend(b)
    elif isinstance(v, (bytes, bytearray, memoryview)):
        _head(2, len(v), out)
        out.extend(v)
    elif isinstance(v, (list, tuple)):
        _head(4, len(v), out)
        for x in v:
            _put(x, out, depth + 1)
    elif isinstance(v, dict):
        _head(5, len(v), out)
        for k in v:
            if isinstance(k, (tuple, list)):
                raise BadUse("a key that is a tuple cannot go over a link")
            _put(k, out, depth + 1)
            _put(v[k], out, depth + 1)
    else:
        raise BadUse(
            "a %s cannot go over a link: its values are None, bool, int, float, str, bytes, and lists, "
            "tuples and dicts of those" % type(v).__name__
        )


def loads(data):
    """Returns the value of these bytes. Raises ValueError if they are not exactly one value."""
    v, i = _get(data, 0, 0)
    if i != len(data):
        raise ValueError("more than one value")
    return v


def _get(b, i, depth, key=False):
    if depth > DEEPEST:
        raise ValueError("it nests too deep")
    if i >= len(b):
        raise ValueError("it is cut off")
    major, low = b[i] >> 5, b[i] & 31
    i += 1
    if major == 7:
        return _other(b, i, low)
    n = low
    if low >= 24:
        size = 1 << (low - 24)
        if size > 8 or i + size > len(b):
            raise ValueError("it is cut off, or of no known length")
        n = int.from_bytes(b[i : i + size], "big")
        i += size
    if major < 2:
        return (n if major == 0 else -1 - n), i
    if major == 6:
        if n not in (2, 3) or i >= len(b) or b[i] >> 5 != 2:
            raise ValueError("a tag that is not a large integer's")
        v, i = _get(b, i, depth + 1)
        v = int.from_bytes(v, "big")
        return (v if n == 2 else -1 - v), i
    if n > len(b) - i:  # every item has at least one byte
        raise ValueError("it is cut off")
    if major < 4:
        v = bytes(b[i : i + n])
        try:
            return (v if major == 2 else v.decode()), i + n
        except UnicodeError:
            raise ValueError("a text that is not UTF-8")
    if key:
        raise ValueError("a key that is an array or a map")
    if major == 4:
        v = []
        for _ in range(n):
            x, i = _get(b, i, depth + 1)
            v.append(x)
        return v, i
    v = {}
    for _ in range(n):
        k, i = _get(b, i, depth + 1, True)
        v[k], i = _get(b, i, depth + 1)
    return v, i


def _other(b, i, low):
    if low in SIMPLE:
        return SIMPLE[low], i
    if low == 25 and i + 2 <= len(b):
        return _half(b[i] << 8 | b[i + 1]), i + 2
    if low in FLOATS:
        size, form = FLOATS[low]
        if i + size <= len(b):
            return struct.unpack(form, b[i : i + size])[0], i + size
    raise ValueError("it is neither null, a boolean nor a float")


def _half(n):
    e, m = n >> 10 & 31, n & 1023
    if e == 31:
        v = float("nan") if m else float("inf")
    else:
        v = m / (1 << 24) if e == 0 else (1024 + m) / (1 << 25) * (1 << e)
    return -v if n >> 15 else v
