#!/usr/bin/env python3
"""Runs benches of on_device.py on the emulated Cortex-M3: `on_board.py BOARD BENCH WAY…` prints
the instructions of an operation, which are exact and the same in every run (the emulator's
clock is one nanosecond for each instruction). BOARD: board-pure, board-natmod or
board-native. `on_board.py BOARD room KB…` prints how many processes of Weft, and tasks of
asyncio at a rescheduling future, fit in a heap of that many KB, each waiting at a channel of its
own; `on_board.py BOARD pieces` prints the bytes of each part of such a process. Benches of
100 waiters and more have a heap of BIG bytes, the others that of the firmware,
140 KB."""

import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))
from micropython.tests import board  # noqa: E402

SAMPLES, PER = 4, 50
BIG = 1500 * 1024
PROGRAM = "import sys\nsys.argv[:] = {argv!r}\nimport {module}\n"


def measured(where: str, *argv: str, heap: int = 0) -> str:
    """Runs a program of this folder on the board and returns its output."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "measure.py"
        program.write_text(PROGRAM.format(argv=[*argv], module=argv[0].removesuffix(".py")))
        return board.run(where, program, folder, HERE / argv[0], HERE / "baselines.py", heap=heap)


def fits(where: str, what: str, kb: int) -> str:
    """Returns how many processes or tasks wait in a heap of `kb` KB."""
    try:
        output = measured(where, "room_on_device.py", what, heap=kb * 1024)
    except AssertionError as e:
        if "MemoryError" in str(e):
            return "does not load"
        raise
    return re.search(rf"^{what}: (.*)$", output, re.M)[1]


def instructions(where: str, bench: str, way: str) -> list[int]:
    """Returns the instructions of an operation, in each of SAMPLES stretches of PER operations."""
    heap = BIG if re.fullmatch(r"waiting\d{3,}", bench) else 0
    output = measured(where, "on_device.py", bench, way, str(SAMPLES), str(PER), heap=heap)
    found = re.search(r"^ns (.*)$", output, re.M)
    assert found, output
    return [round(float(v)) for v in found[1].split()]


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__)
        return 2
    where, bench, *ways = sys.argv[1:]
    if bench == "room":
        for kb in map(int, ways):
            print(
                f"{kb} KB {where}: {fits(where, 'parked', kb)}; asyncio {fits(where, 'tasks', kb)}"
            )
        return 0
    if bench == "pieces":
        print(measured(where, "room_on_device.py", "pieces"), end="")
        return 0
    for way in ways:
        figures = instructions(where, bench, way)
        print(f"{bench} {way} {where}: {min(figures):,} to {max(figures):,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
