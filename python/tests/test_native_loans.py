"""Rule 16.6: a lent value must not be touched. write(move=True) ensures that, and the debug mode
reports a lent value that is touched.
"""

from __future__ import annotations

import array
import threading

import pytest
from components import basics, messages, needs_compiler

from weft import coroutines, observe, threads
from weft.errors import BadUse, WeftWarning

pytestmark = needs_compiler


async def all_of(b, r):
    return [v async for v in b.each(r)]


# --- move=True ------------------------------------------------------------------------------------


def doubles(*numbers):
    return array.array("d", numbers)


def test_the_only_reference_is_handed_over(b):  # rule 16.6
    numpy = pytest.importorskip("numpy")

    async def writes(b, w):
        await b.op(w.write(doubles(1, 2), move=True))
        await b.op(w.write(numpy.ones(1), move=True))
        popped = [doubles(3)]
        await b.op(w.write(popped.pop(), move=True))
        await b.op(w.write(memoryview(doubles(4)), move=True))
        await b.op(w.write(doubles(5), move=False))

    a, c = b.weft.Channel("a"), b.weft.Channel("c")
    got = b.run(b.process(writes)(-a), basics().negate(+a, -c), b.process(all_of)(+c))[2]
    assert [v.tolist() for v in got] == [[-1, -2], [-1], [-3], [-4], [-5]]


def held():
    numpy = pytest.importorskip("numpy")
    kept = doubles(1)
    return [
        (lambda w: w.write(kept, move=True), "somebody else refers to it"),
        (lambda w: w.write(memoryview(kept), move=True), "a view of memory that somebody else"),
        (lambda w: w.write(numpy.ones(4)[1:], move=True), "a view of another array"),
        (lambda w: w.write([1.0], move=True), "for this list it is not: it has no buffer"),
    ]


@pytest.mark.parametrize("which", range(4))
def test_what_somebody_else_has_is_refused(b, which):  # rule 16.6
    async def writes(b, w):
        write, says = held()[which]
        with pytest.raises(BadUse, match=says):
            await b.op(write(w))

    a, c = b.weft.Channel("a"), b.weft.Channel("c")
    got = b.run(b.process(writes)(-a), basics().negate(+a, -c), b.process(all_of)(+c))[2]
    assert got == []


def test_where_there_is_nothing_to_move(b):
    w = -b.weft.Channel("a")
    with pytest.raises(BadUse, match="for this int it is not: it has no buffer"):
        w.write(1, move=True)
    w = -b.weft.Channel("a", type=list[int])
    with pytest.raises(BadUse, match=r"'a', which carries list\[int\]: it is for arrays alone"):
        w.write([1], move=True)
    for wrong in ({"moved": True}, {"move": True, "also": 1}):
        with pytest.raises(TypeError, match="takes one value, and move=True or False"):
            w.write([1], **wrong)
    with pytest.raises(TypeError, match="takes one value"):
        w.write()
    with pytest.raises(TypeError, match="takes one value"):
        w.write(1, 2)


# --- the debug mode -------------------------------------------------------------------------------


@pytest.fixture
def reports():
    all_ = []
    observe.debug(True, all_.append)
    yield all_
    observe.debug(False)


def test_an_array_that_is_touched_before_the_component_has_it(reports):  # rules 14.5, 16.6
    numbers = doubles(1, 2)
    a, c = threads.Channel("a", capacity=1), threads.Channel("c")
    reader, process_reader = +a, +c
    process = basics().negate(reader, -c)

    @threads.process
    def lender(w):
        w.write(numbers)
        numbers[0] = 5.0

    @threads.process
    def reads(r):
        assert len(list(r)) == 1

    threads.run(lender(-a))
    threads.run(process, reads(process_reader))
    (changed,) = reports
    assert changed.sender.endswith("lender")
    assert (changed.kind, changed.channel) == ("array", "a")
    assert changed.file == __file__
    assert changed.noticed == "before process negate of component basics had it"


