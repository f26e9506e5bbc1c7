"""Hides the real aiohttp: this module is the first aiohttp on the path of the tests' programs
(conftest.py). nats-py imports aiohttp for web sockets, which would take more than half of a
program's start.
"""

raise ImportError("not for the tests of weft.net")
