"""The records of boards, and traces of several clocks (rules M24, 14.17). The bytes are made by
hand; micropython/tests/test_link_mcu.py has those of an emulated board.
"""

from __future__ import annotations

import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from flights import MAGIC, block, head, pair, piece, process, start, text, varint, whole

from weft import threads
from weft._watching import flight_board as _board
from weft._watching import flight_fetched as _fetched
from weft._watching import flight_read as _flight_read
from weft._watching import perfetto as _perfetto
from weft.errors import BadUse

pytestmark = pytest.mark.skipif(sys.implementation.name != "cpython", reason="CPython's extension")

START, END, WAITS, OVER, GOES_ON, BEGINS, RETURNS = range(1, 8)
READ, WRITE, SELECT_INPUT, SELECT, SLEEP = 0, 1, 3, 5, 7
OK, RETIRED, TIMED_OUT = 0, 2, 6
BUFFERED = 1 << 24
A, B, SRC, DST, LAMP, TICK, LOOSE = 0x100, 0x200, 0x10, 0x14, 0x30, 0x40, 0x50

NAMES = ((b"N", A, "a"), (b"N", LAMP, "lamp"), (b"N", TICK, "tick"))
PROCESSES = ((b"P", SRC, "src"), (b"P", DST, "dst"))


def named(letter: bytes, thing: int, name: str) -> bytes:
    return piece(letter.decode(), struct.pack("<I", thing) + name.encode())


def event(t: int, who: int, kind: int, op: int = 0, place: int = 0, more: int = 0) -> bytes:
    return struct.pack("<IIII", t & 0xFFFFFFFF, who, place, kind | op << 8 | more)


def board(
    *events: bytes, now: int = 10_000, lost: int = 0, room: int = 64, lanes: Any = None
) -> bytes:
    out = _board.MAGIC + piece("T", struct.pack("<QIII", now, lost, room, 0) + b"dev")
    out += b"".join(named(*one) for one in (*NAMES, *PROCESSES))
    for lane, some in (lanes or {0: events}).items():
        out += piece("R", struct.pack("<I", lane) + b"".join(some))
    return out + piece("Z")


