"""Weft: processes and channels that run everywhere.

`weft.coroutines`, `weft.threads`, `weft.greenlets` and `weft.processes` export the same names:
operations that are awaited in the first are called in the others. `weft` itself exports the names
of the chosen backend. :func:`use`, `WEFT_BACKEND` or `weft run FILE --on BACKEND` chooses it;
without a choice it is coroutines.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from weft._name_clash import tell_of_another

if TYPE_CHECKING:
    from weft._checking.api import check as check
    from weft.coroutines import *  # noqa: F403

_BACKENDS = ("coroutines", "threads", "greenlets", "processes")
_LIST = "'coroutines', 'threads', 'greenlets' or 'processes'"
_chosen: str | None = None
tell_of_another(os.path.dirname(__file__))  # noqa: PTH120
# For a module of another distribution, the folder _not_installed contains a stand-in that says how
# to install that distribution. That folder is searched last, so an installed module is found first.
__path__.append(os.path.join(os.path.dirname(__file__), "_not_installed"))  # noqa: F405, PTH118, PTH120
# Without the extension module, or if WEFT_PURE asks for it, weft._fallback fills this package.
_pure = os.environ.get("WEFT_PURE", "") not in ("", "0")
# Each finder is asked, because an editable install has its own finder for the extension module.
_finders = [f.find_spec for f in sys.meta_path if hasattr(f, "find_spec")]
_pure = _pure or not any(find("weft._native", __path__, None) for find in _finders)  # noqa: F405
if _pure:
    from weft._fallback import take_over

    take_over(__path__)  # noqa: F405


def use(backend: str) -> None:
    """Chooses the backend whose names `weft` exports from now on.

    Args:
        backend: "coroutines", "threads", "greenlets" or "processes".
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
    if name == "check":
        if _pure:
            from weft._fallback import HOW

            raise ImportError(f"weft.check is not there in pure Python. {HOW}")
        return importlib.import_module("weft._checking.api").check
    if name.startswith("_"):
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    backend = _backend()
    if name in backend.__all__ or _pure:
        return getattr(backend, name)
    raise AttributeError(f"module 'weft' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_backend().__all__, "use", *([] if _pure else ["check"]), "__version__"]
