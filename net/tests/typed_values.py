"""What the tests of typed values share: how a value is packed and read, and random values of all
types that can be sent (WIRE-NETWORKS.md 17.15).
"""

from __future__ import annotations

import array
import collections
import datetime
import pathlib
import zoneinfo
from typing import Any

import cbor2
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from points import Color, May, Place, Row, Signal

from weft._net import values as _net_values
from weft.errors import BadUse


class C:
    """The fields of a channel that the packing functions read."""

    name = "c"


def passed(value: Any) -> Any:
    """Returns the value in the form in which it arrives."""
    return _net_values._loads(_net_values._dumps(value, C), C)


def refused(content: Any) -> str:
    """Returns the error of a reader for a well-formed object with this content."""
    packed = cbor2.dumps(cbor2.CBORTag(27, content))
    assert _net_values._native._cbor_fault(packed, True) is None
    with pytest.raises(BadUse, match=r"^read on channel 'c': .*\. The value is lost$") as raised:
        _net_values._loads(packed, C)
    return str(raised.value)


BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
EAST = datetime.timezone(datetime.timedelta(hours=1, microseconds=1), "east")
SETTINGS = settings(
    max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=20)
)
_KEYS = (
    st.integers()
    | st.text(max_size=5)
    | st.tuples(st.integers(), st.text(max_size=2))
    | st.frozensets(st.integers(), max_size=3)
    | st.dates()
)
_ZONES = st.sampled_from([None, datetime.timezone.utc, EAST, BERLIN])
_OWN = (
    st.complex_numbers(allow_nan=False)
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.uuids()
    | st.binary(max_size=9).map(bytearray)
    | st.dates()
    | st.datetimes(timezones=_ZONES)
    | st.times(timezones=st.sampled_from([None, EAST]))
    | st.timedeltas()
    | st.builds(range, st.integers(), st.integers(), st.integers(1))
    | st.lists(st.integers(-128, 127)).map(lambda v: array.array("b", v))
    | st.sets(st.integers() | st.text(max_size=3), max_size=3)
    | st.sampled_from([*Color, *May, May(5), pathlib.PurePosixPath("a")])
)
_OBJECTS = st.deferred(
    lambda: (
        st.builds(Place, st.text(), st.tuples(st.integers(), st.integers()), VALUES)
        | st.builds(Signal, st.floats(allow_nan=False), st.booleans())
        | st.builds(Row, st.integers(), st.text())
    )
)
VALUES: Any = st.recursive(
    SCALARS | _OWN | _OBJECTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.lists(inner, max_size=4).map(collections.deque)
        | st.dictionaries(_KEYS, inner, max_size=4)
        | st.dictionaries(_KEYS, inner, max_size=4).map(collections.OrderedDict)
    ),
    max_leaves=20,
)
