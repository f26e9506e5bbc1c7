"""Tests with random programs that use more of the language, spelled in many ways: each is accepted,
and for each reactor the compiled program and the interpreter have the same trace and output."""

from __future__ import annotations

import os

import pytest
from conftest import Write
from test_random import agree
from varied import program

from weft_lf.parser import parse

SEED = int(os.environ.get("WEFT_LF_SEED", "1"))
FILES = int(os.environ.get("WEFT_LF_VARIED", "1"))  # the number of files of each sort
SIZE = 10  # the number of random programs in a file, which are not connected with each other


@pytest.mark.parametrize("seed", range(SEED, SEED + FILES))
@pytest.mark.parametrize(("modes", "workers"), [(False, 1), (True, 1), (False, 2)])
def test_varied_programs(write: Write, seed: int, modes: bool, workers: int) -> None:
    assert agree(write(program(seed, SIZE, modes, workers), f"Varied{seed}.lf")) > 100


def test_they_have_what_they_should_have() -> None:
    """Every kind of text that varied.py can write is in some of the programs."""
    texts = [program(seed, SIZE, modes=True) for seed in range(3)]
    whole = "\n".join(texts)
    for part in ("extends", "mutable", "interleaved", "named", "lf_request_stop", ")+", "@label"):
        assert part in whole, part
    for text in texts:
        parse(text, "Varied.lf")
