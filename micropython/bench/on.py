"""Runs a bench on a MicroPython, for the harness of ./run bench: on.py TIER HEAP BENCH WAY SAMPLES
PER."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from micropython.tests import tiers

tier, heap, *rest = sys.argv[1:]
folders = []
if rest[1] == "apycsp":  # apycsp is a package of its own
    folders = [tiers.installed(tiers.MADE / "with-compat", tiers.ROOT / "compat/micropython")]
command = [*tiers.command(tier, heap), str(Path(__file__).parent / "on_device.py"), *rest]
os.execve(command[0], command, tiers.environment(tier, *folders))
