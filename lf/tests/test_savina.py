"""Runs the programs of bench/lf/savina with small sizes; each program checks its own answer."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import HERE, model

from weft_lf.build import Wanted, build

SAVINA = HERE.parents[1] / "bench" / "lf" / "savina"
SIZES = {
    "NQueens": 8,
    "GuidedSearch": 40,
    "AllPairs": 1,
    "ForkJoinCreate": 3,
    "BoundedBuffer": 30,
    "Trapezoid": 2000,
}


@pytest.mark.parametrize("name", sorted(path.stem for path in SAVINA.glob("*.lf")))
def test_it_finds_the_right_answer(tmp_path: Path, name: str) -> None:
    for file in (SAVINA / "savina.h", SAVINA / f"{name}.lf"):
        shutil.copy(file, tmp_path)
    made = model(tmp_path / f"{name}.lf")
    assert not made.program.warnings
    built = build(made, Wanted(quick=True))
    size = str(SIZES.get(name, 100))
    ran = subprocess.run([str(built.program)], env={"N": size}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout.removeprefix("ns ")) > 0
    # Checks that the program's own check works.
    if name in ("Counting", "Philosophers", "RadixSort"):
        source = tmp_path / "savina.h"
        text = source.read_text()
        source.write_text(text.replace("if (!right) {", "if (right) {"))
        wrong = build(made, Wanted(quick=True))
        ran = subprocess.run([str(wrong.program)], env={"N": size}, capture_output=True, text=True)
        assert ran.returncode == 1 and ran.stderr.startswith("wrong: ")
