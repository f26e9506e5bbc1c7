"""Tests that `./run bench NAME` installs the packages for the benches of that name, and no
others.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    "arguments, wanted",
    [
        (["lf-pingpong"], ["bench", "lf"]),
        (["--json", "lf-build"], ["bench", "lf"]),
        (["mpy-commstime"], ["bench", "micropython"]),
        (["net-relay"], ["bench", "net"]),
        (["cpp-commstime"], ["bench"]),
        ([], ["bench", "micropython", "net", "lf"]),
        (["--json"], ["bench", "micropython", "net", "lf"]),
    ],
)
def test_what_is_set_up(tmp_path: Path, arguments: list[str], wanted: list[str]) -> None:
    (tmp_path / "tools").mkdir()
    for name in ("bench", "lib.sh"):
        shutil.copy(TOOLS / name, tmp_path / "tools" / name)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "run.py").write_text("")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    for path, text in (
        (tmp_path / "tools" / "setup", 'echo "$@" >> set-up'),
        (tmp_path / "tools" / "build", ":"),
        (python, ":"),
    ):
        path.write_text(f"#!/usr/bin/env bash\n{text}\n")
        path.chmod(0o755)
    subprocess.run([tmp_path / "tools" / "bench", *arguments], check=True, cwd=tmp_path)
    assert (tmp_path / "set-up").read_text().split() == wanted