@pytest.fixture
def lines(tmp_path: Path) -> Any:
    def read_them(data: bytes) -> list[tuple[Any, ...]]:
        (tmp_path / "b").write_bytes(data)
        recorded = _flight_read.Recorded([tmp_path / "b"])
        keys = ("e", "p", "op", "c", "waited", "why")
        return [
            (x["t"] // 1000, *(x[k] for k in keys if k in x))
            for x in recorded.lines()
            if x["e"] != "begin"
        ]

    return read_them


def test_a_hand_over_and_an_action(lines: Any) -> None:
    """Rule M24: the events of a board become operations of processes, and the handling of an
    action."""
    assert lines(
        board(
            event(100, SRC, START),
            event(110, DST, WAITS, READ, A),
            event(130, SRC, OVER, WRITE, A),
            event(140, DST, GOES_ON, READ, A),
            event(150, LAMP, BEGINS, place=TICK),
            event(155, LAMP, RETURNS),
            event(160, LAMP, BEGINS, place=TICK),
            event(170, DST, OVER, READ, A, RETIRED << 16),
            event(180, DST, WAITS, SLEEP),
            event(190, DST, GOES_ON, SLEEP),
            event(195, DST, END),
        )
    ) == [
        (0, "start", "dev/src"),
        (30, "commit", "dev/src", "write", "a", 0),
        (40, "commit", "dev/dst", "read", "a", 30_000),
        (50, "commit", "dev/lamp", "event tick", 50_000),
        (60, "commit", "dev/lamp", "event tick", 5_000),
        (70, "ended", "dev/dst", "read", "a", 0, "Retired"),
        (90, "commit", "dev/dst", "sleep", 10_000),
        (95, "end", "dev/dst"),
    ]


def test_a_read_that_timed_out_and_a_select_that_did(lines: Any) -> None:
    assert lines(
        board(
            event(0, SRC, START),
            event(0, DST, WAITS, READ, A),
            event(50, DST, GOES_ON, READ, A, TIMED_OUT << 16),
            event(60, DST, WAITS, SELECT),
            event(70, DST, GOES_ON, SELECT, 0, TIMED_OUT << 16),
            event(80, DST, WAITS, SELECT),
            event(90, DST, GOES_ON, SELECT_INPUT, A),
        )
    ) == [
        (0, "start", "dev/src"),
        (50, "withdraw", "dev/dst", "read", "a", 50_000, "Cancelled"),
        (70, "commit", "dev/dst", "select", 10_000),
        (90, "commit", "dev/dst", "select", "a", 10_000),
    ]


def test_what_has_no_name_has_its_address_and_is_no_process(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(
        board(event(0, LOOSE, BEGINS, place=TICK), event(1, SRC, OVER, READ, B))
    )
    recorded = _flight_read.Recorded([tmp_path / "b"])
    seen = [(x["p"], x["id"] > 0, x.get("c")) for x in recorded.lines() if x["e"] == "commit"]
    assert seen == [("dev/0x00000050", False, None), ("dev/src", True, "0x00000200")]


def test_the_clock_of_32_bits_wraps_and_cores_are_merged(lines: Any) -> None:
    at = (1 << 32) + 20
    got = lines(
        board(
            now=at,
            lanes={
                0: [event(-40, SRC, OVER, WRITE, A), event(10, SRC, OVER, WRITE, A)],
                1: [event(-20, DST, OVER, READ, A)],
            },
        )
    )
    assert [(t, x[1]) for t, *x in got] == [(0, "dev/src"), (20, "dev/dst"), (50, "dev/src")]


def test_hand_overs_of_a_ring_that_has_lost_its_beginning(tmp_path: Path) -> None:
    """Rule M24: the n-th write belongs to the n-th read. The first events are the second halves of
    two values; then the writer waits, and its value is the third.
    """
    data = board(
        event(10, SRC, GOES_ON, WRITE, A),  # the read of this value is lost
        event(20, DST, WAITS, READ, A),
        event(30, SRC, OVER, WRITE, A),
        event(40, DST, GOES_ON, READ, A),
        lost=7,
    )
    (tmp_path / "b").write_bytes(data)
    events = list(_flight_read.Recorded([tmp_path / "b"]).events())
    numbers = [(e.op, e.number) for e in events if e.tag == _flight_read.OVER and e.place >= 0]
    assert numbers == [(1, 0), (1, 1), (0, 1)]


def test_no_arrows_at_a_buffer_whose_beginning_is_lost(tmp_path: Path) -> None:
    for lost, arrows in ((0, 1), (7, 0)):
        (tmp_path / "b").write_bytes(
            board(
                event(10, SRC, OVER, WRITE, A, BUFFERED),
                event(20, DST, OVER, READ, A, BUFFERED),
                lost=lost,
            )
        )
        packets = b"".join(_perfetto.packets(_flight_read.Recorded([tmp_path / "b"])))
        assert packets.count(b"takes") == arrows


def test_an_arrow_from_a_board_to_another_program(tmp_path: Path) -> None:
    """rule M24: one file has all writes of `a`, and another all reads. A ring that has lost its
    beginning does not show how many values have passed at an end of a link.
    """
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    for lost, reads_too, arrows in ((0, False, 1), (7, False, 0), (0, True, 0)):
        wrote = [event(10, SRC, OVER, WRITE, A)]
        (tmp_path / "one").write_bytes(board(*wrote, lost=lost))
        both = [event(30, SRC, OVER, WRITE, A)] if reads_too else []
        (tmp_path / "two").write_bytes(board(*both, event(20, DST, OVER, READ, A)))
        recorded = _flight_read.Recorded([tmp_path / "one", tmp_path / "two"])
        trace = pb.Trace()
        trace.ParseFromString(b"".join(_perfetto.packets(recorded)))
        events = [packet.track_event for packet in trace.packet]
        begun = [flow for e in events for flow in e.flow_ids]
        assert begun == [flow for e in events for flow in e.terminating_flow_ids] or reads_too
        assert len(begun) == (arrows or reads_too)


def test_programs_of_two_hosts_with_one_pid() -> None:
    """Two programs with one pid must stay apart: in Perfetto a program is its pid, and that of a
    container is often 1."""
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

    class Both:
        heads = ((1, "east", "shop"), (1, "west", "shop"), (0, "desk", "board"))

        def exactness(self, file: int) -> str:
            return ""

    trace = pb.Trace()
    trace.ParseFromString(b"".join(_perfetto._Writer(Both(), {}).head()))  # type: ignore[arg-type]
    programs = [packet.track_descriptor.process for packet in trace.packet]
    assert [one.process_name for one in programs] == [
        "shop on east",
        "shop on west",
        "board on desk",
    ]
    assert len({one.pid for one in programs}) == 3 and programs[0].pid == 1


def test_how_a_process_ended_and_a_buffer_that_drops_values(tmp_path: Path) -> None:
    """rule 14.19: there are no hand-overs at a channel whose full buffer drops values"""
    for drops, arrows in ((0, 1), (1 << 25, 0)):
        (tmp_path / "b").write_bytes(
            board(
                event(10, SRC, OVER, WRITE, A, BUFFERED | drops),
                event(20, DST, OVER, READ, A, BUFFERED | drops),
                event(30, SRC, END, 3),
                event(40, DST, END, 4),
            )
        )
        recorded = _flight_read.Recorded([tmp_path / "b"])
        hows = [x["how"] for x in recorded.lines() if x["e"] == "end"]
        assert hows == ["Cancelled", "failed"]
        assert b"".join(_perfetto.packets(recorded)).count(b"takes") == arrows


@pytest.mark.parametrize("rest", [b"", b"R\xff\xff\xff\x7fxx", b"T\1\0\0\0x", b"R\7\0\0\0abcdefg"])
def test_bytes_that_are_cut_off_or_damaged_are_read_up_to_there(
    tmp_path: Path, rest: bytes
) -> None:
    data = board(event(0, SRC, OVER, WRITE, A))[: -len(piece("Z"))] + rest
    (tmp_path / "b").write_bytes(data)
    recorded = _flight_read.Recorded([tmp_path / "b"])
    assert [x["p"] for x in recorded.lines() if x["e"] == "commit"] == ["dev/src"]
    assert "is cut off" in recorded.fault


def test_every_beginning_of_the_bytes_is_read_or_refused(tmp_path: Path) -> None:
    data = board(event(0, SRC, WAITS, WRITE, A), event(9, SRC, GOES_ON, WRITE, A))
    for n in range(1, len(data)):
        (tmp_path / "b").write_bytes(data[:n])
        try:
            list(_flight_read.Recorded([tmp_path / "b"]).lines())
        except BadUse:
            assert n < len(_board.MAGIC)


# --- fetched over a link --------------------------------------------------------------------------


class FakeBoard:
    """Answers like weft_mcu/flight_link.h. Its clock is this machine's, but `ahead` microseconds
    fast.
    """

    def __init__(self, ahead: int, data: Any = None) -> None:
        self.ahead, self.data = ahead, data
        self.ends: dict[str, Any] = {}
        self.done: list[int] = []  # this machine's time of each event, in ns
        self.goes = threading.Event()  # the board answers
        self.goes.set()

    def give(self, name: str, end: Any) -> None:
        self.ends[name] = end
        if len(self.ends) == 2:
            threading.Thread(target=self.serve, daemon=True).start()

    def now(self) -> int:
        return time.monotonic_ns() // 1000 + self.ahead

    def serve(self) -> None:
        answer = self.ends["weft.flight"]
        for asked in self.ends["weft.flight.ask"]:
            self.goes.wait()
            if asked == _fetched.TIME:
                answer.write(self.now().to_bytes(8, "little"))
                continue
            self.done.append(time.monotonic_ns())
            data = self.data or board(event(self.now(), SRC, START), now=self.now())
            for at in range(0, len(data), 88):
                answer.write(data[at : at + 88])
            answer.write(b"")


def test_the_times_of_a_board_are_right_within_the_bound_that_the_file_says(
    tmp_path: Path,
) -> None:
    """Rule 14.17: each event's time differs from the true time by no more than the bound in the
    file."""
    for ahead in (10**9, 7):
        fake = FakeBoard(ahead)
        recorder = _fetched.Recorder(threads, fake.give)
        for _ in range(2):
            recorder.write(tmp_path / "f", 10.0)
            one = _flight_read.Recorded([tmp_path / "f"])
            list(one.lines())
            assert abs(one.first_ns - fake.done[-1]) <= one.heads[0][5] + 1_000_000
            assert one.heads[0][5] < 10 * 10**9 and one.heads[0][2] == "board dev"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (board(room=0), "board dev records nothing: build its program with WEFT_FLIGHT"),
        (b"nonsense", "are not what a board has recorded"),
    ],
)
def test_what_a_board_must_not_answer(tmp_path: Path, data: bytes, why: str) -> None:
    with pytest.raises(BadUse, match=why):
        _fetched.Recorder(threads, FakeBoard(0, data).give).write(tmp_path / "f", 10.0)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(BadUse, match="cannot write"):
        _fetched.Recorder(threads, FakeBoard(0).give).write(tmp_path / "no" / "f", 10.0)


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next(tmp_path: Path) -> None:
    fake = FakeBoard(0)
    recorder = _fetched.Recorder(threads, fake.give)
    fake.goes.clear()
    with pytest.raises(BadUse, match="the board has not answered for"):
        recorder.write(tmp_path / "f", 0.05)
    fake.goes.set()
    recorder.write(tmp_path / "f", 10.0)
    assert [x["e"] for x in _flight_read.Recorded([tmp_path / "f"]).lines()] == ["start"]


