"""Tests the old names on MicroPython: programs of which only the imports were changed, the package
that mip installs, and the manifest that freezes it. The programs are in micropython/, each with its
expected output.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

from micropython.tests import board, tiers  # noqa: E402

PACKAGE = ROOT / "compat/micropython"
PROGRAMS = sorted((Path(__file__).parent / "micropython").glob("*.py"))


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Weft and the package, as mip installs both."""
    return tiers.installed(tmp_path_factory.mktemp("lib"), PACKAGE)


def expected(program: Path) -> str:
    return program.with_name(program.name + ".exp").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "tier",
    [
        pytest.param(tier, marks=[pytest.mark.soak] if tier in tiers.SOAKED else [])
        for tier in sorted(tiers.MICROPYTHONS)
    ],
)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_a_program(tier: str, program: Path, lib: Path) -> None:
    assert tiers.run(tier, program, folders=(lib,)) == expected(program)


# PyCSP's names with locks use threads, which these boards lack.
@pytest.mark.parametrize("where", list(board.FIRMWARE))
def test_a_program_on_a_cortex_m3(where: str, tmp_path: Path) -> None:
    program = Path(__file__).parent / "micropython/apycsp.py"
    results = board.run(where, program, tmp_path, packages=(PACKAGE,))
    assert results == expected(program)


def test_package_json_is_what_the_folder_holds() -> None:
    command = [sys.executable, tiers.HERE / "mkpackage.py", "--of", PACKAGE, "--check"]
    done = subprocess.run(command, check=False)
    assert done.returncode == 0, "run micropython/mkpackage.py --of compat/micropython"
    package = json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))
    assert {to for to, _ in package["urls"]} >= {"weft/compat/apycsp/__init__.py"}
    assert package["version"] == json.loads((tiers.HERE / "package.json").read_text())["version"]


def test_weft_alone_has_no_such_names() -> None:
    output = tiers.snippet("pure", "try: import weft.compat\nexcept ImportError as e: print(e)")
    assert "weft.compat" in output
