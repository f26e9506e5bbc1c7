"""Tests of the flight recorder of MicroPython's package (rule 14.19)."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from conformance.networks import generate
from weft import serial
from weft._watching import flight_board, flight_read

from . import board, networks, recorded_squares, tiers
from .link_boards import CortexM3, Firmware
from .test_link import pair
from .test_scenarios import ALL, RUN, converter, written

HERE = Path(__file__).parent
PROGRAM = HERE / "flight_program.py"
KINDS = ("", "start", "end", "waits", "over", "goes on")
OPERATIONS = ("read", "write", "extended", "select", "select", "select", "sync", "sleep")


def taken(path: Path) -> flight_board.Taken:
    return flight_board.read(path.read_bytes())


def events(one: flight_board.Taken) -> list[str]:
    lines = []
    for _, who, place, what in one.events:
        kind, op, status = what & 255, what >> 8 & 255, what >> 16 & 255
        words = [one.processes[who], KINDS[kind]]
        if kind > 2:
            words.append(OPERATIONS[op] if op < len(OPERATIONS) else "other")
            words.append(one.names.get(place, "-"))
        lines.append(" ".join([*words, *([f"status {status}"] if status else [])]))
    return lines


@pytest.mark.parametrize("tier", [*tiers.MICROPYTHONS[:3], "cpython"])
def test_the_events_of_a_network(tier: str, tmp_path: Path) -> None:
    """rule 14.19: the file lists all events of flight_program.py, in order"""
    tiers.run(tier, PROGRAM, tmp_path / "f")
    one = taken(tmp_path / "f")
    assert events(one) == (HERE / "flight_program.events").read_text().splitlines()
    assert (one.board, one.lost, one.room, one.whole) == ("dev", 0, 256, True)
    times = [e[0] for e in one.events]
    assert times == sorted(times)
    assert times[-1] <= one.now
    assert times[-1] - times[0] >= 1000  # the program sleeps for a millisecond


def test_weft_trace_reads_the_file(tmp_path: Path) -> None:
    """rule 14.19: the n-th value written is the n-th value read"""
    tiers.run("pure", PROGRAM, tmp_path / "f")
    recorded = flight_read.Recorded([tmp_path / "f"])
    lines = list(recorded.lines())
    assert recorded.fault == ""
    commits = Counter((x["p"], x["op"], x.get("c")) for x in lines if x["e"] == "commit")
    assert commits["dev/main/numbers[0]", "write", "a"] == 3
    assert commits["dev/main/squares", "read", "a"] == 3
    assert commits["dev/main/chooser", "select", "b"] == 3
    assert [commits[f"dev/main/pair[{i}]", "sync", None] for i in (0, 1)] == [1, 1]
    over = [e for e in recorded.events() if e.tag == flight_read.OVER and e.place >= 0]
    numbers = Counter((e.place, e.number) for e in over if e.outcome == 0 and e.number > 0)
    assert set(numbers.values()) <= {1, 2}


def test_the_ring_is_bounded_and_counts_what_it_has_lost(tmp_path: Path) -> None:
    tiers.run("pure", PROGRAM, tmp_path / "f", "8")
    one, every = taken(tmp_path / "f"), (HERE / "flight_program.events").read_text().splitlines()
    assert events(one) == every[-8:]
    assert (one.lost, one.room) == (len(every) - 8, 8)


MISUSE = """\
from weft import flight
from weft.coroutines import BadUse, process, run
def says(what, *args):
    try:
        what(*args)
    except BadUse as e:
        print(e)
@process
async def within():
    says(flight.record)
says(flight.save, "f")
says(flight.record, 100)
says(flight.record, 64, 0)
run(within())
flight.record(8)
says(flight.record)
"""


def test_bad_use_is_told() -> None:
    assert tiers.snippet("pure", MISUSE).splitlines() == [
        "flight: nothing is recorded: call flight.record() first",
        "flight.record: events is a power of two, from 8 to 65536, not 100",
        "flight.record: names is 1 or more, not 0",
        "flight.record: call it before the run begins",
        "flight.record: it records already",
    ]


WRAPS = """\
import sys
from weft import _flight, _time, flight
us = [(1 << 30) - 500]
_time.steady = lambda: us[0] // 1000
_flight.ticks_us = lambda: us[0] & ((1 << 30) - 1)
flight.record(8)
for step in (1000, 1000, (1 << 30) - 7, 1 << 29):
    us[0] += step
    _flight.note(1, 0, _flight.START)
us[0] += 3
flight.save(sys.argv[1])
"""


def test_the_port_s_clock_may_begin_anew(tmp_path: Path) -> None:
    """The ticks of a port with 32 bits begin anew every 18 minutes."""
    script = tmp_path / "wraps.py"
    script.write_text(WRAPS)
    tiers.run("pure", script, tmp_path / "f")
    one = taken(tmp_path / "f")
    times = [e[0] for e in one.events]
    assert [b - a for a, b in zip(times, [*times[1:], one.now], strict=True)] == [
        1000,
        (1 << 30) - 7,
        1 << 29,
        3,
    ]


NAMES = """\
import sys
from weft import flight
flight.record(64, 3)
from weft.coroutines import Channel, Parallel, process, run
@process
async def writes(out):
    await out.write(1)
@process
async def reads(source):
    return await source.read()
@process
async def rounds():
    for _ in range(4):
        c = Channel("c")
        await Parallel(writes(-c), reads(+c))
