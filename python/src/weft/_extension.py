"""Imports the extension module, or raises an ImportError that says what to do.

Invariant: the extension module is used only in the main interpreter of a program (rule 16.11). The
import fails in a subinterpreter, even if CPython has given it a copy of the module.
"""

from __future__ import annotations

import weft

_SUBINTERPRETER = (
    "weft's extension module serves the main interpreter of a program, and this is a "
    "subinterpreter. Use weft in the main interpreter; weft.processes computes on all cores there. "
    "With WEFT_PURE=1 in the environment coroutines run in pure Python, also in a subinterpreter"
)

if weft._pure:
    from weft._fallback import HOW

    raise ImportError(f"weft runs in pure Python here. {HOW}")

try:
    from weft import _native as native
except ImportError as error:
    if "subinterpreters" in str(error):
        raise ImportError(_SUBINTERPRETER) from error
    raise ImportError(
        f"weft's extension module is missing or was built for another Python ({error}). "
        "It is built when weft is installed: install a C++20 compiler and the headers of Python "
        "(on Debian: apt install g++ python3-dev), then: pip install --force-reinstall weft-csp"
    ) from error

if not native._in_main_interpreter():
    raise ImportError(_SUBINTERPRETER)

__all__ = ["native"]
