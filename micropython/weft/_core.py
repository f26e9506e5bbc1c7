"""Selects the core: the native one (weft_native) if the board has a suitable one, else the core in
Python (_plain)."""

import sys

time = None  # the module _time once it is loaded; without it there are no deadlines or sources

try:
    if "weft_native" in sys.modules or getattr(sys.implementation, "name", "") == "micropython":
        from weft_native import *  # noqa: F403
        from weft_native import ABI

        if ABI != 2:
            raise ValueError
        try:
            from weft_native import Buf  # noqa: F401
        except ImportError:  # for a natmod, the hooks do the operations at channels with a buffer
            from collections import deque

            def Buf(k, n):  # noqa: N802
                return deque((), n)
    else:
        raise ImportError
except (ImportError, ValueError) as e:
    if isinstance(e, ValueError):  # another ABI, or a natmod for another processor
        from ._sentences import MISFIT

        print(MISFIT)
    from ._plain import *  # noqa: F403
