"""Tests of channels between a board and a PC (LINK.md). MicroPython's unix port takes the place of
the board at one end of a pseudo-terminal; weft.serial is at the other."""

from __future__ import annotations

import math
import os
import random
import selectors
import signal
import socket
import subprocess
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from weft import serial
from weft.threads import (
    BadUse,
    Channel,
    PeerDied,
    Poisoned,
    Retired,
    after,
    process,
    run,
    select,
)

from . import tiers

TIERS = tiers.MICROPYTHONS
PROGRAM = tiers.HERE / "tests" / "link_board.py"


class Unix:
    """A board: an OS process of the unix port, which holds one end of a line."""

    def __init__(self, tier: str, line: int, scenario: str, *options: str) -> None:
        command = [*tiers.command(tier), str(PROGRAM), str(line), scenario, *options]
        self.process = subprocess.Popen(
            command,
            env=tiers.environment(tier),
            pass_fds=[line],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        os.close(line)

    def output(self) -> list[str]:
        """Waits for the end of the board, and returns the lines that it has printed."""
        out, _ = self.process.communicate(timeout=280)
        assert self.process.returncode == 0, out
        return out.splitlines()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=280)


def pair() -> tuple[int, int]:
    board, pc = os.openpty()
    tty.setraw(pc)
    return board, pc


@contextmanager
def plugged(
    scenario: str, *options: str, tier: str = "pure", lease: float = 3.0
) -> Iterator[tuple[serial.Board, Unix]]:
    at_board, at_pc = pair()
    with serial.connect(at_pc, baud=0, lease=lease) as pc:
        os.close(at_pc)
        board = Unix(tier, at_board, scenario, *options)
        try:
            yield pc, board
        finally:
            board.kill()


def ends(pc: serial.Board, **which: str) -> tuple[Any, ...]:
    """Makes channels with these names and gives the board its ends: a reader for "r", else a
    writer. Returns the PC's ends."""
    ours = []
    for name, side in which.items():
        c = Channel(name)
        pc.give(name, c.reader() if side == "r" else c.writer())
        ours.append(c.writer() if side == "r" else c.reader())
    return tuple(ours)


VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    23,
    24,
    255,
    256,
    65535,
    65536,
    -1,
    -24,
    -25,
    -(2**31),
    2**31,
    2**32,
    2**62,
    2**63,
    2**64 - 1,
    2**64,
    -(2**64),
    -(2**64) - 1,
    10**60,
    -(10**60),
    0.0,
    -1.5,
    1e300,
    math.inf,
    -math.inf,
    "",
    "text",
    "€ \U0001f600 \0 zero",
    "x" * 700,
    b"",
    bytes(range(256)),
    b"\0" * 500,
    [],
    [1, "two", b"three", [None, [4.5]]],
    {},
    {"a": 1, 2: [3], True: {"deep": {}}},
    {b"k": None},
]


@pytest.mark.parametrize("tier", TIERS)
def test_values_of_every_kind_come_back_as_they_went(tier: str) -> None:
    """wire 12.8"""
    with plugged("echo", tier=tier) as (pc, board):
        there, back = ends(pc, there="r", back="w")
        for value in VALUES:
            there(value)
            assert back() == value
        for value in VALUES:
            there(value)
            got = back()
            assert (got, type(got)) == (value, type(value))
        there((1, (2, 3)))
        assert back() == [1, [2, 3]]  # a tuple arrives as a list
        there(bytearray(b"ab"))
        assert back() == b"ab"
        there(math.nan)
        assert math.isnan(back())
        there.retire()
        with pytest.raises(Retired):
            back()
        assert board.output() == ["over", "left"]


@pytest.mark.parametrize("tier", TIERS)
def test_processes_of_the_board_let_go_of_their_ends_and_the_network_closes_down(tier: str) -> None:
    """rules 2.3, 3.1 to 3.4; wire 7.1"""
    with plugged("two_pumps", tier=tier) as (pc, board):
        a, b, x, y = ends(pc, a="r", b="r", x="w", y="w")

        @process
        def feed(to: Any, n: int) -> None:
            for i in range(n):
                to(i)

        @process
        def collect(source: Any) -> list[int]:
            return list(source)

        results = run(feed(a, 60), feed(b, 40), collect(x), collect(y))
        assert results[2:] == [list(range(60)), list(range(40))]
        assert board.output() == ["left"]


