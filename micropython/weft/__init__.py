"""Weft for MicroPython: communicating processes. `weft` has the names of weft.coroutines."""

__version__ = "0.1.0"
_HERE = ("cores", "coroutines", "errors", "flight", "isr", "link", "threads", "watchdog")


def __getattr__(name):
    """Gives a name of weft.coroutines, or a module of this package: `from . import x` asks here."""
    if name[:2] == "__":
        raise AttributeError(name)
    inside = name[:1] == "_" or name in _HERE
    m = __import__(__name__ + "." + (name if inside else "coroutines"), None, None, (name,))
    return m if inside else getattr(m, name)
