"""The implementations of pycsp's names that are here, for the tests of the layers."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import itertools
import os
from typing import Any

_ports = itertools.count(16 * os.getpid())


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


def free_port() -> int:
    """A port that nobody has, and nobody gets before the test takes it: the system gives out none
    below 32,768 by itself, and a program beside this one has others.
    """
    from weft.compat.pycsp._errors import ChannelBindException
    from weft.compat.pycsp._remote import bound

    for n in _ports:
        port = 20_000 + n % 12_000
        with contextlib.suppress(ChannelBindException), bound("localhost", port):
            return port
    raise AssertionError
