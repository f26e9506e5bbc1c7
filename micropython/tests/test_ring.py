"""A ring under a real hard interrupt, on the emulated Cortex-M3."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import board

PROGRAM = Path(__file__).parent / "board_ring.py"


@pytest.mark.parametrize("where", list(board.FIRMWARE))
def test_a_hard_interrupt_fills_it_and_what_found_it_full_is_counted(
    where: str, tmp_path: Path
) -> None:
    """Nothing is allocated: the heap is locked there, as the second interrupt shows, which does allocate."""
    first, *rest = board.run(where, PROGRAM, tmp_path).splitlines()
    assert first == "([0, 1, 2, 3], 6)"
    assert "weft_board.tick: the function raised" in rest[0]
    assert "MemoryError" in rest[-1]
