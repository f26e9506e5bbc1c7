"""The implementations of pycsp's names that can run on this machine, for the tests of the
layers."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import itertools
import os
from typing import Any

_ports = itertools.count(16 * os.getpid())


def implementations() -> list[str]:
    """Returns the names of pycsp's modules that can run: greenlets only if the package greenlet is
    installed."""
    names = ["parallel"]
    if importlib.util.find_spec("greenlet") and importlib.util.find_spec("weft.greenlets"):
        names.append("greenlets")
    return names


def load(name: str) -> Any:
    """Returns the implementation `name`, and makes it the current one, as if the program had
    imported it last.
    """
    module = importlib.import_module(f"weft.compat.pycsp.{name}")
    module._implementation.publish(vars(module))
    return module


def free_port() -> int:
    """Returns a port that is free, and stays free until the test binds it: the system itself
    assigns no port below 32,768, and tests that run beside this one use other ports.
    """
    from weft.compat.pycsp._errors import ChannelBindException
    from weft.compat.pycsp._remote import bound

    for n in _ports:
        port = 20_000 + n % 12_000
        with contextlib.suppress(ChannelBindException), bound("localhost", port):
            return port
    raise AssertionError
