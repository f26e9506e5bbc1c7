"""The extension module, or an ImportError that says what to install."""

from __future__ import annotations

import weft

if weft._pure:
    from weft._fallback import HOW

    raise ImportError(f"weft runs in pure Python here. {HOW}")

try:
    from weft import _native as native
except ImportError as error:
    if "interpreter lock" in str(error):
        raise
    raise ImportError(
        f"weft's extension module is missing or was built for another Python ({error}). "
        "It is built when weft is installed: install a C++20 compiler and the headers of Python "
        "(on Debian: apt install g++ python3-dev), then: pip install --force-reinstall weft"
    ) from error

__all__ = ["native"]