def test_a_select_on_the_pc_takes_ends_that_lead_to_a_board() -> None:
    """rules 5.1, 5.2: guards at ends that lead to the board, beside a timeout and an output"""
    with plugged("two_pumps") as (pc, board):
        a, b, x, y = ends(pc, a="r", b="r", x="w", y="w")

        @process
        def choose() -> list[Any]:
            seen = []
            assert select(x, y, after(0)) == (2, None)
            a(1)
            b(2)
            for _ in range(2):
                seen.append(select(x, y, after(10)))
            seen.append(select(x, after(0.01)))
            return seen

        seen = run(choose())
        assert sorted(seen[:2]) == [(0, 1), (1, 2)]
        assert seen[2] == (1, None)
        a.retire()
        b.retire()
        assert board.output() == ["left"]


def test_a_select_on_the_board_is_one_offer_to_the_pc() -> None:
    """wire 4.3, 4.5; rule 5.4: the select is fair, so a source that is always ready does not starve
    the other; rule 5.6: a guard whose channel has retired is silent"""
    with plugged("chooses") as (pc, board):
        a, b, idle, out = ends(pc, a="r", b="r", idle="r", out="w")

        @process
        def feed(to: Any, values: list[int]) -> None:
            for v in values:
                to(v)

        run(feed(a, [1, 2, 3]), feed(b, [10, 20, 30]))
        assert out() == 7
        assert out() == "done"
        idle.poison(4)
        output = board.output()
        assert sorted(output[:6]) == [
            "chose 0 1",
            "chose 0 2",
            "chose 0 3",
            "chose 1 10",
            "chose 1 20",
            "chose 1 30",
        ]
        assert output[6:] == [*["chose 1 None"] * 4, "retired True", "poisoned 4 1", "left"]


def test_retirement_goes_both_ways_behind_what_was_written() -> None:
    """rules 3.1 to 3.3; wire 7.3"""
    with plugged("retires") as (pc, board):
        first, second = ends(pc, first="w", second="r")
        assert first() == 1
        with pytest.raises(Retired):
            first()
        second(2)
        second.retire()
        assert board.output() == ["2", "retired", "closed", "left"]


def test_poison_goes_both_ways_with_its_strength() -> None:
    """rules 4.1, 4.4: the board's write that waits raises Poisoned with its value"""
    with plugged("poisons") as (pc, board):
        a, b = ends(pc, a="r", b="w")
        a(1)
        with pytest.raises(Poisoned) as e:
            while True:
                a(2)
        assert e.value.strength == 3
        assert b() == 1
        b.poison(5)
        assert board.output() == ["1", "own 3", "theirs 5 1", "left"]


def test_a_board_that_does_not_read_holds_its_writer_and_only_that() -> None:
    """rules 1.1, 1.5: a write completes when the board has the value; a buffer on the PC holds two
    more"""
    for capacity in (0, 2):
        with plugged("slow") as (pc, board):
            go, message = ends(pc, go="r", told="w")
            numbers = Channel("numbers", capacity=capacity)
            pc.give("numbers", numbers.reader())
            written: list[int] = []

            @process
            def feed(to: Any, written: list[int] = written) -> None:
                for i in range(8):
                    to(i)
                    written.append(i)

            @process
            def drive(
                go: Any = go, message: Any = message, written: list[int] = written
            ) -> list[int]:
                behind = []
                for i in range(8):
                    go(None)
                    assert message() == i
                    behind.append(len(written))
                return behind

            behind = run(feed(numbers.writer()), drive())[1]
            assert all(i <= n <= min(i + 2 + capacity, 8) for i, n in enumerate(behind)), behind
            go.retire()
            assert board.output() == ["left"]


