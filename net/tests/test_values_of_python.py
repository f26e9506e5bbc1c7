"""Python's own types of values to programs that are not trusted (WIRE-NETWORKS.md 17.15): tuples,
sets, dates, Enums and the others arrive with their types, also as random values.
"""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import fractions
import pathlib
import sys
import uuid
from typing import Any

import cbor2
import pytest
from hypothesis import given
from points import Color, May, Painted, Place
from typed_values import BERLIN, EAST, SETTINGS, VALUES, C, passed, refused

from weft._net import values as _net_values
from weft.errors import BadUse


def same(one: Any, other: Any) -> bool:
    """Returns whether two values are equal, and each part of one has the type of the other's."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple, collections.deque)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return len(one) == len(other) and all(map(same, one.items(), other.items()))
    if isinstance(one, (set, frozenset)):
        kinds = [sorted(type(part).__name__ for part in each) for each in (one, other)]
        return one == other and kinds[0] == kinds[1]
    return repr(one) == repr(other) or bool(one == other)


@pytest.mark.parametrize(
    "value",
    [
        (),
        (1, ("a", [None, (2.5,)])),
        {(1, 2): {frozenset([3]): (4,)}, "x": bytearray(b"y")},
        {None: 1, 2**70: -(2**70), True: b"", -0.0: 1},
        bytearray(b"abc"),
        {(1, 2)},
        frozenset(),
        frozenset([frozenset([1])]),
        collections.deque([1, (2,)], 5),
        collections.deque(),
        collections.OrderedDict(b=1, a=(2,)),
        collections.Counter({"a": -1, (1,): 0}),
        collections.defaultdict(list, {1: [2]}),
        collections.defaultdict(None, {}),
        range(10, 1, -(2**70)),
        complex(-0.0, float("inf")),
        decimal.Decimal("-1.500E+9999"),
        decimal.Decimal("sNaN123"),
        fractions.Fraction(-1, 2**70),
        uuid.UUID(int=5),
        uuid.uuid1(),
        array.array("d", [1.5, -0.0]),
        array.array("l", [-1]),
        array.array("B"),
        pathlib.Path("a/../b"),
        pathlib.PureWindowsPath("c:/x"),
        datetime.date(1, 1, 1),
        datetime.datetime(2020, 10, 25, 2, 30, 5, 6, tzinfo=BERLIN, fold=1),
        datetime.datetime(2020, 1, 2),
        datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc),
        datetime.time(1, 2, fold=1, tzinfo=EAST),
        datetime.timedelta(-1, 3, 5),
        BERLIN,
        EAST,
        Color.ROUGE,
        [Color.GREEN, {Color.RED: {May.READ}}],
        May.READ | May.RUN,
        May(0),
        Painted(Color.RED, {"x": [Color.GREEN]}, May.READ | May.WRITE),
        Painted(Color.RED, may=May(0), more=[(1, {2}), datetime.date(2020, 1, 1)]),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_pythons_own_types_arrive_as_they_were(value):  # wire 17.15
    received = passed([value])[0]
    assert same(received, value)
    if isinstance(value, (datetime.datetime, datetime.time)):
        assert same(received.tzinfo, value.tzinfo) and received.fold == value.fold
    elif isinstance(value, uuid.UUID):
        assert received.is_safe is value.is_safe


def test_a_field_arrives_as_its_annotation_says():  # wire 17.15
    assert passed(Place("a", [1, 2])) == Place("a", (1, 2))
    # A member in a field for anything, beside one in a field for that Enum, would arrive as its
    # value, so such an object is refused.
    with pytest.raises(BadUse, match=r"a malformed object of .*Painted has come"):
        passed(Painted(Color.RED, more=Color.RED))


def test_an_array_of_another_machine():  # wire 17.15
    """Bytes of the other order are swapped, and numbers of another size are refused."""
    other = ">" if sys.byteorder == "little" else "<"
    here = array.array("i", [1, 258])
    turned = array.array("i", here)
    turned.byteswap()
    packed = cbor2.dumps(cbor2.CBORTag(27, ["array", "i", f"{other}4", turned.tobytes()]))
    assert _net_values._loads(packed, C) == here
    assert "have 3 bytes, and here they have 4" in refused(["array", "i", "<3", b""])


@SETTINGS
@given(VALUES)
def test_random_values_arrive(value):  # wire 17.15
    assert same(passed(value), value)
