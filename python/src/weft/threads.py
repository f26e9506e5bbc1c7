"""Processes as threads: operations block. The same names as weft.coroutines."""

from __future__ import annotations

from weft._blocking import Parallel as Parallel
from weft._blocking import Sequence as Sequence
from weft._blocking import Spawn as Spawn
from weft._exports import *  # noqa: F403
from weft._exports import names
from weft._shared import process as process

__all__ = [*names]
