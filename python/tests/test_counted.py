"""A part of counted.py: the same calls, on the Python that runs the tests, with some of the
allocations failing. The soak runs all of counted.py, under a debug Python that counts
references."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COUNTED = Path(__file__).with_name("counted.py")

# Each version of CPython has faults of its own when memory runs out; counted.py knows 3.11's.
known = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the faults known are 3.11's")


def counted(what: str, *arguments: str) -> str:
    pytest.importorskip("_testcapi")
    command = [sys.executable, str(COUNTED), what, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@known
def test_no_memory_is_no_crash_and_loses_nothing() -> None:  # rules 1.1, 5.1, 12.1
    calls = "one_", "time[coroutines]", "rendezvous[coroutines]", "deadlock[coroutines]", "looks"
    output = counted("memory", *calls, "--most", "30")
    assert output.splitlines()[-1] == "9 passed, 0 failed", output


BAD = {
    "assert False": "AssertionError",
    "os.abort()": "bad: crash: -6 at the start",
    "kept.append(object())": "bad: 400 more after 400 calls",
}


@known
@pytest.mark.parametrize("bad", BAD)
def test_it_tells_what_is_wrong(bad: str, tmp_path: Path) -> None:
    """Checks that counted.py notices a fault: a sweep that could notice none would be worse than no
    sweep."""
    program = f"""
import os, sys
sys.path.insert(0, {str(COUNTED.parent)!r})
import counted
kept = []

def call(fault):
    with fault:
        object()
        {bad}

counted.calls = lambda: {{"bad": call}}
sys.argv[0] = counted.__file__
sys.exit(counted.main())
"""
    what = "refs" if "kept" in bad else "memory"
    command = [sys.executable, "-c", program, what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert BAD[bad] in done.stdout, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "0 passed, 1 failed"
