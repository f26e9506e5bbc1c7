"""Tests of the cost of operations on the emulated Cortex-M3: of Weft, and of the futures and locks
in bench/baselines.py. They count instructions, which are the same in every run, and check the
figures of theses/UPYCSP.md."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pytest

from micropython.bench.on_board import fits, instructions, measured

from . import board

pytestmark = pytest.mark.together  # one lane runs these tests, and keeps the counts


@functools.cache
def least(where: str, bench: str, way: str) -> int:
    return min(instructions(where, bench, way))


def ratio(where: str, bench: str, way: str, other: str, *, of: str = "board-pure") -> float:
    return least(where, bench, way) / least(of, bench, other)


@pytest.mark.parametrize(
    ("where", "way", "most"),
    [
        ("board-pure", "await", 0.7),
        ("board-pure", "yield", 0.4),
        ("board-native", "await", 0.08),
        ("board-natmod", "await", 0.08),
    ],
)
def test_commstime_beside_the_rescheduling_future(where: str, way: str, most: float) -> None:
    assert 0 < ratio(where, "commstime", way, "rescheduling") <= most


@pytest.mark.parametrize(
    ("where", "way", "most"),
    [
        ("board-pure", "await", 9500),  # earlier, the test required 16,000
        ("board-pure", "yield", 7000),
        ("board-native", "await", 1500),
        ("board-native", "yield", 1500),
        ("board-natmod", "await", 1500),
    ],
)
def test_instructions_of_a_communication(where: str, way: str, most: int) -> None:
    """The programs use `r.read()` and `w.write(v)`, choice and poison."""
    assert 0 < least(where, "commstime", way) <= most


@pytest.mark.parametrize("way", ["await", "yield"])
@pytest.mark.parametrize("where", ["board-pure", "board-native"])
def test_those_that_wait_cost_nothing(where: str, way: str) -> None:
    assert least(where, "waiting30", way) <= 1.1 * least(where, "waiting1", way)


@pytest.mark.soak
@pytest.mark.parametrize("way", ["await", "yield"])
def test_nor_do_a_thousand_in_a_larger_heap(way: str) -> None:
    """There are 999 waiters and not 1,000: with four digits the name of the test's last argument
    would have more than ten letters. Such a text is not interned, and one interned name fewer moves
    the later names in the cache of look-ups."""
    assert least("board-pure", "waiting999", way) <= 1.01 * least("board-pure", "waiting1", way)


def test_the_two_futures_cross_below_one_waiter() -> None:
    nobody, one = "commstime", "waiting1"
    assert least("board-pure", nobody, "yielding") < least("board-pure", nobody, "rescheduling")
    assert least("board-pure", one, "yielding") > least("board-pure", one, "rescheduling")
    assert least("board-pure", "waiting30", "yielding") > 5 * least("board-pure", one, "yielding")


def test_a_standing_alternative_costs_the_same_for_twenty_channels_as_for_five() -> None:
    five, twenty = [least("board-pure", f"stressedalt{n}x2", "standing") for n in (5, 20)]
    assert twenty <= 1.3 * five


@pytest.mark.parametrize(("where", "most"), [("board-pure", 1.0), ("board-native", 0.6)])
def test_a_parallel_delta_costs_no_more_than_the_rescheduling_futures(
    where: str, most: float
) -> None:
    """Weft starts two processes for each value; the baselines start two tasks, by `gather`."""
    assert 0 < ratio(where, "parallel", "await", "rescheduling") <= most


@functools.cache
def channel_costs(where: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(__file__).with_name("channel_costs.py")
        return board.figures(board.run(where, program, Path(folder)))


@pytest.mark.parametrize(
    ("where", "what", "most"),
    [
        ("board-native", "buffered 1", 1.5),
        ("board-native", "buffered 8", 1.5),
        ("board-native", "select, two writers", 4),
        ("board-native", "select, one writer", 4),
        ("board-pure", "buffered 1", 3),
        ("board-pure", "buffered 8", 3),
        ("board-pure", "select, two writers", 5),
        ("board-pure", "select, one writer", 5),
    ],
)
def test_a_buffer_and_a_select_beside_a_plain_communication(
    where: str, what: str, most: float
) -> None:
    """In earlier versions a buffer and a select cost 22 and 52 times as much as a plain
    communication in the firmware, and a select 9.3 and 12.7 times as much in pure Python (rules
    1.5, 5.4).
    """
    costs = channel_costs(where)
    assert 0 < costs[what] <= most * costs["plain"]


def test_a_larger_heap_takes_more_processes_on_the_board() -> None:
    small, large = (int(fits("board-native", "parked", kb)) for kb in (64, 128))
    assert 100 < small < large
    assert fits("board-pure", "parked", 20) == "does not load"


def test_the_pieces_of_a_process_that_waits() -> None:
    """Checks the sizes of the parts that theses/UPYCSP.md adds up: 144 bytes belong to the objects
    of the native core."""
    message = board.figures(measured("board-native", "room_on_device.py", "pieces"))
    own = ("coroutine", "Proc", "Chan", "reader end", "writer end")
    assert sum(message[name] for name in own) == 144
    assert message["Process"] + message["Channel"] < 200