def test_several_threads_fetch_at_once(tmp_path: Path) -> None:
    recorder = _fetched.Recorder(threads, FakeBoard(0).give)
    paths = [tmp_path / str(i) for i in range(8)]
    fetching = [threading.Thread(target=recorder.write, args=(path, 10.0)) for path in paths]
    for one in fetching:
        one.start()
    for one in fetching:
        one.join()
    for path in paths:
        recorded = _flight_read.Recorded([path])
        assert [x["e"] for x in recorded.lines()] == ["start"] and recorded.fault == ""


# --- several clocks -------------------------------------------------------------------------------


def clock(within: int, difference: int = 0, reference: str = "") -> bytes:
    return piece("C", varint(within) + varint(2 * difference) + text(reference))


def two(tmp_path: Path, one: bytes, other: bytes) -> _flight_read.Recorded:
    (tmp_path / "one").write_bytes(one)
    (tmp_path / "two").write_bytes(other)
    return _flight_read.Recorded([tmp_path / "one", tmp_path / "two"])


def begins(recorded: _flight_read.Recorded) -> list[tuple[int, str]]:
    return [(x["t"], x["p"]) for x in recorded.lines() if x["e"] == "start"]


def started(path: str, at: int, extra: bytes = b"", **more: Any) -> bytes:
    return MAGIC + head(**more) + extra + block(process(1, path), start(at, 0)) + piece("Z")


