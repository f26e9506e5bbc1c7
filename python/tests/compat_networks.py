"""The implementations of pycsp's names that are here, for the tests of the layers."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any


def implementations() -> list[str]:
    """pycsp's modules that can run: greenlets only with the package greenlet."""
    names = ["parallel"]
    if importlib.util.find_spec("greenlet") and importlib.util.find_spec("weft.greenlets"):
        names.append("greenlets")
    return names


def load(name: str) -> Any:
    """One of them, as the current one (the last import of a program)."""
    module = importlib.import_module(f"weft.compat.pycsp.{name}")
    module._implementation.publish(vars(module))
    return module
