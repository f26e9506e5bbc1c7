"""Tests of channels between a bare RP2040 and a PC (mcu/LINK.md): the client in C11, used by an
actor and by CSP processes, under emulator/."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from weft import serial
from weft._watching import flight_read as _flight_read
from weft._watching import perfetto as _perfetto
from weft.errors import BadUse
from weft.threads import Channel, Output, PeerDied, Poisoned, Retired, after, process, run, select

from . import recorded_squares, tiers
from .cable import Spoiler
from .link_boards import Bare

PATIENT = 20.0  # seconds of lease: an emulator on a busy machine might be slow without being dead
MAKE = ["make", "-s", "-C", str(tiers.ROOT / "mcu")]


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    subprocess.run([*MAKE, "pc_squares"], check=True)
    made = Bare(tmp_path_factory.mktemp("squares"), "pc_squares")
    yield made
    made.close()


# Each test has a board of its own, because one of the tests ends the board's processes.
@pytest.fixture
def sensors(tmp_path: Path) -> Iterator[Bare]:
    subprocess.run([*MAKE, "-f", "csp/csp.mk", "pc_sensors"], check=True)
    made = Bare(tmp_path, "pc_sensors")
    yield made
    made.close()


@contextmanager
def session(
    board: Bare, lease: float = PATIENT, baud: int = 19200
) -> Iterator[tuple[serial.Board, Any, Any]]:
    """Opens a session with a board whose actor squares numbers. Yields the board and the PC's ends
    of `numbers` and `squares`.
    """
    with serial.connect(board.cable.device, baud=baud, lease=lease) as pc:
        numbers, squares = Channel("numbers"), Channel("squares")
        pc.give("numbers", numbers.reader())
        pc.give("squares", squares.writer())
        yield pc, numbers.writer(), squares.reader()


def test_an_actor_reads_and_writes_channels_of_the_pc_session_after_session(squares: Bare) -> None:
    """rules 1.1, 3.1; wire 12.6 to 12.8"""
    for _ in range(2):
        with session(squares) as (_pc, to, back):
            for n in (0, 23, -24, 255, 65536, 2**31 - 1, -(2**31)):
                to(n)
                assert back() == n * n
            to.retire()
            with pytest.raises(Retired):
                back()


def test_a_write_is_done_when_the_board_has_the_value(squares: Bare) -> None:
    """rule 1.1: no process reads the squares, so the board takes one number and no more"""
    with session(squares) as (_pc, to, back):

        @process
        def feed() -> int:
            to(0)
            return select(Output(to, 1), after(0.3))[0]

        assert run(feed()) == 1
        assert back() == 0


def test_what_is_no_integer_ends_the_board_s_part(squares: Bare) -> None:
    with session(squares) as (_pc, to, back):
        to(["not", 1.5])
        with pytest.raises(Retired):
            back()
        with pytest.raises(Retired):
            to(2)


def test_poison_reaches_the_board(squares: Bare) -> None:
    """rule 4.1"""
    with session(squares) as (_pc, to, back):
        to(2)
        assert back() == 4
        to.poison(7)
        with pytest.raises(Retired):
            back()
        with pytest.raises(Poisoned):
            to(3)


def test_a_board_that_is_switched_off_and_on_is_another_one(squares: Bare) -> None:
    """wire 12.6: the board's random bits are the same in each run of the emulator"""
    with session(squares) as (pc, to, back):
        to(2)
        assert back() == 4
        squares.power_on()
        with pytest.raises(PeerDied):
            back()
        assert pc.wait() == "it has started anew"
    with session(squares) as (_pc, to, back):
        to(3)
        assert back() == 9


def test_a_cable_that_is_plugged_out_and_in_again(squares: Bare) -> None:
    """wire 12.6: each side learns from its lease that the other side is gone"""
    while not squares.cable.cut:
        with suppress(PeerDied), session(squares, lease=1.0) as (pc, to, back):
            to(2)  # on a busy machine the emulator might be silent for the lease: PeerDied, again
            assert back() == 4
            squares.cable.cut = True
            with pytest.raises(PeerDied):
                back()
            assert "lease" in pc.wait()
    squares.cable.cut = False
    with session(squares) as (_pc, to, back):
        to(3)
        assert back() == 9


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 2))]
)
def test_over_a_line_that_spoils_bytes_all_arrives_once_in_order(squares: Bare, seed: int) -> None:
    """wire 12.6, 13.1"""
    faults = Spoiler(seed, 4)
    squares.cable.faults = faults
    try:
        with session(squares, baud=0) as (_pc, to, back):

            @process
            def feed(out: Any) -> None:
                for n in range(25):
                    out(n)

            @process
            def collect(source: Any) -> list[int]:
                return list(source)

            assert run(feed(to), collect(back))[1] == [n * n for n in range(25)]
        assert faults.spoilt > 0
    finally:
        squares.cable.faults = None


