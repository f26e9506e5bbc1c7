"""Plug-and-play processes: identity, delta, merge and their like (docs/toolkit.md).

`from weft.plugnplay.coroutines import identity` gives the coroutine processes, `weft.plugnplay.threads` and
`weft.plugnplay.greenlets` have others of the same names; `weft.plugnplay` itself those of the chosen backend, as `weft` does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from weft.plugnplay._make import NAMES

if TYPE_CHECKING:
    from weft.plugnplay._source import *  # noqa: F403

__all__ = list(NAMES)


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module 'weft.plugnplay' has no attribute {name!r}")
    import weft

    backend = weft._backend().__name__.rpartition(".")[2]
    return getattr(importlib.import_module(f"weft.plugnplay.{backend}"), name)


def __dir__() -> list[str]:
    return list(NAMES)
