"""Tests with corrupted and random bytes: a board and a PC read them in the same way, and the board
raises only the exceptions that it documents (WIRE-LINKS.md 12.6 to 12.8)."""

from __future__ import annotations

import random

import cbor2
import pytest

from weft import _native

from . import tiers

SEEDS = range(3)
MANY = 1500
VALUES: list[object] = [
    *(0, 23, 24, 2**32, -1, -(2**31), 2**64, -(2**70), 1.5, True, None, "text", "€", b"bytes", []),
    *([1, [2, [3]]], {"a": 1, b"k": [None, {}], 3: "x"}, [[[[]]]], "x" * 300, [-0.0, "\0", b"\0"]),
]


def spoilt(rng: random.Random, good: bytes) -> bytes:
    """Returns the bytes `good` with a few changed, inserted or removed; sometimes unchanged."""
    b = bytearray(good)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(b) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            b[at:at] = rng.choice([b"\x81", b"\xa1", b"\xc2", b"\xf9", b"\xff", rng.randbytes(3)])
        elif kind == 1:
            del b[at : at + rng.randrange(1, 4)]
        elif at < len(b):
            b[at] ^= 1 << rng.randrange(8) if kind == 2 else rng.randrange(256)
    return bytes(b)


def on_the_board(code: str, pieces: list[bytes]) -> list[str]:
    """Returns the board's answer to each piece: the text that the function `said` in `code`
    returns."""
    lines = "\n".join(p.hex() or "-" for p in pieces)
    program = (
        "import binascii\n"
        f"{code}\n"
        f'for word in """{lines}""".split():\n'
        '    print(said(b"" if word == "-" else binascii.unhexlify(word)))\n'
    )
    return tiers.snippet("pure", program).split()


def test_what_is_spoilt_is_really_both_sound_and_not() -> None:
    """The corrupted bytes include valid and invalid ones, so that the other tests compare both
    kinds."""
    rng = random.Random(0)
    made = [spoilt(rng, cbor2.dumps(rng.choice(VALUES))) for _ in range(MANY)]
    faults = sum(_native._cbor_fault(b) is not None for b in made)
    assert MANY // 5 < faults < MANY * 4 // 5


@pytest.mark.parametrize("seed", SEEDS)
def test_a_board_and_a_pc_agree_on_what_is_a_value(seed: int) -> None:
    """wire 12.8: `loads` returns a value where the PC's check accepts the bytes, and raises
    ValueError elsewhere; but MicroPython accepts some text that is not UTF-8"""
    rng = random.Random(seed)
    made = [spoilt(rng, cbor2.dumps(rng.choice(VALUES))) for _ in range(MANY)]
    output = on_the_board(
        "from weft import _cbor\n"
        "def said(b):\n"
        "    try:\n"
        "        _cbor.loads(b)\n"
        "        return 'value'\n"
        "    except ValueError:\n"
        "        return 'none'\n",
        made,
    )
    faults = [_native._cbor_fault(b) for b in made]
    differ = [
        (b.hex(), s, fault)
        for b, s, fault in zip(made, output, faults, strict=True)
        if (s == "value") != (fault is None) and not (s == "value" and "UTF-8" in str(fault))
    ]
    assert not differ


@pytest.mark.parametrize("seed", SEEDS)
def test_frames_of_rubbish_are_frames_or_not_whole_or_refused(seed: int) -> None:
    """wire 12.7: `take` reads nothing beyond the bytes, and raises no error but ValueError"""
    rng = random.Random(seed)
    good = bytes([20, 128, 0, 0, 7, 3, 3]) + b"\x63ab"
    made = [spoilt(rng, good) if rng.randrange(2) else rng.randbytes(12) for _ in range(MANY)]
    output = on_the_board(
        "from weft import _frames\n"
        "def said(b):\n"
        "    try:\n"
        "        got = _frames.take(b)\n"
        "    except ValueError:\n"
        "        return 'refused'\n"
        "    return 'more' if got is None else 'beyond' if got[1] > len(b) else 'frame'\n",
        made,
    )
    assert len(output) == MANY
    assert set(output) == {"refused", "more", "frame"}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_line_of_rubbish_gives_no_byte_to_the_session(seed: int) -> None:
    """wire 12.6, 13.2: bytes without a valid checksum are ignored, before the peer is known and
    after"""
    rng = random.Random(seed)
    made = [spoilt(rng, bytes(rng.choices(range(8), k=40)) + b"\0") for _ in range(MANY)]
    output = on_the_board(
        "from weft import _line\n"
        "line = _line.Line(7)\n"
        "peer = _line.Line(9)\n"
        "for _ in range(3):\n"
        "    for a, b in ((line, peer), (peer, line)):\n"
        "        out = bytearray()\n"
        "        a.output(1000, out)\n"
        "        b.input(out, 1000)\n"
        "assert line.linked and peer.linked\n"
        "fresh = _line.Line(11)\n"
        "def said(b):\n"
        "    quiet = not line.input(b, 1000) and not fresh.input(b, 1000)\n"
        "    return 'quiet' if quiet and line.lost is None and not fresh.linked else 'taken'\n",
        made,
    )
    assert output == ["quiet"] * MANY


