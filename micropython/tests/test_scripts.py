"""Scripts whose output is known: NAME.py beside NAME.py.exp, as MicroPython's own tests are."""

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


# On the Cortex-M3: the thesis's programs by a change of import (aPyCSP's names), bad input, limits,
# processes inside asyncio. PyCSP's names with locks are threads', which it has not.
ON_BOARD = ["asyncio_guest", "bad_input", "compat_apycsp", "limits"]


@pytest.mark.parametrize("where", list(board.FIRMWARE))
@pytest.mark.parametrize("name", ON_BOARD)
def test_script_on_a_cortex_m3(where: str, name: str, tmp_path: Path) -> None:
    script = Path(__file__).parent / "scripts" / f"{name}.py"
    expected = script.with_name(script.name + ".exp").read_text(encoding="utf-8")
    assert board.run(where, script, tmp_path) == expected
