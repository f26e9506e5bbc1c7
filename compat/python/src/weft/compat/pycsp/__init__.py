"""pycsp 0.9.2's names on Weft. `import weft.compat.pycsp` provides the names of `.parallel`;
`.greenlets` has its own (compat/docs/pycsp.md)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.compat.pycsp.parallel import *  # noqa: F403


# The names are imported at first use, so that importing another of pycsp's modules does not make
# `parallel` the current module.
def __getattr__(name: str) -> Any:
    if name == "__all__" or not name.startswith("_"):
        try:
            return getattr(importlib.import_module("weft.compat.pycsp.parallel"), name)
        except AttributeError:
            pass
    raise AttributeError(f"module 'weft.compat.pycsp' has no attribute {name!r}")
