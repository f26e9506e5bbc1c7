"""Plug-and-play processes: identity, delta, merge and their like (docs/toolkit.md).

`from weft.plugnplay.coroutines import identity` imports a coroutine process.
`weft.plugnplay.threads` and `weft.plugnplay.greenlets` export other processes under the same names.
`weft.plugnplay` itself exports those of the chosen backend, as `weft` does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.plugnplay.coroutines import *  # noqa: F403


def _chosen() -> Any:
    import weft

    backend = weft._backend().__name__.rpartition(".")[2]
    return importlib.import_module(f"weft.plugnplay.{backend}")


def __getattr__(name: str) -> Any:
    if name != "__all__" and name.startswith("_"):
        raise AttributeError(f"module 'weft.plugnplay' has no attribute {name!r}")
    chosen = _chosen()
    if name == "__all__" or name in chosen.__all__:
        return getattr(chosen, name)
    raise AttributeError(f"module 'weft.plugnplay' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(_chosen().__all__)
