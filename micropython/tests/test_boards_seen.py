"""Tests of boards in a look from outside (rule 14.20; python/docs/observing.md). The board is
MicroPython's unix port."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft._watching import visit
from weft._watching.look import Look, who
from weft.threads import BadUse, Channel, process, run

from . import placed_programs as programs
from .placed_boards import one_board
from .test_link import ends, plugged


def looked(until: Callable[[visit.Network], bool]) -> visit.Network:
    """Returns the first look for which `until` is true. A single sample may show anything."""
    look = Look()
    while True:
        network = visit.together(1, {1: who() | look.over(0)}, [], {})
        if until(network):
            return network


def on_board(network: visit.Network) -> list[visit.Row]:
    return [row for row in network.rows if row.kind == "board"]


def test_a_process_on_a_board_is_shown_there(tmp_path: Path) -> None:
    """rule 14.20"""
    c = Channel("numbers")
    seen: list[visit.Network] = []
    with one_board(tmp_path) as (unix, board):

        @process
        def looks(out: Any) -> None:
            seen.append(looked(lambda n: any(row.now == "reads" for row in on_board(n))))
            out.write(1)

        assert run(programs.reads.on(board)(c.reader()), looks(c.writer())) == [1, None]
        (network,) = seen
        (row,) = on_board(network)
        name = "".join(Path(unix.device).parts[-2:])
        assert (row.path, row.host) == (f"{name}:main/reads", name)
        assert row.where == f"read 'numbers' on the board at {unix.device}"
        assert row.reads_from == ["numbers"]
        assert row.waits == row.holds
        (pipe,) = network.pipes  # Weft's own channels to the board are not shown
        assert pipe.readers == [row.path]
        assert pipe.writers == ["main/looks"]
        assert not on_board(looked(lambda _: True))


def test_what_a_process_does_on_the_board_is_not_known(tmp_path: Path) -> None:
    """rule 14.20"""
    told = Channel("told")
    with one_board(tmp_path) as (_, board):

        @process
        def looks(told: Any) -> None:
            told.read()
            network = looked(lambda n: [row.now for row in on_board(n)] == ["io"])
            assert on_board(network)[0].where == f"on the board at {board._where}"
            raise KeyError  # ends the process on the board, which sleeps for long

        with pytest.raises(KeyError):
            run(programs.waits.on(board)(told.writer()), looks(told.reader()))


def test_a_board_with_its_own_program_is_one_process() -> None:
    """rule 14.20"""
    with plugged("echo") as (pc, board):
        to, back = ends(pc, there="r", back="w")
        network = looked(lambda n: any(row.now == "reads" for row in on_board(n)))
        (row,) = on_board(network)
        assert row.path == "board:program"
        assert row.host == "board"
        assert {(at, writes) for at, writes in row.waits} < set(row.holds)
        assert len(row.holds) == 2
        to.write(1)
        assert back.read() == 1
        looked(lambda n: any(row.now == "reads" for row in on_board(n)))
        board.kill()
        looked(lambda n: not on_board(n))  # the session is over
        pc.close()
        with pytest.raises(BadUse):
            pc._link.ends()
