"""Large arguments of an Executor's calls: one copy serves all calls to which they are passed (rule
9.4)."""

from __future__ import annotations

import concurrent.futures as cf
import gc
import os
import signal
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import executor_targets as targets
import pytest

from weft._hosts import large_arguments
from weft.processes import BadUse, Executor

numpy = pytest.importorskip("numpy")

MIB = 1 << 20


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with Executor(2) as e:
        yield e


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns a list, to which the length of each copy is appended when the copy is made."""
    lengths: list[int] = []
    real = large_arguments._native._shared_again

    class Native:
        @staticmethod
        def _shared_again(raw: Any) -> Any:
            lengths.append(raw.nbytes)
            return real(raw)

    monkeypatch.setattr(large_arguments, "_native", Native)
    return lengths


def arrays(n: int = 4 * MIB) -> Any:
    """Returns an array of n bytes: 1.0, 2.0, …"""
    return numpy.arange(n // 8, dtype="f8") + 1


def ours() -> int:
    """Returns how many of Weft's segments this OS process has mapped."""
    return Path("/proc/self/maps").read_text(encoding="ascii").count("/memfd:weft")


def descriptors() -> int:
    """Returns how many of Weft's segments this OS process has a descriptor of."""
    links = [fd for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    return sum("/memfd:weft" in str(fd.readlink()) for fd in links)


def test_one_copy_for_all_calls_of_a_map(pool: Executor, made: list[int]) -> None:
    """Rule 9.4: there is one copy for all calls of a map()."""
    a = arrays(32 * MIB)
    assert list(pool.map(targets.first, [a] * 8)) == [1.0] * 8
    assert made == [a.nbytes]


def test_a_change_between_two_calls_is_never_missed(pool: Executor, made: list[int]) -> None:
    """Rule 9.4: a call gets the array as it is now, even while another call still uses it in an
    earlier state.
    """
    a = arrays(32 * MIB)
    held = pool._state.large._at(a, a.nbytes)[0]  # type: ignore[attr-defined]
    for n, at in enumerate((0, -1, a.size // 2)):
        a[at] = -n
        assert pool.submit(targets.within, {"arrays": [a]}).result() == a.sum()
        assert pool.submit(targets.within, {"arrays": [a]}).result() == a.sum()
    assert len(made) == 3
    assert held is not None


def test_one_that_small_or_that_one_call_has_goes_as_before(
    pool: Executor, made: list[int]
) -> None:
    assert pool.submit(targets.first, arrays()).result() == 1.0
    small = numpy.ones(1000)
    assert list(pool.map(targets.first, [small] * 8)) == [1.0] * 8
    assert made == []


@pytest.mark.parametrize("size", [4 * MIB, 20 * MIB])
def test_each_call_may_write_and_nobody_else_sees_it(pool: Executor, size: int) -> None:
    """Rule 9.4: each call may write to its array, and no other call sees the change."""
    a = arrays(size)
    assert list(pool.map(targets.writes, [a] * 6, range(10, 16))) == [1.0] * 6
    assert a[0] == 1.0


@pytest.mark.parametrize("size", [4 * MIB, 20 * MIB])
def test_what_is_read_only_here_is_read_only_there(pool: Executor, size: int) -> None:
    """Rule 9.4: an array that is read-only in this program is read-only in the call."""
    a = arrays(size)
    a.flags.writeable = False
    found = set(pool.map(targets.seen, [a] * 4))
    assert found == {("ndarray", False, 1.0, a.size)}


def test_each_kind_arrives_as_what_it_was(pool: Executor, made: list[int]) -> None:
    raw = bytes(range(1, 256)) * 80_000
    for one in (raw, bytearray(raw), memoryview(raw), memoryview(bytearray(raw))):
        writeable = not memoryview(one).readonly
        expected = (type(one).__name__, writeable, 1, len(raw))
        assert list(pool.map(targets.seen, [one] * 4)) == [expected] * 4
    assert made == [len(raw)] * 4
    view = memoryview(bytearray(8 * MIB)).cast("d")
    assert list(pool.map(targets.seen, [view] * 4)) == [("memoryview", True, 0.0, MIB)] * 4


def test_shapes_and_orders(pool: Executor) -> None:
    a = arrays(24 * MIB).reshape(3, -1)
    for one in (a, a.T, numpy.asfortranarray(a), a[1:], a[:, ::2], a[::-1]):
        given = {"arrays": [one]}
        assert list(pool.map(targets.within, [given] * 3)) == [one.sum()] * 3


def test_views_of_the_same_memory_have_one_copy(pool: Executor, made: list[int]) -> None:
    a = arrays(24 * MIB)
    assert list(pool.map(targets.first, [a, a[:], a.view(), a.reshape(-1)])) == [1.0] * 4
    assert made == [a.nbytes]


def test_the_copy_goes_with_the_last_call(pool: Executor) -> None:
    """Rule 9.4: the memory of the copy is freed after the last call."""
    before = ours()
    a = arrays(24 * MIB)
    futures = [pool.submit(targets.first, a) for _ in range(4)]
    assert [f.result() for f in futures] == [1.0] * 4
    pool.submit(abs, 1).result()
    list(pool.map(abs, range(10)))
    gc.collect()
    table = pool._state.large  # type: ignore[attr-defined]
    assert (len(table._all), len(table._copied)) == (0, 0)
    assert ours() <= before


def test_the_worker_may_keep_it(pool: Executor) -> None:
    with Executor(1) as alone:
        a = arrays(24 * MIB)
        alone.submit(targets.keeps, a).result()
        total, a[:] = a.sum(), 0
        list(alone.map(targets.first, [arrays(24 * MIB)] * 3))
        assert alone.submit(targets.kept).result() == total


def test_the_memory_of_a_copy_serves_the_next_one() -> None:
    """rule 9.4: at most three segments for any number of arrays, and none after shutdown()."""
    before = descriptors()
    with Executor(1) as alone:
        used: set[str] = set()
        for n in range(6):
            a = arrays(20 * MIB)
            a[:] = n
            assert list(alone.map(targets.first, [a] * 2)) == [float(n)] * 2
            used |= alone.submit(targets.memory_of, a).result()
            assert alone.submit(targets.writes, a, -1.0).result() == float(n)
        small = alone.submit(targets.memory_of, 0).result()
        assert len(used) <= len(small) + 3
    gc.collect()
    assert descriptors() <= before


def test_a_call_that_wrote_to_its_array_leaves_the_next_one_as_it_was() -> None:
    """Rule 9.4: a mapping is used again only if the previous call has not written to it."""
    with Executor(1) as alone:
        a = arrays(20 * MIB)
        for at in (0, a.size // 2, -1):
            calls = [alone.submit(targets.writes_at, a, at, n) for n in (-1.0, -2.0, -3.0)]
            assert [call.result() for call in calls] == [a[at]] * 3
            assert alone.submit(targets.within, {"arrays": [a]}).result() == a.sum()


def test_frames(pool: Executor, made: list[int]) -> None:
    """rule 9.4: the columns of a frame have one copy, whatever each pickle of the frame makes."""
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    a = arrays(24 * MIB)
    frame = polars.DataFrame({"a": a, "n": range(len(a))})
    assert (
        list(pool.map(targets.of_a_frame, [frame] * 3))
        == [("polars", "DataFrame", [float(len(a)), len(a) - 1])] * 3
    )
    assert made == [a.nbytes] * 2
    assert list(pool.map(targets.of_a_frame, [frame["a"]] * 3))[-1][1:] == ("Series", [len(a)])
    table = pyarrow.table({"a": a})
    assert list(pool.map(len, [table] * 3)) == [len(a)] * 3
    assert made == [a.nbytes] * 4
    objects = polars.DataFrame({"o": polars.Series([{1}, {2}] * 100_000, dtype=polars.Object)})
    assert large_arguments.in_buffers(objects) is objects


def test_frames_that_arrow_cannot_have_go_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    class Frame:
        def estimated_size(self) -> int:
            return 2 * MIB

        def to_arrow(self) -> Any:
            raise TypeError("no such type")

    frame = Frame()
    others = types.SimpleNamespace(DataFrame=Frame, Series=int)
    monkeypatch.setitem(sys.modules, "polars", others)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "pyarrow", types.SimpleNamespace())  # type: ignore[arg-type]
    assert large_arguments.may_be_frames()
    assert large_arguments.in_buffers(frame) is frame
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # type: ignore[arg-type]
    assert large_arguments.in_buffers(frame) is frame
    assert large_arguments.in_buffers(7) == 7


def test_results_on_disk_by_joblib(tmp_path: Path) -> None:
    """Memory of joblib works in each OS process, as python/docs/from-joblib-ray.md describes."""
    pytest.importorskip("joblib")
    with Executor(2) as both:
        inputs = [(str(tmp_path), n) for n in range(4)]
        for _ in range(2):
            assert list(both.map(targets.cached, inputs)) == [0, 1, 4, 9]
    assert len(list(tmp_path.glob("ran-*"))) == 4


def test_a_killed_worker_leaks_nothing() -> None:
    """Rule 9.4: no segment remains when a worker is killed."""
    before = ours()
    with Executor(1) as e:
        a = arrays(24 * MIB)
        error = e.submit(targets.dies, a).exception()
        assert isinstance(error, cf.process.BrokenProcessPool)
        table = e._state.large  # type: ignore[attr-defined]
    del error
    gc.collect()
    assert (len(table._all), len(table._copied)) == (0, 0)
    assert ours() <= before


def test_a_worker_killed_with_a_shared_array_is_replaced_and_the_call_run_again(
    tmp_path: Path,
) -> None:
    """Rules 9.4 and 9.5: the killed worker is replaced, and the call is run again."""
    with Executor(1) as e:
        a = arrays(24 * MIB)
        pid, _ = e.submit(targets.its_memory, a).result()
        assert list(e.map(targets.first, [a] * 2, retries=1)) == [1.0] * 2
        os.kill(pid, signal.SIGKILL)
        assert list(e.map(targets.first, [a] * 2, retries=1)) == [1.0] * 2


def test_without_memory_for_the_copy_it_goes_as_before(
    pool: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Native:
        @staticmethod
        def _shared_again(raw: Any) -> Any:
            raise BadUse("no shared memory of so many bytes")

    monkeypatch.setattr(large_arguments, "_native", Native)
    a = arrays(24 * MIB)
    assert list(pool.map(targets.writes, [a] * 4, range(4))) == [1.0] * 4


def test_only_so_many_copies_at_a_time(
    pool: Executor, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_arguments, "MAX_COPIES", 0)
    a = arrays(24 * MIB)
    assert list(pool.map(targets.first, [a] * 4)) == [1.0] * 4
    assert made == []


def test_released_views_and_odd_arguments_fail_alone(pool: Executor) -> None:
    a, gone = arrays(24 * MIB), memoryview(bytearray(2 * MIB))
    gone.release()
    futures = [
        pool.submit(targets.first, gone),
        pool.submit(targets.writes, a, gone),
        pool.submit(targets.writes, a, targets.RaisesWhenPickled()),
        pool.submit(targets.first, a),
    ]
    assert [f.exception() is None for f in futures] == [False, False, False, True]


def test_arrays_of_objects_and_of_subclasses(pool: Executor) -> None:
    objects = numpy.array([1, "two"] * 100_000, dtype=object)
    assert list(pool.map(targets.first, [objects] * 3)) == [1] * 3
    masked = numpy.ma.masked_less(arrays(24 * MIB), 0)
    assert list(pool.map(targets.first, [masked] * 3)) == [1.0] * 3


def test_inputs_that_change_the_array_between_the_calls(pool: Executor) -> None:
    """rule 9.4: between its inputs map() runs user code, which changes the array and calls
    submit(). Each of these calls gets the bytes that the array had when the call was made."""
    a = arrays(24 * MIB)
    results: list[float] = []

    def inputs() -> Iterator[Any]:
        for n in range(6):
            a[0] = n
            results.append(pool.submit(targets.first, a).result())
            yield a

    assert len(list(pool.map(targets.first, inputs()))) == 6
    assert results == [float(n) for n in range(6)]
