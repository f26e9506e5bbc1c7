"""Builds the components of the tests, and contains the Python processes at the other ends of their
channels. Each component is built once for its content, and kept in .build/components.
"""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import weft.native
from weft import threads as th

HERE = Path(__file__).parent
os.environ.setdefault("WEFT_CACHE", str(HERE.parents[1] / ".build/components"))

needs_compiler = pytest.mark.skipif(
    not any(shutil.which(name) for name in ("c++", "g++", "clang++")), reason="no C++ compiler"
)


@functools.cache
def basics() -> Any:
    return weft.native.load(HERE / "component_basics.cpp")


@functools.cache
def messages() -> Any:
    return weft.native.load(HERE / "component_messages.cpp")


@functools.cache
def parties() -> Any:
    return weft.native.load(HERE / "component_parties.cpp")


@functools.cache
def tasks() -> Any:
    return weft.native.load(HERE / "component_tasks.cpp")


@th.process
def source(out: Any, values: Any) -> None:
    for v in values:
        out.write(v)


@th.process
def collect(inp: Any) -> list[Any]:
    return list(inp)
