"""Runs scripts and compares their output: NAME.py.exp contains that of NAME.py, as in MicroPython's
own tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import board, tiers

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))


@pytest.mark.parametrize("tier", tiers.MICROPYTHONS)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_script(tier: str, script: Path) -> None:
    expected = script.with_name(script.name + ".exp").read_text(encoding="utf-8")
    assert tiers.run(tier, script) == expected


# These scripts run on the Cortex-M3 too.
ON_BOARD = ["asyncio_guest", "bad_input", "foreign", "limits", "select_waits"]


@pytest.mark.parametrize("where", list(board.FIRMWARE))
@pytest.mark.parametrize("name", ON_BOARD)
def test_script_on_a_cortex_m3(where: str, name: str, tmp_path: Path) -> None:
    script = Path(__file__).parent / "scripts" / f"{name}.py"
    expected = script.with_name(script.name + ".exp").read_text(encoding="utf-8")
    assert board.run(where, script, tmp_path) == expected
