"""Every scenario on every backend, and every rule with a scenario."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.scenarios import BACKENDS, collect

ROOT = Path(__file__).parents[2]
SCENARIOS = {backend: collect(backend) for backend in BACKENDS}
CASES = [(backend, name) for backend in BACKENDS for name in SCENARIOS[backend]]

# Rules of Part I that have no scenario here, and why.
NO_SCENARIO = {
    "1.8": "restricted channels are C++; cpp/tests/hosted_one2one.cpp and library_blocks.cpp have them",
    "6.6": "foreign waiters are tasks of another loop; test_networks.py and python/tests/test_asyncio_tasks.py have them",
    "6.7": "signals come from outside; python/tests/test_signals.py and cpp/tests/hosted_parking.cpp have them",
    "7.10": "par_read and par_write are C++; cpp/tests/library_blocks.cpp and explore_together.hpp have them",
    "9.2": "what a debug mode detects is its runtime's; python/tests/test_debug.py has it",
    "10.4": "of guests; python/tests/test_asyncio_guest.py has it",
    "10.5": "a report on demand; python/tests/test_observe.py and cpp/tests/hosted_observing.cpp have it",
    "11.3": "of the freestanding layer only; cpp/tests has it",
    **{
        f"13.{n}": "guests of a loop; python/tests/test_asyncio_*.py have them" for n in range(1, 8)
    },
    **{f"14.{n}": "observation; python/tests/test_observe.py has it" for n in range(1, 7)},
    **{f"15.{n}": "executors of C++; cpp/tests/hosted_cores.cpp has them" for n in range(5, 10)},
}


@pytest.mark.parametrize(
    ("backend", "name"), CASES, ids=[f"{backend}-{name}" for backend, name in CASES]
)
def test_scenario(backend: str, name: str) -> None:
    SCENARIOS[backend][name]()


def rules_of_part_one() -> list[str]:
    text = (ROOT / "SEMANTICS.md").read_text(encoding="utf-8")
    part = re.split(r"(?m)^# Part ", text)[1]
    return re.findall(r"(?m)^(\d+\.\d+) ", part)


def test_every_rule_has_a_scenario_or_a_reason() -> None:
    rules = rules_of_part_one()
    assert len(rules) == len(set(rules)) >= 66
    covered = {rule for run in SCENARIOS["coroutines"].values() for rule in run.rules}  # type: ignore[attr-defined]
    assert [rule for rule in rules if rule not in covered | set(NO_SCENARIO)] == []
    assert covered <= set(rules), "a scenario cites a rule that does not exist"
    assert covered.isdisjoint(NO_SCENARIO), "a rule has both a scenario and a reason to have none"


def test_every_backend_has_the_same_scenarios() -> None:
    assert all(list(SCENARIOS[b]) == list(SCENARIOS["coroutines"]) for b in BACKENDS)