run(rounds())
flight.save(sys.argv[1])
"""


def test_names_are_bounded_and_a_path_keeps_its_number(tmp_path: Path) -> None:
    script = tmp_path / "names.py"
    script.write_text(NAMES)
    tiers.run("pure", script, tmp_path / "f")
    one = taken(tmp_path / "f")
    assert list(one.processes.values()) == ["rounds", "rounds/writes", "rounds/reads"]
    assert list(one.names.values()) == ["c", "c", "c"]
    assert {place for _, _, place, _ in one.events} == {0, 1, 2, 3, 4}


RECORDED = "from weft import flight\nflight.record(64)\nimport player\n"


@pytest.mark.parametrize("tier", ["pure", "native"])
def test_recording_changes_no_outcome_and_no_order(tier: str) -> None:
    """rules 14.19, 14.1: random networks have the same history while they are recorded"""
    drivers = [networks.MicroPythonDriver(tier), networks.MicroPythonDriver(tier, RECORDED)]
    try:
        for seed in range(40):
            net = generate(seed, 4, drivers[0].features)
            one, other = (json.dumps(driver.run(net, seed)) for driver in drivers)
            assert one == other, f"seed {seed}"
    finally:
        for driver in drivers:
            driver.close()


@pytest.mark.soak
@pytest.mark.parametrize("tier", tiers.MICROPYTHONS)
def test_the_scenarios_while_recorded(tier: str) -> None:
    left_out = [n for n in ALL if n in converter.LEFT_OUT]
    for module in sorted({n.partition(".")[0] for n in RUN}):
        text = tiers.run(
            tier,
            "-c",
            "from weft import flight\nflight.record(64)\nimport kit\n"
            "from weft.coroutines import process, run\n"
            f"kit.run_all({module!r}, {left_out!r}, run, process, False)\n",
            folders=(written("coroutines"),),
        )
        for told in text.split("begin ")[1:]:
            name, _, outcome = told.partition("\n")
            assert outcome.strip() == f"ok {name}"


# --- over the link --------------------------------------------------------------------------------

PAGE = (tiers.HERE / "FLIGHT.md").read_text(encoding="utf-8")
BOARD = PAGE.partition("```python\n")[2].partition("```")[0]  # the board's program of the page


def main_with(stream: str, before: str = "") -> str:
    """Returns the board's program, with another stream."""
    return before + BOARD.replace("from machine import UART\n", "").replace(
        "UART(1, 115200, rxbuf=1024)", stream
    )


def fetched(pc: serial.Board, tmp_path: Path) -> None:
    """Has the board square five numbers, fetches its events, and checks the trace of both."""
    recorded_squares.asked(pc, tmp_path, 20.0)
    recorded = flight_read.Recorded([tmp_path / "board.flight"])
    lines = list(recorded.lines())
    assert recorded.fault == "" and recorded.heads[0][5] > 0  # the largest error of the times
    commits = Counter((x["p"], x["op"], x.get("c")) for x in lines if x["e"] == "commit")
    for path, op, channel in (
        ("sensor/serve/filter", "read", "numbers"),
        ("sensor/serve/filter", "write", "squares"),
        ("sensor/serve/uplink", "read", "squares"),
        ("sensor/serve/uplink", "write", "answers"),
    ):
        assert commits[path, op, channel] == 5
    assert not [x for x in lines if "weft.flight" in str(x.get("c"))]  # the service is not shown
    waits = [(x["p"], x.get("c")) for x in lines if x["e"] == "begin"]
    assert ("sensor/serve/filter", "numbers") in waits[-3:]
    later = flight_read.Recorded([tmp_path / "later.flight"]).lines()
    assert {x["e"] for x in later} == {"begin"}  # only of the processes that still wait
    both = flight_read.Recorded([tmp_path / "here.flight", tmp_path / "board.flight"])
    assert {x["p"].partition("/")[0] for x in both.lines()} == {"main", "sensor"}


def test_a_pc_fetches_the_events_over_the_link(tmp_path: Path) -> None:
    """rules 14.17, 14.19; mcu/FLIGHT.md: the answers of a board with MicroPython"""
    script = tmp_path / "board.py"
    at_board, at_pc = pair()
    script.write_text(main_with(f'open({at_board}, "r+b")'))
    with serial.connect(at_pc, baud=0) as pc:
        os.close(at_pc)
        with subprocess.Popen(
            [*tiers.command("native"), str(script)],
            env=tiers.environment("native"),
            pass_fds=[at_board],
            stdout=subprocess.DEVNULL,
        ) as there:
            os.close(at_board)
            fetched(pc, tmp_path)
            pc.close()
            there.wait(timeout=280)


def test_a_pc_fetches_the_events_of_an_emulated_board(tmp_path: Path) -> None:
    """The board is the Cortex-M3, whose ticks are small integers of 31 bits."""
    main = main_with(CortexM3.STREAM, CortexM3.BEFORE)
    made: Firmware = CortexM3(tmp_path, {"main.py": main.encode()})
    try:
        with serial.connect(made.cable.device, baud=19200, lease=20.0) as pc:
            fetched(pc, tmp_path)
    finally:
        made.close()


COSTS = "from weft import flight\nflight.record(256)\n"


@pytest.mark.parametrize(("where", "most"), [("board-pure", 46_000), ("board-native", 30_000)])
def test_what_a_recorded_value_costs_is_what_the_page_says(
    where: str, most: int, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    source = (HERE / "channel_costs.py").read_text().partition("for size in")[0]
    program.write_text(COSTS + source)
    cost = board.figures(board.run(where, program, tmp_path))["plain"]
    assert 0 < cost <= most
