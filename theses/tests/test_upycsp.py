"""Tests of the thesis's experiments (upycsp.py): each program runs with only its imports
changed, and the tables have a row for each. The tests check counts, and never times."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import upycsp

from micropython.tests import tiers

EXPERIMENTS = ("sequential", "parallel", "with5x2", "select5x2")


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("where", ["pure", "native", "cpython"])
@pytest.mark.parametrize("module", ["apycsp", "pycsp_locks"])
def test_the_thesiss_program_runs_by_a_change_of_import(
    module: str, where: str, experiment: str
) -> None:
    found = upycsp.named(module, where, experiment, 3, 10)  # The program asserts its values.
    assert len(found) == 3
    assert all(v > 0 for v in found)


@pytest.mark.parametrize("way", ["await", "yielding", "rescheduling"])
def test_a_parallel_delta_ends_with_its_network(way: str) -> None:
    assert len(upycsp.own(way, "parallel", 3, 10)) == 3


def test_every_row_of_the_thesiss_tables_has_one_of_ours() -> None:
    names = {name for name, _, _ in upycsp.NAMES}
    assert {name for _, name in [*upycsp.COMMSTIME, *upycsp.SELECT]} <= names
    for least, average, most in [*upycsp.COMMSTIME.values(), *upycsp.SELECT.values()]:
        assert least <= average <= most


def test_more_heap_takes_more_processes_and_a_small_one_says_so() -> None:
    small, large = [int(upycsp.fits("parked", "pure", heap)) for heap in ("256k", "512k")]
    assert 0 < small < large
    assert upycsp.fits("parked", "pure", "24k") == "does not load"


def test_larger_stacks_leave_room_for_fewer_threads() -> None:
    few, many = upycsp.limited(1024 * 1024), upycsp.limited(256 * 1024)
    assert 10 < few < many


@pytest.mark.parametrize("kind", ["list", "deque"])
def test_a_line_is_measured_three_ways(kind: str) -> None:
    assert len(upycsp.measured_lines([500])[kind][500]) == 3


def test_the_waiting_queue_is_drawn(tmp_path: Path) -> None:
    message = upycsp.waiting(True, 2, 20, tmp_path)
    assert len(re.findall(r"^\| \d+ \|", message, re.M)) == 3
    picture = (tmp_path / "waiting.svg").read_text(encoding="utf-8")
    assert all(way in picture for way in ("yielding", "rescheduling", "await"))


def test_an_unknown_experiment_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        upycsp.main(["comstime"])
    assert "no experiment comstime" in capsys.readouterr().err


def test_no_runs_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        upycsp.main(["commstime", "--full", "--runs", "0"])
    assert "at least 1" in capsys.readouterr().err


GATHER = """
import asyncio, sys
sys.path.append({bench!r})
import baselines

async def reads(channel, name, ended):
    try:
        await channel.read()
    except baselines.Poisoned:
        ended.append(name)
        raise

async def main(Future):
    Channel = baselines.channels(Future)
    a, b, ended = Channel(), Channel(), []
    async def poisons():
        await asyncio.sleep_ms(0)
        a.poison()
    t = asyncio.create_task(poisons())
    try:
        await asyncio.gather(reads(a, "one", ended), reads(a, "two", ended), reads(b, "three", ended))
    except baselines.Poisoned:
        print("raised,", "three" not in ended)
    await t
    b.poison()
    while len(ended) < 3:
        await asyncio.sleep_ms(0)
    print(sorted(ended))
    found = await asyncio.gather(reads(a, "", ended), reads(b, "", ended), return_exceptions=True)
    print([type(x).__name__ for x in found])

for Future in (baselines.Yielding, baselines.Rescheduling):
    asyncio.get_event_loop().run_until_complete(main(Future))
"""


def test_the_new_asyncios_three_open_questions() -> None:
    """Thesis, section 10.1: run_until_complete needs no repair. gather raises the first poison and
    leaves the other tasks running, or returns the exception of each. Both types of futures of the
    thesis can be written for the new asyncio."""
    output = tiers.snippet("pure", GATHER.format(bench=str(tiers.HERE / "bench")), heap="1m")
    once = ["raised, True", "['one', 'three', 'two']", "['Poisoned', 'Poisoned']"]
    assert output.splitlines() == once * 2
