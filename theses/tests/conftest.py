"""Fixtures, and the paths of the packages that are measured: the bench's harness, Lingua Franca's
package with the helpers of its tests, and MicroPython's package."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

THESES = Path(__file__).resolve().parent.parent
ROOT = THESES.parent
sys.path[:0] = [str(ROOT), str(THESES), str(THESES / "lf"), str(ROOT / "bench")]
sys.path += [str(ROOT / "lf" / "src"), str(ROOT / "lf" / "tests")]

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Returns a function that writes a `.lf` file and returns its path."""

    def do(text: str, name: str = "Main.lf") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return do


@pytest.fixture(scope="session")
def ball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the path of a copy of theses/lf in which to build. The programs of theses/lf expect
    device/ beside this copy."""
    root = tmp_path_factory.mktemp("theses")
    (root / "device").symlink_to(THESES / "device")
    built = shutil.ignore_patterns("bin", "src-gen")
    return Path(shutil.copytree(THESES / "lf", root / "lf", ignore=built))