def test_a_packet_with_any_one_bit_spoilt_is_passed_over_and_whole_it_is_taken() -> None:
    """wire 13.1, 13.2: the checksum, which includes the keys of both sides, covers the whole
    packet"""
    output = tiers.snippet(
        "pure",
        "from weft import _line\n"
        "line, peer = _line.Line(7), _line.Line(9)\n"
        "for _ in range(3):\n"
        "    for a, b in ((line, peer), (peer, line)):\n"
        "        out = bytearray()\n"
        "        a.output(1000, out)\n"
        "        b.input(out, 1000)\n"
        "peer.give(b'five\\0')\n"
        "good = bytearray()\n"
        "peer.output(1000, good)\n"
        "taken = 0\n"
        "for i in range(8 * len(good)):\n"
        "    bad = bytearray(good)\n"
        "    bad[i // 8] ^= 1 << i % 8\n"
        "    taken += len(line.input(bad, 1000))\n"
        "    line.input(b'\\0', 1000)\n"
        "print(8 * len(good) > 160, taken, line.lost, bytes(line.input(good, 1000)))\n",
    )
    assert output == "True 0 None b'five\\x00'\n"


SESSION = """\
from weft import _frames as f
from weft import link as L


class Ended:
    done = True


class Process:
    x = Ended


def opened():
    link = L.Link(None)
    link._greeted = True
    hi = bytearray()
    f.put(hi, f.GIVE, 0, 0, 0, 0, 15, b"12345678cbor\\0a")
    f.put(hi, f.GIVE, f.WRITE, 1, 0, 0, 15, b"12345678cbor\\0b")
    link._frames(hi)
    a, b = link._channels
    for at, values in ((((a, False),), (None,)), (((b, True),), (b"\\7",)), (((a, False), (b, True)), (None, b"\\7"))):
        link._offer(L._Op(link, Process, at, values, False))
    return link


def said(data):
    link = opened()
    link._frames(data)
    return "open" if link.why is None else "over"
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_a_pc_says_a_session_goes_on_or_is_over(seed: int) -> None:
    """wire 14.2: no exception leaves the link for any frames, valid or corrupted, with the largest
    fields that are allowed"""
    rng = random.Random(seed)

    def varint(n: int) -> bytes:
        out = bytearray()
        while n > 127:
            out.append(n & 127 | 128)
            n >>= 7
        return bytes([*out, n])

    def frame() -> bytes:
        large = [0, 1, 2, 3, 9, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]
        body = rng.choice([b"", b"\x07", b"\x63abc", b"12345678cbor\0x", rng.randbytes(20)])
        kind = rng.choice([20, 21, 25, 30, 41, 48, rng.randrange(256)])
        fields = [rng.randrange(3), 0, rng.randrange(4), rng.choice([len(body), rng.choice(large)])]
        if not rng.randrange(8):
            fields[rng.randrange(4)] = rng.choice(large)
        head = bytes([kind, rng.choice([0, 1, 128, 129])]) + b"".join(map(varint, fields))
        return head + varint(len(body)) + body

    made = [
        spoilt(rng, whole) if rng.randrange(2) else whole
        for whole in (b"".join(frame() for _ in range(rng.randrange(1, 5))) for _ in range(400))
    ]
    output = on_the_board(SESSION, made)
    assert len(output) == len(made)
    assert {*output} == {"open", "over"}
