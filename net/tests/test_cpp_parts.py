"""What of `weft/net.hpp` is tested without other programs: the ways of its relay (ways.cpp), and by
libFuzzer what it takes from the network (fuzz.cpp)."""

from __future__ import annotations

import os
import subprocess

from conftest import SANITIZED, built

RUNS = int(os.environ.get("WEFT_FUZZ", "5000"))


def test_the_parts(build):  # wire 17.18, 17.19, 17.20
    done = subprocess.run(
        [str(built(build, "ways"))], env=SANITIZED, stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_whatever_comes(tmp_path):  # wire 17.2, 17.3, 17.13, 17.15, 17.18, 17.19
    """From one seed; the input that crashes it is shown in hexadecimal."""
    done = subprocess.run(
        [
            str(built("asan", "net_fuzz")),
            f"-runs={RUNS}",
            "-seed=17",
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
