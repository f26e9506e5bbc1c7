"""Helpers that build a program for the emulated RP2040, run it for a number of microseconds, and
report the edges of its pins and the text from its UART."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from weft_lf.build import Wanted, build
from weft_lf.elaborate import elaborate
from weft_lf.load import load

EMULATOR = Path(__file__).resolve().parents[2] / "emulator"
NS_A_CYCLE = 8


@dataclass
class Ran:
    edges: dict[int, list[tuple[int, int]]]  # pin → (time in ns, new level) of each edge
    output: str

    def gaps(self, pin: int) -> list[int]:
        """Returns the cycles from each fall of the pin to its next rise."""
        found = []
        for (before, was), (after, level) in zip(
            self.edges[pin], self.edges[pin][1:], strict=False
        ):
            if level and not was:
                assert (after - before) % NS_A_CYCLE == 0
                found.append((after - before) // NS_A_CYCLE)
        return found


def on_the_board(image: Path, us: int, *options: str) -> Ran:
    """Runs an image for `us` microseconds. A panic, or an error of the emulator, fails the test."""
    if not (EMULATOR / "node_modules").exists():
        subprocess.run(["npm", "ci"], cwd=EMULATOR, check=True, capture_output=True)
    trace = image.with_suffix(".vcd")
    command = ["node", str(EMULATOR / "bin" / "weft-rp2040"), "run", str(image), "--quiet"]
    command += ["--max-us", str(us), "--trace", str(trace), *options]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    names = {
        mark: int(pin)
        for mark, pin in re.findall(r"\$var wire 1 (\S+) gpio(\d+)", trace.read_text())
    }
    edges: dict[int, list[tuple[int, int]]] = {pin: [] for pin in names.values()}
    now = 0
    for line in trace.read_text().partition("$enddefinitions")[2].splitlines():
        if line.startswith("#"):
            now = int(line[1:])
        elif line[:1] in ("0", "1") and line[1:] in names and now:
            edges[names[line[1:]]].append((now, int(line[0])))
    return Ran(edges, ran.stdout)


def board(path: Path, us: int, *options: str, **wanted: bool) -> Ran:
    """Builds a program for the RP2040, and runs it for `us` microseconds."""
    built = build(elaborate(load(path)), Wanted("rp2040", **wanted))
    assert built.program is not None
    return on_the_board(built.program, us, *options)