def test_csp_processes_of_the_board_hold_their_sampler_back_while_the_pc_does_not_read(
    sensors: Bare,
) -> None:
    """rules 1.1, 1.5 across the link: no sample is lost, however late the PC reads"""
    with serial.connect(sensors.cable.device, baud=19200, lease=PATIENT) as pc:
        rates, means = Channel("rates"), Channel("means")
        pc.give("rates", rates.reader())
        pc.give("means", means.writer())
        rate, mean = rates.writer(), means.reader()
        rate(1)
        first = [mean() for _ in range(4)]
        rate(3)
        assert first == list(range(4))
        # Samples of the old rate come first. After them, each mean is of the three samples that
        # follow those of the previous mean.
        seen = [mean() for _ in range(6)]
        assert seen[-3:] == [seen[-1] - 6, seen[-1] - 3, seen[-1]]


def test_a_process_of_the_board_goes_on_with_the_next_session_and_ends_when_the_pc_wants_no_more(
    sensors: Bare,
) -> None:
    # The filter writes nothing before it has received a rate.
    with serial.connect(sensors.cable.device, baud=19200, lease=PATIENT) as pc:
        rates = Channel("rates")
        pc.give("rates", rates.reader())
        rate = rates.writer()
        rate(1)
    with serial.connect(sensors.cable.device, baud=19200, lease=PATIENT) as pc:
        means = Channel("means")
        pc.give("means", means.writer())
        mean = means.reader()
        before = [mean(), mean()]
        assert before[1] > before[0]
        mean.retire()
        # The uplink, the filter and the sampler have ended. The control process reads rates
        # until its write finds no reader.
        rates = Channel("rates")
        pc.give("rates", rates.reader())
        rate = rates.writer()
        rate(9)
        with pytest.raises(Retired):
            rate(9)


PAGE = tiers.ROOT / "mcu" / "LINK.md"


