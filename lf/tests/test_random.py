"""Tests with random programs: for each reactor the compiled program and the interpreter have the
same trace and the same output."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import model, run
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from randoms import Pick, by_seed, program

from weft_lf.conform import by_reactor
from weft_lf.oracle import Oracle

SEED = int(os.environ.get("WEFT_LF_SEED", "1"))
BATCHES = int(os.environ.get("WEFT_LF_BATCHES", "2"))
PAIRS = int(os.environ.get("WEFT_LF_PAIRS", "1"))  # the number of batches with two workers
SIZE = int(os.environ.get("WEFT_LF_SIZE", "40"))


def by_instance(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        found.setdefault(line.split()[0], []).append(line)
    return found


def agree(path: Path) -> int:
    """Compares the compiled program with the interpreter. Returns the number of reactions that ran."""
    oracle = Oracle(model(path))
    trace = [f"{f.time} {f.microstep} {f.name}{'!' * f.missed}" for f in oracle.run()]
    printed, got = run(path)
    wanted, seen = by_reactor(trace), by_reactor(got)
    for name in sorted(wanted.keys() | seen.keys()):
        assert seen.get(name) == wanted.get(name), f"{name} in {path}"
    assert by_instance(printed) == by_instance("".join(oracle.printed)), path
    return len(trace)


def batch(write: object, seed: int, modes: bool, size: int = SIZE, workers: int = 1) -> int:
    picks = [by_seed(seed * 100_000 + n) for n in range(size)]
    return agree(write(program(picks, modes, workers=workers), f"Random{seed}.lf"))  # type: ignore[operator]


@pytest.mark.parametrize("seed", range(SEED, SEED + BATCHES))
def test_random_programs(write: object, seed: int) -> None:
    assert batch(write, seed, modes=False) > 1000


@pytest.mark.parametrize("seed", range(SEED + 1000, SEED + 1000 + BATCHES // 2))
def test_random_programs_with_modes(write: object, seed: int) -> None:
    assert batch(write, seed, modes=True) > 1000


@pytest.mark.parametrize("seed", range(SEED + 2000, SEED + 2000 + PAIRS))
def test_random_programs_with_two_workers(write: object, seed: int) -> None:
    assert batch(write, seed, modes=seed % 2 == 1, workers=2) > 1000


@pytest.mark.soak
@settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
)
@given(data=st.data())
def test_one_component_with_shrinking(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    place = tmp_path_factory.mktemp("one")

    def pick(n: int) -> int:
        return data.draw(st.integers(0, n - 1)) if n > 1 else 0

    chosen: Pick = pick
    path = place / "One.lf"
    path.write_text(program([chosen]))
    agree(path)
    shutil.rmtree(place)


def test_the_comparison_can_fail(write: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison fails if the interpreter has another rule for equal tags (R7)."""

    def put(self: Oracle, event: object) -> None:
        if event.tag <= self.stop:  # type: ignore[attr-defined]
            self.queue.append(event)  # type: ignore[arg-type]

    monkeypatch.setattr(Oracle, "put", put)
    with pytest.raises((AssertionError, subprocess.SubprocessError)):
        batch(write, SEED, modes=False)
