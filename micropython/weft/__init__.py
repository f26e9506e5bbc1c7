"""Weft for MicroPython: communicating processes. Import weft.coroutines or weft.threads."""

__version__ = "0.1.0"


# What each communication looks up, met here first, so numbered in a row: MicroPython's cache of look-ups has one place for every 64th name.
def _names(at, ok, w, nx, y, go, _cur, _push, _int, DONE, ONCE, Rd, Wr):
    pass


del _names
