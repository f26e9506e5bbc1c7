"""Rule 16.6: arrays pass between Python and components without a copy, and a lent array is given
back."""

from __future__ import annotations

import array
import gc

import pytest
from components import basics, needs_compiler

from weft import coroutines, threads
from weft.errors import BadUse

pytestmark = needs_compiler


async def write_all(b, w, values):
    for v in values:
        await b.op(w.write(v))


async def all_of(b, r):
    return [v async for v in b.each(r)]


def through(b, process, values, **channel):
    a, c = b.weft.Channel("a", **channel), b.weft.Channel("c", **channel)
    return b.run(b.process(write_all)(-a, values), process(+a, -c), b.process(all_of)(+c))[2]


@pytest.mark.parametrize("channel", [{}, {"capacity": 2}])
def test_a_component_writes_to_the_array_itself(b, channel):  # rule 16.6
    given = [array.array("d", range(n)) for n in (0, 3, 1000)]
    got = through(b, basics().negate, given, **channel)
    assert [list(v) for v in got] == [[-float(x) for x in range(n)] for n in (0, 3, 1000)]
    assert [list(v) for v in given] == [list(v) for v in got]
    got[1][0] = 5.0  # both arrays use the same memory
    assert given[1][0] == 5.0
    assert all(isinstance(v, memoryview) and v.format == "d" and not v.readonly for v in got)


def test_other_numbers_and_other_buffers(b):  # rule 16.6
    given = array.array("h", [1, -2])
    (got,) = through(b, basics().negate16, [memoryview(given)])
    assert got.tolist() == [-1, 2]
    assert got.format == "h"


def test_numpy_without_a_copy(b):  # rule 16.6
    numpy = pytest.importorskip("numpy")
    given = numpy.arange(10.0)
    (got,) = through(b, basics().negate, [given])
    back = numpy.asarray(got)
    assert numpy.shares_memory(back, given)
    assert (back == -numpy.arange(10.0)).all()


def test_an_array_is_lent_until_the_component_lets_go_of_it():  # rule 16.6
    numbers = array.array("d", [1.0])
    seen = []

    @threads.process
    def main(w, stop):
        w.write(numbers)
        with pytest.raises(BufferError):
            numbers.append(2.0)
        seen.append("lent")
        stop.write(0)

    a, c = threads.Channel("a"), threads.Channel("c")
    threads.run(main(-a, -c), basics().keeps_arrays(+a, +c))
    numbers.append(2.0)
    assert (seen, list(numbers)) == (["lent"], [1.0, 2.0])


def test_what_nobody_reads_is_given_back(b):  # rules 3.3, 16.6
    numbers = [array.array("d", [1.0]) for _ in range(20)]
    dropping = b.weft.Channel("a", capacity=2, overflow="drop_oldest")
    reader, c = dropping.reader(), b.weft.Channel("c")
    process = basics().negate(reader, -c)
    b.run(b.process(write_all)(-dropping, numbers))
    b.run(process, b.process(all_of)(+c))
    del reader, process
    gc.collect()
    for n in numbers:
        n.append(0.0)


def test_memory_of_a_component_is_a_buffer_of_python_for_as_long_as_it_is_looked_at(b):
    # rule 16.6
    c = b.weft.Channel("c", capacity=3)
    got = b.run(basics().makes_arrays(-c, 5, 4), b.process(all_of)(+c))[1]
    gc.collect()
    assert [v.tolist() for v in got] == [[k, k + 1, k + 2, k + 3] for k in range(5)]
    assert got[0].format == "i"
    assert got[0].shape == (4,)
    assert bytes(got[0][1:2]) == (1).to_bytes(4, "little")


def test_an_array_as_a_parameter(b):  # rule 16.6
    c = b.weft.Channel("c")
    assert b.run(basics().adds(array.array("d", [1, 2, 3.5]), -c), b.process(all_of)(+c))[1] == [
        6.5
    ]


REFUSED = [
    ([1.0], r"expected array\[float64\], but \[1.0\] is of type list"),
    (array.array("f", [1]), r"expected array\[float64\].*format 'f', 4 bytes each"),
    (array.array("q", [1]), r"expected array\[float64\].*format 'q'"),
    (memoryview(b"12345678").cast("d"), "not contiguous memory that may be written to"),
    (memoryview(array.array("d", [1, 2, 3]))[::2], "not contiguous memory"),
]


@pytest.mark.parametrize(("value", "says"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_such_array_is_refused(value, says):  # rules 16.4, 16.6
    @coroutines.process
    async def writes(w):
        with pytest.raises(BadUse, match=says):
            await w.write(value)

    @coroutines.process
    async def reads(r):
        assert [v async for v in r] == []

    a, c = coroutines.Channel("a"), coroutines.Channel("c")
    coroutines.run(writes(-a), basics().negate(+a, -c), reads(+c))
