"""Tests the vibration monitor. The display shows the same wherever the filter runs, in both
languages (rules 19.1, 21.1), and the filter finds what a Fourier transform finds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from weft.coroutines import process

FOLDER = Path(__file__).resolve().parents[1] / "vibration"
ROOT = FOLDER.parents[1]
os.environ.setdefault("WEFT_CACHE", str(ROOT / ".build/components"))
sys.path.insert(0, str(FOLDER))
import accelerometer  # noqa: E402
import monitor  # noqa: E402
import places  # noqa: E402

BLOCKS = 3
ALL = [(place, language) for language, place in places.PLACES]


def start(*arguments: str, **changed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, FOLDER / "monitor.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **changed},
    )


def powers() -> list[float]:
    """Returns the power at 500 Hz in each block, by a Fourier transform."""
    blocks = np.array([*accelerometer.readings(BLOCKS)], float).reshape(BLOCKS, accelerometer.SIZE)
    found = np.abs(np.fft.rfft(blocks)[:, accelerometer.SIZE * 500 // 4000]) ** 2
    return [float(power) for power in found]


def test_every_place_shows_the_same() -> None:
    done = start("everywhere", "--blocks", str(BLOCKS), "--limit", "-1")
    assert done.returncode == 0, done.stderr
    heads = [f"{place}, {language}:" for place, language in ALL]
    lines = done.stdout.splitlines()
    size = BLOCKS + 1
    told = [lines[i : i + size] for i in range(0, len(heads) * size, size)]
    assert [part[0] for part in told] == heads
    assert all(part[1:] == told[0][1:] for part in told)
    for n, (line, power) in enumerate(zip(told[0][1:], powers(), strict=True)):
        block, _, shown = line.partition(": ")
        assert block == f"block {n}"
        assert int(shown) == pytest.approx(power, rel=0.01, abs=1000)
    rows = [row.strip("| ").split(" | ") for row in lines[len(heads) * size :]]
    assert [(place, language) for place, language, *_ in rows[2:]] == ALL
    assert all(float(row[-1]) > 0 for row in rows[2:] if row[0] != "here")


def test_a_limit_keeps_the_quiet_blocks_from_the_display() -> None:
    done = start("here", "--blocks", str(BLOCKS))
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["block 2"]


def test_the_python_sources_are_portable() -> None:
    """Rule 19.7: MicroPython can run both Python sources."""
    files = [FOLDER / "goertzel.py", FOLDER / "accelerometer.py"]
    command = [sys.executable, "-m", "weft.cli", "portable", *files, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for file in json.loads(done.stdout)["files"]:
        assert (file["portable"], file["findings"]) == (True, [])
        assert [p["name"] for p in file["processes"]] == [Path(file["file"]).stem]


def test_what_a_place_lacks_is_named(tmp_path: Path) -> None:
    """A missing tool of a place is an error. If the monitor ran the filter in this program instead,
    no error would be shown."""
    nothing = str(tmp_path)
    for arguments, changed, message in [
        (["board"], {"WEFT_CHECKOUT": nothing}, "the emulator is in a checkout of Weft"),
        (["host"], {"WEFT_NATS_SERVER": nothing}, "weft net up: "),
        (["board", "--language", "cpp"], {"PATH": nothing}, "there is no C++ compiler"),
        (["attic"], {}, "'attic' is not one of 'here', 'process', 'host', 'board'"),
        (["here", "--blocks", "1"], {}, "1 is not in the range"),
    ]:
        done = start(*arguments, **changed)
        assert done.returncode in (1, 2)
        assert message in done.stderr, done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("writes", "message"),
    [(BLOCKS, "the places do not show the same"), (1, "gave 1 powers for 3 blocks")],
)
def test_a_place_that_shows_something_else_is_an_error(
    writes: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @process
    async def wrong(samples: Any, powers: Any) -> None:
        for _ in range(writes):
            await powers.write(await samples.read())

    two = {("python", "here"): places.python_here, ("cpp", "here"): wrongly(wrong)}
    monkeypatch.setattr(monitor, "PLACES", two)
    done = CliRunner().invoke(monitor.main, ["everywhere", "--blocks", str(BLOCKS)])
    assert done.exit_code == 1
    assert message in done.output


def wrongly(function: Any) -> Any:
    return lambda: nullcontext(places.Place(function))
