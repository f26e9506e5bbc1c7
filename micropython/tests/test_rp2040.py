"""Weft frozen into MicroPython's firmware for the RP2040, run under mcu/emulator."""

from __future__ import annotations

import subprocess
from pathlib import Path

from . import tiers

PROGRAM = Path(__file__).with_name("rp2040_program.py")


def on_the_board(program: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["node", tiers.HERE / "rp2040" / "run.mjs", tiers.MADE / "rp2040.elf", program],
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
