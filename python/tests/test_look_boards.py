"""What a look tells of boards (rule 14.20). The links are stand-ins;
micropython/tests/test_boards_seen.py has links to a MicroPython."""

from __future__ import annotations

import sys
import weakref
from typing import Any

import pytest

from weft._watching import look_boards, visit
from weft._watching.look import who
from weft.errors import BadUse

pytestmark = pytest.mark.skipif(sys.implementation.name != "cpython", reason="CPython's extension")


@pytest.fixture(autouse=True)
def no_other_board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_boards, "_boards", weakref.WeakSet())


class Link:
    """A link whose peer holds these ends: (number, channel, writes, waits)."""

    def __init__(self, *ends: tuple[int, int, bool, bool]) -> None:
        self.held: list[tuple[int, int, bool, bool]] | None = list(ends)
        self.passed = 5

    def ends(self) -> list[tuple[Any, ...]]:
        if self.held is None:
            raise BadUse("ends: the session is over")
        return [(*end, f"'c{end[1]}'", self.passed, 1, 2, 3) for end in self.held]


def channel(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "passed": 0,
        "rate": 0.0,
        "dropped": 0,
        "depth": 0,
        "capacity": 0,
        "reading": 0.0,
        "writing": 0.25,
        "readers": 0,
        "writers": 0,
    }


def answer(boards: look_boards.Boards, *processes: dict[str, Any]) -> dict[str, Any]:
    rows, channels = list(processes), {"7": channel("a"), "8": channel("b")}
    boards.add_to(rows, channels, 2.0)
    for row in rows:
        row.setdefault("rate", None)
    more = {"seconds": 1.0, "samples": 4, "left_out": 0, "calls": {}, "away": {}}
    return who() | more | {"processes": rows, "channels": channels}


def test_a_board_s_states_are_counted_from_its_open_operations() -> None:
    """rule 14.20"""
    link = Link((0, 7, False, True), (1, 8, True, False), (2, 9, False, True))
    board = look_boards.Board("/dev/ttyUSB0", link)
    board.given = {0: "a", 1: "b", 2: "weft.flight.ask"}  # the last is Weft's own
    boards = look_boards.Boards()
    for ends in (
        [(0, 7, False, True), (1, 8, True, False)],
        [(0, 7, False, True), (1, 8, True, True)],
        [(0, 7, False, False), (1, 8, True, False)],
        [(0, 7, False, False), (1, 8, True, True)],
    ):
        link.held = ends
        boards.sample()
    told = answer(boards)
    (row,) = told["processes"]
    assert row["share"] == {"reads": 0.25, "either": 0.25, "io": 0.25, "writes": 0.25}
    assert row["does"] == "write 'b' on the board at /dev/ttyUSB0"
    assert not row["before"]
    assert told["channels"]["8"]["writing"] == 0.25
    network = visit.together(1, {1: told}, [], {})
    assert [(r.path, r.host, r.now) for r in network.rows] == [
        ("ttyUSB0:program", "ttyUSB0", "writes")
    ]
    assert {p.name: (p.readers, p.writers) for p in network.pipes} == {
        "a": (["ttyUSB0:program"], []),
        "b": ([], ["ttyUSB0:program"]),
    }
    boards.begin()
    assert answer(boards)["processes"][0]["share"] == {}
    link.held = None
    boards.sample()
    assert answer(boards)["processes"] == []


def test_a_channel_of_which_no_process_here_has_an_end() -> None:
    """rule 14.20"""
    link = Link((0, 70, False, True))
    board = look_boards.Board("/dev/ttyUSB0", link)
    board.given = {0: "x"}
    boards = look_boards.Boards()
    boards.sample()
    link.passed = 11
    boards.sample()
    told = answer(boards)
    assert told["processes"][0]["does"] == "read 'c70' on the board at /dev/ttyUSB0"
    network = visit.together(1, {1: told}, [], {})
    (pipe,) = [pipe for pipe in network.pipes if pipe.name == "c70"]
    assert (pipe.rate, pipe.depth, pipe.capacity, pipe.reading) == (3.0, 2, 3, 1.0)
    assert pipe.readers == ["ttyUSB0:program"]
    boards.begin()
    assert "70" not in answer(boards)["channels"]


def test_names_of_boards_are_unique_while_they_live() -> None:
    """rule 14.20"""
    first = look_boards.Board("/dev/ttyACM0", Link())
    second = look_boards.Board("/dev/ttyACM0", Link())
    third = look_boards.Board("<socket.socket fd=3>", Link())
    assert (first.name, second.name) == ("ttyACM0", "ttyACM0-2")
    assert look_boards.Board("/dev/pts/1", Link()).name == "pts1"
    assert third.name == "board"
    first.close()
    again = look_boards.Board("/dev/ttyACM0", Link())
    assert again.name == "ttyACM0"
    del again
    assert look_boards.Board("/dev/ttyACM0", Link()).name == "ttyACM0"


def test_a_process_that_stands_for_one_on_a_board_is_shown_once() -> None:
    """rules 14.20, 21.1"""

    class Running:
        path, stands_in = "main/smooth", 5

    board = look_boards.Board("socket://h:1", Link((0, 7, False, True)))
    running = Running()
    board.parts = lambda given: ([running], dict.fromkeys(given, running))
    board.given = {0: "1.0"}
    boards = look_boards.Boards()
    boards.sample()
    here = {"id": 5, "parent": 0, "path": "main/smooth", "kind": "thread", "cpu": 0.5}
    here |= {"holds": [], "waits": [["8", False]]}
    told = answer(boards, here)
    (row,) = told["processes"]
    assert (row["kind"], row["cpu"], row["now"]) == ("board", None, "reads")
    assert list(told["channels"]) == ["7"]  # Weft's own channel to the board is left out
    assert told["channels"]["7"]["reading"] == 1.0
    (shown,) = visit.together(1, {1: told}, [], {}).rows
    assert shown.path == "h1:main/smooth"
