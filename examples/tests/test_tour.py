"""Tests that the five-minute tour of the README works line by line."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_tour_of_the_readme() -> None:
    command = [sys.executable, str(ROOT / "tools/doctest_md.py"), str(ROOT / "README.md")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
