"""A program of bench/lf/savina, compiled by this checkout's lf/: each run of the program is a
sample and prints its own figure.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sampler import fail, numbers

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lf" / "src"))

from weft_lf.build import Wanted, build  # noqa: E402
from weft_lf.cli import model_of  # noqa: E402

HERE = ROOT / "bench" / "lf" / "savina"
name = sys.argv.pop(1) if len(sys.argv) > 1 else ""
if not (HERE / f"{name}.lf").exists():
    fail(f"usage: lf_savina.py PROGRAM SAMPLES N; {HERE} has the programs")
samples, size = numbers("SAMPLES N")
with tempfile.TemporaryDirectory(prefix="weft-bench-") as place:
    source = Path(shutil.copy(HERE / f"{name}.lf", place))
    shutil.copy(HERE / "savina.h", place)
    program = build(model_of(source), Wanted()).program
    figures = []
    for _ in range(samples):
        given = {**os.environ, "N": str(size)}
        ran = subprocess.run([str(program)], env=given, capture_output=True, text=True, check=False)
        if ran.returncode or not ran.stdout.startswith("ns "):
            fail(f"{name} failed: {ran.stderr}")
        figures.append(ran.stdout.split()[1])
    print("ns", *figures)
