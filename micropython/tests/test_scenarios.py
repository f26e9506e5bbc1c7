"""Runs the scenarios of conformance/ on every tier, converted to plain MicroPython. Each scenario
that is left out has a reason."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from conformance import micropython as converter

from . import tiers

pytestmark = pytest.mark.together  # one lane runs these tests, and keeps the outcomes

SCENARIOS = tiers.MADE / "scenarios"
THREADS = ("pure", "native", "gil", "cpython", "pypy")  # weft.threads is Python, over either core
# Tiers that are left to the soak: conformance/tests/test_pure.py runs the scenarios on CPython with
# the pure code, PyPy runs the same code, and a global lock makes a difference only to threads.
REPEAT = {"coroutines": ("gil", "cpython", "pypy"), "threads": ("cpython", "pypy")}


ALL = [
    name
    for path in sorted(converter.HERE.glob("rules_*.py"))
    for name in converter.scenarios_of(path)
]
RUN = [name for name in ALL if name not in converter.LEFT_OUT]


@functools.cache
def written(names: str) -> Path:
    """Writes the converted scenarios, and returns their folder. Each OS process has a folder of its
    own, because several might write at the same time."""
    folder = SCENARIOS / f"{names}.{os.getpid()}"
    converter.write(folder, names)
    atexit.register(shutil.rmtree, folder, True)
    return folder


@functools.cache
def outcome(tier: str, module: str, names: str = "coroutines") -> dict[str, str]:
    """Returns the outcome of each scenario of a file: "ok", or the reason of its failure."""
    not_here = converter.LEFT_OUT_THREADS if names == "threads" else {}
    left_out = [n for n in ALL if n in converter.LEFT_OUT | not_here]
    text = tiers.run(
        tier,
        "-c",
        f"import kit\nfrom weft.{names} import process, run\n"
        f"kit.run_all({module!r}, {left_out!r}, run, process, {names == 'threads'})\n",
        folders=(written(names),),
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


def each(names: str, of: Iterable[str]) -> list[Any]:
    soak = pytest.mark.soak
    return [pytest.param(tier, marks=soak if tier in REPEAT[names] else ()) for tier in of]


@pytest.mark.parametrize("tier", each("coroutines", tiers.TIERS))
@pytest.mark.parametrize("name", RUN)
def test_scenario(tier: str, name: str) -> None:
    assert outcome(tier, name.partition(".")[0]).get(name, "was not run") == "ok"


@pytest.mark.parametrize("tier", each("threads", THREADS))
@pytest.mark.parametrize("name", [n for n in RUN if n not in converter.LEFT_OUT_THREADS])
def test_scenario_on_threads(tier: str, name: str) -> None:
    module = name.partition(".")[0]
    assert outcome(tier, module, "threads").get(name, "was not run") == "ok"


def test_what_is_left_out_is_named_with_a_reason_and_is_little() -> None:
    assert set(converter.LEFT_OUT) <= set(ALL), "a scenario that is not there any more"
    assert set(converter.LEFT_OUT.values()) == set(converter.LACKS)
    assert set(converter.LEFT_OUT_THREADS) <= set(ALL)
    assert set(converter.LEFT_OUT_THREADS.values()) == set(converter.LACKS_THREADS)
    assert len(RUN) >= 150


@pytest.mark.parametrize("tier", list(tiers.TIERS))
def test_a_tier_runs_on_the_core_that_it_is_for(tier: str) -> None:
    print_it = "from weft import _core\nprint(_core.NATIVE)"
    assert tiers.snippet(tier, print_it).strip() == str(tiers.CORE[tier])
