"""Measures `weft lf build` of a minimal program, as a process of its own: with the C build, or
without it (`c` or `text`).
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from sampler import Sampler, fail, numbers

ROOT = Path(__file__).resolve().parents[2]
how = sys.argv.pop(1) if len(sys.argv) > 1 else ""
if how not in ("c", "text"):
    fail("usage: lf_build.py c|text SAMPLES")
(samples,) = numbers("SAMPLES")
with tempfile.TemporaryDirectory(prefix="weft-bench-") as place:
    source = Path(place) / "Minimal.lf"
    source.write_text('target C\nmain reactor { reaction(startup) {= lf_print("hello"); =} }\n')
    command = [sys.executable, "-m", "weft_lf", "build", str(source)]
    command += ["--no-compile"] * (how == "text")
    given = {**os.environ, "PYTHONPATH": str(ROOT / "lf" / "src"), "CCACHE_DISABLE": "1"}
    sampler = Sampler()
    for k in range(samples + 1):  # the first build makes the grammar's cache
        sampler.begin()
        if subprocess.run(command, env=given, stdout=subprocess.DEVNULL, check=False).returncode:
            fail("the build failed")
        if k:
            sampler.end(1)
    sampler.print()
