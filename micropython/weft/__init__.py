"""Weft for MicroPython: communicating processes. `weft` has the names of weft.coroutines."""

__version__ = "0.1.0"


def __getattr__(name):
    """Gives a name of weft.coroutines, or a module of this package: `from . import x` asks here.
    No new name is interned here, as coroutines.py says."""
    if name[:2] == "__":
        raise AttributeError(name)
    if name[:1] != "_":
        try:
            return getattr(__import__(__name__ + ".coroutines", None, None, "x"), name)
        except AttributeError:
            pass  # it is a module, or an ImportError says that it is none
    return __import__(__name__ + "." + name, None, None, "x")
