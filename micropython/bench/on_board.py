#!/usr/bin/env python3
"""Runs benches of on_device.py on the emulated Cortex-M3: `on_board.py BOARD BENCH WAY…` prints instructions an operation, exact and the same
in every run (the emulator's clock is one nanosecond an instruction). BOARD: board-pure, board-natmod or board-native."""

import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))
from micropython.tests import board  # noqa: E402

SAMPLES, PER = 4, 50
PROGRAM = "import sys\nsys.argv[:] = {argv!r}\nimport on_device\n"


def instructions(where: str, bench: str, way: str) -> list[int]:
    """An operation's, in each of SAMPLES stretches of PER."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "measure.py"
        program.write_text(
            PROGRAM.format(argv=["on_device.py", bench, way, str(SAMPLES), str(PER)])
        )
        said = board.run(where, program, folder, HERE / "on_device.py", HERE / "baselines.py")
    found = re.search(r"^ns (.*)$", said, re.M)
    assert found, said
    return [round(float(v)) for v in found[1].split()]


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__)
        return 2
    where, bench, *ways = sys.argv[1:]
    for way in ways:
        figures = instructions(where, bench, way)
        print(f"{bench} {way} {where}: {min(figures):,} to {max(figures):,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