def test_an_array_that_is_touched_while_a_component_reads_it(reports):  # rules 14.5, 16.6
    numbers = doubles(1, 2)
    a, c, go = threads.Channel("a"), threads.Channel("c"), threads.Channel("go")

    @threads.process
    def lender(w, r):
        w.write(numbers)
        assert r.read() == 3.0  # the component has the array until it reads the next array
        numbers[1] = 7.0

    threads.run(lender(-a, +c), messages().sums(+a, -c))
    del go
    (changed,) = reports
    assert changed.noticed == "while process sums of component messages had it, which only reads it"


def test_an_array_that_is_touched_on_its_way_back(reports):  # rules 14.5, 16.6
    numbers = doubles(1, 2)
    a, c = threads.Channel("a"), threads.Channel("c", capacity=1)
    reader = +c

    @threads.process
    def lender(w):
        w.write(numbers)

    threads.run(lender(-a), basics().negate(+a, -c))
    numbers[0] = 9.0
    assert reader.read().tolist() == [9.0, -2.0]
    (changed,) = reports
    assert changed.noticed == "on its way back to Python"


def test_what_a_component_does_with_an_array_is_no_fault(reports):  # rules 14.5, 16.6
    f = messages()
    a, c = coroutines.Channel("a"), coroutines.Channel("c")
    b, d = coroutines.Channel("b", capacity=3), coroutines.Channel("d")

    @coroutines.process
    async def writes(w, other):
        numbers = doubles(1, 2)
        text = [1.0]
        await w.write((1, numbers))
        await other.write(doubles(1))
        text.append(2.0)
        await w.write((2, doubles()))

    @coroutines.process
    async def reads(r):
        async for v in r:
            assert v is not None

    coroutines.run(writes(-a, -b), f.pairs(+a, -c), reads(+c), basics().negate(+b, -d), reads(+d))
    assert reports == []


def test_a_list_that_was_copied_may_be_changed(reports):  # rules 9.1, 16.4
    a, c = coroutines.Channel("a"), coroutines.Channel("c")

    @coroutines.process
    async def writes(w):
        numbers = [1.0]
        for n in range(3):
            await w.write(numbers)
            numbers.append(float(n))

    @coroutines.process
    async def reads(r):
        return [len(v) async for v in r]

    assert coroutines.run(writes(-a), basics().lists(+a, -c), reads(+c))[2] == [1, 2, 3]
    assert reports == []


class Tensor:
    """Numbers that are lent by DLPack, which calls `first` before it lends them."""

    def __init__(self, numbers, first):
        self.numbers, self.first = numbers, first

    def __dlpack_device__(self):
        return self.numbers.__dlpack_device__()

    def __dlpack__(self):
        self.first()
        return self.numbers.__dlpack__()


def test_two_threads_that_lend_at_once(reports):  # rules 14.5, 16.6
    """If two threads lend at once, each loan belongs to the channel of its own write."""
    numpy = pytest.importorskip("numpy")
    numbers = numpy.ones(2)
    first_lends, both_lend, first_has_lent = (threading.Event() for _ in range(3))
    a, b = threads.Channel("a", capacity=1), threads.Channel("b", capacity=1)
    sums = [messages().sums(+c, -threads.Channel("c", capacity=1)) for c in (a, b)]
    to_a, to_b = -a, -b

    def first():
        first_lends.set()
        assert both_lend.wait(280)

    def second():
        both_lend.set()
        assert first_has_lent.wait(280)

    def lends_second():
        assert first_lends.wait(280)
        to_b.write(Tensor(numpy.ones(2), second))

    other = threading.Thread(target=lends_second)
    other.start()
    to_a.write(Tensor(numbers, first))
    numbers[0] = 5.0
    first_has_lent.set()
    other.join()
    to_a.retire()
    to_b.retire()
    threads.run(*sums)
    (changed,) = reports
    assert (changed.kind, changed.channel) == ("Tensor", "a")


def test_it_is_a_warning_at_the_line_of_the_write():  # rules 14.5, 16.6
    observe.debug(True)
    try:
        numbers = doubles(1)
        a = threads.Channel("a", capacity=1)
        reader, writer = +a, -a
        process = messages().sums(reader, -threads.Channel("c", capacity=1))
        writer.write(numbers)
        writer.retire()
        numbers[0] = 2.0
        with pytest.warns(WeftWarning, match="array to channel a .*changed before process sums"):
            threads.run(process)
            threads.Channel("x").stats()
    finally:
        observe.debug(False)
