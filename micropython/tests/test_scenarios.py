"""The scenarios of conformance/ on every tier, as plain MicroPython; what is left out has a reason."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

from conformance import micropython as converter

from . import tiers

SCENARIOS = tiers.MADE / "scenarios"


def names() -> list[str]:
    found = []
    for path in sorted(converter.HERE.glob("rules_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
                isinstance(d, ast.Call) and getattr(d.func, "id", "") in ("scenario", "outermost")
                for d in node.decorator_list
            ):
                found.append(f"{path.stem}.{node.name}")
    return found


ALL = names()
RUN = [name for name in ALL if name not in converter.LEFT_OUT]


@functools.cache
def written() -> Path:
    folder = SCENARIOS
    converter.write(folder)
    return folder


@functools.cache
def outcome(tier: str, module: str) -> dict[str, str]:
    """What became of each scenario of a file: "ok", or why not."""
    left_out = [n for n in ALL if n in converter.LEFT_OUT]
    text = tiers.run(
        tier,
        "-c",
        "import kit\nfrom weft.coroutines import process, run\n"
        f"kit.run_all({module!r}, {left_out!r}, run, process)\n",
        folders=(written(),),
    )
    became: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "begin":
            name = rest
            became[name] = "did not come to its end"
        elif word == "ok" and rest == name:
            became[name] = "ok"
        elif name:
            became[name] += "\n" + line
    return became


@pytest.mark.parametrize("tier", list(tiers.TIERS))
@pytest.mark.parametrize("name", RUN)
def test_scenario(tier: str, name: str) -> None:
    assert outcome(tier, name.partition(".")[0]).get(name, "was not run") == "ok"


def test_what_is_left_out_is_named_with_a_reason_and_is_little() -> None:
    assert set(converter.LEFT_OUT) <= set(ALL), "a scenario that is not there any more"
    assert set(converter.LEFT_OUT.values()) == set(converter.LACKS)
    assert len(RUN) >= 150


@pytest.mark.parametrize("tier", list(tiers.TIERS))
def test_a_tier_runs_on_the_core_that_it_is_for(tier: str) -> None:
    print_it = "from weft import _core\nprint(_core.NATIVE)"
    assert tiers.snippet(tier, print_it).strip() == str(tiers.CORE[tier])
