"""Tests of Weft frozen into MicroPython's firmware for the RP2040, which runs under
emulator/."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from . import tiers

PROGRAM = Path(__file__).with_name("rp2040_program.py")
WATCHDOG = Path(__file__).with_name("rp2040_watchdog.py")
FLASH = Path(__file__).with_name("rp2040_flash.py")
LEFT = Path(__file__).with_name("rp2040_left_running.py")
SCHEDULERS = Path(__file__).with_name("rp2040_schedulers.py")
SCHEDULERS_LEFT = Path(__file__).with_name("rp2040_schedulers_left.py")
ROOM = Path(__file__).with_name("rp2040_room.py")
CORES = Path(__file__).with_name("rp2040_cores.py")
EXAMPLES = sorted(p for p in (tiers.HERE / "examples").glob("*.py") if p.name != "board.py")


def on_the_board(*programs: Path) -> subprocess.CompletedProcess[str]:
    """Runs the programs one after another, with a soft reset between them."""
    return subprocess.run(
        ["node", tiers.HERE / "rp2040" / "run.mjs", tiers.MADE / "rp2040.elf", *programs],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_network_runs_on_the_emulated_rp2040() -> None:
    done = on_the_board(PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "rp2 True",
        "[None, 780]",
        "[None, [(0, 1), (0, 0), (0, 1)]]",
        "True",
    ]


def test_what_a_program_raises_there_is_told(tmp_path: Path) -> None:
    program = tmp_path / "wrong.py"
    program.write_text("from weft.coroutines import Channel\nChannel('c').reader().write(1)\n")
    done = on_the_board(program)
    assert done.returncode == 1
    assert "Error" in done.stderr


def test_a_machine_timer_s_watchdog_names_who_computes_too_long() -> None:
    done = on_the_board(WATCHDOG)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "named: ['main/crunch'] three times or more: True",
        "[None, 79800] {}",
    ]


def test_both_cores_run_processes() -> None:
    """A thread process on core 1 writes to one on core 0, and a third is refused. Then coroutines
    on core 0 read values of core 1 through a ring."""
    done = on_the_board(CORES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[None, (0, [1], 0)]",
        "[None, (19900, [1], 0)]",
        "process main/idle[1]: this port has one thread besides the main program, so at most two processes at a time",
        "(124750, 0, 1)",
    ]


RUN = [
    "(22350, 0) 1 retired",
    "(22350, 0) 1 retired",
    "True retired",
    "a byte a communication, at most: True",
    "main/wants_more/core1: core 1 runs a network already, one at a time",
    "process main/core1: this port has one thread besides the main program, so at most two processes at a time",
    "[]",
]


def test_a_scheduler_on_each_core() -> None:
    """The two schedulers are joined by lines. Core 1 allocates nothing while core 0 collects
    (upstream's issues 8550, 8310). A third scheduler is refused."""
    done = on_the_board(SCHEDULERS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == RUN


@pytest.mark.soak
def test_flash_writes_and_a_soft_reset_with_a_scheduler_on_core_1() -> None:
    done = on_the_board(SCHEDULERS_LEFT, SCHEDULERS)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["0 of 600 wrong", "core 1 is left running: False"]
    assert lines[2:4] == ["0 of 600 wrong", "core 1 is left running: True"]
    assert lines[4:] == RUN


def test_the_heap_that_it_takes_is_what_the_page_says() -> None:
    done = on_the_board(ROOM)
    assert done.returncode == 0, done.stderr
    plain, cores = map(int, done.stdout.split())
    assert plain <= 5_700
    assert cores <= 13_200


def test_core_0_writes_files_while_core_1_fills_a_ring() -> None:
    """Upstream's issue 8793: the port stops core 1 while the flash is written. The ring counts the
    values for which it has no room in that time, and the function puts them again."""
    done = on_the_board(FLASH)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0 True\n"


@pytest.mark.soak
def test_a_soft_reset_while_core_1_runs_and_allocates() -> None:
    """Upstream's issue 16619: after the reset both cores run the next program."""
    done = on_the_board(LEFT, CORES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["core 1 runs", "[None, (0, [1], 0)]"]
    assert done.stdout.splitlines()[-1] == "(124750, 0, 1)"


@pytest.mark.parametrize("name", [p.stem for p in EXAMPLES if p.stem != "blink_and_button"])
def test_example(name: str, tmp_path: Path) -> None:
    """Runs an example unchanged, after the module `board`, which provides the pin and the second
    core. blink_and_button is left out, because it waits for a button."""
    example = tiers.HERE / "examples" / f"{name}.py"
    board = example.with_name("board.py").read_text(encoding="utf-8")
    text = example.read_text(encoding="utf-8")
    program = tmp_path / example.name
    program.write_text(board + text.replace("from board import", "# here already:"))
    done = on_the_board(program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == example.with_name(example.name + ".exp").read_text(encoding="utf-8")
