"""Rules 16.2 to 16.4, 16.6: aggregates, dynamic values and arrays of every kind, there and back;
channels with a type."""

from __future__ import annotations

import array
import contextlib
import dataclasses
import gc
import pickle
import threading
import types
import typing
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Optional

import pytest
from components import basics, messages, needs_compiler, tasks

import weft.native
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


def sent_through(process, *values):
    a, c = threads.Channel("a"), threads.Channel("c")
    got = []

    @threads.process
    def writes(w):
        for v in values:
            w.write(v)

    @threads.process
    def reads(r):
        got.extend(r)

    threads.run(writes(-a), process(+a, -c), reads(+c))
    return got


# --- aggregates -----------------------------------------------------------------------------------


class Point(NamedTuple):  # like Sample, except for its name
    value: int
    time: float


@dataclass
class Other:
    time: float
    value: str


@dataclass
class More:
    time: float
    value: int
    more: int = 0


def test_an_aggregate_is_a_dataclass(b):  # rules 16.2, 16.4
    f = messages()
    given = [f.Sample(1.5, 2), f.Sample(time=0.0, value=-(2**63))]
    got = through(b, f.samples, given, capacity=1)
    assert got == given
    assert all(type(v) is f.Sample for v in got)
    assert repr(f.Sample(1.0, 2)) == "Sample(time=1.0, value=2)"
    assert pickle.loads(pickle.dumps(given)) == given


def test_aggregates_within_aggregates(b):  # rule 16.4
    f = messages()
    given = [f.Track("a", [f.Sample(1.0, 2)] * 3, None), f.Track("", [], f.Sample(0.0, 1))]
    assert through(b, f.tracks, given) == given


def test_any_class_with_these_fields_converts(b):  # rule 16.4
    f = messages()
    assert through(b, f.samples, [Point(time=1.0, value=2)]) == [f.Sample(1.0, 2)]
    with pytest.raises(BadUse, match=r"expected Sample\(time: float, value: int\).*More"):
        f.later(+b.weft.Channel(), -b.weft.Channel(), More(1.0, 2))


def test_a_default_and_an_annotation_of_an_aggregate(b):  # rule 16.2
    f = messages()
    assert through(b, f.later, [f.Sample(1.0, 1)]) == [f.Sample(2.0, 3)]
    assert "by: 'Sample' = Sample(time=1.0, value=2)" in str(f.later.__signature__)
    assert "source: 'Reader[Sample]'" in str(f.later.__signature__)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (Other(1.0, "x"), "expected int, but 'x' is of type str"),
        (More(1.0, 2), "is of type More"),
        ((1.0, 2), "is of type tuple"),
        ({"time": 1.0, "value": 2}, "is of type dict"),
        (None, "is of type NoneType"),
    ],
    ids=range(5),
)
def test_what_is_no_such_aggregate_is_refused(b, value, says):  # rules 16.2, 16.4
    async def writes(b, w):
        with pytest.raises(BadUse, match=says) as refused:
            await b.op(w.write(value))
        assert "channel 'a', which carries Sample(time: float, value: int)" in str(refused.value)

    a, c = b.weft.Channel("a"), b.weft.Channel("c")
    b.run(b.process(writes)(-a), messages().samples(+a, -c), b.process(all_of)(+c))


@pytest.fixture
def own(tmp_path):
    """A component with aggregates of its own, so that a class that a test passes to it does not
    exist for other tests.
    """
    path = tmp_path / "own.cpp"
    path.write_text(
        "#include <weft/component.hpp>\nusing namespace weft::native;\n"
        "struct Reading { double volts; std::int64_t at; };\nWEFT_FIELDS(Reading, volts, at)\n"
        "void f(Reader<Reading> in, Writer<Reading> out) { for (Reading r : in) out.write(r); }\n"
        'WEFT_COMPONENT(own, "") { component.process<&f>("f").argument("source").argument("out"); }\n'
    )
    return path


