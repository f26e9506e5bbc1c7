"""Tests that the checkout is clean, and that the linters notice faults."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from conftest import ROOT, House


def lint(path: Path) -> subprocess.CompletedProcess[str]:
    # The cache is shared, so that typeshed is read once.
    env = {**os.environ, "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache")}
    return subprocess.run(["./run", "lint"], cwd=path, env=env, capture_output=True, text=True)


def test_the_checkout_is_clean() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


# A file with a fault for each check.
BAD = {
    "ruff check": ("python/src/weft/bad_check.py", "import os\n"),
    "ruff format": ("python/src/weft/bad_format.py", "x = [1,2]\n"),
    "mypy --strict python": ("python/src/weft/bad_types.py", "def f(x):\n    return x\n"),
    "clang-format": ("cpp/include/weft/bad.hpp", "int   f( );\n"),
    "prettier": ("bad/bad.mjs", "const  x = [1,2]\n"),
    "shellcheck": ("bad/tests/run", "#!/usr/bin/env bash\ncd $1\n"),
    "conflict marks": ("bad/bad.md", "<" * 7 + " HEAD\n"),
}


def test_files_that_are_not_clean_are_found(house: House) -> None:
    for name in ("pyproject.toml", ".clang-format", ".prettierrc.json", ".gitignore"):
        shutil.copy(ROOT / name, house.path / name)
    shutil.copytree(ROOT / ".ci", house.path / ".ci")
    house.bin.rmdir()
    (house.path / ".venv").symlink_to(ROOT / ".venv")
    emulator = house.path / "emulator"
    emulator.mkdir(parents=True)
    (emulator / "node_modules").symlink_to(ROOT / "emulator/node_modules")
    (house.path / ".gitignore").write_text(".venv\n.build\nnode_modules\n")
    house.script("tools/setup", "")  # so that all packages count as installed
    subprocess.run(["git", "init", "-q"], cwd=house.path, check=True)
    for file, text in BAD.values():
        (house.path / file).parent.mkdir(parents=True, exist_ok=True)
        (house.path / file).write_text(text)
    result = lint(house.path)
    assert result.returncode == 1
    assert f"lint: not clean: {','.join(BAD)} (" in result.stderr, result.stdout + result.stderr
    for file, _ in BAD.values():
        assert file in result.stdout + result.stderr, f"{file} was not named"