def test_the_program_of_the_page_as_it_stands(
    squares: Bare, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs the page's program with one change: the path of the device is that of the cable."""
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    exec(program.replace("/dev/ttyUSB0", squares.cable.device), {"__name__": "pc"})
    assert capsys.readouterr().out.split() == ["0", "1", "4", "9", "16"]


@pytest.mark.parametrize(
    ("page", "language", "source"),
    [
        ("LINK.md", "c", "examples/pc_squares.c"),
        ("LINK.md", "cpp", "csp/examples/pc_sensors.cpp"),
        ("FLIGHT.md", "cpp", "csp/examples/pc_recorded.cpp"),
    ],
)
def test_what_the_page_shows_of_a_firmware_is_in_it(page: str, language: str, source: str) -> None:
    (shown,) = re.findall(
        rf"```{language}\n(.*?)```", (PAGE.parent / page).read_text(encoding="utf-8"), re.S
    )
    text = (PAGE.parent / source).read_text(encoding="utf-8")
    assert [line for line in shown.splitlines() if line not in text] == []


# --- the flight recorder of a board (rule M24) ----------------------------------------------------


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    subprocess.run([*MAKE, "-f", "csp/csp.mk", "FLIGHT=256", "pc_recorded", "flight"], check=True)
    made = Bare(tmp_path_factory.mktemp("recorded"), "pc_recorded", "rp2040-flight")
    yield made
    made.close()


def lines_of(*files: Path) -> list[dict[str, Any]]:
    return list(_flight_read.Recorded(files).lines())


def test_what_a_board_has_recorded_is_fetched_over_the_link(recorded: Bare, tmp_path: Path) -> None:
    """rules M24, 14.17: a record contains processes and an actor, their channels, and times on the
    PC's clock"""
    with serial.connect(recorded.cable.device, baud=19200, lease=PATIENT) as pc:
        fetched = recorded_squares.asked(pc, tmp_path, PATIENT)
    one = _flight_read.Recorded([tmp_path / "board.flight"])
    lines = list(one.lines())
    assert one.fault == ""
    within = one.heads[0][5]
    assert 0 < within < PATIENT * 1e9
    commits = [(x["p"], x["op"], x.get("c")) for x in lines if x["e"] == "commit"]
    for path, op, channel in (
        ("device/filter", "read", "numbers"),
        ("device/filter", "write", "squares"),
        ("device/uplink", "read", "squares"),
        ("device/uplink", "write", "answers"),
    ):
        assert commits.count((path, op, channel)) == 5
    assert ("device/lamp", "event blink", None) in commits
    # The emulator's clock is not as even as a crystal. So only one thing is certain: every event in
    # the file happened before the file existed. python/tests/test_flight_boards.py has the bound.
    assert max(one.first_ns + x["t"] for x in lines) <= fetched + within
    # The second call fetches the events since the first one, and the processes that still wait.
    later = [x for x in lines_of(tmp_path / "later.flight") if x.get("c") == "squares"]
    assert [x["e"] for x in later] == ["begin"]  # the uplink waits
    in_perfetto(tmp_path / "here.flight", tmp_path / "board.flight")


def in_perfetto(*files: Path) -> None:
    """Reads the trace of a PC and a board with Perfetto's own classes. Each process has a track
    below that of its program, slices of a track are nested, and each hand-over has an arrow: from
    the PC to the board, within the board, and back to the PC.
    """
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    trace = Trace()
    trace.ParseFromString(b"".join(_perfetto.packets(_flight_read.Recorded(files))))
    tracks = [p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")]
    programs = {t.uuid: t.process.process_name for t in tracks if t.HasField("process")}
    of = {t.name: programs[t.parent_uuid] for t in tracks if t.parent_uuid}
    assert len(programs) == len(files)
    assert "its clock: ±" in of["device/filter"] and "its clock" not in of["main/asks"]
    begun: dict[int, int] = {}
    arrows: tuple[set[int], set[int]] = set(), set()
    for packet in trace.packet:
        event = packet.track_event
        if not packet.HasField("track_event"):
            continue
        arrows[0].update(event.flow_ids)
        arrows[1].update(event.terminating_flow_ids)
        change = {TrackEvent.TYPE_SLICE_BEGIN: 1, TrackEvent.TYPE_SLICE_END: -1}.get(event.type, 0)
        begun[event.track_uuid] = begun.get(event.track_uuid, 0) + change
        assert begun[event.track_uuid] >= 0
    assert set(begun.values()) == {0}
    squares = [x for x in lines_of(files[1]) if x["e"] == "commit" and x.get("c") == "squares"]
    assert arrows[0] == arrows[1]
    assert len(arrows[0]) == 3 * len(squares) // 2  # each square was written and read


def test_a_board_without_a_recorder_says_so(tmp_path: Path) -> None:
    subprocess.run([*MAKE, "-f", "csp/csp.mk", "pc_recorded"], check=True)
    board = Bare(tmp_path, "pc_recorded")
    try:
        with serial.connect(board.cable.device, baud=19200, lease=PATIENT) as pc:
            with pytest.raises(BadUse, match="device records nothing: build its program with"):
                pc.flight(tmp_path / "board.flight", patience=PATIENT)
    finally:
        board.close()
    assert not (tmp_path / "board.flight").exists()


def test_a_board_that_serves_no_recorder_is_awaited_for_a_while(
    squares: Bare, tmp_path: Path
) -> None:
    with session(squares) as (pc, _to, _back), pytest.raises(BadUse, match="has not answered"):
        pc.flight(tmp_path / "board.flight", patience=0.05)


def test_bytes_over_a_uart_are_a_trace(recorded: Bare, tmp_path: Path) -> None:
    """rule M24: recording needs no link; rule 14.17: such a file has a clock of its own"""
    emulator, out = tiers.ROOT / "emulator" / "bin" / "weft-rp2040", tmp_path / "board.bytes"
    elf = tiers.ROOT / ".build" / "mcu" / "rp2040-flight" / "flight.elf"
    subprocess.run([emulator, "run", elf, "--uart", out, "--quiet"], check=True)
    one = _flight_read.Recorded([out])
    lines = list(one.lines())
    assert one.fault == ""
    starts = [x["p"] for x in lines if x["e"] == "start"]
    assert starts == ["bench/source", "bench/slow", "bench/sink"]
    assert sorted(x["p"] for x in lines if x["e"] == "end") == sorted(starts)
    commits = [(x["p"], x["op"], x.get("c")) for x in lines if x["e"] == "commit"]
    assert commits.count(("bench/source", "write", "a")) == 4
    assert commits.count(("bench/slow", "sleep", None)) == 4
    assert commits.count(("bench/sink", "read", "b")) == 4
    assert commits.count(("bench/ticker", "event tick", None)) == 4
    ended = [(x["p"], x["why"]) for x in lines if x["e"] == "ended"]
    assert ended == [("bench/slow", "Retired"), ("bench/sink", "Retired")]
    # The board's clock counts microseconds, and the process reads the clock before it waits.
    slept = [x["waited"] for x in lines if x.get("op") == "sleep" and x["e"] == "commit"]
    assert all(900_000 <= ns <= 1_100_000 for ns in slept)
    assert one.summary().unfinished == ["bench/ticker"]
    assert one.clocks() == []  # there is no other clock to compare it with


def test_reactions_are_in_a_trace(tmp_path: Path) -> None:
    """rule M24: each run of a reaction, in order; a reaction without a name has its address"""
    program, out = tmp_path / "recorded", tmp_path / "pings"
    sources = ["tests/reactors/recorded.c", "ports/posix/port.c", "src/flight.c"]
    cc = ["cc", "-std=c11", "-D_GNU_SOURCE", "-DWEFT_FLIGHT=64", "-Iinclude", "-Iports/posix"]
    subprocess.run([*cc, *sources, "-lpthread", "-o", program], cwd=tiers.ROOT / "mcu", check=True)
    subprocess.run([program, out], check=True, stdout=subprocess.DEVNULL)
    one = _flight_read.Recorded([out])
    lines = list(one.lines())
    assert one.fault == ""
    ran = [x["p"] for x in lines if x["e"] == "commit"]
    start, *rounds, done = ran
    assert rounds == ["pings/serve", "pings/ponged", "pings/received"] * 3
    assert start.startswith("pings/0x") and done.startswith("pings/0x") and start != done
    ids = {x["p"]: x["id"] for x in lines}
    assert all((ids[path] > 0) == ("/0x" not in path) for path in ran)
