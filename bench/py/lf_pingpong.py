"""PingPong in Lingua Franca, compiled by this checkout's lf/: the program prints its own
figures."""

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

samples, per = numbers("SAMPLES PER")
with tempfile.TemporaryDirectory(prefix="weft-bench-") as place:
    source = Path(shutil.copy(ROOT / "bench" / "lf" / "PingPong.lf", place))
    built = build(model_of(source), Wanted())
    given = {**os.environ, "SAMPLES": str(samples), "PER": str(per)}
    ran = subprocess.run([str(built.program)], env=given, check=False)
    if ran.returncode:
        fail("pingpong failed")
