"""Ctrl-C at any place of Weft's own Python code leaves nothing behind (rule 6.7): interrupted.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from children import child

from weft._extension import native as _native  # noqa: F401  # without it there is nothing to test

PROGRAM = str(Path(__file__).with_name("interrupted.py"))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python runs handlers elsewhere")
@pytest.mark.parametrize(
    ("name", "every"),
    [
        ("guest", 3),
        ("limits", 3),
        ("hosts", 97),
        ("executor", 97),
        ("observed", 11),
        ("traced_too", 11),
        ("observed_there", 197),
        ("supervised", 197),
    ],
)
def test_ctrl_c_at_any_place_leaves_nothing_behind(name: str, every: int) -> None:  # rule 6.7
    """This test interrupts some of the places; the soak interrupts every place of all programs."""
    with child(PROGRAM, str(every), name) as running:
        out, err = running.communicate()
    assert running.returncode == 0, f"{out[-2000:]}\n{err[-4000:]}"
    last = out.splitlines()[-1]
    assert last.endswith(" passed, 0 failed"), out[-2000:]
    assert last.split()[0] != "0"
