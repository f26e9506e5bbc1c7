"""The core in use: the native one (weft_native) if there is one that fits, else pure Python."""

import sys

time = None  # the module _time once it is loaded; before that there are no deadlines or sources

try:
    if "weft_native" in sys.modules or getattr(sys.implementation, "name", "") == "micropython":
        from weft_native import *  # noqa: F403
        from weft_native import ABI

        if ABI != 1:
            raise ValueError
    else:
        raise ImportError
except (ImportError, ValueError) as e:
    if isinstance(e, ValueError):  # or the file does not fit what sys.implementation._mpy says
        from ._sentences import MISFIT

        print(MISFIT)
    from ._plain import *  # noqa: F403