def test_a_class_of_the_program_s_own(own):  # rule 16.2
    @dataclass(frozen=True)
    class Reading:
        at: int
        volts: float

    wrong = Reading
    with pytest.raises(
        BadUse,
        match=r"no aggregate Reading\(at: int, volts: float\); it has Reading\(volts: float, at",
    ):
        weft.native.load(own, types=(wrong,))

    @dataclass(frozen=True)
    class Reading:
        volts: float
        at: int

        def millivolts(self):
            return 1000 * self.volts

    f = weft.native.load(own, types=(Reading,))
    assert f.Reading is Reading
    (got,) = sent_through(f.f, Reading(at=1, volts=2.0))
    assert type(got) is Reading
    assert got.millivolts() == 2000
    first = Reading

    @dataclass
    class Reading:
        volts: float
        at: int

    Reading.__qualname__ = "Another.Reading"
    with pytest.raises(BadUse, match="use one of them, or give the other another name"):
        weft.native.load(own, types=(Reading,))
    assert weft.native.load(own).Reading is first


def test_a_class_that_is_defined_again_takes_the_place_of_what_it_was(own):  # rule 16.2
    own.write_text(own.read_text().replace("volts", "ohms"))  # an aggregate of this test alone

    def cell():
        @dataclass
        class Reading:
            ohms: float
            at: int

        return Reading

    first, again = cell(), cell()
    assert weft.native.load(own, types=(first,)).Reading is first
    f = weft.native.load(own, types=(again,))
    assert f.Reading is again
    (got,) = sent_through(f.f, first(at=1, ohms=2.0))
    assert type(got) is again


def test_threads_that_ask_at_once_get_one_class(monkeypatch):  # rule 16.2
    """Each thread is held where a class is made, until both threads have arrived, or until it is
    clear that the other thread waits for this one.
    """
    from weft._components import types as _native_types

    both, waits, make = threading.Barrier(2), threading.Event(), dataclasses.make_dataclass
    lock = _native_types._lock

    class Told:
        def __enter__(self):
            if not lock.acquire(blocking=False):
                waits.set()
                both.abort()
                lock.acquire()

        def __exit__(self, *_):
            lock.release()

    def made(*args, **keywords):
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait()
        return make(*args, **keywords)

    monkeypatch.setattr(_native_types, "_lock", Told())
    monkeypatch.setattr(dataclasses, "make_dataclass", made)
    got = []
    asks = [
        threading.Thread(target=lambda: got.append(_native_types.class_of("<Asked_at_once x i>")))
        for _ in range(2)
    ]
    for thread in asks:
        thread.start()
    for thread in asks:
        thread.join()
    assert got[0] is got[1]
    assert waits.is_set()


# --- dynamic values -------------------------------------------------------------------------------

DYNAMIC = [
    None,
    True,
    -(2**63),
    1.5,
    "größer",
    b"\0\xff",
    [],
    {},
    [1, [2.0, ["x", None]], {"a": b""}],
    {"a": 1, 2: [True], None: {"b": {}}},
]


def test_dynamic_values_go_there_and_come_back(b):  # rule 16.4
    got = through(b, messages().values, DYNAMIC)
    assert got == DYNAMIC
    assert [type(v) for v in got] == [type(v) for v in DYNAMIC]
    assert list(got[-1]) == ["a", 2, None]


def test_what_is_like_a_dynamic_value(b):  # rule 16.4
    numpy = pytest.importorskip("numpy")
    got = through(
        b, messages().values, [(1, 2), bytearray(b"a"), numpy.float32(0.5), numpy.int8(3)]
    )
    assert got == [[1, 2], b"a", 0.5, 3]


