"""Tests weft.processes.Shared: an array that many OS processes read and none changes (WIRE.md
9.3).
"""

from __future__ import annotations

import array
import gc
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import weft.processes as ps
import weft.threads as th
from weft.errors import BadUse
from weft.processes import Shared

numpy = pytest.importorskip("numpy")


@ps.process
def total(table: Any, out: Any) -> None:
    out(float(numpy.asarray(table).sum()))


@ps.process
def where(tables: list[Any], weights: dict[str, Any]) -> list[tuple[int, bool]]:
    """Returns the address of each array in this OS process, and whether the array can be written
    to."""
    views = [numpy.asarray(t) for t in (*tables, weights["w"])]
    return [(v.ctypes.data, v.flags.writeable) for v in views]


@ps.process
def passes_on(inp: Any, out: Any) -> None:
    for shared in inp:
        out(shared)


@ps.process
def answers(inp: Any, out: Any) -> None:
    for name, shared in inp:
        view = memoryview(shared)
        out(
            (name, shared.shape, shared.format, view.readonly, view.tolist() if view.ndim else None)
        )


def segments() -> int:
    return Path("/proc/self/maps").read_text(encoding="ascii").count("/memfd:weft")


def test_an_argument_is_mapped_by_each_that_gets_it() -> None:
    numbers = numpy.arange(100_000.0)
    table = Shared(numbers)
    c = th.Channel("c")

    @th.process
    def reads(inp: Any) -> list[float]:
        return [inp.read() for _ in range(3)]

    got = th.Parallel(reads(c.reader()), *(total(table, c.writer()) for _ in range(3)))[0]
    assert got == [numbers.sum()] * 3


def test_it_is_read_only_here_and_there_and_the_same_array_has_one_mapping() -> None:
    table = Shared(numpy.arange(10))
    (found,) = th.Parallel(where([table, table], {"w": table}))
    assert len({address for address, _ in found}) == 1
    assert not any(writeable for _, writeable in found)
    view = numpy.asarray(table)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 5
    with pytest.raises(TypeError, match=r"read-only|readonly"):
        memoryview(table)[0] = 5  # type: ignore[index]


@pytest.mark.parametrize(
    ("made", "shape", "format"),
    [
        (b"abc", (3,), "B"),
        (b"", (0,), "B"),
        (array.array("d", [1.5, 2.5]), (2,), "d"),
        (numpy.arange(6, dtype="int16").reshape(2, 3), (2, 3), "h"),
        (numpy.array(7.5), (), "d"),
        (numpy.zeros((3, 0)), (3, 0), "d"),
        (numpy.arange(4, dtype="complex64"), (4,), "Zf"),
    ],
)
def test_shapes_and_formats_arrive(made: Any, shape: tuple[int, ...], format: str) -> None:
    shared = Shared(made)
    assert (shared.shape, shared.format) == (shape, format)
    assert shared.nbytes == memoryview(made).nbytes
    outward, back = th.Channel("there"), th.Channel("back")

    @th.process
    def asks(out: Any, inp: Any) -> Any:
        out(("x", shared))
        return inp.read()

    if format == "Zf":  # memoryview.tolist() does not know this format
        assert numpy.asarray(shared).tolist() == made.tolist()
        return
    _, got_shape, got_format, readonly, values = th.Parallel(
        asks(outward.writer(), back.reader()), answers(outward.reader(), back.writer())
    )[0]
    assert (got_shape, got_format, readonly) == (shape, format, True)
    assert values == (memoryview(made).tolist() if shape else None)


def test_it_goes_on_through_a_host_and_comes_home_to_the_same_memory() -> None:
    shared = Shared(numpy.arange(50_000))
    outward, back = th.Channel("there"), th.Channel("back", capacity=3)

    @th.process
    def here(out: Any, inp: Any) -> list[int]:
        for _ in range(3):
            out(shared)
        return [numpy.asarray(inp.read()).ctypes.data for _ in range(3)]

    got = th.Parallel(
        here(outward.writer(), back.reader()), passes_on(outward.reader(), back.writer())
    )[0]
    assert set(got) == {numpy.asarray(shared).ctypes.data}


