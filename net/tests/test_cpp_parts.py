"""Tests parts of `weft/net.hpp` without other programs: the packet lines of the relay (ways.cpp),
and, by libFuzzer, the code that reads input from the network (fuzz.cpp).
"""

from __future__ import annotations

import os
import subprocess

import pytest
from conftest import SANITIZED, built

RUNS = int(os.environ.get("WEFT_FUZZ", "5000"))
SEEDS = range(17, 17 + int(os.environ.get("WEFT_FUZZ_SEEDS", "1")))


def test_the_parts(build):  # wire 17.18, 17.19, 17.20
    done = subprocess.run(
        [str(built(build, "ways"))], env=SANITIZED, stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_comes(seed, tmp_path):  # wire 17.2, 17.3, 17.13, 17.15, 17.18, 17.19
    """An input that crashes the target is shown in hexadecimal."""
    done = subprocess.run(
        [
            str(built("asan", "net_fuzz")),
            f"-runs={RUNS}",
            f"-seed={seed}",
            "-max_len=600",
            "-len_control=0",
            f"-artifact_prefix={tmp_path}/",
        ],
        env=SANITIZED,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-10_000:]
