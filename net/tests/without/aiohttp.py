"""This module is the first aiohttp on the path of the tests' programs (conftest.py), so nats-py,
which imports aiohttp for web sockets, does not find the real one. That import takes more than half
of a program's start.
"""

raise ImportError("not for the tests of weft.net")
