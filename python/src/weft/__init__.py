"""Weft: processes and channels that run everywhere.

`weft.coroutines`, `weft.threads`, `weft.greenlets` and `weft.processes` export the same names: what
is awaited in the first is called in the others. `weft` itself exports the names of the chosen
backend: by :func:`use`, by `WEFT_BACKEND`, by `weft run FILE --on BACKEND`; coroutines if nothing
was chosen.
"""

from __future__ import annotations

import importlib
import os
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.coroutines import *  # noqa: F403

_BACKENDS = ("coroutines", "threads", "greenlets", "processes")
_LIST = "'coroutines', 'threads', 'greenlets' or 'processes'"
_chosen: str | None = None
# Modules of other distributions say there how to get them. The folder is the last: what is installed
# is found before it.
__path__.append(os.path.join(os.path.dirname(__file__), "_not_installed"))  # noqa: F405, PTH118, PTH120
# Without the extension module, or if WEFT_PURE asks for it, weft is what weft._fallback makes of it.
_pure = os.environ.get("WEFT_PURE", "") not in ("", "0")
_pure = _pure or PathFinder.find_spec("weft._native", __path__) is None  # noqa: F405
if _pure:
    from weft._fallback import take_over

    take_over(__path__)  # noqa: F405


def use(backend: str) -> None:
    """Choose what `weft` exports from now on: "coroutines", "threads", "greenlets" or "processes".

    Raises:
        BadUse: there is no such backend.
    """
    global _chosen
    if backend not in _BACKENDS:
        from weft.errors import BadUse

        raise BadUse(f"there is no backend {backend!r}: use {_LIST}")
    _chosen = backend


def _backend() -> Any:
    if _chosen is None:
        named = os.environ.get("WEFT_BACKEND") or "coroutines"
        if named not in _BACKENDS:
            from weft.errors import BadUse

            raise BadUse(f"WEFT_BACKEND={named!r}: there is no such backend; use {_LIST}")
        use(named)
    return importlib.import_module(f"weft.{_chosen}")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        if _pure:
            from weft._fallback import version

            return version()
        from weft._extension import native

        return native.version
    if name == "__all__":
        return [*_backend().__all__, "use"]
    if name.startswith("_"):
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    backend = _backend()
    if name in backend.__all__ or _pure:
        return getattr(backend, name)
    raise AttributeError(f"module 'weft' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_backend().__all__, "use", "__version__"]