def itself():
    v: list[Any] = []
    v.append(v)
    return v


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({1, 2}, "is of type set"),
        (2**63, "does not fit into 64 bits"),
        ([object()], "is of type object"),
        (itself(), "up to 100 deep: this one is deeper, or holds itself"),
        (array.array("d"), "is of type array"),
    ],
    ids=range(5),
)
def test_what_is_no_dynamic_value_is_refused(b, value, says):  # rule 16.4
    async def writes(b, w):
        with pytest.raises(BadUse, match=says):
            await b.op(w.write(value))

    a, c = b.weft.Channel("a"), b.weft.Channel("c")
    b.run(b.process(writes)(-a), messages().values(+a, -c), b.process(all_of)(+c))


def test_a_component_looks_into_a_dynamic_value(b):  # rule 16.4
    given = [{"name": "n", "limit": 2}, {"limit": 1.5, "name": 3}, {}, [1]]
    assert through(b, messages().asks, given) == [
        "limit 2.000000",
        "n",
        "limit 1.500000",
        "expected a Value that is str, and this one is int",
        'a Value is a dict without the key "name"',
        "expected a Value that is dict, and this one is list",
    ]


def test_a_dynamic_value_that_is_too_deep_is_a_failure_of_the_component(b):  # rule 16.4
    c = b.weft.Channel("c")
    (got,) = b.run(messages().deep(-c, 100), b.process(all_of)(+c))[1]
    for _ in range(99):
        (got,) = got
    assert got == [None]
    c = b.weft.Channel("c")
    with pytest.raises(weft.native.ComponentError, match="up to 100 deep"):
        b.run(messages().deep(-c, 102), b.process(all_of)(+c))


# --- arrays ---------------------------------------------------------------------------------------


def test_arrays_within_others(b):  # rule 16.6
    numpy = pytest.importorskip("numpy")
    f = messages()
    image, rows = numpy.zeros((2, 3)), [numpy.ones(4, "f"), numpy.zeros(0, "f")]
    (got,) = through(b, f.frames, [f.Frame(f.Sample(0.0, 1), image, rows)], capacity=1)
    assert numpy.shares_memory(numpy.asarray(got.image), image)
    assert numpy.asarray(got.image).shape == (2, 3)
    assert [numpy.asarray(r).tolist() for r in got.rows] == [[1.0] * 4, []]
    (first, second) = through(b, f.pairs, [(1, image), (2, numpy.ones(1))])
    assert (first[0], second[0], second[1].tolist()) == (1, 2, [1.0])
    assert through(b, f.maybe_arrays, [None]) == [None]


def test_what_is_lent_within_others_is_given_back(b):  # rules 3.3, 16.6
    numbers = [array.array("d", [1.0]) for _ in range(20)]
    dropping = b.weft.Channel("a", capacity=2, overflow="drop_oldest")
    reader, c = dropping.reader(), b.weft.Channel("c")
    process = messages().pairs(reader, -c)
    b.run(b.process(write_all)(-dropping, [(1, n) for n in numbers]))
    b.run(process, b.process(all_of)(+c))
    del reader, process
    gc.collect()
    for n in numbers:
        n.append(0.0)


def test_an_array_among_what_does_not_convert_is_given_back():  # rules 16.4, 16.6
    numbers = array.array("d", [1.0])
    pairs = threads.Channel("a", type=tuple[Annotated[memoryview, "float64"], int])
    writer = -pairs
    with pytest.raises(BadUse, match="expected int"):
        writer.write((numbers, "x"))
    numbers.append(2.0)


def test_two_dimensions(b):  # rule 16.6
    numpy = pytest.importorskip("numpy")
    image = numpy.zeros((2, 3))
    (got,) = through(b, messages().marks, [image])
    assert got.shape == (2, 3)
    assert image.tolist() == [[0, 1, 2], [10, 11, 12]]
    assert numpy.shares_memory(numpy.asarray(got), image)


def test_three_dimensions_that_a_component_made(b):  # rule 16.6
    c = b.weft.Channel("c")
    got, empty = b.run(messages().makes_cubes(-c, 2), b.process(all_of)(+c))[1]
    assert (got.shape, got.strides, got.format) == ((2, 3, 4), (48, 16, 4), "i")
    assert got.tolist()[1][2] == [20, 21, 22, 23]
    assert empty.shape == (0, 0, 0)
    assert memoryview(got).cast("B").nbytes == 96


