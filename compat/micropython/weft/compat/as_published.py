"""The old libraries under the names with which they were published, so that a program runs without
any change:

    import weft.compat.as_published as published
    published.apycsp()  # or published.pycsp()

After that `import apycsp`, `from apycsp.utils import avg` and so on give the modules of Weft.
"""

import sys


def _give(old, new, parts):
    for part in ("",) + parts:
        sys.modules[old + part] = __import__("weft.compat." + new + part, None, None, ("x",))
    try:
        ModuleNotFoundError  # noqa: B018
    except NameError:
        import builtins

        # Programs name it in `except`; MicroPython raises ImportError itself.
        builtins.ModuleNotFoundError = ImportError


def apycsp():
    """Makes `import apycsp` give the names of aPyCSP."""
    _give("apycsp", "apycsp", (".plugNplay", ".utils"))


def pycsp():
    """Makes `import pycsp` give the names of PyCSP-locksharing."""
    _give("pycsp", "pycsp_locks", (".plugNplay", ".utils"))
