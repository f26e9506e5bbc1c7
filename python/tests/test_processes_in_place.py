"""Tests weft.processes.empty: an array that is filled where another OS process reads it (WIRE.md
9.4). test_processes_given_away.py tests other arrays that are sent without a copy.
"""

from __future__ import annotations

import builtins
import os
import sys
from typing import Any

import pytest

import weft.coroutines as co
import weft.processes as ps
import weft.threads as th
from weft.processes import BadUse, Channel, Hosts, empty

numpy = pytest.importorskip("numpy")

linux = pytest.mark.skipif(sys.platform != "linux", reason="shared memory by memfd is for Linux")
LENGTH = 50_000


@ps.process
def doubles(inp: Any, out: Any) -> None:
    """Changes each array that it reads, answers with the array's sum, and waits until it may
    release the array.
    """
    for array in inp:
        array *= 2
        out.write(float(array.sum()))
        inp.read()


@ps.process
def sends(out: Any, times: int) -> None:
    for n in range(times):
        array = empty((5, LENGTH // 5))
        array.fill(n)
        out.write(array)


@ps.process
def sends_within(out: Any) -> None:
    array = empty(LENGTH, "i4")
    array[:] = range(LENGTH)
    out.write({"a": array, "half": array[: LENGTH // 2], "name": "x" * 100})


@ps.process
def sends_with_much(out: Any) -> None:
    array = empty(LENGTH)
    array.fill(3)
    # There is no room in front of the array for the pickle.
    out.write((array, [f"entry {i}" for i in range(2000)]))


@ps.process
async def sends_async(out: Any, times: int) -> None:
    for n in range(times):
        array = empty(LENGTH)
        array.fill(n)
        await out.write(array)


@ps.process
def never_reads(r: Any, end: Any) -> None:
    end.read()


def ask(arrays: list[Any]) -> tuple[list[float], list[Any]]:
    """Returns the answers of doubles(), and the contents of the arrays afterwards in this OS
    process."""
    outward, back = Channel("there"), Channel("back")

    @th.process
    def asks(w: Any, r: Any) -> tuple[list[float], list[Any]]:
        answers, after = [], []
        for array in arrays:
            w.write(array)
            answers.append(r.read())
            after.append(float(array.sum()))
            w.write(None)
        return answers, after

    return ps.run(doubles(+outward, -back), asks(-outward, +back))[1]  # type: ignore[no-any-return]


@linux
def test_what_is_written_lies_where_it_is_read() -> None:
    array = empty(LENGTH)
    array[:] = 1
    answers, after = ask([array])
    assert answers == [2.0 * LENGTH]
    assert after == [2.0 * LENGTH], "it was copied"  # the reader has changed the array (rule 9.2)


def test_a_second_write_and_a_part_of_it_are_copies() -> None:
    array = empty(LENGTH)
    array[:] = 1
    half = array[: LENGTH // 2]
    answers, after = ask([half, half.reshape(2, -1)])
    assert answers == [LENGTH, LENGTH]
    assert after == [LENGTH / 2, LENGTH / 2]
    answers, after = ask([array, array])
    assert answers[0] == 2.0 * LENGTH
    assert answers[1] == 2 * after[0] == 2 * after[1]  # the result of the first reader, doubled


@pytest.mark.parametrize(
    "kind", ["f8", ">f4", "i2", "c16", "M8[s]", "S3", [("a", "i4"), ("b", "f8")]]
)
@pytest.mark.parametrize("shape", [LENGTH, (LENGTH,), (100, 5, 100), (1, LENGTH, 1)])
def test_it_is_as_numpy_makes_it(shape: Any, kind: Any) -> None:
    made, plain = empty(shape, kind), numpy.empty(shape, kind)
    assert (made.shape, made.dtype, made.strides) == (plain.shape, plain.dtype, plain.strides)
    assert type(made) is numpy.ndarray
    assert made.flags.writeable and made.flags.c_contiguous and made.flags.aligned


def test_small_ones_none_and_objects_are_ordinary_arrays() -> None:
    assert empty(()).shape == ()
    assert empty(0).shape == (0,)
    assert empty((3, 0, 4)).size == 0
    assert empty(7, "V0").shape == (7,)
    objects = empty(LENGTH, object)
    assert objects[0] is None
    small = empty(10)
    # The memory may contain NaN, and 0 times NaN is not 0.
    small[:] = 0
    assert ask([small]) == ([0.0], [0.0])


def test_what_numpy_refuses_is_refused_alike() -> None:
    for shape, kind in (
        ((-1, -LENGTH), float),
        (LENGTH, "no type"),
        ((1.5,), float),
        (None, float),
    ):
        with pytest.raises((TypeError, ValueError)) as ours:
            empty(shape, kind)  # type: ignore[arg-type]
        if shape is not None:  # numpy takes None for (), with a warning
            with pytest.raises(type(ours.value)):
                numpy.empty(shape, kind)


def test_without_numpy_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def lacks(name: str, *rest: Any) -> Any:
        if name == "numpy":
            raise ImportError(name)
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", lacks)
    with pytest.raises(BadUse, match="pip install numpy"):
        empty(3)


@th.process
def reads(r: Any) -> list[Any]:
    return list(r)


@pytest.mark.parametrize("sender", [sends, sends_async])
def test_many_go_one_after_another_and_memory_comes_back(sender: Any) -> None:
    c = Channel("c")

    @th.process
    def sums(r: Any) -> list[float]:
        return [float(array.sum()) for array in r]

    assert ps.run(sender(-c, 300), sums(+c))[1] == [float(n * LENGTH) for n in range(300)]


def test_all_that_are_kept_stay_as_they_were() -> None:
    c = Channel("c")
    kept = ps.run(sends(-c, 230), reads(+c))[1]  # more arrays than a program has segments
    assert [(a.shape, float(a.min()), float(a.max())) for a in kept] == [
        ((5, LENGTH // 5), n, n) for n in range(230)
    ]


def test_beside_other_things_it_goes_too() -> None:
    c, d = Channel("c"), Channel("d")
    (value,), (much,) = ps.run(sends_within(-c), sends_with_much(-d), reads(+c), reads(+d))[2:]
    assert value["a"].tolist() == list(range(LENGTH))
    assert value["half"].tolist() == list(range(LENGTH // 2))
    assert value["name"] == "x" * 100
    assert much[0].sum() == 3 * LENGTH and much[1][-1] == "entry 1999"


@linux
def test_a_write_that_does_not_happen_gives_it_back() -> None:
    c = Channel("c")
    array = empty(LENGTH)
    array[:] = 4

    @th.process
    def gives_up(w: Any) -> Any:
        with ps.move_on_after(0.01):
            w.write(array)
        return float(array.sum())

    end = Channel("end")

    @th.process
    def waits(w: Any, inner: Any) -> Any:
        got = th.Parallel(gives_up(inner))
        w.write(None)
        return got

    with Hosts(1) as hosts:
        got = ps.run(never_reads.on(hosts[0])(+c, +end), waits(-end, -c))[1]
    assert got == [4.0 * LENGTH]
    assert ask([array])[0] == [8.0 * LENGTH]  # this array is sent as a copy


def test_between_processes_of_one_program_it_is_the_same_object() -> None:
    c = co.Channel("c")
    array = empty(LENGTH)

    @co.process
    async def writes(w: Any) -> None:
        await w.write(array)

    @co.process
    async def takes(r: Any) -> bool:
        return await r.read() is array

    assert co.run(writes(-c), takes(+c))[1]


@linux
def test_in_the_child_of_a_fork_it_is_copied() -> None:
    array = empty(LENGTH)
    array[:] = 1
    child = os.fork()
    if child == 0:
        try:
            good = ask([array]) == ([2.0 * LENGTH], [float(LENGTH)])
        except BaseException:
            good = False
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert array.sum() == LENGTH
