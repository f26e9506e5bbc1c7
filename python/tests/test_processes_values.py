"""Tests values of any length between OS processes: pickle 5, arrays in slots of shared memory
(rules 1.1, 6.2, 9.1, 11.2).
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
from pathlib import Path
from typing import Any

import os_process_targets as targets
import pytest

import weft.threads as th
from weft._hosts import host as _host
from weft.processes import Channel, Parallel, PeerDied, ProcessDied, run, statistics

numpy = pytest.importorskip("numpy")


def segments() -> int:
    """Returns how many slots are mapped in this OS process."""
    return Path("/proc/self/maps").read_text(encoding="utf-8").count("/memfd:weft")


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@th.process
def write_each(out: Any, values: Any) -> None:
    for v in values:
        out.write(v)


@th.process
def read_all(inp: Any) -> list[Any]:
    return list(inp)


def echoed(values: list[Any], capacity: int = 0) -> list[Any]:
    a = Channel("a", capacity=capacity) if capacity else Channel("a")
    b = Channel("b")
    results = Parallel(
        write_each(a.writer(), values), targets.echo(a.reader(), b.writer()), read_all(b.reader())
    )
    got: list[Any] = results[2]
    return got


@pytest.mark.parametrize("size", [64_950, 65_000, 65_490, 65_530, 70_000, 1_000_000, 20_000_000])
def test_bytes_of_any_length_both_ways(size: int) -> None:
    values = [bytes([i]) * size for i in range(3)]
    assert echoed(values) == values


def test_ints_of_any_size_bools_and_none_are_what_was_written() -> None:  # rule 1.1
    edges = [0, 1 << 8, 1 << 16, 1 << 31, 1 << 32, 1 << 63, 1 << 64, 1 << 200]
    values = [sign * edge + near for edge in edges for sign in (1, -1) for near in (-1, 0, 1)]
    values += [None, True, False, b"", "", 0.0, (), signal.SIGINT]
    got = echoed(values)
    assert got == values
    assert [type(g) for g in got] == [type(v) for v in values]


def test_values_of_many_kinds_with_arrays_in_them() -> None:
    whole = numpy.arange(100_000.0)
    values = [
        whole,
        whole.reshape(100, 1000),
        whole[::2],  # this array is not contiguous
        numpy.asfortranarray(whole.reshape(10, 10_000)),
        {"a": whole, "again": whole, "small": numpy.arange(3)},
        (1, [whole, whole + 1], "x" * 100_000),
        bytearray(b"y" * 200_000),
        numpy.arange(0),
        numpy.array(["text", None], dtype=object),
        list(range(50_000)),
    ]
    got = echoed(values, capacity=4)
    assert len(got) == len(values)
    for g, v in zip(got, values, strict=True):
        if isinstance(v, numpy.ndarray):
            assert g.dtype == v.dtype and g.shape == v.shape and (g == v).all()
    assert (got[4]["a"] == whole).all() and got[4]["a"] is got[4]["again"]
    assert (got[5][1][1] == whole + 1).all() and got[5][2] == values[5][2]
    assert got[6] == values[6] and got[9] == values[9]


class Marked(numpy.ndarray):  # type: ignore[misc, unused-ignore]
    """An array class other than numpy's own."""


def arrays_of_many_types() -> list[Any]:
    plain = numpy.arange(40_000)
    values = [plain.astype(kind) for kind in "?bBhHiIlLqQefdgFDG"]
    values += [plain.astype(kind) for kind in (">i4", ">f8", "M8[s]", "m8[ns]", "S8", "U8")]
    values += [plain.reshape(shape) for shape in ((200, 200), (1, 40_000, 1), (2,) * 6 + (625,))]
    values.append(numpy.zeros(40_000, [("a", "i4"), ("b", ">f8")]))
    values.append(numpy.zeros(40_000, numpy.dtype("f8", metadata={"unit": "m"})))
    values.append(numpy.asfortranarray(plain.reshape(200, 200)))
    values.append(plain.reshape(200, 200)[:, ::2])
    values.append(plain.view(Marked))
    values.append(numpy.ma.array(plain, mask=plain % 2))
    values.append(plain.copy())
    values[-1].flags.writeable = False
    return values


