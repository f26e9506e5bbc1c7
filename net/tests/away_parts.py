"""Processes that tests of networks start in OS processes, by weft.processes."""

from __future__ import annotations

from typing import Any

from weft.processes import process


@process
def passes_on(inp: Any, out: Any) -> None:
    out.write(inp.read())
