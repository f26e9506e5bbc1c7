"""Tests of a ring that a real hard interrupt fills on the emulated Cortex-M3, and of a ring on unix
while no key is pressed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from . import board, tiers

PROGRAM = Path(__file__).parent / "board_ring.py"


@pytest.mark.parametrize("where", list(board.FIRMWARE))
def test_a_hard_interrupt_fills_it_and_what_found_it_full_is_counted(
    where: str, tmp_path: Path
) -> None:
    """`put` allocates nothing: the heap is locked in the interrupt. A second interrupt, whose
    function allocates, fails: this shows that the heap is locked."""
    first, *rest = board.run(where, PROGRAM, tmp_path).splitlines()
    assert first == "([0, 1, 2, 3], 6)"
    assert "weft_board.tick: the function raised" in rest[0]
    assert "MemoryError" in rest[-1]


SILENT = """
from time import sleep_ms
from _thread import start_new_thread
from weft.coroutines import io, process, run
from weft.isr import Ring
ring = Ring(4)
def put():
    sleep_ms(20)
    ring.put(7)
@process
async def main():
    source = ring.reader()
    start_new_thread(put, ())
    value = await source.read()
    ring.close()
    await io(sleep_ms)(20)
    return value
print(run(main()))
"""


@pytest.mark.parametrize("tier", tiers.MICROPYTHONS)
def test_a_ring_and_an_io_call_do_not_wait_for_the_keyboard(tier: str) -> None:
    """The objects that are registered with poll() have no file descriptor. poll() must not mistake
    the missing descriptor for 0, the standard input.
    """
    running = subprocess.Popen(
        [*tiers.command(tier), "-c", SILENT],
        env=tiers.environment(tier),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with running:  # the standard input is open, but no bytes come
        assert running.stdout is not None
        assert running.stdout.read() == "7\n"