@pytest.mark.parametrize("shared", [True, False], ids=["in slots", "over a socket"])
def test_arrays_of_any_type_are_as_pickle_would_make_them(
    shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shared:
        monkeypatch.setattr(_host, "_over_memory", lambda ours: None)
    values = arrays_of_many_types()
    for got, sent in zip(echoed(values), values, strict=True):
        buffers: list[Any] = []
        data = pickle.dumps(sent, 5, buffer_callback=buffers.append)
        made = pickle.loads(data, buffers=[memoryview(bytearray(b)) for b in buffers])
        assert type(got) is type(made) and got.shape == made.shape
        assert got.dtype == made.dtype and got.dtype.byteorder == made.dtype.byteorder
        assert got.dtype.metadata == made.dtype.metadata
        for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS", "ALIGNED"):
            assert got.flags[flag] == made.flags[flag]
        assert got.flags.writeable == sent.flags.writeable
        assert (got == sent).all()


def test_a_reader_may_write_to_an_array_and_its_writer_sees_nothing() -> None:  # rule 9.1
    a, b = Channel("a"), Channel("b")
    mine = [numpy.full(50_000, i) for i in range(40)]
    results = Parallel(
        write_each(a.writer(), mine),
        targets.sums_and_scribbles(a.reader(), b.writer()),
        read_all(b.reader()),
    )
    assert results[2] == [50_000 * i for i in range(40)]
    assert all((m == i).all() for i, m in enumerate(mine))


def test_what_is_kept_is_not_written_over() -> None:
    """The reader keeps more values than the number of slots that are kept for reuse; no value is
    overwritten."""
    c = Channel("c")
    assert Parallel(targets.arrays(c.writer(), 60, 20_000), targets.keeps(c.reader(), 60))[
        1
    ] == list(range(60))


def test_more_values_wait_than_descriptors_are_taken_for() -> None:
    """With more than 200 open slots, values are kept as bytes: in a buffer at the home, and on
    their way from the home to another OS process.
    """
    c = Channel("c", capacity=300)
    before = descriptors()
    full: list[int] = []

    @th.process
    def wait_until_full(out: Any) -> None:
        Parallel(targets.arrays(c.writer(), 300, 3_000))
        full.append(descriptors() - before)
        out.write(None)

    @th.process
    def then_read(inp: Any) -> list[int]:
        inp.read()
        (got,) = Parallel(targets.keeps(c.reader(), 300))
        return list(got)

    ready = Channel("ready")
    results = Parallel(wait_until_full(ready.writer()), then_read(ready.reader()))
    assert results[1] == list(range(300))
    assert 100 < full[0] < 260


def test_nothing_is_left_behind() -> None:
    def once() -> None:
        echoed([numpy.arange(30_000) + i for i in range(50)])

    once()
    gc.collect()
    first = descriptors(), segments()
    once()
    gc.collect()
    assert descriptors() <= first[0] + 1
    assert segments() <= 32  # the slots that are kept for the next values


def test_what_a_process_wrote_before_it_was_killed_is_read() -> None:  # rule 4.5
    c = Channel("c", capacity=5)

    @th.process
    def dies(out: Any) -> None:
        with pytest.raises(ProcessDied):
            Parallel(targets.arrays(out, 5, 40_000, "kill"))

    @th.process
    def reads(inp: Any) -> list[int]:
        got = []
        try:
            while True:
                got.append(int(inp.read()[-1]))
        except PeerDied:
            return got

    assert Parallel(dies(c.writer()), reads(c.reader()))[1] == [0, 1, 2, 3, 4]


def test_slots_of_readers_that_were_killed_do_not_gather() -> None:
    before = segments()
    for _ in range(3):
        c = Channel("c")

        @th.process
        def survives(inp: Any) -> None:
            with pytest.raises(ProcessDied):
                Parallel(targets.takes_one_and_dies(inp))

        Parallel(write_each(c.writer(), [numpy.arange(200_000)]), survives(c.reader()))
    assert segments() <= before + 3


def test_in_the_child_of_a_fork_slots_are_the_parents() -> None:
    """The child drops an array that is in a slot; the parent's next value does not overwrite it."""
    a, b = Channel("a"), Channel("b")

    @th.process
    def forks(inp: Any) -> list[Any]:
        first = inp.read()
        pid = os.fork()
        if pid == 0:
            del first
            gc.collect()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        rest = list(inp)
        return [bool((first == 0).all()), *(int(r[0]) for r in rest)]

    sent = [numpy.full(50_000, i) for i in range(20)]
    results = Parallel(
        write_each(a.writer(), sent), targets.echo(a.reader(), b.writer()), forks(b.reader())
    )
    assert results[2] == [True, *range(1, 20)]


def test_a_large_result_and_large_arguments() -> None:
    c = Channel("c")
    values = [numpy.arange(300_000), "x" * 500_000]
    got = Parallel(targets.write_all(c.writer(), values), read_all(c.reader()))[1]
    assert (got[0] == values[0]).all() and got[1] == values[1]
    assert run(targets.length_of("y" * 3_000_000)) == (3_000_000, "y" * 3_000_000)


def test_a_refused_large_value_leaves_the_channel_going() -> None:  # rule 11.2
    c = Channel("c")
    messages: list[str] = []

    @th.process
    def writes(out: Any) -> None:
        out.write(numpy.arange(50_000))
        try:
            out.write([numpy.arange(50_000), targets.Unsendable()])
        except Exception as error:
            messages.append(str(error))
        out.write(numpy.arange(50_000) + 2)

    assert Parallel(writes(c.writer()), targets.keeps_last(c.reader()))[1] == [0, 2]
    assert len(messages) == 1 and "channel 'c'" in messages[0]
    assert statistics(c).transfers == 2
