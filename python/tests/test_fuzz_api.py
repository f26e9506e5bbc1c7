"""A slice of the fuzzer of the API (fuzz_api.py), always with the same seeds: no crash and no hang
(rules 11.1, 12.1)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).with_name("fuzz_api.py")


def fuzz(backend: str, seeds: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        str(FUZZER),
        "--seed",
        seeds,
        "--seconds",
        "3600",  # seconds: enough for all seeds, however slow the machine is
        "--backend",
        backend,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


SEEDS = range(4)
HANGS = re.compile(r"^FAILED: hang[^:]*: fuzz_api\.py --seed (\d+)", re.MULTILINE)


@pytest.mark.parametrize(
    "backend", ["coroutines", "threads", "greenlets", "tasks", "guest", "plain"]
)
def test_nothing_crashes_or_hangs(backend: str) -> None:  # rules 11.1, 12.1
    """A crash fails immediately. A hang fails if it occurs again in one of two more runs of its
    seed, because a busy machine may delay a program."""
    done = fuzz(backend, f"{SEEDS.start}:{SEEDS.stop}")
    output = done.stdout + done.stderr
    assert done.stdout.count("FAILED: ") == len(HANGS.findall(done.stdout)), output
    for seed in HANGS.findall(done.stdout):
        print(output)
        for _ in range(2):
            again = fuzz(backend, seed)
            assert again.stdout.splitlines()[-1] == "1 passed, 0 failed", output + again.stdout
    if not HANGS.search(done.stdout):
        assert done.returncode == 0, output
        assert done.stdout.splitlines()[-1] == f"{len(SEEDS)} passed, 0 failed"


BAD = {
    "os.abort()": "FAILED: signal 6",
    "w.over = True; signal.pause()": "FAILED: hang until a signal woke it",  # as if it had missed its wake-up
    "while True: time.sleep(1000)": "FAILED: hang",
    # The loop lasts until the program releases the objects that it keeps.
    "while not w.over: time.sleep(0.01)": "waited",
}


@pytest.mark.parametrize(
    "bad",
    [bad if bad == "os.abort()" else pytest.param(bad, marks=pytest.mark.soak) for bad in BAD],
)
def test_it_tells_what_a_program_does(bad: str, tmp_path: Path) -> None:
    """Checks that the fuzzer notices faults: a fuzzer that noticed none would be worse than no
    fuzzer."""
    for file in FUZZER.parent.glob("fuzz_*.py"):
        text = file.read_text(encoding="utf-8")
        act = "def act_timer(w: World) -> Any:"
        text = text.replace(act, f"{act}\n    import os, time\n    {bad}")
        (tmp_path / file.name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            str(tmp_path / FUZZER.name),
            *("--seed", "0:3", "--seconds", "1", "--backend", "plain"),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "FUZZ_HANG": "2"},
    )
    assert f"{BAD[bad]}: fuzz_api.py --seed 0 --backend plain" in done.stdout
    assert done.returncode == (0 if BAD[bad] == "waited" else 1)