@pytest.mark.parametrize("tier", TIERS)
def test_a_board_that_is_killed_has_died(tier: str) -> None:
    """rule 4.5: the values that the board wrote are read first; afterwards, operations that wait
    for the board raise PeerDied"""
    with plugged("echo", tier=tier) as (pc, board):
        (there,) = ends(pc, there="r")
        back = Channel("back", capacity=4)
        pc.give("back", back.writer())
        mine = back.reader()
        there(1)
        there(2)
        there(3)  # this write completes once 1 and 2 are in the buffer
        board.kill()
        with pytest.raises(PeerDied):
            while True:
                there(4)
        got = []
        with pytest.raises(PeerDied):
            while True:
                got.append(mine())
        assert got in ([1, 2], [1, 2, 3])
        assert "line" in pc.wait()


def test_a_process_that_waits_for_a_killed_board_is_woken() -> None:
    with plugged("slow") as (pc, board):
        go, numbers, message = ends(pc, go="r", numbers="r", told="w")
        died = []

        @process
        def reads() -> None:
            try:
                message()
            except PeerDied as e:
                died.append(e)

        @process
        def kills() -> None:
            go(None)  # makes sure that the board is ready
            board.kill()

        run(reads(), kills())
        assert len(died) == 1
        del numbers


def test_plugged_out_and_in_again() -> None:
    """wire 12.6: a link is one session. The next line has a new session, on the PC and on the
    board."""
    for i in range(3):
        with plugged("echo") as (pc, board):
            there, back = ends(pc, there="r", back="w")
            there(i)
            assert back() == i
            board.kill()
            with pytest.raises(PeerDied):
                back()


def test_a_board_that_is_reset_on_a_line_that_stays() -> None:
    """wire 12.6: the board's START ends the session, and the next program on the PC connects to the
    board. No bytes of the old session reach the new one."""
    at_board, at_pc = pair()
    board = Unix("pure", os.dup(at_board), "echo")
    try:
        with serial.connect(at_pc, baud=0) as pc:
            there, back = ends(pc, there="r", back="w")
            there(1)
            assert back() == 1
            board.kill()
            board = Unix("pure", os.dup(at_board), "echo")
            with pytest.raises(PeerDied):
                back()
            assert pc.wait() == "it has started anew"
        with serial.connect(at_pc, baud=0) as pc:
            there, back = ends(pc, there="r", back="w")
            there(2)
            assert back() == 2
            there.retire()
            assert board.output() == ["over", "left"]
    finally:
        board.kill()
        os.close(at_board)
        os.close(at_pc)


def test_a_program_on_the_pc_that_ends_and_the_next_one() -> None:
    """The board goes from one session to the next while the line stays open."""
    at_board, at_pc = pair()
    board = Unix("pure", at_board, "writes", "again_link=2")
    try:
        for _ in range(2):
            with serial.connect(at_pc, baud=0) as pc:
                (out,) = ends(pc, out="w")
                assert [out(), out()] == [0, 1]
        output = board.output()
        # The PC might have got the board's last write, or the board might have learned of the end
        # of the PC before its write (8.3).
        assert (
            output[-1] == "left"
            and len(output) == 3
            and {*output[:2]} <= {"in doubt True", "not in doubt True"}
        )
    finally:
        os.close(at_pc)
        board.kill()


def test_a_board_learns_that_the_pc_has_gone_and_what_is_in_doubt() -> None:
    """wire 8: a read is never in doubt, nor is a write that was not sent"""
    with plugged("waits") as (pc, board):
        _numbers, out = ends(pc, numbers="r", out="w")
        assert out() == "ready"
        pc.close()
        assert board.output() == [
            "read False",
            "write False",
            "never False",
            "why: the PC said: the program on the PC has closed the link",
            "left",
        ]