def test_what_need_not_be_written_to(b):  # rule 16.6
    numpy = pytest.importorskip("numpy")
    frozen = numpy.arange(3.0)
    frozen.flags.writeable = False
    bytes_ = memoryview(bytes(16)).cast("d")
    assert through(b, messages().sums, [frozen, bytes_, array.array("d", [1])]) == [3.0, 0.0, 1.0]
    c = b.weft.Channel("c")
    (got,) = b.run(messages().makes_constants(-c), b.process(all_of)(+c))[1]
    assert got.readonly
    assert got.tolist() == [0.0, 1.0]
    with pytest.raises(TypeError, match="read-only"):
        got[0] = 1.0


class Tensor:
    """A numpy array that offers only DLPack."""

    def __init__(self, numbers, device=1):
        self.numbers, self.device = numbers, device

    def __dlpack__(self, **kwargs):
        return self.numbers.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return (self.device, 0)


def test_a_tensor_of_dlpack(b):  # rule 16.6
    numpy = pytest.importorskip("numpy")
    numbers, image = numpy.arange(4.0), numpy.zeros((2, 2))
    (got,) = through(b, basics().negate, [Tensor(numbers)])
    assert numbers.tolist() == [-0.0, -1.0, -2.0, -3.0]
    assert numpy.shares_memory(numpy.asarray(got), numbers)
    (got,) = through(b, messages().marks, [Tensor(image)])
    assert image.tolist() == [[0, 1], [10, 11]]
    gone = []
    numbers = numpy.arange(2.0)
    import weakref

    weakref.finalize(numbers, gone.append, "gone")
    through(b, basics().negate, [Tensor(numbers)])
    del numbers
    gc.collect()
    through(b, basics().ints, [1])  # the object is freed at a safe point, and this run passes one
    assert gone == ["gone"]


def refused_arrays():
    numpy = pytest.importorskip("numpy")
    frozen = numpy.arange(3.0)
    frozen.flags.writeable = False
    return [
        (numpy.zeros(3), r"expected array\[float64, 2\], but this numpy.ndarray has 1 dimension$"),
        (numpy.zeros((1, 2, 3)), "has 3 dimensions"),
        (numpy.ma.masked_array(numpy.zeros((2, 3))), "has a mask beside its numbers"),
        (numpy.zeros((2, 3)).T, "not contiguous memory"),
        (Tensor(numpy.zeros(3)), "this Tensor has 1 dimension"),
        (
            Tensor(numpy.zeros((2, 2)), device=2),
            r"on another device \(DLPack device type 2\): copy it",
        ),
        (Tensor(numpy.zeros((2, 3)).T), "not contiguous memory: make a copy"),
        (Tensor(numpy.zeros((2, 3), "f")), "are float32: convert it first"),
        (Tensor(frozen), "does not lend memory that may be written to"),
        ([[1.0]], "is of type list"),
    ]


@pytest.mark.parametrize("which", range(9))
def test_what_is_no_such_array_is_refused(which):  # rules 16.4, 16.6
    value, says = refused_arrays()[which]
    writer = -threads.Channel("a", type=Annotated[memoryview, "float64", 2])
    with pytest.raises(BadUse, match=says):
        writer.write(value)


def test_a_select_that_may_write_an_array(b):  # rules 5.2, 16.6
    """The array belongs to the component until the select writes it."""
    a, x, y, log = (b.weft.Channel(n, capacity=3) for n in ("a", "x", "y", "log"))
    xr, yr = +x, +y
    f = messages()
    got = b.run(
        b.process(write_all)(-a, [array.array("d", range(n)) for n in (1, 2)]),
        f.either(+a, -x, -y, -log),
        b.process(all_of)(+log),
    )[2]
    assert got[:2] == ["nobody, and 1 are here", "2, and 0 are here"]
    assert "two outputs are given the same arrays" in got[2]
    assert [v.tolist() for v in b.run(b.process(all_of)(yr))] == [[0.0, 1.0]]
    assert b.run(b.process(all_of)(xr)) == []


