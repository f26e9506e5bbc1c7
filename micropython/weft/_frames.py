"""Compact frames (wire 12.7): `put` appends a frame to bytes, `take` reads the first frame of
bytes.

Invariant: `take` reads nothing beyond the bytes. For any bytes it returns a frame, or None if the
frame is not complete, or raises ValueError.
"""

OFFER, WITHDRAW, RETIRE, POISON = 1, 2, 10, 11
DONE, WITHDRAWN, ENDED, GIVE = 20, 21, 25, 30
HELLO, BYE, VALUE = 40, 41, 48
WRITE, BODY = 1, 128
HEADER = 32  # bytes of the header of a frame that is not compact; `largest` counts such frames
LIMIT = (0xFFFFFFFF, 0xFFFFFFFF, (1 << 64) - 1, (1 << 64) - 1, 65496)


def _varint(n, out):
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)


def put(out, kind, flags=0, where=0, txn=0, op=0, val=0, body=b""):
    out.append(kind)
    out.append(flags)
    for n in (where, txn, op, val, len(body)):
        _varint(n, out)
    out.extend(body)


def padded(n):
    return (n + 7) & ~7


def take(data):
    """Reads the first frame of `data`. Returns ((kind, flags, where, txn, op, val, body), the
    number of its bytes in `data`), or None if the frame is not complete."""
    if len(data) < 2:
        return None
    fields = []
    i = 2
    for most in LIMIT:
        n = shift = 0
        while True:
            if i >= len(data):
                return None
            b = data[i]
            i += 1
            n |= (b & 127) << shift
            if b < 128:
                break
            shift += 7
            if shift > 63:
                raise ValueError("a number of a compact frame does not end")
        if n > most:
            raise ValueError("a field of a compact frame is too large")
        fields.append(n)
    n = fields.pop()
    if len(data) - i < n:
        return None
    body = bytes(data[i : i + n]) + bytes(padded(n) - n)
    return (data[0], data[1], fields[0], fields[1], fields[2], fields[3], body), i + n
