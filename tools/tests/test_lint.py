"""The checkout is clean, and the linters would notice if it were not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, House


def lint(path: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache")}  # typeshed once is enough
    return subprocess.run(["./run", "lint"], cwd=path, env=env, capture_output=True, text=True)


def test_the_checkout_is_clean() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("file", "text", "check"),
    [
        ("python/src/weft/bad.py", "import os\n", "ruff check"),
        ("python/src/weft/bad.py", "x = [1,2]\n", "ruff format"),
        ("python/src/weft/bad.py", "def f(x):\n    return x\n", "mypy --strict python"),
        ("cpp/include/weft/bad.hpp", "int   f( );\n", "clang-format"),
        ("bad/tests/run", "#!/usr/bin/env bash\ncd $1\n", "shellcheck"),
    ],
)
def test_a_file_that_is_not_clean_is_found(house: House, file: str, text: str, check: str) -> None:
    for name in ("pyproject.toml", ".clang-format", ".gitignore"):
        shutil.copy(ROOT / name, house.path / name)
    shutil.copytree(ROOT / ".ci", house.path / ".ci")
    house.bin.rmdir()
    (house.path / ".venv").symlink_to(ROOT / ".venv")
    (house.path / ".gitignore").write_text(".venv\n.build\n")
    house.script("tools/setup", "")  # what it needs is there
    subprocess.run(["git", "init", "-q"], cwd=house.path, check=True)
    (house.path / file).parent.mkdir(parents=True, exist_ok=True)
    (house.path / file).write_text(text)
    result = lint(house.path)
    assert result.returncode == 1
    assert f"lint: not clean: {check} (" in result.stderr, result.stdout + result.stderr
