"""weft.threads without the extension module: the names of the pure-Python package."""

from __future__ import annotations

from typing import Any

from weft import errors
from weft._fallback import NAMES, not_here, pure

_module = pure("threads")
__all__ = sorted([*NAMES, *errors.__all__])
globals().update({name: getattr(_module, name) for name in NAMES})
globals().update({name: getattr(errors, name) for name in errors.__all__})


def __getattr__(name: str) -> Any:
    not_here(__name__, name)
