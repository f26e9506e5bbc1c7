"""Weft for MicroPython: communicating processes. Import weft.coroutines or weft.threads."""

__version__ = "0.1.0"
