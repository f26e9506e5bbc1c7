"""Python's processes at the other end of native channels, for test_native_hosts.py: hosts import this module."""

from __future__ import annotations

from typing import Any

import weft.threads as th


@th.process
def gives(out: Any, values: list[Any]) -> None:
    for v in values:
        out.write(v)


@th.process
def takes(inp: Any, n: int) -> list[Any]:
    return [inp.read() for _ in range(n)]