def test_a_write_that_fails_leaves_the_array_where_it_was(b):  # rules 3.4, 16.6
    go, out, log = b.weft.Channel("go"), b.weft.Channel("out"), b.weft.Channel("log")
    writer, reader = -out, +out
    reader.retire()
    got = b.run(
        b.process(write_all)(-go, [1]),
        messages().keeps(+go, writer, -log),
        b.process(all_of)(+log),
    )[2]
    assert got == ["7 with 3"]


@pytest.mark.parametrize("component", [messages, tasks])
def test_a_text_that_was_not_written_is_still_there(b, component):  # rules 5.10, 6.2
    """The text is offered in a choice that another guard won, in a choice that threw, and in a
    write that failed."""
    go, out, log = b.weft.Channel("go"), b.weft.Channel("out"), b.weft.Channel("log")
    text = "a text that is too long to lie in the string itself"

    async def leaves(b, go, reader, log):
        got = [await b.op(log.read())]
        reader.retire()
        await b.op(go.write(1))
        return got + [v async for v in b.each(log)]

    got = b.run(b.process(leaves)(-go, +out, +log), component().keeps_text(+go, -out, -log))
    assert got[0] == [text] * 3


# --- channels with a type -------------------------------------------------------------------------

TYPED: list[tuple[Any, Any, Any]] = [
    (int, [1, True], ["1", 1.0]),
    (float, [1.5, 2], ["1"]),
    (bool, [True], [1]),
    (str, ["a"], [b"a", 1]),
    (bytes, [b"a"], ["a"]),
    (type(None), [None], [0]),
    (list[int], [[1, 2]], [["x"], 1]),
    (tuple[int, str], [(1, "a")], [(1,)]),
    (dict[str, list[float]], [{"a": [1.0]}], [{1: []}]),
    (int | None, [None, 1], ["x"]),
    (Optional[str], [None, "a"], [1]),  # noqa: UP045
    (Any, [None, {"a": 1}], [{1}]),
    (Annotated[int, "volts"], [1], ["x"]),
]


@pytest.mark.parametrize("case", range(len(TYPED)))
def test_a_channel_with_a_type(b, case):  # rules 16.2, 16.4
    type_, good, bad = TYPED[case]

    async def writes(b, w):
        for v in bad:
            with pytest.raises(
                BadUse, match=r"channel 'a', which carries .* \(Channel\(type=\.\.\.\)\)"
            ):
                await b.op(w.write(v))
        for v in good:
            await b.op(w.write(v))

    a = b.weft.Channel("a", type=type_, capacity=1)
    assert b.run(b.process(writes)(-a), b.process(all_of)(+a))[1] == good


@dataclass
class Reading:
    at: int
    more: Reading2 | None


@dataclass
class Reading2:
    volts: Annotated[memoryview, "const float32"]


def test_a_channel_of_a_dataclass(b):  # rules 16.2, 16.6
    a = b.weft.Channel("a", type=Reading)
    given = Reading(1, Reading2(array.array("f", [1.0])))
    got = b.run(b.process(write_all)(-a, [given, Reading(2, None)]), b.process(all_of)(+a))[1]
    assert type(got[0]) is Reading
    assert got[0].more.volts.tolist() == [1.0]
    assert got[0].more.volts.readonly
    assert got[1] == Reading(2, None)


@dataclass
class Holds:
    it: Holds | None


@dataclass
class Untyped:
    it: unknown  # noqa: F821


