"""Fixtures and helpers for the tests of lf/. They use the package from the checkout, and build
programs in temporary folders."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))
sys.path.insert(0, str(HERE))

from weft_lf.build import Wanted, build  # noqa: E402
from weft_lf.elaborate import elaborate  # noqa: E402
from weft_lf.errors import LfError  # noqa: E402
from weft_lf.load import load  # noqa: E402
from weft_lf.model import Model  # noqa: E402

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Returns a function that writes a `.lf` file, and further files that are given by name, and
    that returns the path of the first file.
    """

    def do(text: str, name: str = "Main.lf", **others: str) -> Path:
        for other, content in others.items():
            (tmp_path / f"{other}.lf").write_text(content)
        path = tmp_path / name
        path.write_text(text)
        return path

    return do


def model(path: Path) -> Model:
    return elaborate(load(path))


def problems(path: Path) -> LfError:
    """Returns the LfError that the program `path` raises; a program without errors fails the
    test.
    """
    with pytest.raises(LfError) as caught:
        model(path)
    return caught.value


def run(path: Path, *arguments: str, status: int = 0, table: bool = True) -> tuple[str, list[str]]:
    """Builds and runs a program; returns its output and the lines of its trace."""
    built = build(model(path), Wanted(trace=True, quick=True, table=table))
    assert built.program is not None
    trace = path.with_suffix(".fired")
    trace.unlink(missing_ok=True)
    ran = subprocess.run(
        [str(built.program), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "WEFT_RX_TRACE": str(trace)},
    )
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr, trace.read_text().splitlines() if trace.exists() else []