def test_a_board_that_is_silent_for_the_lease_has_died() -> None:
    """wire 12.6: the line is up, but no byte arrives"""
    stopped = False
    while not stopped:
        with suppress(PeerDied), plugged("echo", "lease=300", lease=0.5) as (pc, board):
            there, back = ends(pc, there="r", back="w")
            there(1)  # on a busy machine the board might be silent for the lease: PeerDied, again
            assert back() == 1
            os.kill(board.process.pid, signal.SIGSTOP)
            stopped = True
            with pytest.raises(PeerDied):
                back()
            assert "lease" in pc.wait()
            os.kill(board.process.pid, signal.SIGCONT)


def test_an_error_that_leaves_the_board_s_block_is_a_death_and_leaving_it_is_none() -> None:
    with plugged("fails") as (pc, board):
        (out,) = ends(pc, out="w")
        assert out() == 1
        with pytest.raises(PeerDied):
            out()
        text, _ = board.process.communicate(timeout=280)
        assert "ValueError" in text and board.process.returncode != 0


def test_a_value_that_a_board_cannot_send_is_bad_use_at_the_write() -> None:
    """rule 11.2; wire 9.1"""
    with plugged("bad_values") as (pc, board):
        (out,) = ends(pc, out="w")
        assert out() == "still here"
        output = board.output()
        assert output[-1] == "left" and len(output) == 8
        assert all(line.startswith("bad write on channel 'out'") for line in output[:-1]), output


def test_a_value_that_the_pc_cannot_send_is_bad_use_at_the_write_and_the_value_stays() -> None:
    """rule 11.2"""
    import datetime
    import http

    deep: list[Any] = []
    for _ in range(20):
        deep = [deep]
    with plugged("echo") as (pc, board):
        there, back = ends(pc, there="r", back="w")
        other = Channel("other")
        for value, named in (
            (object(), "object"),
            ([1, {2, 3}], "set"),
            (datetime.date(2026, 1, 1), "date"),
            ({(1, 2): 3}, "this value"),
            (deep, "this value"),
            ("\ud800", "this value"),
            (other.reader(), "Reader"),
            ([http.HTTPStatus.OK], "HTTPStatus, which is derived from int,"),
        ):
            with pytest.raises(BadUse, match=f"channel 'there': .*{named}.* cannot go to a board"):
                there(value)
        there("next")
        assert back() == "next"


def test_a_channel_goes_to_boards_or_to_processes_and_a_given_end_is_closed() -> None:
    from weft import processes

    with plugged("echo") as (pc, _board):
        c = Channel("both")
        mine, to = c.reader(), c.writer()
        pc.give("there", mine)
        with pytest.raises(BadUse, match="closed"):
            mine()
        with pytest.raises(BadUse, match="expected a channel end"):
            pc.give("x", c)
        with pytest.raises(BadUse, match="no space"):
            pc.give("two words", to)
        with pytest.raises(BadUse, match="on a board, where its values are packed"):
            processes.run(_takes(to))
    with pytest.raises(BadUse, match="link is closed"):
        pc.give("there", Channel("late").reader())
    for lease in (-1, 4000):
        with pytest.raises(BadUse, match="between 0 and 3600"):
            serial.connect("/dev/null", lease=lease)
    with pytest.raises(OSError, match="No such file"):
        serial.connect("/dev/no such board")


from weft import processes as _processes  # noqa: E402


@_processes.process
def _takes(end: Any) -> None:
    end.retire()


def test_a_value_that_waits_when_the_end_is_given_goes_to_the_board_too() -> None:
    """wire 1.4: an end is handed over while parties wait and its channel's buffer is full"""
    with plugged("echo") as (pc, board):
        outward, back = Channel("there", capacity=2), Channel("back")
        to, mine = outward.writer(), back.reader()
        to("buffered")
        to([1, (2,)])
        pc.give("there", outward.reader())
        pc.give("back", back.writer())
        assert [mine(), mine()] == ["buffered", [1, [2]]]
        refused = Channel("refused", capacity=1)
        odd = refused.writer()
        odd(object())
        with pytest.raises(BadUse, match="cannot go to a board"):
            pc.give("refused", refused.reader())
        to.retire()
        assert board.output() == ["over", "left"]