@pytest.mark.parametrize(
    ("type_", "says"),
    [
        (set, "set'> cannot be the type of a native channel"),
        (list, "list'> cannot be the type of a native channel"),
        (tuple[int, ...], "cannot be the type of a native channel"),
        (int | str, "cannot be the type of a native channel"),
        (Holds, "Holds contains itself"),
        (Untyped, "the types of the fields of Untyped are not known"),
        ([], r"\[\] cannot be the type"),
        ("int", "'int' cannot be the type"),
        (Annotated[memoryview, "float16"], "is not the type of an array"),
        (Annotated[memoryview, "float64", 7], "is not the type of an array"),
        (coroutines.Channel, "cannot be the type"),
        (typing.List, "cannot be the type of a native channel"),  # noqa: UP006
        (typing.Dict, "cannot be the type of a native channel"),  # noqa: UP006
        (typing.Tuple, "cannot be the type of a native channel"),  # noqa: UP006
        (types.GenericAlias(dict, (int,)), "cannot be the type of a native channel"),
        (Annotated[set, {}], "cannot be the type of a native channel"),
    ],
    ids=range(16),
)
def test_what_is_no_type_is_refused(b, type_, says):  # rule 16.2
    with pytest.raises(BadUse, match=says):
        b.weft.Channel("a", type=type_)


@dataclass
class Noted:
    at: Annotated[int, {"unit": "s"}]


def test_what_an_annotation_says_beside_the_type_may_be_anything(b):  # rule 16.2
    b.weft.Channel("a", type=Noted)
    b.weft.Channel("a", type=Annotated[int, {}])


def test_a_typed_channel_and_a_component_agree_or_both_are_named(b):  # rule 16.2
    a = b.weft.Channel("a", type=float)
    with pytest.raises(
        BadUse,
        match=r"channel 'a' carries float \(Channel\(type=\.\.\.\)\), and process ints .*wants int",
    ):
        basics().ints(+a, -b.weft.Channel())
    a, c = b.weft.Channel("a", type=int), b.weft.Channel("c", type=int)
    assert b.run(b.process(write_all)(-a, [1]), basics().ints(+a, -c), b.process(all_of)(+c))[
        2
    ] == [1]


def test_channels_like_a_typed_one(b):  # rule 16.2
    for c in b.weft.Channel("a", type=int) * 2:
        with pytest.raises(BadUse, match="which carries int"):
            b.run(b.process(write_all)(-c, ["x"]), b.process(all_of)(+c))


def test_an_end_is_no_value_of_a_typed_channel(b):  # rule 16.4
    a = b.weft.Channel("a", type=Any)

    async def writes(b, w):
        with pytest.raises(BadUse, match=r"expected Value "):
            await b.op(w.write(+b.weft.Channel()))

    b.run(b.process(writes)(-a), b.process(all_of)(+a))


def test_that_a_component_s_names_are_free(tmp_path):  # rule 16.5
    path = tmp_path / "taken.cpp"
    path.write_text(
        "#include <weft/component.hpp>\nusing namespace weft::native;\nstruct f { double lambda; };\n"
        "WEFT_FIELDS(f, lambda)\nvoid g(Reader<f>) {}\n"
        'WEFT_COMPONENT(m, "") { component.process<&g>("f").argument("source"); }\n'
    )
    with pytest.raises(BadUse, match="the name 'f' of an aggregate is taken"):
        weft.native.load(path)
    path.write_text(path.read_text().replace('<&g>("f")', '<&g>("g")'))
    with pytest.raises(
        BadUse, match=r"the aggregate f of a component cannot be a class of Python: .*lambda"
    ):
        weft.native.load(path)


def test_a_field_that_cannot_cross_is_told_by_the_compiler(tmp_path):
    path = tmp_path / "cannot.cpp"
    path.write_text(
        "#include <weft/component.hpp>\nusing namespace weft::native;\nstruct S { int* p; };\n"
        "WEFT_FIELDS(S, p)\nvoid g(Reader<S>) {}\n"
        'WEFT_COMPONENT(m, "") { component.process<&g>("g").argument("source"); }\n'
    )
    with pytest.raises(BadUse, match="a field is of a type that does not cross to Python"):
        weft.native.load(path)
