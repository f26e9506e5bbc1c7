"""Processes as threads: operations block. The same names as weft.coroutines."""

from __future__ import annotations

from weft._exports import *  # noqa: F403
from weft._exports import names

__all__ = [*names]
