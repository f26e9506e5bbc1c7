"""Scripts whose output is known: NAME.py beside NAME.py.exp, as MicroPython's own tests are."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import tiers

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))


@pytest.mark.parametrize("tier", tiers.MICROPYTHONS)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_script(tier: str, script: Path) -> None:
    expected = script.with_name(script.name + ".exp").read_text(encoding="utf-8")
    assert tiers.run(tier, script) == expected
