"""Weft for MicroPython: communicating processes. `weft` has the names of weft.coroutines."""

__version__ = "0.1.0"


def __getattr__(name):
    """Returns a name of weft.coroutines, or a module of this package for `from . import x`.
    No new name is interned here, for the reason in coroutines.py."""
    if name[:2] == "__":
        raise AttributeError(name)
    if name[:1] != "_":
        try:
            return getattr(__import__(__name__ + ".coroutines", None, None, "x"), name)
        except AttributeError:
            pass  # it is a module; otherwise the import raises ImportError
    return __import__(__name__ + "." + name, None, None, "x")
