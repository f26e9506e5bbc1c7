"""The Python processes at the other end of native channels, for test_native_hosts.py: hosts import
this module.
"""

from __future__ import annotations

from typing import Any

import weft.threads as th
from weft.processes import Channel


@th.process
def gives(out: Any, values: list[Any]) -> None:
    for v in values:
        out.write(v)


@th.process
def takes(inp: Any, n: int) -> list[Any]:
    return [inp.read() for _ in range(n)]


@th.process
def asks(out: Any, inp: Any, values: list[Any]) -> Any:
    for v in values:
        out.write(v)
    return inp.read()


@th.process
def makes(ends: Any, values: list[Any]) -> None:
    """Writes to a channel that this process makes, and whose reader it sends away."""
    far = Channel("far")
    w = far.writer()
    ends.write(far.reader())
    try:
        for v in values:
            w.write(v)
    except th.Retired:
        pass


@th.process
def says_then_takes(here: Any, inp: Any) -> Any:
    here.write(True)
    return inp.read()