def test_beside_large_values_in_one_value_and_many_of_them() -> None:
    outward, back = th.Channel("there"), th.Channel("back")
    tables = [Shared(numpy.full(1000, i)) for i in range(40)]
    value = {"tables": tables, "big": numpy.arange(200_000), "again": tables[7]}

    @th.process
    def here(out: Any, inp: Any) -> Any:
        out(value)
        return inp.read()

    got = th.Parallel(
        here(outward.writer(), back.reader()), passes_on(outward.reader(), back.writer())
    )[0]
    assert [int(numpy.asarray(t)[0]) for t in got["tables"]] == list(range(40))
    assert got["again"] is got["tables"][7]
    assert int(got["big"][-1]) == 199_999


def test_it_goes_with_its_last_holder() -> None:
    gc.collect()
    before = segments()
    tables = [Shared(numpy.arange(5_000) + i) for i in range(30)]
    assert segments() >= before + 30
    th.Parallel(where(tables, {"w": tables[0]}))
    del tables
    gc.collect()
    assert segments() <= before + 2  # the difference is that of the slots of a link


def test_the_array_it_was_made_of_may_change_after_that() -> None:
    numbers = numpy.arange(10)
    shared = Shared(numbers)
    numbers[:] = 0
    assert numpy.asarray(shared).tolist() == list(range(10))


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ("text", "has no buffer"),
        (5, "has no buffer"),
        (numpy.arange(10)[::2], "one piece"),
        (numpy.array([{}, []], dtype=object), "objects|no buffer"),
        (None, "has no buffer"),
    ],
)
def test_what_it_is_not_made_of(made: Any, says: str) -> None:
    with pytest.raises(BadUse, match=says):
        Shared(made)


def test_wrong_calls() -> None:
    with pytest.raises(TypeError):
        Shared()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Shared(b"", b"")  # type: ignore[call-arg]


def test_pickled_by_itself_it_says_what_to_do() -> None:
    with pytest.raises(BadUse, match="as an argument of theirs, or through a channel"):
        pickle.dumps(Shared(b"abc"))


def test_within_one_os_process_it_is_a_value_as_any_other() -> None:
    c = th.Channel("c")
    shared = Shared(b"abc")

    @th.process
    def writes(out: Any) -> None:
        out(shared)

    @th.process
    def reads(inp: Any) -> Any:
        return inp.read()

    assert th.Parallel(writes(c.writer()), reads(c.reader()))[1] is shared


def test_a_result_may_have_one() -> None:
    (found,) = th.Parallel(makes(1234))
    assert numpy.asarray(found["table"]).sum() == sum(range(1234))


@ps.process
def makes(n: int) -> dict[str, Any]:
    return {"table": Shared(numpy.arange(n)), "pid": os.getpid()}


def test_its_text() -> None:
    assert repr(Shared(numpy.zeros((2, 3)))) == "<Shared array of (2, 3), format 'd'>"


class Quantity(numpy.ndarray):
    """An array class like that of a library of units."""


STAMPS = numpy.array(["2020-01-01", "2021-02-03"], dtype="M8[s]")


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (numpy.ma.masked_array([1, 2], mask=[0, 1]), r"a mask .*a\.data and numpy\.ma\.getmaskarray"),
        (numpy.arange(3).view(Quantity), r"class Quantity .*take numpy\.asarray\(a\)"),
        (STAMPS, r"no buffer of datetime64\[s\]: .*a\.view\('u1'\)"),
        (STAMPS - STAMPS[0], r"no buffer of timedelta64\[s\]"),
        (numpy.zeros(2, dtype=[("at", "M8[s]"), ("v", "f8")]), "no buffer of .*M8"),
    ],
)  # fmt: skip
def test_what_would_lose_something_says_what_to_share(made: Any, says: str) -> None:  # rule 9.1
    with pytest.raises(BadUse, match=says):
        Shared(made)


@pytest.mark.parametrize("made", [STAMPS, numpy.zeros(3, dtype=[("at", "M8[s]"), ("v", "f8")])])
def test_and_that_helps(made: Any) -> None:
    assert (numpy.asarray(Shared(made.view("u1"))).view(made.dtype) == made).all()


@pytest.mark.parametrize(
    "made",
    [
        numpy.zeros(2, dtype=[("Or", "f8"), ("v", "i4")]),
        numpy.array([True, False]),
        numpy.arange(3, dtype=">i2"),
        numpy.array([1j, 2]),
        numpy.array(["ab", "c"]),
        numpy.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    ],
)
def test_what_is_all_in_its_memory(made: Any) -> None:
    found = numpy.asarray(Shared(made))
    assert found.dtype.newbyteorder("=") == numpy.asarray(made).dtype.newbyteorder("=")
    assert (found == numpy.asarray(made)).all()
