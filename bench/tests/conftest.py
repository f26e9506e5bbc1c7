"""Lets the tests import the harness, and the helpers of tools/, by name."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools")]
