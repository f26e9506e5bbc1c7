"""Runs the examples and the programs of the pages, and compares their output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from . import board, tiers

FOLDER = tiers.HERE / "examples"
EXAMPLES = sorted(p for p in FOLDER.glob("*.py") if p.name != "board.py")
PAGES = [tiers.HERE / "README.md", tiers.HERE / "TUTORIAL.md"]


@pytest.mark.parametrize("tier", tiers.MICROPYTHONS)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_example(tier: str, example: Path) -> None:
    expected = example.with_name(example.name + ".exp").read_text(encoding="utf-8")
    assert tiers.run(tier, example, folders=(FOLDER,)) == expected


# The board with one core has no threads.
ONE_CORE = [p for p in EXAMPLES if p.stem != "two_schedulers"]


@pytest.mark.parametrize("where", list(board.FIRMWARE))
@pytest.mark.parametrize("example", ONE_CORE, ids=lambda p: p.stem)
def test_example_on_the_cortex_m3(where: str, example: Path, tmp_path: Path) -> None:
    """Runs an example compiled, from the board's disk. The board has one core and no threads, so a
    hard interrupt takes the place of the second core."""
    expected = example.with_name(example.name + ".exp").read_text(encoding="utf-8")
    assert board.run(where, example, tmp_path, FOLDER / "board.py") == expected


def programs() -> list[tuple[str, str]]:
    """Returns the complete programs of the pages: those that end in `print(run(…)) # what it
    prints`.
    """
    found = []
    for page in PAGES:
        for k, text in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.S)):
            if re.search(r"^print\(run\(.*# ", text, re.M):
                found.append((f"{page.stem}-{k}", text))
    return found


@pytest.mark.parametrize("tier", ["pure", "native"])
@pytest.mark.parametrize(("name", "text"), programs(), ids=[n for n, _ in programs()])
def test_program_of_a_page(tier: str, name: str, text: str) -> None:
    expected = re.findall(r"^print\(run\(.*# (.*)$", text, re.M)
    assert tiers.snippet(tier, text).splitlines() == expected
