"""Gives the old libraries the names under which they were published, so that a program runs without
any change:

    import weft.compat.as_published as published
    published.apycsp()  # or published.pycsp()

After that `import apycsp`, `from apycsp.utils import avg` and so on give the modules of Weft.
"""

import sys


def _give(old, new, parts):
    for part in ("",) + parts:
        sys.modules[old + part] = __import__("weft.compat." + new + part, None, None, ("x",))
    import builtins

    # Programs name these errors in `except`. MicroPython lacks the names, and raises the errors
    # from which CPython derives them.
    for error, base in (("ModuleNotFoundError", ImportError), ("ConnectionError", OSError)):
        if not hasattr(builtins, error):
            setattr(builtins, error, base)


def apycsp():
    """Makes `import apycsp` give the names of aPyCSP."""
    _give("apycsp", "apycsp", (".net", ".plugNplay", ".utils"))


def pycsp():
    """Makes `import pycsp` give the names of PyCSP-locksharing."""
    _give("pycsp", "pycsp_locks", (".plugNplay", ".utils"))
