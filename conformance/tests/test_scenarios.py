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
    "6.6": "the Python interface has no foreign waiters yet; cpp/tests has them",
    "9.2": "the debug mode that detects it is not part of the interface yet",
    "10.4": "no backend is a guest of another loop yet",
    "10.5": "the interface has no call for a report on demand yet",
    "11.3": "of the freestanding layer only; cpp/tests has it",
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
