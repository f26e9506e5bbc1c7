"""Tests the watchdog with a real timer, on the emulated Cortex-M3; scripts/watchdog.py has more
cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import board

PROGRAM = Path(__file__).parent / "board_watchdog.py"


@pytest.mark.parametrize("where", list(board.FIRMWARE))
def test_only_a_process_that_computes_too_long_is_named(where: str, tmp_path: Path) -> None:
    named, behaved = board.run(where, PROGRAM, tmp_path).splitlines()
    assert named == "named: ['main/crunch'] three times or more: True"
    assert behaved == "[None, None, 1000] {}"