def test_a_file_says_how_exact_its_times_are(tmp_path: Path) -> None:
    """rule 14.17: a board's file is on the clock of the machine that has fetched it"""
    recorded = two(tmp_path, started("main/a", 0), started("dev/b", 50, clock(250_000), pid=0))
    assert begins(recorded) == [(0, "main/a"), (50, "dev/b")]
    assert recorded.clocks() == ["the times of prog are known to ± 0.25 ms"]
    assert [recorded.label(i) for i in (0, 1)] == ["main/a in OS process 1", "dev/b"]


def test_a_fetched_file_is_brought_to_the_clock_of_the_machine_that_has_fetched_it(
    tmp_path: Path,
) -> None:
    """rule 14.17: the measured difference is used, and not the systems' times"""
    there = started("main/b", 0, clock(10, 300, "here"), host="there", system=10**18)
    recorded = two(tmp_path, started("main/a", 0, host="here", system=10**17), there)
    assert begins(recorded) == [(0, "main/a"), (300, "main/b")]
    assert recorded.label(1) == "main/b in OS process 1 on there"


def test_without_a_measurement_the_systems_times_count(tmp_path: Path) -> None:
    system = 1_001_000
    recorded = two(
        tmp_path,
        started("main/a", 0, host="here", system=system),
        started("main/b", 0, host="there", system=system + 77),
    )
    assert begins(recorded) == [(0, "main/a"), (77, "main/b")]


def test_a_clock_that_was_never_compared_ends_with_the_others(tmp_path: Path) -> None:
    """Rule 14.17: the events of a clock that was never compared end when those of the other clocks
    end."""
    own = started("dev/b", 999_990, piece("C"), host="board dev", ns=0)
    recorded = two(tmp_path, started("main/a", 0, ns=500), own)
    assert begins(recorded) == [(0, "main/a"), (999_990, "dev/b")]
    assert recorded.clocks() == [
        "the clock of prog was compared with no other: its end stands at the end of the others"
    ]


@pytest.mark.parametrize("damaged", [b"\xff", b"\1", b"\1\2\xff", b"\xff" * 20])
def test_a_damaged_clock_is_a_fault(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "f").write_bytes(MAGIC + head() + piece("C", damaged) + block(pair(1)) + piece("Z"))
    assert "cut off" in _flight_read.Recorded([tmp_path / "f"]).fault


def test_files_without_the_piece_are_as_before(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(whole())
    assert _flight_read.Recorded([tmp_path / "f"]).clocks() == []