def test_a_board_that_gives_up_a_read_loses_nothing() -> None:
    """rules 6.2, 6.3; wire 4.3: a withdrawal waits for its answer"""
    with plugged("gives_up") as (pc, board):
        numbers, message = ends(pc, numbers="r", told="w")
        more = Channel("more")
        pc.give("more", more.writer())
        assert message() == "gave up"
        numbers(5)
        assert more.reader()() == "after it"
        with pytest.raises(Retired):
            message()
        assert board.output() == ["read 5", "back nobody reads this", "left"]


def test_ends_by_name_of_the_right_side_and_once() -> None:
    """wire 7.2"""
    with plugged("names") as (pc, board):
        (_a,) = ends(pc, a="r")
        output = board.output()
        assert output[0] == "bad the end 'a' is a reader"
        assert output[1] == "got a"
        assert output[2] == "bad the end 'a' was taken before"
        assert output[3].startswith("bad a link's largest frame")


@pytest.mark.parametrize("kind", ["tcp", "late"])
def test_a_socket_is_a_line_too_and_it_does_not_matter_who_is_first(kind: str) -> None:
    ours, theirs = socket.socketpair()
    board = Unix("native", theirs.detach(), "echo")
    if kind == "late":  # the board's START arrives before the program on the PC begins
        assert ours.recv(4, socket.MSG_PEEK)
    with ours, serial.connect(ours) as pc:
        there, back = ends(pc, there="r", back="w")
        there("over a socket")
        assert back() == "over a socket"
        there.retire()
        assert board.output() == ["over", "left"]


class Noise:
    """Connects two lines, and drops, changes and inserts bytes at random. The seed decides which
    bytes."""

    def __init__(self, seed: int, per_mille: float) -> None:
        self.dice, self.chance, self.spoilt = random.Random(seed), per_mille / 1000, 0
        self.pc, a = socket.socketpair()
        self.board, b = socket.socketpair()
        self.stop, stopped = socket.socketpair()
        self.inner = (a, b, stopped)
        self.thread = threading.Thread(target=self.carry)
        self.thread.start()

    def spoil(self, data: bytes) -> bytes:
        out = bytearray()
        for byte in data:
            if self.dice.random() >= self.chance:
                out.append(byte)
                continue
            self.spoilt += 1
            how = self.dice.randrange(3)
            if how == 1:
                out.append(byte ^ 1 << self.dice.randrange(8))
            elif how == 2:
                out += bytes([byte]) + self.dice.randbytes(self.dice.randrange(40))
        return bytes(out)

    def carry(self) -> None:
        a, b, stopped = self.inner
        with selectors.DefaultSelector() as s:
            for sock in self.inner:
                s.register(sock, selectors.EVENT_READ)
            while True:
                for key, _ in s.select():
                    if key.fileobj is stopped:
                        return
                    data = key.fileobj.recv(512)  # type: ignore[union-attr]
                    if not data:
                        return
                    (b if key.fileobj is a else a).sendall(self.spoil(data))

    def close(self) -> None:
        self.stop.close()
        self.thread.join()
        for s in (*self.inner, self.pc):
            s.close()


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 4))]
)
def test_over_a_line_that_spoils_bytes_all_arrives_once_in_order(seed: int) -> None:
    """wire 12.6, 13.1"""
    noise = Noise(seed, 1 + seed)
    try:
        board = Unix("native", noise.board.detach(), "two_pumps", "again=30", "lease=20000")
        with serial.connect(noise.pc, lease=20.0) as pc:
            a, b, x, y = ends(pc, a="r", b="r", x="w", y="w")

            @process
            def feed(to: Any, n: int) -> None:
                for i in range(n):
                    to([i, "x" * (i % 50)])

            @process
            def collect(source: Any) -> list[int]:
                return [i for i, _ in source]

            results = run(feed(a, 40), feed(b, 40), collect(x), collect(y))
            assert results[2:] == [list(range(40))] * 2
            assert board.output() == ["left"]
        assert noise.spoilt > 0
    finally:
        noise.close()
