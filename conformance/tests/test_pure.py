"""Tests `weft` without its extension module (`weft._pure`): scenarios, random networks, and the
same networks on the extension.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys

import pytest

from conformance import pure
from conformance.driver import conform, verdict
from conformance.networks import DEFAULT, generate
from conformance.python_driver import ApartDriver
from conformance.python_names import PURE
from conformance.scenarios import collect

pytestmark = pytest.mark.together  # These tests share the outcomes that the lane keeps.

ALL = list(collect("coroutines"))
RUN = [name for name in ALL if name not in pure.LEFT_OUT]
EACH, OF_THREADS = 40, 10  # the number of networks in each test; threads cost more
ALL_FEATURES = DEFAULT | {"limit", "cancel", "ended", "watched"}


@functools.cache
def outcomes(backend: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "conformance.pure", backend],
        env={**os.environ, "WEFT_PURE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("backend", pure.BACKENDS)
@pytest.mark.parametrize("name", RUN)
def test_scenario(backend: str, name: str) -> None:
    assert outcomes(backend).get(name, "was not run") == "ok"


def test_what_is_left_out_is_named_with_a_reason_and_is_little() -> None:
    assert set(pure.LEFT_OUT) <= set(ALL)
    assert set(pure.LEFT_OUT.values()) == set(pure.LACKS)
    assert len(RUN) >= 180


@pytest.mark.parametrize("name", PURE)
@pytest.mark.parametrize("shape", ["any", "retiring"])
def test_random_networks_conform(name: str, shape: str) -> None:
    """Compares the histories with model.py; `python -m conformance.driver --on pure --seeds A:B`
    runs any number of networks.
    """
    each = OF_THREADS if name == "pure-threads" else EACH
    print(f"{name}: {shape} networks of the seeds 0 to {each - 1}")
    messages: list[str] = []
    driver = ApartDriver(name, ALL_FEATURES)
    try:
        passed, failed, unknown = conform(driver, range(each), say=messages.append, shape=shape)
    finally:
        driver.close()
    assert (passed, failed) == (each, 0), "\n".join(messages)
    assert unknown <= each // 5


def test_both_cores_end_the_same_networks_alike() -> None:
    """The model judges each history in test_random_networks_conform(). Where only one ending is
    possible, this test checks that the run ends in the same way on both cores.
    """
    first, last = 5000, 5000 + EACH
    print(f"pure beside the extension module: seeds {first} to {last - 1}")
    one, other = ApartDriver("pure"), ApartDriver("coroutines")
    same = 0
    try:
        for seed in range(first, last):
            net = generate(seed, 4, DEFAULT)
            judged = [verdict(driver, net, seed) for driver in (one, other)]
            assert all(good for good, _ in judged), seed
            ends = [[r for r in history if r["e"] == "run"][-1]["out"][0] for _, history in judged]
            same += ends[0] == ends[1]
    finally:
        one.close()
        other.close()
    assert same > 0.9 * EACH, f"{same} of {EACH} networks ended alike"
