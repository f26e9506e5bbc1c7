"""Tests of channels between real firmware and a PC (LINK.md). MicroPython with a main.py, on an
emulated Cortex-M3 and on an RP2040, is at one end of a cable; weft.serial is at the other. One
board of each kind serves all tests, session after session, as on a desk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from weft import serial
from weft.threads import Channel, PeerDied, Poisoned, Retired, after, process, run, select

from . import tiers
from .cable import Spoiler
from .link_boards import CortexM3, Firmware, Rp2040, program
from .test_link import ends

PATIENT = 20.0  # seconds of lease: an emulator on a busy machine may be slow without being dead
SLOW = 19200  # baud: unacknowledged bytes are resent after more than a second, for the same reason


@pytest.fixture(scope="module", params=[CortexM3, Rp2040], ids=lambda kind: kind.KIND)
def board(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    kind = request.param
    made = kind(tmp_path_factory.mktemp(kind.KIND), program(kind))
    yield made
    made.close()


@contextmanager
def told(board: Firmware, what: str, lease: float = PATIENT) -> Iterator[serial.Board]:
    """Opens a session in which the board performs the task `what`."""
    with serial.connect(board.cable.device, baud=SLOW, lease=lease) as pc:
        orders = Channel("do")
        pc.give("do", orders.reader())
        orders.writer()(what)
        yield pc


def output(board: Firmware) -> list[str]:
    """Returns the messages of the board from the previous session."""
    with told(board, "report") as pc:
        lines = Channel("lines")
        pc.give("lines", lines.writer())
        return lines.reader()()  # type: ignore[no-any-return]


def test_a_rendezvous_with_each_value_and_an_end_that_is_told(board: Firmware) -> None:
    """rules 1.1, 3.1; wire 12.6 to 12.8"""
    with told(board, "echo") as pc:
        there, back = ends(pc, there="r", back="w")
        for value in (None, True, -1, 2**70, 1.5, "€", b"\0" * 300, [1, {"a": [2]}], "x" * 700):
            there(value)
            assert back() == value
        there.retire()
        with pytest.raises(Retired):
            back()
    assert output(board) == ["over"]


def test_a_write_is_done_when_the_other_side_has_the_value(board: Firmware) -> None:
    """rule 1.1: the board takes one value for each word"""
    with told(board, "slow") as pc:
        go, numbers, took = ends(pc, go="r", numbers="r", told="w")
        written: list[int] = []

        @process
        def feed() -> None:
            for i in range(4):
                numbers(i)
                written.append(i)

        @process
        def drive() -> list[int]:
            behind = []
            for i in range(4):
                go(None)
                assert took() == i
                behind.append(len(written))
            return behind

        assert all(i <= n <= i + 1 for i, n in enumerate(run(feed(), drive())[1]))
        go.retire()


def test_choice_on_both_sides(board: Firmware) -> None:
    """rules 5.1, 5.2, 5.6; wire 4.5"""
    with told(board, "chooses") as pc:
        a, b, idle, out = ends(pc, a="r", b="r", idle="r", out="w")

        @process
        def feed(to: Any, values: list[int]) -> None:
            for v in values:
                to(v)

        run(feed(a, [1, 2, 3]), feed(b, [10, 20, 30]))

        @process
        def choose() -> list[Any]:
            return [select(out, after(60)), select(out, after(60))]

        assert run(choose()) == [(0, 7), (0, "done")]
        idle.poison(4)
        pc.wait()
    lines = output(board)
    chosen = [f"chose 0 {v}" for v in (1, 2, 3)] + [f"chose 1 {v}" for v in (10, 20, 30)]
    assert sorted(lines[:6]) == chosen
    assert lines[6:] == [*["chose 1 None"] * 4, "retired True", "poisoned 4 1"]


def test_retirement_goes_both_ways(board: Firmware) -> None:
    """rules 3.1 to 3.3; wire 7.3"""
    with told(board, "retires") as pc:
        first, second = ends(pc, first="w", second="r")
        assert first() == 1
        with pytest.raises(Retired):
            first()
        second(2)
        second.retire()
        pc.wait()
    assert output(board) == ["2", "retired", "closed"]


def test_poison_goes_both_ways_with_its_strength(board: Firmware) -> None:
    """rules 4.1, 4.4"""
    with told(board, "poisons") as pc:
        a, b = ends(pc, a="r", b="w")
        a(1)
        with pytest.raises(Poisoned) as e:
            while True:
                a(2)
        assert e.value.strength == 3
        assert b() == 1
        b.poison(5)
        pc.wait()
    assert output(board) == ["1", "own 3", "theirs 5 1"]


def test_a_board_that_gives_up_a_read_loses_nothing(board: Firmware) -> None:
    """rules 6.2, 6.3; wire 4.3"""
    with told(board, "gives_up") as pc:
        numbers, word = ends(pc, numbers="r", told="w")
        more = Channel("more")
        pc.give("more", more.writer())
        assert word() == "gave up"
        numbers(5)
        assert more.reader()() == "after it"
        pc.wait()
    assert output(board) == ["read 5", "back nobody reads this"]


def test_a_program_on_the_pc_that_ends_is_a_death_for_the_board(board: Firmware) -> None:
    """rule 4.5; wire 8: a value that was not sent is not in doubt"""
    with told(board, "waits") as pc:
        _numbers, out = ends(pc, numbers="r", out="w")
        assert out() == "ready"
    assert output(board) == [
        "read False",
        "write False",
        "never False",
        "why: the PC said: the program on the PC has closed the link",
    ]


def test_a_board_that_is_switched_off_and_on_is_another_one(board: Firmware) -> None:
    """wire 2.1, 12.6: the board's START ends the session, even if it has the same token; no bytes
    of the old session reach the new one"""
    for _ in range(2):
        with told(board, "echo") as pc:
            there, back = ends(pc, there="r", back="w")
            there("before")
            assert back() == "before"
            board.power_on()
            with pytest.raises(PeerDied):
                back()
            assert pc.wait() == "it has started anew"
    with told(board, "echo") as pc:
        there, back = ends(pc, there="r", back="w")
        there("after")
        assert back() == "after"
        there.retire()
        with pytest.raises(Retired):
            back()
    assert output(board) == ["over"]


def test_a_cable_that_is_plugged_out_and_in_again(board: Firmware) -> None:
    """wire 12.6: each side learns from its lease that the other has vanished; when the cable is
    plugged in again, the two begin a new session"""
    while not board.cable.cut:
        with suppress(PeerDied), told(board, "echo", lease=1.0) as pc:
            there, back = ends(pc, there="r", back="w")
            there(1)  # on a busy machine the lease may expire: then the test tries again
            assert back() == 1
            board.cable.cut = True
            with pytest.raises(PeerDied):
                back()
            assert "lease" in pc.wait()
    board.cable.cut = False
    with told(board, "echo") as pc:
        there, back = ends(pc, there="r", back="w")
        there(2)
        assert back() == 2
        there.retire()
        with pytest.raises(Retired):
            back()
    assert output(board) == ["over"]


def test_a_device_that_is_gone_and_comes_again(board: Firmware) -> None:
    """wire 12.1: the end of the line is noticed immediately, without a lease"""
    with told(board, "echo", lease=0) as pc:
        there, back = ends(pc, there="r", back="w")
        there(1)
        assert back() == 1
        board.cable.plug_out_pc()
        with pytest.raises(PeerDied):
            back()
        assert "line" in pc.wait()
    board.cable.plug_in_pc()
    with told(board, "echo") as pc:
        there, back = ends(pc, there="r", back="w")
        there(2)
        assert back() == 2


@pytest.mark.soak
def test_over_a_line_that_spoils_bytes_all_arrives_once_in_order(board: Firmware) -> None:
    """wire 12.6, 13.1"""
    faults = Spoiler(5, 2)
    board.cable.faults = faults
    try:
        with told(board, "two_pumps") as pc:
            a, b, x, y = ends(pc, a="r", b="r", x="w", y="w")

            @process
            def feed(to: Any) -> None:
                for i in range(12):
                    to([i, "x" * (7 * i % 50)])

            @process
            def collect(source: Any) -> list[int]:
                return [i for i, _ in source]

            assert run(feed(a), feed(b), collect(x), collect(y))[2:] == [list(range(12))] * 2
            assert faults.spoilt > 0
    finally:
        board.cable.faults = None


def test_what_a_program_prints_beside_the_link_spoils_nothing(board: Firmware) -> None:
    """wire 12.6: on the Cortex-M3 the link's line is the prompt's too"""
    with told(board, "chatters") as pc:
        there, back = ends(pc, there="r", back="w")
        for i in range(4):
            there(i)
            assert back() == i
        there.retire()
        with pytest.raises(Retired):
            back()


@pytest.mark.parametrize("board", [Rp2040], ids=["rp2040"], indirect=True)
def test_a_soft_reset_is_a_new_board(board: Firmware) -> None:
    """machine.soft_reset() leaves the link's block as any error does, so its ends die; then main.py
    starts again, and finds its UART. After a soft reset QEMU's port stays at its prompt."""
    with told(board, "resets_softly") as pc:
        (out,) = ends(pc, out="w")
        assert out() == "now"
        with pytest.raises(PeerDied):
            out()
        assert pc.wait() == "the peer said: the board has left the link"
    with told(board, "echo") as pc:
        there, back = ends(pc, there="r", back="w")
        there(2)
        assert back() == 2


def blocks(page: str) -> tuple[str, str]:
    """Returns the two programs of a page: main.py, which contains the Link, and the program of the
    PC, which connects.
    """
    found = re.findall(
        r"```python\n(.*?)```", (tiers.HERE / page).read_text(encoding="utf-8"), re.S
    )
    (main,) = [b for b in found if "Link(" in b and "run(square())" in b]
    (pc,) = [b for b in found if "serial.connect(" in b and "range(5)" in b]
    return main, pc


@pytest.mark.parametrize(
    ("page", "kind"),
    [("LINK.md", Rp2040), ("TUTORIAL.md", CortexM3)],
    ids=["LINK.md on the RP2040", "TUTORIAL.md on the Cortex-M3"],
)
def test_the_programs_of_a_page_as_they_stand(
    page: str, kind: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs the page's programs with one change: the path of the device is that of the cable."""
    main, pc = blocks(page)
    made = kind(tmp_path, {"main.py": main.encode()})
    try:
        exec(pc.replace("/dev/ttyACM0", made.cable.device), {"__name__": "pc"})
    finally:
        made.close()
    assert capsys.readouterr().out.split() == ["0", "1", "4", "9", "16"]
